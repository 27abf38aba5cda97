"""The run of a job that a turn belongs to: who it acts for, what it may use, and what the agent is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.errors import NothingToDo
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.job_prompt import JobRunContext
from palaver.sessions.turn import JOB_RUN_KEY

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.jobs.model import JobRun
    from palaver.jobs.table import JobRow
    from palaver.people.model import Principal
    from palaver.sessions.turn_leases import TurnLease


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """A run of a job, and the job as it is now."""

    job_row: JobRow
    run: JobRun

    @property
    def principal(self) -> Principal:
        return self.job_row.principal

    def build_prompt_context(self) -> JobRunContext:
        job = self.job_row.job
        return JobRunContext(
            job_name=job.name,
            person_name=self.job_row.person_name,
            slot=self.run.slot,
            timezone=job.timezone,
            kind=self.run.kind,
            targets=job.targets,
            origin=job.origin,
        )


def is_job_run(lease: TurnLease) -> bool:
    """Whether a turn is a run of a job, and not a message of a person."""
    return JOB_RUN_KEY in lease.facts


def load_active_run(tx: Transaction, lease: TurnLease) -> ActiveRun | None:
    """Load the run that a turn belongs to; None if it belongs to none.

    Raises NothingToDo if the job was deleted: its run must not go on with the rights of its person.
    """
    if not is_job_run(lease):
        return None
    run_row = job_runs.find_run(tx, str(lease.facts[JOB_RUN_KEY]))
    job_row = None if run_row is None else jobs.find_by_no(tx, run_row.job_no)
    if run_row is None or job_row is None:
        raise NothingToDo("The job was deleted.")
    return ActiveRun(job_row=job_row, run=run_row.run)
