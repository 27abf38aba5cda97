"""Turns: claiming what waits, running it, keeping drafts and leases, and taking over from the dead.

One `Turns` works for a process; any number of processes may work on the same store. What they do at once is decided by
the database: who claims a turn, how many run, who takes over a dead one's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from palaver.domain import crash_points
from palaver.domain.draft import START, messages_of
from palaver.domain.errors import InvalidMessage, LeaseLost, StoreError
from palaver.domain.turn import Fate, StopRequest, TurnKind, TurnState, after_death
from palaver.services.poll_loop import keep_looking
from palaver.services.process_identity import is_dead, new_owner
from palaver.services.turns.finish import BY_PERSON, count_apart, marked, settle, words_of
from palaver.services.turns.run import BY_MESSAGE, Run, RunDependencies
from palaver.storage import drafts, leases
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.domain.draft import Piece, Position
    from palaver.domain.ids import TurnId
    from palaver.domain.message import Message
    from palaver.storage.engines.base import Transaction
    from palaver.storage.leases import Lease

LEASE = 30.0  # seconds
HEARTBEAT = 8.0  # seconds between two extensions of all leases
PACE = 0.2  # seconds between two times drafts are kept
ANYWAY = 10.0  # seconds after which it is looked for something to run, though nobody said so
TIME_TO_LEAVE = 5.0  # seconds for a run to let itself be stopped, when the process stops
STOPPED = "Palaver was stopped while it was at work; what its tools did is done"
DIED = "Palaver was stopped while a tool was at work; what it did is not known. Say what should happen next."
PARKED = "this message has stopped Palaver {attempts} times, so it is not tried again"

log = logging.getLogger(__name__)


class Turns:
    """Runs the turns that wait."""

    def __init__(self, workshop: RunDependencies, *, on_change: Callable[[], None] = lambda: None) -> None:
        self._shop = workshop
        self._engine = workshop.store.engine
        self._owner = new_owner()
        self._runs: dict[int, Run] = {}  # by turn
        self._woken = asyncio.Event()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self._on_change = on_change  # there may be something to send

    async def start(self) -> None:
        """Take over what the dead have left, then begin to work."""
        await self.recover()
        self._shop.feed.on_work(self.wake)
        self._tasks = [
            asyncio.create_task(self._dispatch(), name="palaver-turns"),
            asyncio.create_task(self._keep_drafts(), name="palaver-drafts"),
            asyncio.create_task(self._keep_leases(), name="palaver-leases"),
        ]
        self.wake()

    def wake(self) -> None:
        """There may be something to run, or to stop."""
        self._woken.set()

    @property
    def running(self) -> int:
        """How many turns run in this process."""
        return len(self._runs)

    async def stop(self, patience: float = 20.0) -> None:
        """Claim nothing more, let what runs finish for a while, then leave the rest for whoever comes next."""
        self._stopping = True
        self._woken.set()
        upkeep = self._tasks[1:]
        for dispatching in self._tasks[:1]:
            await dispatching  # not cancelled: what it has just claimed must not be forgotten
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        await asyncio.gather(*(self._hand_over(run) for run in list(self._runs.values())))
        for task in upkeep:
            task.cancel()
        await asyncio.gather(*upkeep, return_exceptions=True)
        self._tasks = []

    async def _hand_over(self, run: Run) -> None:
        """Stop a run. If nothing of it has acted it will begin again elsewhere; otherwise it ends as interrupted."""
        if run.acted:
            run.stop(STOPPED)
        elif run.task is not None:
            run.task.cancel()
        if run.task is not None:  # one that stays can write nothing any more once its turn is given back
            await asyncio.wait([run.task], timeout=TIME_TO_LEAVE)
        if run.acted:
            return

        def release(tx: Transaction) -> None:
            leases.release(tx, run.lease)
            drafts.drop(tx, run.lease.turn_no)

        crash_points.crash_point("turn.before_release")
        try:
            await self._engine.arun(Write(release))
        except LeaseLost:
            log.debug("turn %s has just come to its end", run.lease.turn_id)
        except StoreError as error:  # whoever comes next takes it over when the lease has run out
            log.warning("turn %s cannot be given back: %s", run.lease.turn_id, error)
        crash_points.crash_point("turn.released")

    # -- claiming ------------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        await keep_looking(
            self._look, self._woken, is_over=lambda: self._stopping, log=log, trouble="turns cannot be claimed"
        )

    async def _look(self) -> float:
        """Begin what may begin and stop what people want stopped; the seconds until something else is due."""
        rules = self._shop.rules
        now = self._now()
        claimer = leases.Claimer(
            owner=self._owner,
            until=now + _micros(LEASE),
            most=rules.concurrency - len(self._runs),
            concurrency=rules.concurrency,
            per_person=rules.per_person,
        )

        def claim(tx: Transaction) -> leases.Survey:
            claimed = leases.claim(tx, claimer, now)
            return replace(leases.survey(tx, self._owner, now), claimed=claimed)

        def nothing(tx: Transaction) -> leases.Survey | None:
            survey = leases.survey(tx, self._owner, now)
            return None if survey.waiting and claimer.most > 0 else survey

        crash_points.crash_point("turn.before_claim")
        survey = await self._engine.arun(Write(claim, look=nothing, quick=True))
        for lease in survey.claimed:
            crash_points.crash_point("turn.claimed")
            run = Run(self._shop, lease)
            self._runs[lease.turn_no] = run
            run.task = asyncio.create_task(self._go(run), name=f"palaver-turn-{lease.turn_id}")
        self._heed(survey.wishes)
        return ANYWAY if survey.next_due is None else min(ANYWAY, (survey.next_due - now) / 1e6)

    async def _go(self, run: Run) -> None:
        try:
            await run.go()
        except asyncio.CancelledError:  # the lease is lost, or the process stops: somebody else goes on with it
            log.info("turn %s was left", run.lease.turn_id)
            await self._count_apart(run)
        except LeaseLost:
            log.warning("turn %s was taken over while it ran; its answer is dropped", run.lease.turn_id)
            await self._count_apart(run)
        except StoreError as error:  # it could not be stored: the lease runs out, and the turn is taken up again
            log.error("turn %s could not be stored: %s", run.lease.turn_id, error)
        except Exception:  # the same, and it is ours to find out why
            log.exception("turn %s could not be stored", run.lease.turn_id)
        finally:
            self._runs.pop(run.lease.turn_no, None)
            self.wake()
            self._on_change()

    async def _count_apart(self, run: Run) -> None:
        """What was used is paid for, whoever has the turn now."""
        if not run.used:
            return
        try:
            await self._engine.arun(Write(partial(count_apart, lease=run.lease, used=run.used, now=self._now())))
        except StoreError as error:
            log.error("what turn %s used could not be counted: %s", run.lease.turn_id, error)

    # -- wishes, drafts, leases ----------------------------------------------------------------------------

    def _heed(self, wishes: Mapping[TurnId, StopRequest]) -> None:
        """Stop what people want stopped."""
        for run in self._runs.values():
            wish = wishes.get(run.lease.turn_id)
            if wish is not None:
                run.stop(BY_PERSON if wish is StopRequest.STOP else BY_MESSAGE)

    async def _keep_drafts(self) -> None:
        """Everything that grows is kept together, at a steady pace: one transaction, however many runs there are."""
        while True:
            await asyncio.sleep(PACE)
            try:
                await self._keep_grown()
            except StoreError as error:
                log.warning("drafts cannot be kept: %s", error)
            except Exception:  # whatever it is: the others' drafts are kept all the same
                log.exception("drafts cannot be kept")

    async def _keep_grown(self) -> None:
        grown = [(run, *run.unkept()) for run in self._runs.values() if not run.keeping.locked()]
        grown = [each for each in grown if each[1]]
        if grown:
            async with contextlib.AsyncExitStack() as keeping:
                for run, _, _ in grown:
                    await keeping.enter_async_context(run.keeping)  # which is free: nobody has to wait
                await self._keep(grown)

    async def _keep(self, grown: list[tuple[Run, list[Piece], Position]]) -> None:
        crash_points.crash_point("turn.before_keeping")
        kept = await self._engine.arun(Write(partial(_keep, grown=grown)))
        crash_points.crash_point("turn.draft_kept")
        for run, _, position in grown:
            if run.lease.turn_no in kept:
                run.kept = position
            else:
                self._give_up(run)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                if self._runs:
                    until = self._now() + _micros(LEASE)
                    runs = [run for run in self._runs.values() if not run.is_lost]
                    held = [run.lease for run in runs]
                    mine = await self._engine.arun(Write(partial(leases.extend, leases=held, until=until)))
                    for run in runs:
                        if run.lease.turn_no not in mine:
                            self._give_up(run)
                await self.recover()
            except StoreError as error:
                log.warning("leases cannot be kept: %s", error)
            except Exception:  # whatever it is: without this loop everything that runs is lost
                log.exception("leases cannot be kept")

    def _give_up(self, run: Run) -> None:
        """Somebody else has the turn now: what is said here no longer counts."""
        still = self._runs.get(run.lease.turn_no)
        if still is run and run.task is not None and not run.ending:
            run.task.cancel()

    # -- after a death -------------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Take over the turns of workers that are gone; how many there were. Two who try cannot both win."""
        now = self._now()

        def look(tx: Transaction) -> int | None:
            return None if leases.any_orphan(tx, now, is_dead) else 0

        crash_points.crash_point("turn.before_recovery")
        taken = await self._engine.arun(Write(lambda tx: _recover(tx, now), look=look))
        crash_points.crash_point("turn.recovered")
        if taken:
            log.info("%d turns of a worker that is gone were taken over", taken)
            self.wake()
            self._on_change()
        return taken

    def _now(self) -> int:
        return to_micros(self._shop.store.clock.now())


