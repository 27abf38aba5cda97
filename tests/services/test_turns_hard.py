"""Turns when everything goes wrong: drivers that break, sessions that vanish, clocks that jump, stops that meet."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import AgentRequest, TextDelta, Tool, ToolCall, ToolResult, Used
from palaver.domain.errors import AgentError, InvalidInput, InvalidMessage, NoSuchSession, StoreBusy
from palaver.domain.events import EventKind
from palaver.domain.inbound import Inbound, Outcome
from palaver.domain.turn import BusyPolicy, TurnKind, TurnState
from palaver.domain.usage import TurnUsage
from palaver.platforms.loopback import Loopback
from palaver.services import process_identity
from palaver.services.turns import run
from palaver.services.turns import worker as service
from palaver.storage import drafts, leases, people, sessions, turns
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import ask, ended, texts, turn_of, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from concurrent.futures import Future

    from palaver.agent.base import AgentEvent
    from palaver.domain.inbound import Receipt
    from palaver.domain.usage_report import Spent
    from palaver.services.gateway import Gateway
    from palaver.storage.engines.base import Transaction
    from support.gateway import MakeSource, StartGateway

OWNER = SessionSource.local_cli()
UNSTORABLE = "before \0 and \ud83d after"  # no database takes a NUL and half of a surrogate pair as text


async def say(gateway: Gateway, source: SessionSource, text: str, **fields: Any) -> str | None:
    return (await gateway.inbox.accept(Inbound(source=source, content=text, **fields))).turn_id


class Endless:
    """An agent that begins to answer and never comes to an end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield Used(TurnUsage(model="large", provider="one", input_tokens=1000, output_tokens=10, cost="0.01"))
        yield TextDelta("Once upon a time")
        self.begun.set()
        await asyncio.Event().wait()


def spent(gateway: Gateway) -> Spent:
    """Everything that was used in the store."""
    store = gateway.store
    return store.seen_by(store.owner().principal, everything=True).usage("platform").rows[0]


# -- drivers and tools that break ---------------------------------------------------------------------------


async def test_an_answer_that_no_database_can_hold_is_kept_and_delivered_all_the_same(
    start_gateway: StartGateway,
) -> None:
    loopback = Loopback()
    gateway = await start_gateway(ScriptedAgent(UNSTORABLE), loopback=loopback)
    receipt = await loopback.say("hello")
    assert (await ended(gateway, receipt.turn_id)).state is TurnState.DONE
    sent = await until(lambda: loopback.sent)
    assert sent[0].content.startswith("before ")
    assert sent[0].content.endswith(" after")


async def test_an_error_that_no_database_can_hold_is_told_all_the_same(start_gateway: StartGateway) -> None:
    def answer(_request: AgentRequest) -> str:
        raise AgentError(f"the provider said {UNSTORABLE}")

    loopback = Loopback()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback)
    receipt = await loopback.say("hello")
    turn = await ended(gateway, receipt.turn_id)
    assert turn.state is TurnState.FAILED
    assert "the provider said before" in (turn.error or "")
    assert "the provider said before" in (await until(lambda: loopback.sent))[0].content


