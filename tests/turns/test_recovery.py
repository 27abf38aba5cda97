"""Recovery: what happens to a turn whose worker died."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ModelCall, TextDelta
from palaver.config.budget_rules import CallPurpose
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import LeaseLost
from palaver.money import meter
from palaver.sessions import turn_leases
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.turn import (
    MAX_REQUEUE_DELAY,
    MAX_SHARED_CRASHES,
    MAX_TURN_CRASHES,
    TurnState,
    compute_trial_uptime,
)
from palaver.testing import ScriptedAgent
from support.gateway import ask, get_turn, load_texts, send_message, wait_for_turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from palaver import SessionStore
    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.gateway.gateway import Gateway
    from palaver.sessions.turn_leases import TurnLease
    from support.gateway import MakeSource, StartGateway

pytestmark = pytest.mark.both_engines


class DeadWorker:
    """Claims turns, perhaps calls the agent, and does nothing more, like a worker that died."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def begin(self) -> list[TurnLease]:
        """Claim turns, and call the agent for them."""
        leases = self.claim()
        for lease in leases:
            self.store.engine.run(Write(partial(turn_leases.mark_begun, lease=lease)))
        return leases

    def claim(
        self, lease_seconds: float = -1, *, is_idle: bool = True, uptime: timedelta = timedelta.max
    ) -> list[TurnLease]:
        now = to_micros(self.store.clock.now() + MAX_REQUEUE_DELAY)
        claim_request = turn_leases.ClaimRequest(
            owner="other-host/1/1/dead",
            lease_until=to_micros(self.store.clock.now()) + round(lease_seconds * 1e6),
            max_turns=9,
            max_running=9,
            max_running_per_person=9,
            is_idle=is_idle,
            uptime=uptime,
        )
        return self.store.engine.run(Write(lambda tx: turn_leases.claim_turns(tx, claim_request, now)))


async def claim_by_dead_worker(start_gateway: StartGateway, dm: MakeSource) -> tuple[Gateway, TurnLease]:
    gateway = await start_gateway(max_running=1)
    await gateway.turn_worker.stop()
    await send_message(gateway, dm(), "hello")
    (lease,) = DeadWorker(gateway.store).claim()
    return gateway, lease


SEND_CALL = Piece(PieceKind.CALL, call_id="c1", name="send", arguments="{}")


