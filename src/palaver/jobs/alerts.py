"""Tells people what they would otherwise not notice about their jobs: failures, recovery, and jobs that were paused.

Two failures in a row are told once for each cause, and those of the last run at once. A job that fails again and again
is paused. After a failure that was told, the next success is told as well. Everything goes through the outbox. Of runs
that were missed, `missed_notices.py` tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.commands.reply_text import escape_markdown
from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType
from palaver.delivery.notices import notify_person
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import ALERT_AFTER_FAILURES, MAX_JOB_NAME_CHARS, PAUSE_AFTER_FAILURES, JobRunKind, JobState
from palaver.jobs.schedule import load_zone
from palaver.people.model import Role
from palaver.sessions.context import clean_chat_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.jobs.model import Job
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig


MAX_REASON_CHARS: Final = 300
NOTICE_WAIT: Final = timedelta(hours=6)  # if the next run is sooner, its person is not told of a missed one
MAX_RUNS_PER_NOTICE: Final = 500
MAX_LISTED_JOBS: Final = 10
_REASON: Final = "Palaver was not running, or too many other runs were waiting. `/jobs` lists your jobs."


def handle_failure(
    tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, reason: str, cause: str, now: int
) -> None:
    """Count a failed run; tell the person if they should know, and pause a job that keeps failing."""
    job = job_row.job
    name, what = format_name(job), escape_markdown(reason, MAX_REASON_CHARS)
    if run_row.run.kind is JobRunKind.MANUAL:  # a person waits for it; it says nothing about the schedule
        _notify(tx, config, job_row, f"The job {name} that you started has failed: {what}", now, run_row)
        return
    count = job.failure_count + 1
    is_last = job.state is JobState.ENDED
    should_pause = count >= PAUSE_AFTER_FAILURES and job.state is JobState.ACTIVE
    should_tell = cause != job_row.alerted_cause and (count >= ALERT_AFTER_FAILURES or is_last)
    if should_pause:
        pause_reason = f"It failed {count} times in a row. The last time: {reason}"
        jobs.set_state(tx, job_row.no, JobState.PAUSED, pause_reason[:MAX_REASON_CHARS], None, now)
        text = f"The job {name} failed {count} times in a row, so I paused it. The last time: {what}"
        text += f"\n\nResume it with `/jobs resume {job.id}`."
        _notify(tx, config, job_row, text, now, run_row)
    elif should_tell and is_last:
        _notify(tx, config, job_row, f"The job {name} has failed, and does not run again: {what}", now, run_row)
    elif should_tell:
        text = f"The job {name} failed {count} times in a row: {what}{_format_next_run(job)}"
        _notify(tx, config, job_row, text, now, run_row)
    is_told = should_pause or should_tell
    jobs.set_failures(tx, job_row.no, count, cause if is_told else job_row.alerted_cause)


def handle_success(tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, now: int) -> None:
    """Forget earlier failures; tell the person if they were told of one."""
    if job_row.alerted_cause is not None:
        _notify(tx, config, job_row, f"The job {format_name(job_row.job)} works again.", now, run_row)
    if job_row.alerted_cause is not None or job_row.job.failure_count:
        jobs.set_failures(tx, job_row.no, 0, None)


def handle_unreachable_targets(
    tx: Transaction,
    config: GatewayConfig,
    job_row: JobRow,
    run_row: RunRow,
    target_errors: Mapping[str, str],
    cause: str,
    now: int,
) -> None:
    """Tell the person once that the answers of a job cannot be sent to some of its targets."""
    if cause != job_row.alerted_cause:
        errors = "\n".join(f"- {escape_markdown(error, MAX_REASON_CHARS)}" for error in target_errors.values())
        text = f"The job {format_name(job_row.job)} has run, but its answer could not be sent everywhere:\n\n{errors}"
        _notify(tx, config, job_row, text, now, run_row)
    jobs.set_failures(tx, job_row.no, 0, cause)


def notify_of_skipped_run(tx: Transaction, config: GatewayConfig, job_row: JobRow, reason: str, now: int) -> None:
    """Tell the person that the last run of a job was skipped."""
    text = f"The last run of the job {format_name(job_row.job)} was skipped. {reason}"
    _notify(tx, config, job_row, text, now)


def notify_of_pause(tx: Transaction, config: GatewayConfig, job_row: JobRow, reason: str, now: int) -> None:
    """Tell the person that a job was paused because its times are no longer known."""
    what = escape_markdown(reason, MAX_REASON_CHARS)
    text = f"I paused the job {format_name(job_row.job)}, because I can't tell when it should run: {what}"
    text += "\n\nGive it another schedule or time zone, then resume it."
    _notify(tx, config, job_row, text, now)


def _notify(
    tx: Transaction, config: GatewayConfig, job_row: JobRow, text: str, now: int, run_row: RunRow | None = None
) -> None:
    """Send a notice to the person's own chat; only if they have none, to the group in which the job was made."""
    job = job_row.job
    own_chat = job.origin if job.origin.chat_type is ChatType.DM else None
    send = partial(
        notify_person, tx, config, job.person_id, text, now, session_no=run_row.session_no if run_row else None
    )
    if not send(preferred=own_chat) and own_chat is None:
        send(preferred=job.origin)


def format_name(job: Job) -> str:
    """Write the name of a job as it can be sent to a chat."""
    return f'"{escape_markdown(clean_chat_text(job.name, MAX_JOB_NAME_CHARS), MAX_JOB_NAME_CHARS)}"'


def _format_next_run(job: Job) -> str:
    return f"\n\nNext run: {format_time(job, job.next_slot)}." if job.next_slot is not None else ""


def format_time(job: Job, moment: datetime) -> str:
    """Write a time by the wall clock of a job."""
    try:
        return f"{moment.astimezone(load_zone(job.timezone)):%Y-%m-%d %H:%M} ({job.timezone})"
    except InvalidInput:  # the zone is no longer known: a run must be able to end nevertheless
        return f"{moment:%Y-%m-%d %H:%M} (UTC)"


# ---- missed runs ------------------------------------------------------------------------------------------------
# Tells people of runs of their jobs that were missed: one notice for all that Palaver missed while it did not run.
#
# Whether a person is to be told is recorded with the run. The notice is queued later, in the transaction that takes
# the record back, so it is sent once, whatever happens in between.


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
