"""The feed: every event once and in order, live, across processes, and only for people with access."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import AgentRequest, Notice, TextDelta, ToolCall, ToolResult
from palaver.core.engines import sqlite_watch as sqlite_changes
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SessionNotFound, StoreBusy
from palaver.live import feed
from palaver.live.feed import Feed
from palaver.live.feed_events import DraftGrew, EventAppended, NoticeSent, TurnChanged
from palaver.live.follower import Follower
from palaver.people import table as people
from palaver.sessions import table as sessions, turns_table as turns
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import TurnState
from palaver.testing import ScriptedAgent
from palaver.turns import worker
from support.gateway import TIMEOUT_SECONDS, ask, get_turn, send_message, summarize_feed, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from palaver import SessionSource
    from palaver.agent.base import AgentEvent
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from palaver.live.feed_events import FeedItem
    from support.gateway import MakeSource, StartGateway

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]


async def follow_until_turn_ends(
    gateway: Gateway, source: SessionSource, session_id: str, *, turn_id: str | None, after: int | None = 0
) -> list[FeedItem]:
    """Follow a conversation until a turn has ended."""
    principal = gateway.store.get_or_create_person(source).principal
    items: list[FeedItem] = []
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(gateway.feed.follow(principal, session_id, after=after)) as feed,
    ):
        async for item in feed:
            items.append(item)
            if isinstance(item, TurnChanged) and item.turn.id == turn_id and item.turn.state.has_ended:
                break
    return items


def join_drafts(items: list[FeedItem]) -> str:
    """Join the text of all drafts; a draft that replaces the one before starts over."""
    text = ""
    for item in items:
        if isinstance(item, DraftGrew):
            text = ("" if item.replaces_draft else text) + "".join(piece.text for piece in item.pieces)
    return text


class WordByWordAgent:
    """Says one word each time that the test releases `next`."""

    def __init__(self, words: str) -> None:
        self.words = words.split()
        self.next = asyncio.Semaphore(0)
        self.word_count = 0
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        for word in self.words:
            await self.next.acquire()
            yield TextDelta(word + " ")
            self.word_count += 1


async def test_a_follower_gets_the_whole_turn_in_order(start_gateway: StartGateway, dm: MakeSource) -> None:
    events: list[AgentEvent] = [
        Notice("one moment"),
        ToolCall("c", "look", "{}"),
        ToolResult("c", "look", "a cat"),
        TextDelta("A cat."),
    ]
    gateway = await start_gateway(ScriptedAgent(lambda _request: events))
    first = await ask(gateway, dm(), "hello")
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="What is it?"))
    items = await follow_until_turn_ends(gateway, dm(), first.session_id, turn_id=receipt.turn_id)
    messages = [item.event.message for item in items if isinstance(item, EventAppended) and item.event.message]
    assert [message.role for message in messages] == [*["user", "assistant", "tool", "assistant"] * 2]
    assert summarize_feed(items)[-1] == "done"
    seqs = [item.event.seq for item in items if isinstance(item, EventAppended)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("same_process", [True, False])
async def test_a_follower_gets_a_draft_as_it_grows(
    start_gateway: StartGateway, dm: MakeSource, same_process: bool
) -> None:
    slow = WordByWordAgent("one two three four five")
    writer = await start_gateway(slow.agent)
    reader = writer if same_process else await start_gateway()
    if not same_process:
        await reader.turn_worker.stop()
    receipt = await writer.inbox.accept(Inbound(source=dm(), content="count"))
    received: list[FeedItem] = []
    principal = reader.store.get_or_create_person(dm()).principal
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(reader.feed.follow(principal, receipt.session_id or "")) as feed,
    ):
        slow.next.release()
        async for item in feed:
            received.append(item)
            if isinstance(item, DraftGrew):
                slow.next.release()
            if isinstance(item, TurnChanged) and item.turn.state.has_ended:
                break
    assert sum(isinstance(item, DraftGrew) for item in received) >= 3
    assert "one two three four five ".startswith(join_drafts(received))
    assert isinstance(received[-2], EventAppended)
    assert received[-2].event.message is not None
    assert received[-2].event.message.content == "one two three four five "


async def test_a_late_follower_gets_the_draft_so_far(start_gateway: StartGateway, dm: MakeSource) -> None:
    slow = WordByWordAgent("one two three")
    gateway = await start_gateway(slow.agent)
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="count"))
    slow.next.release()
    slow.next.release()
    await wait_until(lambda: slow.word_count == 2)
    principal = gateway.store.get_or_create_person(dm()).principal
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(gateway.feed.follow(principal, receipt.session_id or "")) as feed,
    ):
        async for item in feed:
            if isinstance(item, DraftGrew):
                assert (join_drafts([item]), item.replaces_draft) == ("one two ", True)
                break
    slow.next.release()
    await wait_for_turn(gateway, receipt.turn_id)


async def test_a_follower_continues_where_it_left_off(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    first = await ask(gateway, dm(), "one")
    items = await follow_until_turn_ends(gateway, dm(), first.session_id, turn_id=first.id, after=0)
    last = max(item.event.seq for item in items if isinstance(item, EventAppended))
    second = await gateway.inbox.accept(Inbound(source=dm(), content="two"))
    more = await follow_until_turn_ends(gateway, dm(), first.session_id, turn_id=second.turn_id, after=last)
    seqs = [item.event.seq for item in more if isinstance(item, EventAppended)]
    assert seqs == [last + 1, last + 2]


async def test_a_follower_gets_the_running_turn_although_a_later_one_was_canceled(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    slow = WordByWordAgent("one two")
    gateway = await start_gateway(slow.agent)
    running = await gateway.inbox.accept(Inbound(source=dm(), content="count"))
    await wait_until(lambda: gateway.turn_worker.running_count)
    await gateway.inbox.accept(Inbound(source=dm(), content="and then"))
    principal = gateway.store.get_or_create_person(dm()).principal
    session_no = gateway.store.engine.run(Read(lambda tx: sessions.get_no(tx, running.session_id or "")))
    gateway.store.engine.run(Write(lambda tx: turns.cancel_queued(tx, session_no, 0, "canceled")))
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(gateway.feed.follow(principal, running.session_id or "")) as feed,
    ):
        async for item in feed:
            if isinstance(item, TurnChanged) and item.turn.id == running.turn_id:
                assert item.turn.state is TurnState.RUNNING
                break
    slow.next.release()
    slow.next.release()
    await wait_for_turn(gateway, running.turn_id)


async def test_a_slow_follower_delays_no_turn_and_misses_nothing(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda _request: [TextDelta(f"{i} ") for i in range(500)]))
    first = await ask(gateway, dm(), "start")
    principal = gateway.store.get_or_create_person(dm()).principal
    seqs = []
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(gateway.feed.follow(principal, first.session_id, after=3)) as feed,
    ):
        waiting = asyncio.ensure_future(anext(feed))
        for i in range(20):  # the follower does not read during this time
            turn = await ask(gateway, dm(), str(i))
        item = await waiting
        while not (isinstance(item, TurnChanged) and item.turn.id == turn.id and item.turn.state.has_ended):
            if isinstance(item, EventAppended):
                seqs.append(item.event.seq)
            item = await anext(feed)
    assert seqs == list(range(4, 44))


async def test_a_follower_gets_changes_made_by_another_process(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, other = await start_gateway(), await start_gateway()
    turn = await ask(gateway, dm(), "hello")
    received: list[FeedItem] = []

    async def follow() -> None:
        principal = gateway.store.get_or_create_person(dm()).principal
        async for item in gateway.feed.follow(principal, turn.session_id, after=3):
            received.append(item)  # noqa: PERF401  (the test reads the list while it grows)

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.1)  # until the follower waits
    await other.store.aio.rename_session(turn.session_id, "New title")
    await wait_until(lambda: received)
    assert summarize_feed(received) == ["renamed"]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_follower_gets_notices(start_gateway: StartGateway, dm: MakeSource) -> None:
    may_continue = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield Notice("the first model is unavailable")
        await may_continue.wait()
        yield TextDelta("ok")

    gateway = await start_gateway(ScriptedAgent(answer))
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="hello"))
    principal = gateway.store.get_or_create_person(dm()).principal
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        aclosing(gateway.feed.follow(principal, receipt.session_id or "")) as feed,
    ):
        async for item in feed:
            if isinstance(item, NoticeSent):
                assert item.text == "the first model is unavailable"
                break
    may_continue.set()
    assert (await wait_for_turn(gateway, receipt.turn_id)).state is TurnState.DONE


async def test_a_change_that_could_not_be_read_is_read_later(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch, store_url: str
) -> None:
    if not store_url.startswith("sqlite"):
        pytest.skip("PostgreSQL notifies listeners of the changed sessions")
    await start_gateway()
    other = await start_gateway()
    await other.turn_worker.stop()
    find_changed_sessions, failures = sqlite_changes.find_changed_sessions, []

    def fail(_tx: Transaction, _marks: Any) -> Any:
        failures.append(True)
        raise StoreBusy

    await asyncio.sleep(0.1)  # until nothing else changes
    monkeypatch.setattr(worker, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(sqlite_changes, "find_changed_sessions", fail)
    turn_id = await send_message(other, dm(), "hello")
    await wait_until(lambda: len(failures) > 1)
    monkeypatch.setattr(sqlite_changes, "find_changed_sessions", find_changed_sessions)
    assert (await wait_for_turn(other, turn_id)).state is TurnState.DONE


# -- without notifications ------------------------------------------------------------------------------------


@asynccontextmanager
async def keep_following(gateway: Gateway, source: SessionSource, session_id: str) -> AsyncIterator[list[FeedItem]]:
    """Follow a conversation from now on; yields the list to which the items are added."""
    received: list[FeedItem] = []
    principal = gateway.store.get_or_create_person(source).principal

    async def follow() -> None:
        async for item in gateway.feed.follow(principal, session_id):
            received.append(item)  # noqa: PERF401  (the test reads the list while it grows)

    task = asyncio.create_task(follow())
    try:
        yield received
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def follower_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The session numbers of all reads by followers."""
    reads: list[int] = []
    read_store = Follower.read_store

    def record_read(follower: Follower, *args: Any) -> Any:
        reads.append(follower.session_no)
        return read_store(follower, *args)

    monkeypatch.setattr(Follower, "read_store", record_read)
    return reads