async def test_a_driver_that_runs_out_of_time_is_not_said_to_have_taken_half_an_hour(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    def answer(_request: AgentRequest) -> str:
        raise TimeoutError

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert "minutes" not in (turn.error or "")


async def test_a_driver_that_cancels_itself_ends_its_turn(start_gateway: StartGateway, dm: MakeSource) -> None:
    def answer(_request: AgentRequest) -> str:
        raise asyncio.CancelledError

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED


async def test_an_answer_that_cannot_be_made_a_message_ends_its_turn_as_failed(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("I will look.")
        yield ToolCall("c1", "look", "{}")
        yield ToolResult(7, "look", "a driver that gives a number where an id belongs")  # type: ignore[arg-type]

    gateway = await start_gateway(ScriptedAgent(answer))
    turn = await ask(gateway, dm(), "hello")
    assert turn.state is TurnState.FAILED
    assert (await ask(gateway, dm(), "again")).state is TurnState.FAILED


async def test_what_a_dead_worker_left_and_nobody_can_store_does_not_keep_others_from_being_taken_over(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    await gateway.turns.stop()
    turn_ids = [await say(gateway, dm(user), "hello") for user in ("ada", "bob")]
    now = to_micros(gateway.store.clock.now())
    claimer = leases.Claimer(owner="elsewhere/1/1/dead", until=now - 1, most=9, concurrency=9, per_person=9)

    def die(tx: Transaction) -> None:
        for lease in leases.claim(tx, claimer, now):
            leases.mark_acted(tx, lease)
            if lease.turn_id == turn_ids[0]:
                drafts.grow(tx, lease, [])
                tx.run('UPDATE draft SET body = \'[{"kind":"result","call_id":7}]\' WHERE turn_no = $1', lease.turn_no)

    gateway.store.engine.run(Write(die))
    other = await start_gateway()
    assert [(await ended(other, turn_id)).state for turn_id in turn_ids] == [TurnState.INTERRUPTED] * 2


# -- stops that meet ----------------------------------------------------------------------------------------


async def test_a_turn_handed_over_while_somebody_wants_it_stopped_is_stopped_by_whoever_takes_it(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    endless = Endless()
    gateway = await start_gateway(endless.agent)
    turn_id = await say(gateway, dm(), "hello")
    await endless.begun.wait()
    stopping = asyncio.create_task(gateway.turns.stop(patience=0.3))  # which no longer looks at wishes
    await asyncio.sleep(0.1)
    await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    await stopping
    other = await start_gateway(Endless().agent)
    assert (await ended(other, turn_id)).state is TurnState.INTERRUPTED
    await until(lambda: other.turns.running == 0)


async def test_a_driver_that_does_not_let_itself_be_cancelled_does_not_keep_the_process_from_stopping(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TIME_TO_LEAVE", 0.2)
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        begun.set()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        yield TextDelta("never")

    gateway = await start_gateway(ScriptedAgent(stubborn))
    turn_id = await say(gateway, dm(), "hello")
    await begun.wait()
    async with asyncio.timeout(60):
        await gateway.turns.stop(patience=0.1)
    assert (await turn_of(gateway, turn_id)).state is TurnState.QUEUED
    let_go.set()
    other = await start_gateway(ScriptedAgent("The end."))
    turn = await ended(other, turn_id)
    assert texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "The end.")]


async def test_a_stop_holds_also_when_the_driver_does_not_let_itself_be_cancelled(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "TIME_TO_STOP", 0.1)
    monkeypatch.setattr(service, "TIME_TO_LEAVE", 0.1)
    monkeypatch.setattr(service, "HEARTBEAT", 0.05)
    monkeypatch.setattr(service, "LEASE", 0.3)
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        begun.set()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        yield TextDelta("never")

    gateway = await start_gateway(ScriptedAgent(stubborn))
    turn_id = await say(gateway, dm(), "hello")
    await begun.wait()
    await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    turn = await ended(gateway, turn_id)
    assert (turn.state, turn.error) == (TurnState.INTERRUPTED, "stopped")
    let_go.set()
    await until(lambda: gateway.turns.running == 0)
    assert texts(gateway.store, turn.session_id) == [("user", "hello")]


async def test_a_turn_that_vanishes_while_it_is_being_claimed_does_not_stop_the_claiming(
    start_gateway: StartGateway, dm: MakeSource, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("on SQLite nobody else writes meanwhile")
    gateway = await start_gateway()
    other = await start_gateway()
    await other.turns.stop()
    take = leases._take
    vanished: list[int] = []

    def meanwhile(tx: Transaction, turn_no: int, *rest: Any) -> Any:
        if not vanished:
            vanished.append(turn_no)
            other.store.engine.run(Write(lambda tx: tx.run("DELETE FROM turn WHERE no = $1", turn_no)))
        return take(tx, turn_no, *rest)

    monkeypatch.setattr(leases, "_take", meanwhile)
    await say(gateway, dm("ada"), "dropped")
    assert (await ask(gateway, dm("bob"), "hello")).state is TurnState.DONE
    assert vanished


# -- sessions that change under a turn ------------------------------------------------------------------------


async def test_a_session_deleted_under_its_run_stops_the_run_and_what_it_used_stays_counted(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HEARTBEAT", 0.05)
    endless = Endless()
    gateway = await start_gateway(endless.agent)
    turn_id = await say(gateway, dm(), "hello")
    await endless.begun.wait()
    gateway.store.delete_session((await turn_of(gateway, turn_id)).session_id)
    await until(lambda: gateway.turns.running == 0)
    found = spent(gateway)
    assert (found.group, found.input_tokens, found.cost) == ("telegram", 1000, Decimal("0.01"))
    endless.agent._script = lambda _request: "Hello."
    assert (await ask(gateway, dm(), "hello again")).state is TurnState.DONE


async def test_what_a_run_used_that_was_handed_over_counts_beside_the_run_that_answers(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    endless = Endless()
    gateway = await start_gateway(endless.agent)
    turn_id = await say(gateway, dm(), "hello")
    await endless.begun.wait()
    await gateway.stop(0)

    def answer(_request: AgentRequest) -> list[AgentEvent]:
        used = TurnUsage(model="large", provider="one", input_tokens=200, output_tokens=20, cost="0.02")
        other = TurnUsage(model="large", provider="two", input_tokens=30, output_tokens=3, cost="0.03")
        return [Used(used), Used(other), TextDelta("Hello.")]  # one model, of two providers

    other = await start_gateway(ScriptedAgent(answer))
    turn = await ended(other, turn_id)
    found, here = spent(other), other.store.get_session(turn.session_id).usage
    assert (found.input_tokens, found.cost) == (1230, Decimal("0.06"))
    assert (here.input_tokens, here.cost) == (1230, Decimal("0.06"))


async def test_nothing_is_undone_under_a_running_agent_whichever_way_it_is_asked_for(
    start_gateway: StartGateway,
) -> None:
    endless = Endless()
    gateway = await start_gateway(endless.agent)
    turn_id = await say(gateway, OWNER, "hello")
    await endless.begun.wait()
    session_id = (await turn_of(gateway, turn_id)).session_id
    view = gateway.store.seen_by(gateway.store.owner().principal)
    for change in (view.undo, view.redo):
        with pytest.raises(InvalidInput, match="still answering"):
            change(session_id)
    assert texts(gateway.store, session_id) == [("user", "hello")]


async def test_a_message_that_arrives_during_an_undo_is_not_undone_with_it(
    start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, other = await start_gateway(), await start_gateway()
    first = await ask(gateway, OWNER, "first")
    loop = asyncio.get_running_loop()
    held = turns.held_open_in
    arriving: list[Future[Receipt]] = []

    def meanwhile(tx: Transaction, session_no: int) -> turns.Open:
        found = held(tx, session_no)
        if not arriving:
            accepting = other.inbox.accept(Inbound(source=OWNER, content="second"))
            arriving.append(asyncio.run_coroutine_threadsafe(accepting, loop))
            with contextlib.suppress(TimeoutError):  # it has to wait, until the undo is done
                arriving[0].result(0.3)
        return found

    monkeypatch.setattr(turns, "held_open_in", meanwhile)
    await gateway.inbox.accept(Inbound(source=OWNER, content="/undo"))
    receipt = await asyncio.wrap_future(arriving[0])
    assert (await ended(gateway, receipt.turn_id)).state is TurnState.DONE
    assert texts(gateway.store, first.session_id) == [("user", "second"), ("assistant", "Done.")]


async def test_a_turn_whose_question_was_taken_back_does_not_ask_the_agent(start_gateway: StartGateway) -> None:
    agent = ScriptedAgent()
    gateway = await start_gateway(agent)
    await gateway.turns.stop()
    receipt = await gateway.inbox.accept(Inbound(source=OWNER, content="hello"))
    gateway.store.rewrite_transcript(receipt.session_id or "", [{"role": "user", "content": "something else"}])
    other = await start_gateway(agent)
    turn = await ended(other, receipt.turn_id)
    assert turn.state is TurnState.FAILED
    assert "taken back" in (turn.error or "")
    assert not agent.requests


async def test_a_summary_whose_worker_died_right_after_it_was_stored_is_not_said_to_have_failed(
    start_gateway: StartGateway,
) -> None:
    def answer(request: AgentRequest) -> str:
        summing_up = request.messages[-1]["content"].startswith("Summarise this conversation")
        return "They spoke of tea." if summing_up else "yes"

    gateway = await start_gateway(ScriptedAgent(answer))
    for i in range(6):
        turn = await ask(gateway, OWNER, f"tea {i}")
    await ask(gateway, OWNER, "/compress")

    def die(tx: Transaction) -> Any:  # as if the end of the turn had not been stored
        tx.run("UPDATE turn SET state = 'queued', ended_at = NULL WHERE kind = 'compact'")
        return tx.one("SELECT id FROM turn WHERE kind = 'compact'")

    (turn_id,) = gateway.store.engine.run(Write(die))
    gateway.turns.wake()
    assert (await ended(gateway, turn_id)).state is TurnState.DONE
    kinds = [event.kind for event in gateway.store.events(turn.session_id)]
    assert kinds.count(EventKind.COMPACTED) == 1


# -- clocks that jump ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("collect", [timedelta(0), timedelta(milliseconds=50)])
async def test_a_clock_set_back_by_a_day_keeps_nobody_waiting_for_a_day(
    start_gateway: StartGateway, dm: MakeSource, collect: timedelta
) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, collect=collect)
    await gateway.turns.stop()
    before = await say(gateway, dm(), "before")
    clock.advance(days=-1)
    other = await start_gateway(clock=clock, collect=collect)
    after = await say(other, dm("bob"), "after")
    clock.advance(seconds=1)
    assert (await ended(other, before)).state is TurnState.DONE
    assert (await ended(other, after)).state is TurnState.DONE


# -- waking -------------------------------------------------------------------------------------------------


async def test_what_another_process_asks_for_is_found_also_when_the_wake_up_call_was_lost(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "ANYWAY", 0.1)
    gateway = await start_gateway()
    other = await start_gateway()
    await other.turns.stop()
    gateway.feed._workers.clear()  # nobody tells it of what others do
    turn_id = await say(other, dm(), "hello")
    assert (await ended(other, turn_id)).state is TurnState.DONE


async def test_a_change_that_could_not_be_read_is_read_later(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch, store_url: str
) -> None:
    if not store_url.startswith("sqlite"):
        pytest.skip("PostgreSQL says itself what has changed")
    from palaver.storage.engines import sqlite_changes

    await start_gateway()
    other = await start_gateway()
    await other.turns.stop()
    since, failed = sqlite_changes.since, []

    def busy(_tx: Transaction, _marks: Any) -> Any:
        failed.append(True)
        raise StoreBusy

    await asyncio.sleep(0.1)  # until everything is quiet
    monkeypatch.setattr(service, "ANYWAY", 60.0)
    monkeypatch.setattr(sqlite_changes, "since", busy)
    turn_id = await say(other, dm(), "hello")
    await until(lambda: len(failed) > 1)
    monkeypatch.setattr(sqlite_changes, "since", since)
    assert (await ended(other, turn_id)).state is TurnState.DONE


# -- who is told what ---------------------------------------------------------------------------------------


async def test_steering_from_another_place_or_person_is_answered_where_it_came_from(
    start_gateway: StartGateway, group: MakeSource
) -> None:
    ready, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"].endswith("begin"):
            ready.set()
            await go_on.wait()
            yield ToolCall("c1", "look", "{}")
            yield ToolResult("c1", "look", "seen")
            told = await request.steering()
            yield TextDelta(f"told: {list(told)}")
        else:
            yield TextDelta("a turn of its own")

    from palaver import GatewayConfig

    gateway = await start_gateway(
        ScriptedAgent(answer), config=GatewayConfig(group_sessions_per_user=False), busy=BusyPolicy.STEER
    )
    first = await say(gateway, group("ada"), "begin")
    await ready.wait()
    receipt = await gateway.inbox.accept(Inbound(source=group("eve"), content="and now do as I say"))
    assert receipt.outcome is Outcome.QUEUED
    own = await gateway.inbox.accept(Inbound(source=group("ada"), content="I forgot something"))
    assert own.outcome is Outcome.STEERED
    go_on.set()
    turn = await ended(gateway, first)
    await ended(gateway, receipt.turn_id)
    said = [text for role, text in texts(gateway.store, turn.session_id) if role == "assistant" and text]
    assert said == ["told: ['I forgot something']", "a turn of its own"]


async def test_a_message_is_not_collected_into_a_summary_that_waits(start_gateway: StartGateway) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, collect=timedelta(seconds=5))
    await gateway.turns.stop()
    session_id = (await gateway.inbox.accept(Inbound(source=OWNER, content="hello"))).session_id
    now = to_micros(clock.now())

    def compress(tx: Transaction) -> None:
        tx.run("DELETE FROM turn")
        wanted = turns.TurnRequest(
            session_no=sessions.number_of(tx, session_id or ""), input_seq=2, kind=TurnKind.COMPACT, due_at=now + 10
        )
        person = tx.one("SELECT id FROM person")
        assert person is not None
        turns.enqueue(tx, wanted, now)
        tx.run("UPDATE turn SET person_id = $1", person[0])

    gateway.store.engine.run(Write(compress))
    receipt = await gateway.inbox.accept(Inbound(source=OWNER, content="and this is a question"))
    assert receipt.outcome is Outcome.QUEUED
    waiting = gateway.store.engine.run(Read(lambda tx: tx.all("SELECT kind FROM turn ORDER BY no")))
    assert waiting == [("compact",), ("answer",)]


async def test_a_turn_has_only_the_toolsets_that_are_on_in_its_conversation(start_gateway: StartGateway) -> None:
    async def run(_arguments: object) -> str:
        return "done"

    tool = Tool(name="files_delete", description="", parameters={}, run=run, acts=True, toolset="mcp:files")
    agent = ScriptedAgent(tools=[tool])
    gateway = await start_gateway(agent)
    for command in ("/status", "/tools off memory mcp:files", "/tools on mcp:files", "/branch"):
        await gateway.inbox.accept(Inbound(source=OWNER, content=command))
        await ask(gateway, OWNER, "and now?")
    sets = [{each.toolset for each in request.tools} for request in agent.requests]
    assert sets == [{"history", "memory", "mcp:files"}, {"history"}, {"history", "mcp:files"}, {"history", "mcp:files"}]


async def test_tools_of_servers_are_not_for_guests(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def run(_arguments: object) -> str:
        return "done"

    tool = Tool(name="files_delete", description="", parameters={}, run=run, acts=True, toolset="mcp:files")
    agent = ScriptedAgent(tools=[tool])
    gateway = await start_gateway(agent)
    await ask(gateway, dm("stranger"), "delete everything")
    await ask(gateway, OWNER, "what can you do?")
    assert [each.name for each in agent.requests[0].tools] == []
    assert "files_delete" in [each.name for each in agent.requests[1].tools]


@pytest.mark.parametrize("content", ["hello", "/status"])
async def test_a_message_whose_id_no_database_can_hold_is_refused_by_name(
    start_gateway: StartGateway, content: str
) -> None:
    gateway = await start_gateway()
    with pytest.raises(InvalidMessage, match="message_id"):
        await gateway.inbox.accept(Inbound(source=OWNER, content=content, message_id="a\0b"))


async def test_whoever_may_no_longer_see_a_conversation_hears_no_more_of_an_answer_that_grows(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        while True:
            yield TextDelta("and so on ")
            await asyncio.sleep(0.01)

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await say(gateway, dm(), "hello")
    turn = await turn_of(gateway, turn_id)
    person = gateway.store.engine.run(Read(lambda tx: people.find(tx, dm())))
    assert person is not None
    heard: list[object] = []

    async def listen() -> None:
        async with contextlib.aclosing(gateway.feed.follow(person.person.principal, turn.session_id, after=0)) as items:
            async for item in items:
                heard.append(item)  # noqa: PERF401  (one after the other, as they come)

    listening = asyncio.create_task(listen())
    await until(lambda: len(heard) > 5)
    gateway.store.engine.run(Write(lambda tx: tx.run("DELETE FROM audience_member")))
    with pytest.raises(NoSuchSession):
        async with asyncio.timeout(60):
            await listening


def test_a_process_that_is_not_shown_to_us_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = process_identity.new_owner()
    assert not process_identity.is_dead(owner)
    place = process_identity._place()
    monkeypatch.setattr(process_identity, "_place", lambda: place)
    monkeypatch.setattr(process_identity, "_PROC", Path("/nowhere"))
    assert not process_identity.is_dead(owner)
    gone = owner.split("/")
    gone[1] = str(2**22 + 1)  # more than there can be
    assert process_identity.is_dead("/".join(gone))
