"""Jobs of people on the loopback platform, with a clock that tests set: what runs when, and what people are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.source import ChatType
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import JobRun, JobRunState, JobState
from palaver.jobs.schedule import format_schedule, list_next_slots, parse_schedule
from palaver.people import table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LoopbackAdapter
from support.gateway import wait_until

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.gateway.gateway import Gateway
    from palaver.jobs.table import JobRow
    from palaver.testing import FakeClock

HEADING = '**Job "News"**\n\n'  # above what a job that is called so sends to a chat


def insert_job(
    store: SessionStore, origin: SessionSource, schedule: str, *, name: str = "News", **fields: Any
) -> JobRow:
    """Add an active job of the person who writes from `origin`, who becomes a member."""
    now = store.clock.now()
    timezone = fields.pop("timezone", "Europe/Berlin")
    parsed = parse_schedule(schedule, timezone=timezone, now=now)

    def insert(tx: Any) -> JobRow:
        person_row = people.find_or_add_by_source(tx, origin, to_micros(now))
        assert person_row is not None
        people.set_role(tx, person_row.person.id, Role.MEMBER)
        if origin.chat_type is ChatType.DM:
            people.remember_dm_source(tx, origin, None)  # as if they had written there
        new_job = jobs.NewJob(
            person_id=person_row.person.id,
            name=name,
            prompt=fields.pop("prompt", "What is new?"),
            schedule=format_schedule(parsed),
            timezone=timezone,
            anchor=now,
            targets=fields.pop("targets", ("origin",)),
            origin=origin,
            toolsets=(),
            state=JobState.ACTIVE,
            next_slot=list_next_slots(parsed, timezone, now, now, 1)[0],
            **fields,
        )
        return jobs.insert(tx, new_job, to_micros(now))

    return store.engine.run(Write(insert))


@dataclass
class JobTown:
    """A gateway whose scheduler looks when the test says so."""

    gateway: Gateway
    clock: FakeClock
    loopback: LoopbackAdapter = field(default_factory=LoopbackAdapter)

    @property
    def store(self) -> SessionStore:
        return self.gateway.store

    @property
    def sent(self) -> list[str]:
        """What people have been sent, in order."""
        return [message.body for message in self.loopback.sent]

    def add_job(self, schedule: str, *, user: str = "ada", **fields: Any) -> JobRow:
        return insert_job(self.store, self.loopback.get_source(user), schedule, **fields)

    def load_job(self, job_row: JobRow) -> JobRow:
        loaded = self.store.engine.run(Read(lambda tx: jobs.find_by_no(tx, job_row.no)))
        assert loaded is not None
        return loaded

    def list_runs(self, job_row: JobRow) -> list[JobRun]:
        """List the runs of a job, the oldest slot first."""
        runs = self.store.engine.run(Read(lambda tx: job_runs.list_runs(tx, job_row.no, limit=50)))
        return runs[::-1]

    def summarize(self, job_row: JobRow) -> list[str]:
        """Return the state of every run, with the number of slots if there are several."""
        return [f"{run.state}{f' x{run.slot_count}' if run.slot_count > 1 else ''}" for run in self.list_runs(job_row)]

    async def poll(self) -> float:
        return await self.gateway.scheduler.poll()

    async def run_at_slot(self, job_row: JobRow) -> JobRun:
        """Set the clock to the job's next slot, and wait until the run has ended and everything is sent."""
        next_slot = self.load_job(job_row).job.next_slot
        assert next_slot is not None
        self.clock.set(next_slot)
        await self.poll()
        await self.wait_until_ended()
        return self.list_runs(job_row)[-1]

    async def wait_until_ended(self) -> None:
        """Wait until no run, turn and delivery is open."""
        await wait_until(lambda: not self.store.engine.run(Read(_count_open_work)))

    async def wait_for_state(self, job_row: JobRow, state: JobRunState) -> JobRun:
        def find_run() -> JobRun | None:
            return next((run for run in self.list_runs(job_row) if run.state is state), None)

        found = await wait_until(find_run)
        assert isinstance(found, JobRun)
        return found


def _count_open_work(tx: Any) -> int:
    row = tx.fetch_one(
        "SELECT (SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running'))"
        " + (SELECT COUNT(*) FROM delivery WHERE state IN ('pending', 'sending'))"
        " + (SELECT COUNT(*) FROM job_run WHERE state = 'running')"
    )
    return int(row[0])
