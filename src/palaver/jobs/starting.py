"""Starts queued runs of jobs, a few at a time: each as a turn in a new conversation of its own.

From there on a run is a turn like any other. Leases, drafts and recovery after a crash apply to it as they are. A run
that has waited as long as a slot may be late is not started any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.jobs import alerts as missed_notices, runs_table as job_runs, table as jobs
from palaver.jobs.firing import TOO_LATE_REASON, is_too_late
from palaver.jobs.model import NO_ACCESS_REASON, JobRunKind, JobRunState, JobState
from palaver.people.model import Role
from palaver.sessions import (
    activity_table as auto_titles,
    message_table as message_log,
    projects_table as projects,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.keys import build_session_key
from palaver.sessions.message import Message
from palaver.sessions.model import StartReason
from palaver.sessions.turn import JOB_RUN_KEY

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import ProjectId
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.table import SessionRow

PROJECT_NAME: Final = "Scheduled"
PAUSED_REASON: Final = "The job was paused before this run started."

_START_LOCK: Final = "palaver job runs"  # one process starts at a time, so that the limit holds exactly


class StartOutcome(StrEnum):
    STARTED = "started"
    ENDED = "ended"  # a run has ended instead of being started
    NOTHING = "nothing"  # no run may start now


@dataclass(slots=True)
class StartAttempt:
    """Which run was to be started; its caller needs to know if that fails."""

    run_id: str | None = None


def start_next_run(
    tx: Transaction, config: GatewayConfig, max_running: int, now: int, attempt: StartAttempt
) -> StartOutcome:
    """Start the run that has waited longest, if fewer than `max_running` are running in all processes.

    A person who has half of these runs waits for others who have fewer.
    """
    tx.lock_name(_START_LOCK)
    has_room = job_runs.count_running(tx) < max_running
    run_row = job_runs.find_startable(tx, now, max(max_running // 2, 1)) if has_room else None
    attempt.run_id = None if run_row is None else run_row.run.id
    if run_row is None:
        return StartOutcome.NOTHING
    job_runs.lock_job(tx, run_row.job_no)
    job_row = jobs.find_by_no(tx, run_row.job_no)
    if job_row is None:  # deleted just now, with its runs
        return StartOutcome.NOTHING
    if _end_unwanted_run(tx, job_row, run_row, now):
        return StartOutcome.ENDED
    _start(tx, config, job_row, run_row, now)
    return StartOutcome.STARTED


def _end_unwanted_run(tx: Transaction, job_row: JobRow, run_row: RunRow, now: int) -> bool:
    """End a run that is not to be started any more; False if it is."""
    job, is_scheduled = job_row.job, run_row.run.kind is JobRunKind.SCHEDULED
    if job_row.person_role is Role.GUEST:
        state, reason = JobRunState.SKIPPED, NO_ACCESS_REASON
    elif is_scheduled and job.state is JobState.PAUSED:
        state, reason = JobRunState.SKIPPED, PAUSED_REASON
    elif is_too_late(job, run_row, now):
        state, reason = JobRunState.MISSED, TOO_LATE_REASON
    else:
        return False
    job_runs.end_run(tx, run_row.no, state, now, reason=reason)
    if state is JobRunState.MISSED and missed_notices.should_tell(job.next_slot, from_micros(now)):
        job_runs.set_untold(tx, [run_row.no], is_untold=True)
    if is_scheduled:
        jobs.restore_run(tx, job_row.no)
    return True


def _start(tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, now: int) -> None:
    job = job_row.job
    session_row = _create_session(tx, config, job_row, run_row, now)
    seq = message_log.append_messages(
        tx,
        session_row.session.id,
        [Message(role="user", content=job.prompt)],
        now,
        person_id=job.person_id,
    )
    request = turns.TurnRequest(
        session_no=session_row.no, input_seq=seq, person_id=job.person_id, facts={JOB_RUN_KEY: run_row.run.id}
    )
    job_runs.mark_started(tx, run_row.no, session_row.no, turns.enqueue(tx, request, now), now)


def _create_session(tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, now: int) -> SessionRow:
    """Create the conversation of a run. It is private to the person, and in no lane: nothing else is sent to it."""
    job = job_row.job
    source = SessionSource(
        Platform.CRON,
        run_row.run.id,
        chat_type=ChatType.DM,
        chat_name=job.name,
        user_id=job.person_id,
        user_name=job_row.person_name,
    )
    place = sessions.SessionPlace(
        key=build_session_key(source, agent=config.agent),
        source=source,
        audience_no=job_row.person_audience_no,
        shared=False,
    )
    session_no = sessions.create(tx, place, StartReason.FIRST, now)
    auto_titles.set_copied_title(tx, session_no, job.name)
    project_no, project_id = _get_project(tx, job_row, now)
    row = sessions.get_by_no(tx, session_no)
    sessions.move_to_project(tx, row, project_id, project_no, now, job.person_id)
    if job.model is not None:
        session_settings.change(tx, session_no, "model", job.model, now, job.person_id)
    if job.profile is not None:
        session_settings.change(tx, session_no, "profile", job.profile, now, job.person_id)
    return row


def _get_project(tx: Transaction, job_row: JobRow, now: int) -> tuple[int, ProjectId]:
    """Return the person's project for runs of jobs; create it if there is none."""
    person_id = job_row.job.person_id
    found = projects.find_id(tx, person_id, PROJECT_NAME)
    if found is None:
        projects.create(tx, person_id, PROJECT_NAME, None, now)
        found = projects.find_id(tx, person_id, PROJECT_NAME)
        assert found is not None  # noqa: S101
    return found
