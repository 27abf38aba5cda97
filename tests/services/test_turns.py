"""Turns: who runs them, how many at once, how they end, and what becomes of them when their worker dies."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import (
    AgentRequest,
    Notice,
    ReasoningDelta,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    Used,
)
from palaver.agent.tokens import estimate_messages
from palaver.domain.draft import Piece, PieceKind
from palaver.domain.errors import AgentRefused, AgentUnavailable, ContextOverflow, LeaseLost
from palaver.domain.events import EventKind
from palaver.domain.feed_events import Noticed
from palaver.domain.inbound import Inbound
from palaver.domain.person import Principal
from palaver.domain.turn import MOST_ATTEMPTS, TurnState
from palaver.domain.usage import TurnUsage
from palaver.platforms.loopback import Loopback
from palaver.services.turns import worker as service
from palaver.storage import drafts, leases
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros
from palaver.testing import ScriptedAgent
from support.gateway import ask, ended, texts, turn_of, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver import SessionStore
    from palaver.agent.base import AgentEvent
    from palaver.services.gateway import Gateway
    from palaver.storage.leases import Lease
    from support.gateway import MakeSource, StartGateway


OWNER = SessionSource.local_cli()


class Counting:
    """An agent that knows how many of its answers are under way."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.order: list[str] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        self.now += 1
        self.most = max(self.most, self.now)
        self.order.append(request.messages[-1]["content"])
        await self.may_go_on.wait()
        await asyncio.sleep(0.02)
        self.now -= 1
        yield TextDelta("ok")


async def say(gateway: Gateway, source: SessionSource, text: str) -> str | None:
    return (await gateway.inbox.accept(Inbound(source=source, content=text))).turn_id


