"""Tells people of runs of their jobs that were missed: one notice for all that Palaver missed while it did not run.

Whether a person is to be told is recorded with the run. The notice is queued later, in the transaction that takes the
record back, so it is sent once, whatever happens in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.source import ChatType
from palaver.delivery.person_notices import notify_person
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.alerts import format_name, format_time
from palaver.people.model import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.jobs.model import Job
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig

NOTICE_WAIT: Final = timedelta(hours=6)  # if the next run is sooner, its person is not told of a missed one
MAX_RUNS_PER_NOTICE: Final = 500
MAX_LISTED_JOBS: Final = 10
_REASON: Final = "Palaver was not running, or too many other runs were waiting. `/jobs` lists your jobs."


@dataclass(frozen=True, slots=True)
class _MissedJob:
    """A job, and its first run that was missed."""

    row: JobRow
    run_row: RunRow

    @property
    def job(self) -> Job:
        return self.row.job


def should_tell(next_slot: datetime | None, now: datetime) -> bool:
    """Whether a person is told of a missed run: if the next one is far away, or there is none."""
    return next_slot is None or next_slot - now >= NOTICE_WAIT


def send_missed_notice(tx: Transaction, config: GatewayConfig, now: int) -> bool:
    """Tell one person of everything that their jobs missed; False if no person is left to tell."""
    run_rows = job_runs.list_untold(tx, MAX_RUNS_PER_NOTICE)
    if not run_rows:
        return False
    job_runs.set_untold(tx, [run_row.no for run_row in run_rows], is_untold=False)
    first_runs: dict[int, RunRow] = {}
    for run_row in run_rows:
        first_runs.setdefault(run_row.job_no, run_row)
    found = [(jobs.find_by_no(tx, job_no), run_row) for job_no, run_row in first_runs.items()]
    missed = [_MissedJob(row, run_row) for row, run_row in found if row is not None]
    if missed and missed[0].row.person_role is not Role.GUEST:
        _send(tx, config, missed, now)
    return True


def find_nothing_to_send(tx: Transaction) -> bool | None:
    """Return what `send_missed_notice` would if it has nothing to do; None if it has."""
    return None if job_runs.has_untold(tx) else False


def _send(tx: Transaction, config: GatewayConfig, missed: Sequence[_MissedJob], now: int) -> None:
    """Send a notice to the person's own chat; only if they have none, to the groups in which the jobs were made.

    In a group it names no job that was made elsewhere: other people read it.
    """
    person_id = missed[0].job.person_id
    own_chats = [each.job.origin for each in missed if each.job.origin.chat_type is ChatType.DM]
    text = _format_one(missed[0]) if len(missed) == 1 else _format_several(missed)
    is_sent = notify_person(tx, config, person_id, text, now, preferred=own_chats[0] if own_chats else None)
    if not is_sent and not own_chats:
        for each in missed:
            notify_person(tx, config, person_id, _format_one(each), now, preferred=each.job.origin)


def _format_one(missed: _MissedJob) -> str:
    job, run = missed.job, missed.run_row.run
    return f"The job {format_name(job)} did not run at {format_time(job, run.slot)}. {run.reason} {_format_next(job)}"


def _format_several(missed: Sequence[_MissedJob]) -> str:
    lines = [
        f"- {format_name(each.job)} at {format_time(each.job, each.run_row.run.slot)}. {_format_next(each.job)}"
        for each in missed[:MAX_LISTED_JOBS]
    ]
    left = len(missed) - MAX_LISTED_JOBS
    lines += [f"- and {left} more"] if left > 0 else []
    return f"{len(missed)} of your jobs did not run:\n\n" + "\n".join(lines) + f"\n\n{_REASON}"


def _format_next(job: Job) -> str:
    if job.next_slot is not None:
        return f"Next run: {format_time(job, job.next_slot)}."
    return "It is paused." if job.state == "paused" else "It does not run again."