def _keep(tx: Transaction, grown: list[tuple[Run, list[Piece], Position]]) -> set[int]:
    kept = set()
    for run, pieces, _ in grown:
        with contextlib.suppress(LeaseLost):
            leases.check(tx, run.lease)
            drafts.grow(tx, run.lease, pieces)
            kept.add(run.lease.turn_no)
    return kept


def _recover(tx: Transaction, now: int) -> int:
    orphans = leases.orphans(tx, now, is_dead)
    for orphan in orphans:
        lease = orphan.lease
        fate = after_death(acted=orphan.acted, attempt=lease.attempt, wish=orphan.wish)
        if fate is Fate.AGAIN:
            leases.requeue(tx, lease)
            drafts.drop(tx, lease.turn_no)
            continue
        state, error = _ending(lease, fate, orphan.wish)
        settle(tx, lease, _kept(tx, lease, state), (), state, error, now)
    return len(orphans)


def _kept(tx: Transaction, lease: Lease, state: TurnState) -> list[Message]:
    """What a worker that is gone had said; its words alone, where its driver gave what no log can hold."""
    if lease.kind is TurnKind.COMPACT:
        return []
    draft = drafts.whole(tx, lease)
    try:
        return marked([message | {"answers": lease.input_seq} for message in messages_of(draft.since(START))], state)
    except InvalidMessage:
        return words_of(draft, lease.input_seq)


def _ending(lease: Lease, fate: Fate, wish: StopRequest | None) -> tuple[TurnState, str]:
    if fate is Fate.PARKED:
        return TurnState.FAILED, PARKED.format(attempts=lease.attempt)
    return TurnState.INTERRUPTED, DIED if wish is None else BY_PERSON


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