async def test_followers_do_not_read_while_nothing_is_stored(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch, follower_reads: list[int]
) -> None:
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", 0.1)
    gateway = await start_gateway()
    entry = await gateway.store.aio.get_or_create_session(dm())
    async with keep_following(gateway, dm(), entry.session_id):
        await wait_until(lambda: follower_reads)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while follower_reads:  # until the commits of the start are noticed
                follower_reads.clear()
                await asyncio.sleep(0.3)  # longer than a catch-up takes


async def test_a_turn_is_found_without_a_search_and_read_once_for_each_of_its_changes(
    start_gateway: StartGateway,
    dm: MakeSource,
    monkeypatch: pytest.MonkeyPatch,
    follower_reads: list[int],
    store_url: str,
) -> None:
    if not store_url.startswith("sqlite"):
        pytest.skip("PostgreSQL notifies of each change by itself")
    monkeypatch.setattr(sqlite_changes, "CHECK_SECONDS", 600.0)
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", 600.0)
    gateway = await start_gateway()
    entry = await gateway.store.aio.get_or_create_session(dm())
    searches: list[bool] = []
    find_changed_sessions = sqlite_changes.find_changed_sessions

    def find(tx: Transaction, marks: Any) -> Any:
        searches.append(True)
        return find_changed_sessions(tx, marks)

    async with keep_following(gateway, dm(), entry.session_id) as received:
        await wait_until(lambda: follower_reads)
        await asyncio.sleep(0.1)  # until the commits of the start are noticed
        monkeypatch.setattr(sqlite_changes, "find_changed_sessions", find)
        follower_reads.clear()
        receipt = await gateway.inbox.accept(Inbound(source=dm(), content="hello"))
        await wait_until(
            lambda: any(
                isinstance(item, TurnChanged) and item.turn.id == receipt.turn_id and item.turn.state.has_ended
                for item in received
            )
        )
    assert len(follower_reads) <= 3, "when it is accepted, when it starts, when it ends"
    assert searches == []