async def test_a_turn_without_side_effects_runs_again(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    other = await start_gateway(ScriptedAgent("Here I am."))
    turn = await wait_for_turn(other, lease.turn_id)
    assert (turn.state, turn.attempt) == (TurnState.DONE, 2)
    assert load_texts(gateway.store, turn.session_id) == [("user", "hello"), ("assistant", "Here I am.")]


async def test_a_turn_with_side_effects_ends_as_interrupted(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)

    def mark_and_draft(tx: Any) -> None:
        turn_leases.mark_side_effects(tx, lease)
        turn_leases.append_pieces(tx, lease, [Piece(PieceKind.TEXT, "I am sending the letter."), SEND_CALL])

    gateway.store.engine.run(Write(mark_and_draft))
    agent = ScriptedAgent()
    other = await start_gateway(agent)
    turn = await wait_for_turn(other, lease.turn_id)
    assert turn.state is TurnState.INTERRUPTED
    assert not agent.requests
    partial = gateway.store.load_transcript(turn.session_id)[-1]
    assert (partial["content"], partial["interrupted"]) == ("I am sending the letter.", True)
    assert partial["tool_calls"][0]["function"]["name"] == "send"
    await ask(other, dm(), "what happened?")
    roles = [message["role"] for message in agent.requests[0].messages]
    assert roles == ["user", "assistant", "tool", "user"]  # the model gets a result for the call that has none


async def test_a_turn_that_keeps_crashing_its_worker_fails_in_the_end(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    for _ in range(MAX_TURN_CRASHES):
        assert await gateway.turn_worker.recover_orphans() == 1
        assert (await get_turn(gateway, lease.turn_id)).state is TurnState.QUEUED
        DeadWorker(gateway.store).begin()
    assert await gateway.turn_worker.recover_orphans() == 1
    turn = await get_turn(gateway, lease.turn_id)
    assert turn.state is TurnState.FAILED
    assert f"{MAX_TURN_CRASHES} times" in (turn.error or "")
    assert gateway.store.load_events(turn.session_id)[-1].facts["reason"] == turn.error


async def test_a_process_that_dies_young_is_not_blamed_on_a_turn_that_ran_alone(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    worker = DeadWorker(gateway.store)
    for _ in range(MAX_SHARED_CRASHES + 1):
        assert await gateway.turn_worker.recover_orphans() == 1
        worker.begin()
    assert await gateway.turn_worker.recover_orphans() == 1
    uptime = compute_trial_uptime(MAX_SHARED_CRASHES + 1)
    young = uptime - timedelta(microseconds=1)
    behind = await send_message(gateway, dm(), "and now?")
    other = await send_message(gateway, dm("bob"), "hello")
    assert [each.turn_id for each in worker.claim(uptime=young, lease_seconds=60)] == [other]  # others do not wait
    assert [each.turn_id for each in worker.claim(uptime=young)] == []
    assert [each.turn_id for each in worker.claim(uptime=uptime, is_idle=False)] == []
    [again] = worker.claim(uptime=uptime)
    assert (again.turn_id, again.runs_alone) == (lease.turn_id, True)
    assert again.turn_id != behind


def test_a_turn_is_tried_alone_at_ever_greater_ages_of_the_process() -> None:
    seconds = [compute_trial_uptime(count).total_seconds() for count in range(MAX_TURN_CRASHES)]
    assert seconds == [0, 0, 0, 1, 2, 4, 8]


async def test_a_turn_whose_workers_die_before_they_call_the_agent_is_not_to_blame(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    for _ in range(4 * MAX_TURN_CRASHES):
        assert await gateway.turn_worker.recover_orphans() == 1
        (lease,) = DeadWorker(gateway.store).claim()
    assert (lease.crash_count, lease.attempt) == (0, 4 * MAX_TURN_CRASHES + 1)
    assert await gateway.turn_worker.recover_orphans() == 1
    turn = await get_turn(gateway, lease.turn_id)
    assert turn.state is TurnState.QUEUED
    assert gateway.store.load_events(turn.session_id)[-1].kind.value == "message"


def _hold_call(gateway: Gateway, lease: TurnLease) -> None:
    meter = gateway.turn_worker._get_dependencies().budgets.make_meter(lease, CallPurpose.ANSWER)
    call = ModelCall(model="m", provider=None, input_tokens=1, max_tokens=1, price=None)
    now = gateway.store.clock.now()
    gateway.store.engine.run(Write(lambda tx: meter._hold(tx, call, f"call-{lease.attempt}", now)))


def _save_draft(gateway: Gateway, lease: TurnLease) -> None:
    gateway.store.engine.run(Write(lambda tx: turn_leases.append_pieces(tx, lease, [Piece(PieceKind.TEXT, "Well")])))


@pytest.mark.parametrize("show_begin", [_hold_call, _save_draft])
async def test_a_held_call_or_a_draft_shows_that_an_attempt_has_begun(
    start_gateway: StartGateway, dm: MakeSource, show_begin: Callable[[Gateway, TurnLease], None]
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    show_begin(gateway, lease)
    assert await gateway.turn_worker.recover_orphans() == 1
    (lease,) = DeadWorker(gateway.store).claim()
    assert lease.crash_count == 1
    assert await gateway.turn_worker.recover_orphans() == 1  # this attempt had not begun
    (lease,) = DeadWorker(gateway.store).claim()
    assert lease.crash_count == 1


async def test_a_call_of_a_dead_worker_is_settled_after_its_turn_is_recovered(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    budgets = gateway.budgets
    monkeypatch.setattr(meter, "ORPHAN_MARGIN", -timedelta(days=1))  # every call is too old to be under way
    _hold_call(gateway, lease)
    assert await budgets.recover_calls() == 0
    assert await gateway.turn_worker.recover_orphans() == 1
    assert await budgets.recover_calls() == 1
    (lease,) = DeadWorker(gateway.store).claim()
    assert lease.crash_count == 1


async def test_a_turn_that_was_there_at_two_crashes_runs_alone(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway(max_running=1)
    await gateway.turn_worker.stop()
    names = ("ada", "bob", "carol")
    turn_ids = [await send_message(gateway, dm(name), "hello") for name in names[:2]]
    for _ in range(MAX_SHARED_CRASHES):
        assert len(DeadWorker(gateway.store).begin()) == 2
        assert await gateway.turn_worker.recover_orphans() == 2
    turn_ids.append(await send_message(gateway, dm("carol"), "hello"))
    batches = []
    while leases := DeadWorker(gateway.store).claim(lease_seconds=60):
        batches.append([lease.turn_id for lease in leases])
        if len(batches) == 1:  # a worker that runs something else leaves the other one to an idle worker
            assert DeadWorker(gateway.store).claim(lease_seconds=60, is_idle=False) == []
        for lease in leases:
            end = partial(turn_leases.end_turn, lease=lease, state=TurnState.DONE, now=1)
            gateway.store.engine.run(Write(end))
    assert batches == [[turn_ids[0]], [turn_ids[1]], [turn_ids[2]]]


async def test_a_worker_marks_a_repeated_attempt_before_it_calls_the_agent(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    read_mark = Read(lambda tx: tx.fetch_one("SELECT attempt, begun_attempt FROM turn"))
    marks: list[Any] = []

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        marks.append(gateway.store.engine.run(read_mark))
        yield TextDelta("Here I am.")

    class SlowAgent(ScriptedAgent):
        async def warm_up(self) -> None:
            marks.append(gateway.store.engine.run(read_mark))

    other = await start_gateway(SlowAgent(answer))
    await wait_for_turn(other, lease.turn_id)
    assert tuple(marks[-1]) == (2, 2)
    assert {mark[1] for mark in marks[:-1]} == {0}, "what the agent loads first is no part of the call"


async def test_two_workers_do_not_recover_the_same_turn(start_gateway: StartGateway, dm: MakeSource) -> None:
    other = await start_gateway(max_running=1)
    await other.turn_worker.stop()
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    recovered = await asyncio.gather(*(each.turn_worker.recover_orphans() for each in (gateway, other) * 3))
    assert sum(recovered) == 1
    assert (await get_turn(gateway, lease.turn_id)).state is TurnState.QUEUED


async def test_a_lease_that_has_not_expired_is_respected(start_gateway: StartGateway, dm: MakeSource) -> None:
    gateway = await start_gateway()
    await gateway.turn_worker.stop()
    turn_id = await send_message(gateway, dm(), "hello")
    DeadWorker(gateway.store).claim(lease_seconds=60)
    assert await gateway.turn_worker.recover_orphans() == 0
    assert (await get_turn(gateway, turn_id)).state is TurnState.RUNNING


async def test_a_worker_that_has_lost_its_lease_cannot_write_anymore(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway, lease = await claim_by_dead_worker(start_gateway, dm)
    await gateway.turn_worker.recover_orphans()
    (again,) = DeadWorker(gateway.store).claim(lease_seconds=60)
    assert again.attempt == lease.attempt + 1
    for write in (
        lambda tx: turn_leases.end_turn(tx, lease, TurnState.DONE, 0),
        lambda tx: turn_leases.mark_side_effects(tx, lease),
        lambda tx: turn_leases.check_lease(tx, lease),
        lambda tx: turn_leases.release_turn(tx, lease),
        lambda tx: turn_leases.requeue_turn(tx, lease, 0, 0),
        lambda tx: turn_leases.end_turn(tx, replace(lease, owner="other-host/2/2/other"), TurnState.DONE, 0),
    ):
        with pytest.raises(LeaseLost):
            gateway.store.engine.run(Write(write))


async def test_an_unstorable_draft_of_a_dead_worker_does_not_prevent_the_recovery_of_other_turns(
    start_gateway: StartGateway, dm: MakeSource
) -> None:
    gateway = await start_gateway()
    await gateway.turn_worker.stop()
    turn_ids = [await send_message(gateway, dm(user), "hello") for user in ("ada", "bob")]
    now = to_micros(gateway.store.clock.now())
    claim_request = turn_leases.ClaimRequest(
        owner="other-host/1/1/dead", lease_until=now - 1, max_turns=9, max_running=9, max_running_per_person=9
    )

    def claim_and_draft(tx: Transaction) -> None:
        for lease in turn_leases.claim_turns(tx, claim_request, now):
            turn_leases.mark_side_effects(tx, lease)
            if lease.turn_id == turn_ids[0]:
                turn_leases.append_pieces(tx, lease, [])
                tx.execute(
                    'UPDATE draft SET body = \'[{"kind":"result","call_id":7}]\' WHERE turn_no = $1', lease.turn_no
                )

    gateway.store.engine.run(Write(claim_and_draft))
    other = await start_gateway()
    assert [(await wait_for_turn(other, turn_id)).state for turn_id in turn_ids] == [TurnState.INTERRUPTED] * 2