async def test_no_more_turns_run_at_once_than_allowed_in_all_processes(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = Counting()
    gateways = [await start_gateway(counting.agent, concurrency=3) for _ in range(2)]
    asked = [await say(gateways[i % 2], dm(f"user{i}"), str(i)) for i in range(12)]
    for turn_id in asked:
        await ended(gateways[0], turn_id)
    assert counting.most <= 3


async def test_one_person_does_not_take_all_workers(start_gateway: StartGateway, group: MakeSource) -> None:
    counting = Counting()
    gateway = await start_gateway(counting.agent, concurrency=8, per_person=2)
    asked = [await say(gateway, group("ada", chat=f"room{i}"), str(i)) for i in range(8)]
    for turn_id in asked:
        await ended(gateway, turn_id)
    assert counting.most <= 2


async def test_a_conversation_with_a_long_queue_does_not_keep_others_waiting(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = Counting()
    gateway = await start_gateway(counting.agent, concurrency=1)
    counting.may_go_on.clear()
    asked = [await say(gateway, dm("ada"), "ada 0")]
    await until(lambda: counting.order)
    asked += [await say(gateway, dm("ada"), f"ada {i}") for i in range(1, 8)]
    asked += [await say(gateway, dm("bob"), "bob 0"), await say(gateway, dm("bob"), "bob 1")]
    counting.may_go_on.set()
    for turn_id in asked:
        await ended(gateway, turn_id)
    assert counting.order[:5] == ["ada 0", "ada 1", "bob 0", "ada 2", "bob 1"]
    assert [text for text in counting.order if text.startswith("ada")] == [f"ada {i}" for i in range(8)]


async def test_a_conversation_runs_one_turn_at_a_time_whoever_works(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = Counting()
    gateways = [await start_gateway(counting.agent, concurrency=8) for _ in range(3)]
    asked = [await say(gateways[i % 3], dm(), str(i)) for i in range(9)]
    for turn_id in asked:
        await ended(gateways[0], turn_id)
    assert counting.most == 1
    assert counting.order == [str(i) for i in range(9)]


# -- how a turn ends ----------------------------------------------------------------------------------------


async def test_reasoning_tool_calls_and_usage_are_stored_with_the_answer(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ReasoningDelta("They want the time.")
        yield ToolCall("c1", "clock", '{"zone":"UTC"}')
        yield ToolResult("c1", "clock", "12:00")
        yield TextDelta("It is ")
        yield TextDelta("noon.")
        yield Used(TurnUsage(model="m-1", provider="p", input_tokens=10, output_tokens=4, cost="0.001"))
        yield Used(TurnUsage(model="m-1", provider="p", input_tokens=5, output_tokens=1, cost="0.002"))
        yield Used(TurnUsage(model="m-2", provider="p", input_tokens=7, output_tokens=2))

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "What time is it?")
    stored = gateway.store.load_transcript(turn.session_id)
    assert [message["role"] for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[1]["reasoning"] == "They want the time."
    assert stored[1]["tool_calls"][0]["function"] == {"name": "clock", "arguments": '{"zone":"UTC"}'}
    assert (stored[2]["tool_call_id"], stored[2]["content"]) == ("c1", "12:00")
    assert stored[3]["content"] == "It is noon."
    used = gateway.store.get_session(turn.session_id).usage
    assert (used.input_tokens, used.output_tokens, used.unpriced_turns) == (22, 7, 1)
    assert str(used.cost) == "0.003"


async def test_how_long_each_tool_took_is_kept_while_it_is_said_and_afterwards(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    may_end = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("slow", "look", "{}")
        yield ToolCall("quick", "look", "{}")
        yield ToolResult("quick", "look", "here")
        await asyncio.sleep(0.05)
        yield ToolResult("slow", "look", "there")
        yield ToolResult("never called", "look", "nowhere")
        await may_end.wait()
        yield TextDelta("Seen.")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "look")
    engine = gateway.store.engine

    def kept() -> list[Piece]:
        rows = engine.run(Read(lambda tx: tx.all("SELECT body FROM draft ORDER BY no")))
        return [Piece.from_dict(piece) for (body,) in rows for piece in json.loads(body)]

    drafted = await until(lambda: (pieces := kept()) and len(pieces) == 5 and pieces)
    may_end.set()
    turn = await ended(gateway, turn_id)
    stored = gateway.store.load_transcript(turn.session_id)
    took = {message["tool_call_id"]: message.get("duration_ms") for message in stored if message["role"] == "tool"}
    assert took == {piece.call_id: piece.duration_ms for piece in drafted if piece.kind is PieceKind.RESULT}
    assert all(datetime.fromisoformat(piece.began_at).utcoffset() == timedelta() for piece in drafted[:2])
    assert took["never called"] is None
    assert took["slow"] >= took["quick"] + 49
    assert stored[-1]["duration_ms"] >= took["slow"]  # the whole answer


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AgentRefused("openai does not accept the key; set OPENAI_API_KEY"), "set OPENAI_API_KEY"),
        (AgentUnavailable("the model cannot be reached"), "cannot be reached"),
    ],
)
async def test_what_the_agent_cannot_do_is_said_in_words_and_what_it_said_is_kept(
    start_gateway: StartGateway, error: Exception, words: str
) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("I was about to say")
        raise error

    loopback = Loopback()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    receipt = await loopback.say("hello")
    turn = await ended(gateway, receipt.turn_id)
    assert (turn.state, turn.error) == (TurnState.FAILED, str(error))
    kept = gateway.store.load_transcript(turn.session_id)[-1]
    assert (kept["content"], kept["interrupted"]) == ("I was about to say", True)
    assert gateway.store.events(turn.session_id)[-1].kind is EventKind.FAILED
    sent = await until(lambda: loopback.sent)
    assert words in sent[0].content
    assert "I was about to say" in sent[0].content


async def test_a_mistake_in_a_driver_ends_the_turn_and_shows_no_traceback(
    start_gateway: StartGateway, dm: MakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(_request: AgentRequest) -> str:
        raise ZeroDivisionError("secret detail")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert "ZeroDivisionError" in (turn.error or "")
    assert "secret detail" not in (turn.error or "")
    assert "secret detail" in caplog.text
    assert (await ask(gateway, dm(), "again")).state is TurnState.FAILED  # and the next one is taken up


async def test_stop_keeps_what_was_said_and_marks_it(start_gateway: StartGateway, dm: MakeSource) -> None:
    begun = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        begun.set()
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "Tell me a story")
    await begun.wait()
    receipt = await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    assert receipt.reply
    turn = await ended(gateway, turn_id)
    assert (turn.state, turn.error) == (TurnState.INTERRUPTED, "stopped")
    kept = gateway.store.load_transcript(turn.session_id)[-1]
    assert (kept["content"], kept["interrupted"]) == ("Once upon a time", True)


async def test_a_stop_reaches_a_run_in_another_process(start_gateway: StartGateway, dm: MakeSource) -> None:
    begun = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        begun.set()
        await asyncio.Event().wait()
        yield TextDelta("never")

    worker = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(worker, dm(), "Tell me a story")
    await begun.wait()
    other = await start_gateway()
    await other.inbox.accept(Inbound(source=dm(), content="/stop"))
    assert (await ended(other, turn_id)).state is TurnState.INTERRUPTED


async def test_a_turn_that_takes_too_long_is_stopped_and_says_so(start_gateway: StartGateway, dm: MakeSource) -> None:
    from datetime import timedelta

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Hm")
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(answer), longest=timedelta(seconds=0.2))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.INTERRUPTED
    assert "took longer" in (turn.error or "")


