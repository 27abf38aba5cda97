"""The turn worker: which turns run, how many at once, and what happens when a process stops."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import AgentRequest, TextDelta, Tool, ToolCall, ToolResult, UsageReport
from palaver.core.clock import SystemClock
from palaver.core.engines.base import Read, Write
from palaver.core.ids import TurnId
from palaver.sessions import turn_leases
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import BusyPolicy, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.testing import FakeClock, ScriptedAgent
from palaver.turns import run, worker
from support.agents import EndlessAgent
from support.gateway import TIMEOUT_SECONDS, ask, get_turn, load_texts, send_message, wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent
    from palaver.core.engines.base import Transaction
    from support.gateway import MakeSource, StartGateway

pytestmark = pytest.mark.both_engines


class CountingAgent:
    """Counts how many answers it gives at once, and remembers the order of its requests."""

    def __init__(self) -> None:
        self.active = 0
        self.max_active = 0
        self.requests: list[str] = []
        self.may_continue = asyncio.Event()
        self.may_continue.set()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        self.active += 1
        self.max_active = max(self.max_active, self.active)
        self.requests.append(request.messages[-1]["content"])
        await self.may_continue.wait()
        await asyncio.sleep(0.02)
        self.active -= 1
        yield TextDelta("ok")


# -- claiming -------------------------------------------------------------------------------------------------


async def test_all_processes_together_run_no_more_turns_than_allowed(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = CountingAgent()
    gateways = [await start_gateway(counting.agent, max_running=3) for _ in range(2)]
    turn_ids = [await send_message(gateways[i % 2], dm(f"user{i}"), str(i)) for i in range(12)]
    for turn_id in turn_ids:
        await wait_for_turn(gateways[0], turn_id)
    assert counting.max_active <= 3


async def test_one_person_cannot_occupy_all_workers(start_gateway: StartGateway, group: MakeSource) -> None:
    counting = CountingAgent()
    gateway = await start_gateway(counting.agent, max_running=8, max_running_per_person=2)
    turn_ids = [await send_message(gateway, group("ada", chat=f"room{i}"), str(i)) for i in range(8)]
    for turn_id in turn_ids:
        await wait_for_turn(gateway, turn_id)
    assert counting.max_active <= 2


async def test_a_free_worker_claims_a_turn_with_the_message(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(EndlessAgent().agent, max_running=1)
    monkeypatch.setattr(turn_leases, "claim_turns", lambda *_: [])
    running = await send_message(gateway, dm("ada"), "hello")
    queued = await send_message(gateway, dm("bob"), "hello")
    assert [(await get_turn(gateway, turn_id)).state for turn_id in (running, queued)] == [
        TurnState.RUNNING,
        TurnState.QUEUED,
    ]
    assert gateway.turn_worker.running_count == 1


async def test_a_turn_that_waits_for_more_messages_is_not_claimed_with_its_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway(EndlessAgent().agent, clock=SystemClock(), merge_window_seconds=30)
    assert (await get_turn(gateway, await send_message(gateway, dm(), "hello"))).state is TurnState.QUEUED
    assert gateway.turn_worker.running_count == 0


@pytest.mark.parametrize(
    ("is_first", "limits"),
    [
        (True, {}),
        (False, {}),  # an earlier turn of another conversation could be claimed, too
        (True, {"max_running": 1}),
        (True, {"max_running_per_person": 1}),
    ],
)
async def test_a_turn_is_claimed_with_its_message_only_if_it_is_next_and_within_the_limits(
    start_gateway: StartGateway, group: MakeSource, *, is_first: bool, limits: dict[str, int]
) -> None:
    gateway = await start_gateway()
    await gateway.turn_worker.stop()
    turn_ids = [await send_message(gateway, group("ada", chat=chat), "hello") for chat in ("a", "b", "c")]
    assert all(turn_ids)
    request = turn_leases.ClaimRequest(
        owner="other-host/1/1/worker",
        lease_until=2**60,
        max_turns=1,
        max_running=limits.get("max_running", 9),
        max_running_per_person=limits.get("max_running_per_person", 9),
    )

    def claim(turn_id: str | None) -> bool:
        now = 2**50
        run = Write(lambda tx: turn_leases.claim_if_next(tx, TurnId(turn_id or ""), request, now))
        return gateway.store.engine.run(run) is not None

    assert not claim(turn_ids[2])
    assert claim(turn_ids[0]), "nothing runs, and it is the first"
    assert claim(turn_ids[1] if is_first else turn_ids[2]) == (is_first and not limits)
    assert not claim(turn_ids[0]), "it runs already"


async def test_a_second_turn_of_a_conversation_is_not_claimed_with_its_message(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, other = await start_gateway(EndlessAgent().agent), await start_gateway()
    running = await send_message(gateway, dm(), "hello")
    waiting = await send_message(other, dm(), "and this?", busy_policy=BusyPolicy.QUEUE)
    assert (await get_turn(gateway, waiting)).state is TurnState.QUEUED
    assert (await get_turn(gateway, running)).state is TurnState.RUNNING


async def test_a_turn_runs_although_its_sender_has_gone_while_the_message_was_stored(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    is_held, may_store = threading.Event(), threading.Event()

    def hold_messages(tx: Transaction) -> None:
        tx.execute("UPDATE session SET title = title")  # a message of this conversation now waits for this transaction
        is_held.set()
        may_store.wait(TIMEOUT_SECONDS)

    gateway = await start_gateway()
    first = await ask(gateway, dm(), "hello")
    engine = gateway.store.engine
    holding = asyncio.create_task(asyncio.to_thread(engine.run, Write(hold_messages)))
    await asyncio.to_thread(is_held.wait, TIMEOUT_SECONDS)
    accepting = asyncio.create_task(send_message(gateway, dm(), "are you there?"))
    await asyncio.sleep(0.05)  # it is being stored
    accepting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await accepting
    may_store.set()
    await holding
    await wait_until(lambda: len(load_texts(gateway.store, first.session_id)) == 4)
    rows = engine.run(Read(lambda tx: tx.fetch_all("SELECT state, attempt FROM turn ORDER BY no")))
    assert [tuple(row) for row in rows] == [("done", 1), ("done", 1)]


async def test_a_long_queue_in_one_conversation_does_not_block_the_others(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = CountingAgent()
    gateway = await start_gateway(counting.agent, max_running=1)
    counting.may_continue.clear()
    turn_ids = [await send_message(gateway, dm("ada"), "ada 0")]
    await wait_until(lambda: counting.requests)
    turn_ids += [await send_message(gateway, dm("ada"), f"ada {i}") for i in range(1, 8)]
    turn_ids += [await send_message(gateway, dm("bob"), "bob 0"), await send_message(gateway, dm("bob"), "bob 1")]
    counting.may_continue.set()
    for turn_id in turn_ids:
        await wait_for_turn(gateway, turn_id)
    assert counting.requests[:5] == ["ada 0", "ada 1", "bob 0", "ada 2", "bob 1"]
    assert [text for text in counting.requests if text.startswith("ada")] == [f"ada {i}" for i in range(8)]


async def test_a_conversation_runs_one_turn_at_a_time_in_all_processes_together(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    counting = CountingAgent()
    gateways = [await start_gateway(counting.agent, max_running=8) for _ in range(3)]
    turn_ids = [await send_message(gateways[i % 3], dm(), str(i)) for i in range(9)]
    for turn_id in turn_ids:
        await wait_for_turn(gateways[0], turn_id)
    assert counting.max_active == 1
    assert counting.requests == [str(i) for i in range(9)]


async def test_a_turn_deleted_while_it_is_claimed_does_not_stop_the_worker(
    start_gateway: StartGateway, dm: MakeSource, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("on SQLite no other process can write during the claim")
    gateway = await start_gateway()
    other = await start_gateway()
    await other.turn_worker.stop()
    original_claim = turn_leases._claim
    deleted_turns: list[int] = []

    def delete_and_claim(tx: Transaction, turn_no: int, *rest: Any) -> Any:
        if not deleted_turns:
            deleted_turns.append(turn_no)
            other.store.engine.run(Write(lambda tx: tx.execute("DELETE FROM turn WHERE no = $1", turn_no)))
        return original_claim(tx, turn_no, *rest)

    monkeypatch.setattr(turn_leases, "_claim", delete_and_claim)
    await send_message(other, dm("ada"), "this turn is deleted")
    assert (await ask(gateway, dm("bob"), "hello")).state is TurnState.DONE
    assert deleted_turns


@pytest.mark.parametrize("merge_window_seconds", [0, 0.05])
async def test_a_clock_set_back_does_not_delay_turns(
    start_gateway: StartGateway, dm: MakeSource, merge_window_seconds: float
) -> None:
    clock = FakeClock()
    gateway = await start_gateway(clock=clock, merge_window_seconds=merge_window_seconds)
    await gateway.turn_worker.stop()
    before = await send_message(gateway, dm(), "before")
    clock.advance(days=-1)
    other = await start_gateway(clock=clock, merge_window_seconds=merge_window_seconds)
    after = await send_message(other, dm("bob"), "after")
    clock.advance(seconds=1)
    assert (await wait_for_turn(other, before)).state is TurnState.DONE
    assert (await wait_for_turn(other, after)).state is TurnState.DONE


async def test_the_worker_finds_a_turn_although_the_wake_up_was_lost(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.1)
    gateway = await start_gateway()
    other = await start_gateway()
    await other.turn_worker.stop()
    gateway.feed._work_listeners.clear()  # the feed no longer wakes the worker
    turn_id = await send_message(other, dm(), "hello")
    assert (await wait_for_turn(other, turn_id)).state is TurnState.DONE


# -- drafts and leases ----------------------------------------------------------------------------------------


async def test_drafts_are_saved_while_the_answer_grows_and_deleted_when_it_is_stored(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    may_continue = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Half an answer")
        await may_continue.wait()
        yield TextDelta(" and the rest")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "hello")
    engine = gateway.store.engine

    def load_drafts() -> list[Any]:
        return engine.run(Read(lambda tx: tx.fetch_all("SELECT body FROM draft")))

    await wait_until(load_drafts)
    assert "Half an answer" in load_drafts()[0][0]
    may_continue.set()
    await wait_for_turn(gateway, turn_id)
    assert load_drafts() == []


async def test_a_run_that_loses_its_lease_stops_and_stores_nothing(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.05)
    started, closed = asyncio.Event(), asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        try:
            started.set()
            await asyncio.Event().wait()
            yield TextDelta("never")
        finally:
            closed.set()

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "hello")
    await started.wait()

    def steal(tx: Any) -> None:  # as if the machine had slept for an hour and another worker had recovered the turn
        tx.execute(
            "UPDATE turn SET lease_owner = 'other-host/1/1/worker', lease_until = $2 WHERE id = $1", turn_id, 2**60
        )

    gateway.store.engine.run(Write(steal))
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await closed.wait()
    assert (await get_turn(gateway, turn_id)).state is TurnState.RUNNING


# -- requests to stop -----------------------------------------------------------------------------------------


async def test_a_stop_request_reaches_a_run_in_another_process(start_gateway: StartGateway, dm: MakeSource) -> None:
    started = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        started.set()
        await asyncio.Event().wait()
        yield TextDelta("never")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "Tell me a story")
    await started.wait()
    other = await start_gateway()
    await other.inbox.accept(Inbound(source=dm(), content="/stop"))
    assert (await wait_for_turn(other, turn_id)).state is TurnState.INTERRUPTED


async def test_a_stop_request_during_a_hand_over_is_obeyed_by_the_next_worker(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, is_canceled, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def end_slowly(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        started.set()
        try:
            await asyncio.Event().wait()
            yield TextDelta("never")
        finally:
            is_canceled.set()
            await may_end.wait()

    monkeypatch.setattr(worker, "CANCEL_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
    gateway = await start_gateway(ScriptedAgent(end_slowly))
    turn_id = await send_message(gateway, dm(), "hello")
    await started.wait()
    stopping = asyncio.create_task(gateway.turn_worker.stop(grace_seconds=0))
    await is_canceled.wait()  # the worker no longer reads stop requests, and has not released the turn
    await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    may_end.set()
    await stopping
    other = await start_gateway(EndlessAgent().agent)
    assert (await wait_for_turn(other, turn_id)).state is TurnState.INTERRUPTED
    await wait_until(lambda: other.turn_worker.running_count == 0)


async def test_a_stop_request_ends_the_turn_of_a_driver_that_ignores_cancellation(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STOP_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(worker, "CANCEL_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(worker, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(worker, "LEASE_SECONDS", 0.3)
    started, may_end = asyncio.Event(), asyncio.Event()

    async def ignore_cancellation(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        started.set()
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_end.wait()
        yield TextDelta("never")

    gateway = await start_gateway(ScriptedAgent(ignore_cancellation))
    turn_id = await send_message(gateway, dm(), "hello")
    await started.wait()
    await gateway.inbox.accept(Inbound(source=dm(), content="/stop"))
    turn = await wait_for_turn(gateway, turn_id)
    assert (turn.state, turn.error) == (TurnState.INTERRUPTED, "stopped")
    may_end.set()
    await wait_until(lambda: gateway.turn_worker.running_count == 0)
    assert load_texts(gateway.store, turn.session_id) == [("user", "hello")]


# -- shutdown -------------------------------------------------------------------------------------------------


async def test_a_graceful_shutdown_lets_turns_finish(start_gateway: StartGateway, dm: MakeSource) -> None:
    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Nearly ")
        await asyncio.sleep(0.2)
        yield TextDelta("there.")

    gateway = await start_gateway(ScriptedAgent(answer))
    turn_id = await send_message(gateway, dm(), "hello")
    await wait_until(lambda: gateway.turn_worker.running_count)
    await gateway.turn_worker.stop(grace_seconds=10)
    turn = await get_turn(gateway, turn_id)
    assert turn.state is TurnState.DONE
    assert load_texts(gateway.store, turn.session_id)[-1] == ("assistant", "Nearly there.")


async def test_a_complete_answer_is_stored_once_with_its_usage_when_the_process_stops(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    may_end, is_held, may_store = asyncio.Event(), threading.Event(), threading.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield UsageReport(TurnUsage(model="m", provider="openai", input_tokens=100, output_tokens=7))
        await may_end.wait()
        yield TextDelta("Done.")

    def hold_turns(tx: Transaction) -> None:
        tx.execute("UPDATE turn SET attempt = attempt")  # what ends a turn now waits for this transaction
        is_held.set()
        may_store.wait(TIMEOUT_SECONDS)

    gateway = await start_gateway(ScriptedAgent(answer))
    engine = gateway.store.engine
    turn_id = await send_message(gateway, dm(), "hello")
    await wait_until(lambda: gateway.turn_worker.running_count)
    holding = asyncio.create_task(asyncio.to_thread(engine.run, Write(hold_turns)))
    await asyncio.to_thread(is_held.wait, TIMEOUT_SECONDS)
    may_end.set()
    stopping = asyncio.create_task(gateway.turn_worker.stop(grace_seconds=0.5))
    await asyncio.sleep(0.8)  # the grace is over, and the answer is still being stored
    may_store.set()
    await asyncio.gather(holding, stopping)
    turn = await get_turn(gateway, turn_id)
    assert turn.state is TurnState.DONE
    assert load_texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "Done.")]
    used = engine.run(Read(lambda tx: tx.fetch_all("SELECT turn_id, input_tokens FROM usage")))
    assert [tuple(row) for row in used] == [(turn_id, 100)]


async def test_a_turn_that_does_not_finish_in_time_is_left_to_the_next_worker(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    started = asyncio.Event()

    async def endless(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Once upon a time")
        started.set()
        await asyncio.Event().wait()

    gateway = await start_gateway(ScriptedAgent(endless))
    turn_id = await send_message(gateway, dm(), "hello")
    await started.wait()
    await gateway.turn_worker.stop(grace_seconds=0.1)
    released = await get_turn(gateway, turn_id)
    assert (released.state, released.attempt) == (TurnState.QUEUED, 0)
    other = await start_gateway(ScriptedAgent("The end."))
    turn = await wait_for_turn(other, turn_id)
    assert load_texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "The end.")]


async def test_a_shutdown_while_a_tool_has_side_effects_ends_the_turn_as_interrupted(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    tool_started = asyncio.Event()

    async def send(_arguments: object) -> str:
        tool_started.set()
        await asyncio.Event().wait()
        return "sent"

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c1", "send", "{}")
        yield ToolResult("c1", "send", await request.tools[-1].run({}))

    tool = Tool(name="send", description="", parameters={}, run=send, has_side_effects=True)
    gateway = await start_gateway(ScriptedAgent(answer, tools=[tool]))
    turn_id = await send_message(gateway, dm(), "hello")
    await tool_started.wait()
    await gateway.turn_worker.stop(grace_seconds=0.1)
    assert (await get_turn(gateway, turn_id)).state is TurnState.INTERRUPTED


async def test_a_driver_that_ignores_cancellation_does_not_prevent_the_shutdown(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CANCEL_TIMEOUT_SECONDS", 0.2)
    started, may_end = asyncio.Event(), asyncio.Event()

    async def ignore_cancellation(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        started.set()
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_end.wait()
        yield TextDelta("never")

    gateway = await start_gateway(ScriptedAgent(ignore_cancellation))
    turn_id = await send_message(gateway, dm(), "hello")
    await started.wait()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await gateway.turn_worker.stop(grace_seconds=0.1)
    assert (await get_turn(gateway, turn_id)).state is TurnState.QUEUED
    may_end.set()
    other = await start_gateway(ScriptedAgent("The end."))
    turn = await wait_for_turn(other, turn_id)
    assert load_texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "The end.")]
