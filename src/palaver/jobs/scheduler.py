"""The scheduler: fires jobs whose slot has come, starts queued runs, and ends runs whose turn is gone.

Any number of processes may run one on the same store; the database decides which of them fires a slot. It looks at the
wall clock at least every half a minute, so it works when the machine sleeps and when the clock is set.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.core.background import PollLoop
from palaver.core.clock import from_micros, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import InvalidInput, StoreError
from palaver.jobs import firing, run_end, runs_table as job_runs, table as jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.jobs.table import JobRow
    from palaver.live.feed import Feed
    from palaver.sessions.store import SessionStore

MAX_WAIT_SECONDS: Final = 30.0  # between two looks at the wall clock
FAILED_JOB_SECONDS: Final = 60.0  # a job that could not be fired is tried again after this time
WAKE_DELAY_SECONDS: Final = 0.1  # after a change of the database: many messages must not cause as many looks
JOBS_PER_BATCH: Final = 20
CLOCK_STEP: Final = timedelta(minutes=1)  # a clock that goes back by more than this was set

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkSummary:
    """The work that is due now, and the time of the next look."""

    due: list[JobRow]
    can_start: bool
    has_orphans: bool
    next_at: datetime | None


class Scheduler:
    def __init__(
        self,
        store: SessionStore,
        feed: Feed,
        get_max_running: Callable[[], int],
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._feed = feed
        self._get_max_running = get_max_running
        self._on_change = on_change  # called when there may be a turn to run or something to send
        self._loop = PollLoop(self.poll, "palaver-jobs", log=log, failure_event="job_scheduling_failed")
        self._delayed_wake: asyncio.TimerHandle | None = None
        self._last_now: datetime | None = None  # what the clock showed at the last poll
        self._retry_times: dict[int, float] = {}  # of jobs that could not be fired, by the clock of the event loop

    async def start(self) -> None:
        self._feed.add_work_listener(self._wake_soon)
        self._loop.start()

    def wake(self) -> None:
        """Look now for jobs to fire and runs to start."""
        self._loop.wake()

    def _wake_soon(self) -> None:
        if self._delayed_wake is None and not self._loop.is_stopping:
            self._delayed_wake = asyncio.get_running_loop().call_later(WAKE_DELAY_SECONDS, self._end_delay)

    def _end_delay(self) -> None:
        self._delayed_wake = None
        self.wake()

    async def stop(self) -> None:
        """Fire and start nothing more; what is running goes on as turns."""
        if self._delayed_wake is not None:
            self._delayed_wake.cancel()
        await self._loop.stop()

    async def poll(self) -> float:
        """Do everything that is due; return the seconds until the next poll."""
        await self._check_clock()
        passed = (0, 0)  # the slot and number of the last job that this poll has tried to fire
        while True:
            now = self._store.clock.now()
            find_work = partial(self._find_work, now=to_micros(now), passed=passed)
            work = await self._engine.arun(Read(find_work, is_quick=True))
            if work.has_orphans:
                end = partial(run_end.end_orphaned_runs, config=self._store.config, now=self._now())
                await self._engine.arun(Write(end))
                self._on_change()
            await self._fire(work.due, now)
            if work.can_start:
                await self._start_runs()
            if not work.due or self._loop.is_stopping:
                break
            last = work.due[-1]
            passed = (to_micros(last.job.next_slot or now), last.no)
        await self._send_missed_notices()  # when everything is fired, so that each person gets one notice
        if work.next_at is None:
            return MAX_WAIT_SECONDS
        return min(max((work.next_at - now).total_seconds(), 0.0), MAX_WAIT_SECONDS)

    def _find_work(self, tx: Transaction, now: int, passed: tuple[int, int]) -> _WorkSummary:
        """Find what there is to do, by a few look-ups in indexes, however many jobs there are."""
        next_slot, next_start = jobs.find_next_slot(tx, now), job_runs.find_next_start(tx)
        has_room = job_runs.count_running(tx) < self._get_max_running()
        moments = [next_slot] if next_slot is not None else []
        if next_start is not None and has_room:
            moments.append(from_micros(next_start))
        return _WorkSummary(
            due=jobs.list_due(tx, now, JOBS_PER_BATCH, passed),
            can_start=has_room and next_start is not None and next_start <= now,
            has_orphans=bool(job_runs.list_orphans(tx, 1)),
            next_at=min(moments, default=None),
        )

    # -- firing and starting -------------------------------------------------------------------------------

    async def _fire(self, due: list[JobRow], now: datetime) -> None:
        """Fire jobs. One that cannot be fired is left for a while, so that it delays no other and fills no log."""
        time = asyncio.get_running_loop().time()
        for job_row in due:
            if self._loop.is_stopping:
                break
            if self._retry_times.get(job_row.no, 0.0) > time:
                continue
            try:
                await self._fire_job(job_row, now)
                self._retry_times.pop(job_row.no, None)
            except StoreError:
                raise
            except Exception:  # a mistake of ours
                log.exception("job_firing_failed", extra={"job": job_row.job.id})
                self._retry_times[job_row.no] = time + FAILED_JOB_SECONDS

    async def _fire_job(self, job_row: JobRow, now: datetime) -> None:
        now_micros = to_micros(now)
        try:
            plan = await asyncio.to_thread(firing.plan_firing, job_row.job, now)
        except InvalidInput as error:  # its schedule cannot be read any more
            log.warning("job_schedule_unreadable", extra={"job": job_row.job.id, "error": str(error)})
            reason = error.text
            await self._engine.arun(
                Write(lambda tx: firing.pause_unreadable_job(tx, self._store.config, job_row, reason, now_micros))
            )
            self._on_change()
            return
        crash_point("job.before_firing")
        has_fired = await self._engine.arun(
            Write(lambda tx: firing.fire_job(tx, self._store.config, job_row, plan, now_micros))
        )
        crash_point("job.fired")
        if has_fired:
            log.info("job_fired", extra={"job": job_row.job.id, "slot": str(job_row.job.next_slot)})
            self._on_change()  # people may be told of a run that was skipped

    async def _start_runs(self) -> None:
        is_busy = True
        while is_busy and not self._loop.is_stopping:
            crash_point("job.before_start")
            is_busy = await self._start_run()
            crash_point("job.started")
            if is_busy:
                self._on_change()

    async def _start_run(self) -> bool:
        """Start or end one run; False if there is none that may start now."""
        config, now, max_running = self._store.config, self._now(), self._get_max_running()
        tried: list[str] = []
        try:
            return await self._engine.arun(
                Write(lambda tx: firing.start_next_run(tx, config, max_running, now, tried)),
            )
        except StoreError:
            raise
        except Exception:  # a mistake of ours: other runs must not wait for this one
            if not tried:
                raise
            log.exception("job_run_not_started", extra={"run": tried[-1]})
            end = partial(run_end.fail_unstarted_run, config=config, run_id=tried[-1], now=now)
            await self._engine.arun(Write(end))
            return True

    async def _send_missed_notices(self) -> None:
        send = partial(run_end.send_missed_notice, config=self._store.config, now=self._now())
        write = Write(send, read_first=lambda tx: None if job_runs.has_untold(tx) else False, is_quick=True)
        while not self._loop.is_stopping and await self._engine.arun(write):
            self._on_change()

    # -- the clock -----------------------------------------------------------------------------------------

    async def _check_clock(self) -> None:
        """Look for earlier slots if the clock was set back: jobs must not wait until it is again as late as it was."""
        now, last = self._store.clock.now(), self._last_now
        if last is None:  # it may have been set back while no scheduler was running
            micros = await self._engine.arun(Read(job_runs.find_last_created_at, is_quick=True))
            last = from_micros(micros) if micros is not None else now
        if last - now > CLOCK_STEP:
            log.warning("clock_set_back", extra={"seconds": (last - now).total_seconds()})
            await self._correct_slots(to_micros(now))
        self._last_now = now

    async def _correct_slots(self, now: int) -> None:
        await self._engine.arun(Write(partial(job_runs.end_delays, now=now)))
        after = 0
        while page := await self._engine.arun(Read(partial(jobs.list_all, limit=JOBS_PER_BATCH, after=after))):
            for job_row in page:
                if job_row.job.next_slot is not None:
                    await self._engine.arun(Write(partial(firing.correct_next_slot, seen_row=job_row, now=now)))
            after = page[-1].no

    def _now(self) -> int:
        return to_micros(self._store.clock.now())