async def test_a_follower_gets_a_change_of_which_it_is_not_notified(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch, follower_reads: list[int]
) -> None:
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", 0.1)
    gateway, other = await start_gateway(), await start_gateway()
    entry = await gateway.store.aio.get_or_create_session(dm())
    async with keep_following(gateway, dm(), entry.session_id) as received:
        await wait_until(lambda: follower_reads)
        monkeypatch.setattr(Feed, "_notify_changes", lambda *_: None)
        await other.store.aio.append_to_transcript(entry.session_id, {"role": "user", "content": "hello"})
        await wait_until(lambda: received)
        assert summarize_feed(received) == ["user"]


# -- access ---------------------------------------------------------------------------------------------------


async def test_a_person_cannot_follow_a_conversation_of_another_person(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm("ada"), "my diary")
    bob = gateway.store.get_or_create_person(dm("bob")).principal
    for session_id in (turn.session_id, "20260101_000000_00000000"):
        with pytest.raises(SessionNotFound, match=session_id):
            await anext(gateway.feed.follow(bob, session_id))


async def test_following_ends_with_an_error_when_the_conversation_is_deleted(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    turn = await ask(gateway, dm(), "hello")
    principal = gateway.store.get_or_create_person(dm()).principal

    async def follow_and_delete() -> None:
        async for _ in gateway.feed.follow(principal, turn.session_id, after=0):
            await gateway.store.aio.delete_session(turn.session_id)

    with pytest.raises(SessionNotFound):
        await asyncio.wait_for(follow_and_delete(), 10)


async def test_following_a_growing_answer_ends_when_the_person_loses_access(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    is_over = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        while not is_over.is_set():
            yield TextDelta("and so on ")
            await asyncio.sleep(0.01)

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "hello")
    turn = await get_turn(gateway, turn_id)
    person_row = gateway.store.engine.run(Read(lambda tx: people.find_by_source(tx, dm())))
    assert person_row is not None
    received: list[object] = []

    async def follow() -> None:
        async with aclosing(gateway.feed.follow(person_row.person.principal, turn.session_id, after=0)) as items:
            async for item in items:
                received.append(item)  # noqa: PERF401  (the test reads the list while it grows)

    following = asyncio.create_task(follow())
    await wait_until(lambda: len(received) > 5)
    gateway.store.engine.run(Write(lambda tx: tx.execute("DELETE FROM audience_member")))
    with pytest.raises(SessionNotFound):
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await following
    is_over.set()