async def test_a_conversation_too_long_for_the_model_is_summarised_once_and_answered(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(request: AgentRequest) -> Any:
        last = request.messages[-1]["content"]
        if last.startswith("Summarise this conversation"):
            return "They counted."
        if len(request.messages) > 8:
            raise ContextOverflow
        return f"{last} it is"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        turn = await ask(gateway, dm(), f"number {i}")
        assert turn.state is TurnState.DONE
    kinds = [event.kind for event in gateway.store.events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == 1
    assert "They counted." in agent.requests[-1].messages[0]["content"]
    assert len(gateway.store.load_transcript(turn.session_id)) == 12  # nothing was taken away


class Filling:
    """An agent whose conversations have the size that a test gives them, and that counts what it is asked."""

    def __init__(self, window: int | None, *, summary: str = "They counted.", fixed: int = 0) -> None:
        self.agent = ScriptedAgent(self._answer, window=window)
        self.summaries = 0
        self._summary = summary
        self._fixed = fixed  # tokens that every request has, whatever was said
        self.may_go_on = asyncio.Event()  # to the answer, after a summary
        self.may_go_on.set()

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"].startswith("Summarise this conversation"):
            self.summaries += 1
            yield Used(TurnUsage(model="m", input_tokens=1, last_prompt_tokens=10**6))
            yield TextDelta(self._summary)
            return
        if self.summaries:
            await self.may_go_on.wait()
        tokens = self._fixed + estimate_messages(request.messages)
        yield TextDelta("word " * 100)
        yield Used(TurnUsage(model="m", input_tokens=tokens, last_prompt_tokens=tokens))


async def test_a_conversation_that_nearly_fills_the_model_is_summarised_before_it_is_asked(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    filling = Filling(window=1000)
    gateway = await start_gateway(filling.agent)
    filled = []
    for i in range(20):
        turn = await ask(gateway, dm(), f"number {i}")
        assert turn.state is TurnState.DONE
        filled.append(gateway.store.get_session(turn.session_id).last_prompt_tokens)
    assert filling.summaries >= 2
    assert max(filled) < 1000  # it never had to be refused
    kinds = [event.kind for event in gateway.store.events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == filling.summaries
    assert filling.summaries <= sum(tokens >= 850 for tokens in filled)
    assert "They counted." in filling.agent.requests[-1].messages[0]["content"]
    assert len(gateway.store.load_transcript(turn.session_id)) == 40  # nothing was taken away


async def test_whoever_follows_is_told_of_a_summary(start_gateway: StartGateway, dm: MakeSource) -> None:
    filling = Filling(window=1000)
    filling.may_go_on.clear()  # notices are not kept: the run must not be over before they are heard
    gateway = await start_gateway(filling.agent)
    turn = await ask(gateway, dm(), "number 0")
    assert turn.person_id is not None
    following = gateway.feed.follow(Principal(turn.person_id), turn.session_id, after=0)

    async def noticed() -> str:
        told = (item.text async for item in following if isinstance(item, Noticed))
        try:
            return await anext(told) + await anext(told)
        finally:
            filling.may_go_on.set()

    told = asyncio.create_task(noticed())
    while not filling.summaries:
        await ask(gateway, dm(), "more")
    assert await told == (
        "Older messages are being summarised."
        "The conversation had nearly filled what the model takes, so its beginning was summarised."
    )
    await following.aclose()


@pytest.mark.parametrize(
    ("window", "fixed"),
    [
        (None, 0),  # nobody knows how much the model takes
        (100_000, 0),
        (100_000, 95_000),  # it is not the conversation that fills it
    ],
)
async def test_nothing_is_summarised_ahead_without_need_or_use(
    start_gateway: StartGateway, dm: MakeSource, window: int | None, fixed: int
) -> None:
    filling = Filling(window=window, fixed=fixed)
    gateway = await start_gateway(filling.agent)
    for i in range(8):
        turn = await ask(gateway, dm(), f"{i}")
        assert turn.state is TurnState.DONE
    assert filling.summaries == 0


async def test_a_conversation_is_answered_when_it_could_not_be_summarised_ahead(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    filling = Filling(window=1000, summary="")
    gateway = await start_gateway(filling.agent)
    for i in range(10):
        assert (await ask(gateway, dm(), f"number {i}")).state is TurnState.DONE
    assert filling.summaries >= 1
    assert len(filling.agent.requests[-1].messages) == 19


async def test_compress_summarises_and_restore_takes_it_back(start_gateway: StartGateway) -> None:
    def answer(request: AgentRequest) -> str:
        last = request.messages[-1]["content"]
        return "They spoke of tea." if last.startswith("Summarise this conversation") else "yes"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        await ask(gateway, OWNER, f"tea {i}")
    await gateway.inbox.accept(Inbound(source=OWNER, content="/model scripted-large"))
    turn = await ask(gateway, OWNER, "/compress")
    assert turn.state is TurnState.DONE
    assert agent.requests[-1].model == "scripted-large"  # the one that was chosen for this conversation
    await ask(gateway, OWNER, "more tea")
    shortened = [message["content"] for message in agent.requests[-1].messages]
    assert "They spoke of tea." in shortened[0]
    assert shortened[1:] == ["tea 4", "yes", "tea 5", "yes", "more tea"]
    await gateway.inbox.accept(Inbound(source=OWNER, content="/restore"))
    await ask(gateway, OWNER, "and now?")
    assert agent.requests[-1].messages[0]["content"] == "tea 0"


async def test_a_summary_that_fails_leaves_everything_as_it_was(start_gateway: StartGateway) -> None:
    def answer(request: AgentRequest) -> str:
        if request.messages[-1]["content"].startswith("Summarise this conversation"):
            raise AgentUnavailable("the model is away")
        return "yes"

    agent = ScriptedAgent(answer)
    gateway = await start_gateway(agent)
    for i in range(6):
        await ask(gateway, OWNER, f"tea {i}")
    turn = await ask(gateway, OWNER, "/compress")
    assert (turn.state, turn.error) == (TurnState.FAILED, "the model is away")
    await ask(gateway, OWNER, "more")
    assert agent.requests[-1].messages[0]["content"] == "tea 0"


async def test_a_notice_of_the_agent_is_no_part_of_the_answer(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(ScriptedAgent(lambda _request: [Notice("using the other model"), TextDelta("Hi")]))
    turn = await ask(gateway, dm(), "hello")
    assert texts(gateway.store, turn.session_id)[-1] == ("assistant", "Hi")


# -- when a worker dies -------------------------------------------------------------------------------------


class Dead:
    """A worker that claims turns and is never heard of again."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def claim(self, seconds: float = -1) -> list[Lease]:
        now = to_micros(self.store.clock.now())
        claimer = leases.Claimer(
            owner="elsewhere/1/1/dead", until=now + round(seconds * 1e6), most=9, concurrency=9, per_person=9
        )
        return self.store.engine.run(Write(lambda tx: leases.claim(tx, claimer, now)))


async def accepted_and_claimed(start_gateway: StartGateway, dm: MakeSource) -> tuple[Gateway, Lease]:
    gateway = await start_gateway(concurrency=1)
    await gateway.turns.stop()
    await say(gateway, dm(), "hello")
    (lease,) = Dead(gateway.store).claim()
    return gateway, lease


async def test_a_turn_without_side_effects_runs_again(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, lease = await accepted_and_claimed(start_gateway, dm)
    other = await start_gateway(ScriptedAgent("Here I am."))
    turn = await ended(other, lease.turn_id)
    assert (turn.state, turn.attempt) == (TurnState.DONE, 2)
    assert texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "Here I am.")]


async def test_a_turn_whose_tools_had_acted_is_shown_as_interrupted(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await accepted_and_claimed(start_gateway, dm)

    def act(tx: Any) -> None:
        leases.mark_acted(tx, lease)
        drafts.grow(tx, lease, [Piece(PieceKind.TEXT, "I am sending the letter."), _CALL])

    gateway.store.engine.run(Write(act))
    agent = ScriptedAgent()
    other = await start_gateway(agent)
    turn = await ended(other, lease.turn_id)
    assert turn.state is TurnState.INTERRUPTED
    assert not agent.requests
    kept = gateway.store.load_transcript(turn.session_id)[-1]
    assert (kept["content"], kept["interrupted"]) == ("I am sending the letter.", True)
    assert kept["tool_calls"][0]["function"]["name"] == "send"
    await ask(other, dm(), "what happened?")
    roles = [message["role"] for message in agent.requests[0].messages]
    assert roles == ["user", "assistant", "tool", "user"]  # the call without a result is repaired for the model


_CALL = Piece(PieceKind.CALL, call_id="c1", name="send", arguments="{}")


async def test_a_turn_that_keeps_killing_its_worker_is_parked(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, lease = await accepted_and_claimed(start_gateway, dm)
    for _ in range(MOST_ATTEMPTS - 1):
        assert await gateway.turns.recover() == 1
        Dead(gateway.store).claim()
    assert await gateway.turns.recover() == 1
    turn = await turn_of(gateway, lease.turn_id)
    assert turn.state is TurnState.FAILED
    assert f"{MOST_ATTEMPTS} times" in (turn.error or "")
    assert gateway.store.events(turn.session_id)[-1].facts["reason"] == turn.error


async def test_two_who_recover_cannot_both_win(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, _ = await accepted_and_claimed(start_gateway, dm)
    other = await start_gateway(concurrency=1)
    await other.turns.stop()
    Dead(gateway.store).claim()
    taken = await asyncio.gather(*(each.turns.recover() for each in (gateway, other) * 3))
    assert sum(taken) <= 1


async def test_a_lease_that_has_not_run_out_is_respected(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    await gateway.turns.stop()
    turn_id = await say(gateway, dm(), "hello")
    Dead(gateway.store).claim(seconds=60)
    assert await gateway.turns.recover() == 0
    assert (await turn_of(gateway, turn_id)).state is TurnState.RUNNING


async def test_who_has_lost_the_lease_can_write_nothing_more(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, lease = await accepted_and_claimed(start_gateway, dm)
    await gateway.turns.recover()
    (again,) = Dead(gateway.store).claim(seconds=60)
    assert again.attempt == lease.attempt + 1
    for write in (
        lambda tx: leases.end(tx, lease, TurnState.DONE, 0),
        lambda tx: leases.mark_acted(tx, lease),
        lambda tx: leases.check(tx, lease),
        lambda tx: leases.release(tx, lease),
        lambda tx: leases.requeue(tx, lease),
        lambda tx: leases.end(tx, replace(lease, owner="elsewhere/2/2/x"), TurnState.DONE, 0),
    ):
        with pytest.raises(LeaseLost):
            gateway.store.engine.run(Write(write))


async def test_a_run_that_loses_its_lease_stops_and_its_answer_is_dropped(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HEARTBEAT", 0.05)
    begun, closed = asyncio.Event(), asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield TextDelta("never")
        finally:
            closed.set()

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "hello")
    await begun.wait()

    def steal(tx: Any) -> None:  # as if the machine had slept for an hour and another had taken over
        tx.run("UPDATE turn SET lease_owner = 'elsewhere/1/1/thief', lease_until = $2 WHERE id = $1", turn_id, 2**60)

    gateway.store.engine.run(Write(steal))
    async with asyncio.timeout(60):
        await closed.wait()
    assert (await turn_of(gateway, turn_id)).state is TurnState.RUNNING


# -- stopping -----------------------------------------------------------------------------------------------


async def test_a_graceful_stop_lets_turns_finish(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Nearly ")
        await asyncio.sleep(0.2)
        yield TextDelta("there.")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "hello")
    await until(lambda: gateway.turns.running)
    await gateway.turns.stop(patience=10)
    turn = await turn_of(gateway, turn_id)
    assert turn.state is TurnState.DONE
    assert texts(gateway.store, turn.session_id)[-1] == ("assistant", "Nearly there.")


async def test_what_does_not_finish_is_left_for_whoever_comes_next(start_gateway: StartGateway, dm: MakeSource) -> None:
    begun = asyncio.Event()

    async def endless(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        begun.set()
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(endless))
    turn_id = await say(gateway, dm(), "hello")
    await begun.wait()
    await gateway.turns.stop(patience=0.1)
    left = await turn_of(gateway, turn_id)
    assert (left.state, left.attempt) == (TurnState.QUEUED, 0)
    other = await start_gateway(ScriptedAgent("The end."))
    turn = await ended(other, turn_id)
    assert texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "The end.")]


async def test_a_stop_while_a_tool_acts_ends_the_turn_as_interrupted(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    acting = asyncio.Event()

    async def send(_arguments: object) -> str:
        acting.set()
        await asyncio.Event().wait()
        return "sent"

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c1", "send", "{}")
        yield ToolResult("c1", "send", await request.tools[-1].run({}))

    tool = Tool(name="send", description="", parameters={}, run=send, acts=True)
    gateway = await start_gateway(ScriptedAgent(answer, tools=[tool]))
    turn_id = await say(gateway, dm(), "hello")
    await acting.wait()
    await gateway.turns.stop(patience=0.1)
    assert (await turn_of(gateway, turn_id)).state is TurnState.INTERRUPTED


async def test_drafts_are_kept_while_the_answer_grows_and_gone_when_it_is_stored(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    go_on = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Half an answer")
        await go_on.wait()
        yield TextDelta(" and the rest")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "hello")
    engine = gateway.store.engine

    def kept() -> list[Any]:
        return engine.run(Read(lambda tx: tx.all("SELECT body FROM draft")))

    await until(kept)
    assert "Half an answer" in kept()[0][0]
    go_on.set()
    await ended(gateway, turn_id)
    assert kept() == []
