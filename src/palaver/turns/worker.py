"""The turn worker: claims queued turns, runs them, stores their drafts, extends their leases, recovers orphans.

There is one `TurnWorker` in a process, and any number of processes may work on the same store. The database decides
between them: which worker claims a turn, how many turns run at once, and which worker recovers a dead worker's turn.
The turns of workers that died are retried, or end as interrupted or failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from contextvars import Context, copy_context
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from palaver.accounts import access
from palaver.core.background import PollLoop, create_lease_owner, is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, WorkKind, Write, write_kind
from palaver.core.errors import InvalidMessage, LeaseLost, StoreError
from palaver.core.texts import say
from palaver.people.model import Role
from palaver.sessions import turn_leases
from palaver.sessions.draft import START_POSITION, Piece, Position, build_turn_messages
from palaver.sessions.turn import (
    MAX_TURN_CRASHES,
    CrashedTurnAction,
    InterruptReason,
    StopRequest,
    TurnKind,
    TurnState,
    compute_requeue_delay,
    compute_trial_uptime,
    decide_crashed_turn,
)
from palaver.turns.answer_end import AnswerEnded, explain_interruption
from palaver.turns.answer_recorder import build_messages, build_text_only_messages, finish_turn
from palaver.turns.run import Run
from palaver.turns.side_work import TitleWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.config.agent_rules import TurnRules
    from palaver.core.ids import TurnId
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.message import Message
    from palaver.sessions.turn_leases import ClaimRequest, OrphanTurn, TurnLease
    from palaver.turns.request_builder import RunDependencies

    UnsavedDraft = tuple[Run, list[Piece], Position]
    ClaimTurn = Callable[[Transaction, TurnId, int], TurnLease | None]  # the time is that of the transaction

T = TypeVar("T")

LEASE_SECONDS = 30.0
HEARTBEAT_SECONDS = 8.0  # between two extensions of all leases
STORE_RETRY_SECONDS = 1.0  # between two attempts to recover a run that could not be stored
DRAFT_SAVE_SECONDS = 0.2  # between two saves of all drafts
TRIAL_POLL_SECONDS = 1.0  # the same, while a turn may wait until this worker is older
POLL_SECONDS = 10.0  # the worker looks for turns at least this often, also when nothing wakes it
CANCEL_TIMEOUT_SECONDS = 5.0  # for a run to react to being canceled, when the process stops
log = logging.getLogger(__name__)


def claim_turns(
    tx: Transaction, config: GatewayConfig, rules: TurnRules, request: ClaimRequest, now: int
) -> list[TurnLease]:
    """Claim the next turns, within the limits, of people who may still talk to the agent."""
    claimed: list[TurnLease] = []
    has_refused = True
    while has_refused:
        has_refused = False
        rest = replace(request, max_turns=request.max_turns - len(claimed), is_idle=request.is_idle and not claimed)
        for lease in turn_leases.claim_turns(tx, rest, now):
            if _can_be_answered(tx, lease, rules):
                claimed.append(lease)
            else:
                has_refused = True
                end = explain_interruption(InterruptReason.ACCESS_ENDED)  # it is in the log, and is not sent to them
                finish_turn(tx, config, replace(lease, address=None), (), end, now)
    return claimed


def claim_new_turn(
    tx: Transaction, turn_id: TurnId, rules: TurnRules, request: ClaimRequest, now: int
) -> TurnLease | None:
    """Claim a turn that this transaction has queued, if nothing speaks against it; else the claim loop looks at it."""
    lease = turn_leases.claim_if_next(tx, turn_id, request, now)
    if lease is not None and not _can_be_answered(tx, lease, rules):
        turn_leases.release_turn(tx, lease)
        return None
    return lease


def _can_be_answered(tx: Transaction, lease: TurnLease, rules: TurnRules) -> bool:
    if lease.person_id is None or lease.person_role not in {None, Role.GUEST}:
        return True  # the platform does not tell people apart, or they may talk to the agent everywhere
    return access.can_guest_be_answered(tx, lease.person_id, lease.address, rules)


def recover_orphans(tx: Transaction, config: GatewayConfig, now: int) -> int:
    """Requeue or end every turn whose worker died; return how many there were. Two callers cannot both get one."""
    orphans = turn_leases.list_orphans(tx, now, is_owner_dead)
    for orphan in orphans:
        _recover(tx, config, orphan, now)
    return len(orphans)


def _recover(tx: Transaction, config: GatewayConfig, orphan: OrphanTurn, now: int) -> None:
    lease = orphan.lease
    crash_count = lease.crash_count + orphan.has_begun
    action = decide_crashed_turn(
        had_side_effects=orphan.has_side_effects, crash_count=crash_count, stop_request=orphan.stop_request
    )
    if action is CrashedTurnAction.RETRY:
        delay = timedelta(0) if orphan.has_begun else compute_requeue_delay(lease.attempt)
        turn_leases.requeue_turn(tx, lease, crash_count, now + delay // timedelta(microseconds=1) if delay else 0)
        turn_leases.delete_draft(tx, lease.turn_no)
        return
    if action is CrashedTurnAction.FAIL:
        reason = say(
            "answer.crashed",
            "Palaver crashed {times} times while answering this message, so it stopped trying. Send /retry to try it"
            " again.",
            times=crash_count,
        )
        end = AnswerEnded(state=TurnState.FAILED, error=reason)
    else:
        crashed = orphan.stop_request is None
        end = explain_interruption(InterruptReason.SERVER_CRASHED if crashed else InterruptReason.STOPPED)
    finish_turn(tx, config, lease, _load_partial_answer(tx, lease, end.state), end, now)


def _load_partial_answer(tx: Transaction, lease: TurnLease, state: TurnState) -> list[Message]:
    """Load what a dead worker had stored of its answer; only the text, if its driver wrote what the log cannot hold."""
    if lease.kind is TurnKind.COMPACT:
        return []
    draft = turn_leases.load_draft(tx, lease)
    try:
        fields = build_turn_messages(draft.get_pieces_since(START_POSITION))
        return build_messages([message | {"answers": lease.input_seq} for message in fields], state)
    except InvalidMessage:
        return build_text_only_messages(draft, lease.input_seq)


class TurnWorker:
    def __init__(
        self, get_dependencies: Callable[[], RunDependencies], *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._get_dependencies = get_dependencies  # what depends on the settings, as they are now
        self._engine = get_dependencies().store.engine
        self._title_writer = TitleWriter(get_dependencies)
        self._owner = create_lease_owner()
        self._started_at = time.monotonic()
        self._runs: dict[TurnId, Run] = {}
        self._claims: set[asyncio.Task[Any]] = set()  # writes that may claim a turn; each has one of the free places
        self._is_claiming = False
        self._run_context: Context | None = None  # of the tasks of runs; None before the start and after the end
        make_loop = partial(PollLoop, log=log, kind=WorkKind.TURN)
        self._claim_loop = make_loop(self._poll, "palaver-turns", failure_event="turn_claim_failed")
        self._draft_loop = make_loop(self._save_drafts, "palaver-drafts", failure_event="draft_save_failed")
        self._lease_loop = make_loop(self._keep_leases, "palaver-leases", failure_event="turn_lease_extension_failed")
        self._on_change = on_change  # called when there may be something to send

    async def start(self) -> None:
        """Recover the turns of dead workers, then start to claim turns."""
        await self._recover_after_crashes()
        self._run_context = copy_context()
        self._run_context.run(write_kind.set, WorkKind.TURN)
        self._get_dependencies().feed.add_work_listener(self.wake)
        for loop in (self._claim_loop, self._draft_loop, self._lease_loop):
            loop.start()

    def wake(self) -> None:
        self._claim_loop.wake()

    @property
    def running_count(self) -> int:
        return len(self._runs)

    def is_running(self, turn_id: TurnId | None) -> bool:
        return turn_id in self._runs

    async def stop(self, grace_seconds: float = 20.0) -> None:
        """Claim no further turn, give the running ones some time to finish, and leave the rest to other workers."""
        # If the store does not answer, the lease of what it may have claimed expires.
        await self._claim_loop.stop(CANCEL_TIMEOUT_SECONDS)
        if self._claims:
            await asyncio.wait(self._claims, timeout=CANCEL_TIMEOUT_SECONDS)
        self._run_context = None
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_seconds)
        await asyncio.gather(*(self._hand_over(run) for run in list(self._runs.values())))
        await self._title_writer.stop()
        await self._draft_loop.cancel()
        await self._lease_loop.cancel()

    async def _hand_over(self, run: Run) -> None:
        """Stop a run. Without side effects another worker starts it again; otherwise it ends as interrupted."""
        if run.has_side_effects:
            run.stop(InterruptReason.SERVER_STOPPED)
        elif run.task is not None and not run.is_ending:  # a complete answer is stored: its usage is recorded with it
            run.task.cancel()
        if run.task is not None:  # a task that does not end cannot write anything after its turn is released
            await asyncio.wait([run.task], timeout=CANCEL_TIMEOUT_SECONDS)
            if run.has_side_effects or run.is_ending:
                run.task.cancel()  # it could not store how it ended
        if run.has_side_effects:
            return

        def release(tx: Transaction) -> None:
            turn_leases.release_turn(tx, run.lease)
            turn_leases.delete_draft(tx, run.lease.turn_no)

        crash_point("turn.before_release")
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT_SECONDS):
                await self._engine.arun(Write(release))
        except LeaseLost:
            log.debug("turn_already_ended", extra={"turn": run.lease.turn_id})
        except (StoreError, TimeoutError) as error:  # another worker recovers the turn when its lease has expired
            log.warning("turn_release_failed", extra={"turn": run.lease.turn_id, "error": str(error)})
        crash_point("turn.released")

    # -- claiming and running ------------------------------------------------------------------------------

    async def run_new_turn(self, write: Callable[[ClaimTurn | None], Awaitable[tuple[T, TurnLease | None]]]) -> T:
        """Do a write that queues a turn. If there is a free place here, the same transaction claims the turn.

        `write` gets the function that claims it, and returns its own result and the lease. If the caller is canceled,
        that does not stop a turn that was claimed for it.
        """
        rules = self._get_dependencies().rules
        request = self._make_claim_request(rules, self._now())
        if self._run_context is None or self._claim_loop.is_stopping or self._is_claiming or request.max_turns < 1:
            result, _ = await write(None)
            return result

        def claim(tx: Transaction, turn_id: TurnId, now: int) -> TurnLease | None:
            lease_until = now + round(LEASE_SECONDS * 1e6)
            return claim_new_turn(tx, turn_id, rules, replace(request, lease_until=lease_until), now)

        task = asyncio.create_task(self._write_and_start(write(claim)), name="palaver-accept")
        self._claims.add(task)
        task.add_done_callback(self._forget_claim)
        return await asyncio.shield(task)

    def _forget_claim(self, task: asyncio.Task[Any]) -> None:
        self._claims.discard(task)
        if task.cancelled() or task.exception() is not None:  # its place is free for a turn that waits
            self.wake()

    async def _write_and_start(self, write: Awaitable[tuple[T, TurnLease | None]]) -> T:
        result, lease = await write
        if lease is not None:
            self._start_run(lease)
        return result

    def _make_claim_request(self, rules: TurnRules, now: int) -> ClaimRequest:
        is_reserved = len(self._runs) == 1 and next(iter(self._runs.values())).lease.runs_alone
        return turn_leases.ClaimRequest(
            owner=self._owner,
            lease_until=now + round(LEASE_SECONDS * 1e6),
            max_turns=0 if is_reserved else rules.max_running - len(self._runs) - len(self._claims),
            is_idle=not self._runs and not self._claims,
            uptime=timedelta(seconds=time.monotonic() - self._started_at),
            max_running=rules.max_running,
            max_running_per_person=rules.max_running_per_person,
        )

    async def _poll(self) -> float:
        """Start the turns that may run and stop those that people want stopped; return the seconds until the next."""
        rules, now = self._get_dependencies().rules, self._now()
        find_work = partial(turn_leases.find_work, owner=self._owner if self._runs else None, now=now)
        work = await self._engine.arun(Read(find_work, is_quick=True))
        request = self._make_claim_request(rules, now)
        if work.has_queued and request.max_turns > 0:

            def claim(tx: Transaction) -> turn_leases.WorkSummary:
                claimed = claim_turns(tx, self._get_dependencies().store.config, rules, request, now)
                return replace(find_work(tx), claimed=claimed)

            crash_point("turn.before_claim")
            self._is_claiming = True
            try:
                work = await self._engine.arun(Write(claim))
            finally:
                self._is_claiming = False
        for lease in work.claimed:
            self._start_run(lease)
        for turn_id, stop_request in work.stop_requests.items():
            if (stopped := self._runs.get(turn_id)) is not None:
                is_stop = stop_request is StopRequest.STOP
                stopped.stop(InterruptReason.STOPPED if is_stop else InterruptReason.NEW_MESSAGE)
        may_try_later = work.has_queued and request.uptime < compute_trial_uptime(MAX_TURN_CRASHES)
        wait = TRIAL_POLL_SECONDS if may_try_later else POLL_SECONDS
        return wait if work.next_due_at is None else min(wait, (work.next_due_at - now) / 1e6)

    def _start_run(self, lease: TurnLease) -> None:
        crash_point("turn.claimed")
        if self._run_context is None:  # the store has answered too late: the lease expires
            return
        run = Run(self._get_dependencies(), lease)
        run.release_agent = self._get_dependencies().acquire_agent()
        if not self._runs:  # an idle worker saves no drafts
            self._draft_loop.wake()
        self._runs[lease.turn_id] = run
        name, context = f"palaver-turn-{lease.turn_id}", self._run_context.copy()
        run.task = asyncio.create_task(self._execute(run), name=name, context=context)

    async def _execute(self, run: Run) -> None:
        turn_id = run.lease.turn_id
        try:
            await run.execute()
            self._title_writer.handle_ended_run(run)
        except asyncio.CancelledError:  # the lease is lost, or the process stops: another worker takes the turn
            log.info("turn_abandoned", extra={"turn": turn_id})
            await self._record_orphan_usage(run)
        except LeaseLost:  # the answer is dropped
            log.warning("turn_lease_lost", extra={"turn": turn_id})
            await self._record_orphan_usage(run)
        except StoreError as error:
            log.error("turn_not_stored", extra={"turn": turn_id, "error": str(error)})
            await self._recover_broken_run(run)
        except Exception:  # the same, but by a mistake of ours: the log has to show where
            log.exception("turn_not_stored", extra={"turn": turn_id})
            await self._recover_broken_run(run)
        finally:
            run.release_agent()
            self._runs.pop(turn_id, None)
            self.wake()
            self._on_change()

    async def _recover_broken_run(self, run: Run) -> None:
        """Requeue or end the turn of a run that broke off, as soon as the store is available.

        If this process stops before, another worker recovers the turn when its lease has expired.
        """
        run.is_ending = True

        def recover(tx: Transaction, now: int) -> None:
            # Without waiting for its lease to expire.
            _recover(tx, self._get_dependencies().store.config, turn_leases.load_orphan(tx, run.lease), now)
            run.record_orphan_usage(tx, now)

        while not self._claim_loop.is_stopping:
            try:
                await self._engine.arun(Write(partial(recover, now=self._now())))
            except LeaseLost:
                await self._record_orphan_usage(run)
                return
            except StoreError as error:
                log.debug("turn_recovery_failed", extra={"turn": run.lease.turn_id, "error": str(error)})
                await asyncio.sleep(STORE_RETRY_SECONDS)
            else:
                log.info("turns_recovered", extra={"count": 1})
                return

    async def _record_orphan_usage(self, run: Run) -> None:
        try:
            await self._engine.arun(Write(partial(run.record_orphan_usage, now=self._now())))
        except StoreError as error:
            log.error("turn_usage_not_recorded", extra={"turn": run.lease.turn_id, "error": str(error)})

    # -- drafts and leases ---------------------------------------------------------------------------------

    async def _save_drafts(self) -> float:
        """Save all growing drafts in one transaction; return the seconds until the next time."""
        candidates = [
            (run, *run.get_unsaved_pieces())
            for run in self._runs.values()
            if not run.is_ending and not run.save_lock.locked()
        ]
        unsaved = [each for each in candidates if each[1]]
        if not unsaved:
            return DRAFT_SAVE_SECONDS if self._runs else POLL_SECONDS
        async with contextlib.AsyncExitStack() as locks:
            for run, _, _ in unsaved:
                await locks.enter_async_context(run.save_lock)  # free, as checked above: this does not wait
                run.recorder.may_have_saved = True
            crash_point("turn.before_draft_save")
            saved = await self._engine.arun(Write(partial(_append_drafts, unsaved=unsaved)))
            crash_point("turn.draft_saved")
            for run, _, position in unsaved:
                if run.lease.turn_no in saved:
                    run.saved_position = position
                else:
                    self._abandon(run)
        return DRAFT_SAVE_SECONDS

    async def _keep_leases(self) -> float:
        """Extend the leases of running turns and recover those of dead workers; return the seconds until next time."""
        await self._extend_leases()
        await self._recover_after_crashes()
        return HEARTBEAT_SECONDS

    async def _extend_leases(self) -> None:
        if not self._runs:
            return
        until = self._now() + round(LEASE_SECONDS * 1e6)
        runs = [run for run in self._runs.values() if not run.is_overdue]
        extend = partial(turn_leases.extend_leases, leases=[run.lease for run in runs], until=until)
        extended = await self._engine.arun(Write(extend))
        for run in runs:
            if run.lease.turn_no not in extended:
                self._abandon(run)

    def _abandon(self, run: Run) -> None:
        """Cancel a run that has lost its lease: another worker has its turn, and this answer no longer counts."""
        if self._runs.get(run.lease.turn_id) is run and run.task is not None and not run.is_ending:
            run.task.cancel()

    # -- recovery ------------------------------------------------------------------------------------------

    async def _recover_after_crashes(self) -> None:
        await self.recover_orphans()
        await self._get_dependencies().budgets.recover_calls()

    async def recover_orphans(self) -> int:
        now = self._now()
        crash_point("turn.before_recovery")
        recovered = await self._engine.arun(
            Write(
                lambda tx: recover_orphans(tx, self._get_dependencies().store.config, now),
                read_first=lambda tx: None if turn_leases.has_orphan(tx, now, is_owner_dead) else 0,
            )
        )
        crash_point("turn.recovered")
        if recovered:
            log.info("turns_recovered", extra={"count": recovered})
            self.wake()
            self._on_change()
        return recovered

    def _now(self) -> int:
        return to_micros(self._get_dependencies().store.clock.now())


def _append_drafts(tx: Transaction, unsaved: list[UnsavedDraft]) -> set[int]:
    """Store more of several drafts; return the numbers of the turns that still had their lease."""
    saved = set()
    for run, pieces, _ in unsaved:
        with contextlib.suppress(LeaseLost):
            turn_leases.check_lease(tx, run.lease)
            turn_leases.append_pieces(tx, run.lease, pieces)
            saved.add(run.lease.turn_no)
    return saved
