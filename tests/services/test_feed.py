"""The feed: everything once and in order, live, across processes, whoever is slow, and nobody else's."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from palaver.agent.base import AgentRequest, Notice, TextDelta, ToolCall, ToolResult
from palaver.domain.errors import NoSuchSession
from palaver.domain.feed_events import Drafted, Happened, Noticed, TurnChanged
from palaver.domain.inbound import Inbound
from palaver.domain.turn import TurnState
from palaver.storage import sessions, turns
from palaver.storage.engines.base import Read, Write
from palaver.testing import ScriptedAgent
from support.gateway import ask, ended, told, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent
    from palaver.domain.feed_events import FeedItem
    from palaver.services.gateway import Gateway
    from support.gateway import MakeSource, StartGateway


async def followed(
    gateway: Gateway, source: SessionSource, session_id: str, *, until_turn: str | None = None, after: int | None = 0
) -> list[FeedItem]:
    """Follow a conversation until a turn has ended."""
    principal = gateway.store.person_for(source).principal
    items: list[FeedItem] = []
    async with asyncio.timeout(60), aclosing(gateway.feed.follow(principal, session_id, after=after)) as feed:
        async for item in feed:
            items.append(item)
            if isinstance(item, TurnChanged) and item.turn.id == until_turn and item.turn.state.ended:
                break
    return items


def drafted(items: list[FeedItem]) -> str:
    """What the drafts add up to."""
    text = ""
    for item in items:
        if isinstance(item, Drafted):
            text = ("" if item.afresh else text) + "".join(piece.text for piece in item.pieces)
    return text


class Slow:
    """An agent that speaks word by word, when it is let."""

    def __init__(self, words: str) -> None:
        self.words = words.split()
        self.next = asyncio.Semaphore(0)
        self.said = 0
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        for word in self.words:
            await self.next.acquire()
            yield TextDelta(word + " ")
            self.said += 1


async def test_a_follower_hears_the_whole_turn_in_order(start_gateway: StartGateway, dm: MakeSource) -> None:
    events: list[AgentEvent] = [
        Notice("one moment"),
        ToolCall("c", "look", "{}"),
        ToolResult("c", "look", "a cat"),
        TextDelta("A cat."),
    ]
    gateway = await start_gateway(ScriptedAgent(lambda _request: events))
    first = await ask(gateway, dm(), "hello")
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="What is it?"))
    items = await followed(gateway, dm(), first.session_id, until_turn=receipt.turn_id)
    messages = [item.event.message for item in items if isinstance(item, Happened) and item.event.message]
    assert [message.role for message in messages] == [*["user", "assistant", "tool", "assistant"] * 2]
    assert told(items)[-1] == "done"
    seqs = [item.event.seq for item in items if isinstance(item, Happened)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_growing_answer_is_heard_as_it_grows(
    start_gateway: StartGateway, dm: MakeSource, same_process: bool
) -> None:
    slow = Slow("one two three four five")
    worker = await start_gateway(slow.agent)
    reader = worker if same_process else await start_gateway()
    if not same_process:
        await reader.turns.stop()
    receipt = await worker.inbox.accept(Inbound(source=dm(), content="count"))
    heard: list[FeedItem] = []
    principal = reader.store.person_for(dm()).principal
    async with asyncio.timeout(60), aclosing(reader.feed.follow(principal, receipt.session_id or "")) as feed:
        slow.next.release()
        async for item in feed:
            heard.append(item)
            if isinstance(item, Drafted):
                slow.next.release()
            if isinstance(item, TurnChanged) and item.turn.state.ended:
                break
    assert sum(isinstance(item, Drafted) for item in heard) >= 3
    assert "one two three four five ".startswith(drafted(heard))
    assert isinstance(heard[-2], Happened)
    assert heard[-2].event.message is not None
    assert heard[-2].event.message.content == "one two three four five "


async def test_whoever_comes_late_hears_what_was_said_so_far(start_gateway: StartGateway, dm: MakeSource) -> None:
    slow = Slow("one two three")
    gateway = await start_gateway(slow.agent)
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="count"))
    slow.next.release()
    slow.next.release()
    await until(lambda: slow.said == 2)
    principal = gateway.store.person_for(dm()).principal
    async with asyncio.timeout(60), aclosing(gateway.feed.follow(principal, receipt.session_id or "")) as feed:
        async for item in feed:
            if isinstance(item, Drafted):
                assert (drafted([item]), item.afresh) == ("one two ", True)
                break
    slow.next.release()
    await ended(gateway, receipt.turn_id)


async def test_a_follower_goes_on_where_it_left_off(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    first = await ask(gateway, dm(), "one")
    items = await followed(gateway, dm(), first.session_id, until_turn=first.id, after=0)
    last = max(item.event.seq for item in items if isinstance(item, Happened))
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    more = await followed(gateway, dm(), first.session_id, until_turn=second.turn_id, after=last)
    seqs = [item.event.seq for item in more if isinstance(item, Happened)]
    assert seqs == [last + 1, last + 2]


async def test_a_running_turn_is_told_also_when_a_later_one_was_dropped(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    slow = Slow("one two")
    gateway = await start_gateway(slow.agent)
    running = await gateway.inbox.accept(Inbound(source=dm(), content="count"))
    await until(lambda: gateway.turns.running)
    await gateway.inbox.accept(Inbound(source=dm(), content="and then"))
    principal = gateway.store.person_for(dm()).principal
    session_no = gateway.store.engine.run(Read(lambda tx: sessions.number_of(tx, running.session_id or "")))
    gateway.store.engine.run(Write(lambda tx: turns.drop_queued(tx, session_no, 0, "dropped")))
    async with asyncio.timeout(60), aclosing(gateway.feed.follow(principal, running.session_id or "")) as feed:
        async for item in feed:
            if isinstance(item, TurnChanged) and item.turn.id == running.turn_id:
                assert item.turn.state is TurnState.RUNNING
                break
    slow.next.release()
    slow.next.release()
    await ended(gateway, running.turn_id)


async def test_a_slow_follower_holds_nobody_up_and_misses_nothing(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda _request: [TextDelta(f"{i} ") for i in range(500)]))
    first = await ask(gateway, dm(), "begin")
    principal = gateway.store.person_for(dm()).principal
    seqs = []
    async with asyncio.timeout(60), aclosing(gateway.feed.follow(principal, first.session_id, after=3)) as feed:
        waiting = asyncio.ensure_future(anext(feed))
        for i in range(20):  # nobody reads meanwhile
            turn = await ask(gateway, dm(), str(i))
        item = await waiting
        while not (isinstance(item, TurnChanged) and item.turn.id == turn.id and item.turn.state.ended):
            if isinstance(item, Happened):
                seqs.append(item.event.seq)
            item = await anext(feed)
    assert seqs == list(range(4, 44))


async def test_what_others_do_to_a_conversation_is_heard_too(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, other = await start_gateway(), await start_gateway()
    turn = await ask(gateway, dm(), "hello")
    heard: list[FeedItem] = []

    async def listen() -> None:
        principal = gateway.store.person_for(dm()).principal
        async for item in gateway.feed.follow(principal, turn.session_id, after=3):
            heard.append(item)  # noqa: PERF401  (read while it grows)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.1)  # so that it waits already
    await other.store.aio.rename_session(turn.session_id, "Elsewhere")
    await until(lambda: heard)
    assert told(heard) == ["renamed"]
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_notices_are_heard_and_not_kept(start_gateway: StartGateway, dm: MakeSource) -> None:
    go_on = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield Notice("the first model is away")
        await go_on.wait()
        yield TextDelta("ok")

    gateway = await start_gateway(ScriptedAgent(answer))
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="hello"))
    principal = gateway.store.person_for(dm()).principal
    async with asyncio.timeout(60), aclosing(gateway.feed.follow(principal, receipt.session_id or "")) as feed:
        async for item in feed:
            if isinstance(item, Noticed):
                assert item.text == "the first model is away"
                break
    go_on.set()
    assert (await ended(gateway, receipt.turn_id)).state is TurnState.DONE


async def test_nobody_follows_what_they_may_not_see(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "my diary")
    bob = gateway.store.person_for(dm("bob")).principal
    for session_id in (turn.session_id, "20260101_000000_00000000"):
        with pytest.raises(NoSuchSession, match=session_id):
            await anext(gateway.feed.follow(bob, session_id))


async def test_a_follower_of_a_deleted_conversation_is_told_so(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm(), "hello")
    principal = gateway.store.person_for(dm()).principal

    async def follow_and_delete() -> None:
        async for _ in gateway.feed.follow(principal, turn.session_id, after=0):
            await gateway.store.aio.delete_session(turn.session_id)

    with pytest.raises(NoSuchSession):
        await asyncio.wait_for(follow_and_delete(), 10)
