"""Fires jobs: passes their slots, and records for each what happens at it. One transaction for each job.

A slot that is late by at most half the time to the next one (two minutes to two hours) is run once; everything before
it was missed. Several slots that were missed together are one row.

Always true: a slot is passed and its run is recorded in one transaction, guarded by the slot, so that of any number of
processes one fires it, and none of them twice.
"""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from palaver.commands.reply_text import escape_markdown
from palaver.core.clock import from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.jobs import run_end, runs_table as job_runs, table as jobs
from palaver.jobs.model import NO_ACCESS_REASON, Job, JobRunKind, JobRunState, JobState
from palaver.jobs.schedule import Schedule, get_period, iterate_slots, read_schedule
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
    from collections.abc import Iterator

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import ProjectId
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.table import SessionRow


MIN_GRACE: Final = timedelta(minutes=2)
MAX_GRACE: Final = timedelta(hours=2)  # also of a job that runs once
MAX_COUNTED_SLOTS: Final = 1000
LATE_AFTER: Final = timedelta(minutes=1)  # a run that is later than this is a catch-up, and catch-ups are spread
SPREAD_SECONDS: Final = 120
_MICROS_PER_SECOND: Final = 1_000_000
_INSTANT: Final = timedelta(microseconds=1)

OVERLAP_REASON: Final = say("run.still_running", "The previous run had not ended.")
TOO_LATE_REASON: Final = say(
    "run.not_in_time", "It could not start in time: Palaver was not running, or too many other runs were waiting."
)
PROJECT_NAME: Final = "Scheduled"
PAUSED_REASON: Final = say("run.job_paused", "The job was paused before this run started.")
_START_LOCK: Final = "palaver job runs"  # one process starts at a time, so that the limit holds exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPlan:
    """The fate of the slots of a job up to now, and its next one."""

    next_slot: datetime | None
    run_slot: datetime | None = None  # is run now
    missed_slot: datetime | None = None  # the first of those that were missed
    missed_count: int = 0  # more than MAX_COUNTED_SLOTS: at least one more than that


def plan_firing(job: Job, now: datetime) -> FiringPlan:
    """Decide what happens to a job whose slot has come. It may take a while, if many slots were missed.

    `job.next_slot` is set and not in the future.
    """
    assert job.next_slot is not None  # noqa: S101
    schedule = read_schedule(job.schedule)
    start = _find_start(job, schedule, job.next_slot)
    newest = None  # of those that may be run
    for slot in _iterate_due(job, schedule, max(start, now - MAX_GRACE - _INSTANT), now):
        newest = slot
    run_slot = newest if newest is not None and now - newest <= compute_grace(job, newest) else None
    due = list(islice(_iterate_due(job, schedule, start, now), MAX_COUNTED_SLOTS + 1))
    missed_count = len(due) if len(due) > MAX_COUNTED_SLOTS or run_slot is None else len(due) - 1
    return FiringPlan(
        next_slot=next(iterate_slots(schedule, job.timezone, job.anchor, now), None),
        run_slot=run_slot,
        missed_slot=due[0] if missed_count else None,
        missed_count=missed_count,
    )


def _find_start(job: Job, schedule: Schedule, first: datetime) -> datetime:
    """Return the moment after which slots are due: right before the job's slot.

    If that is no slot any more, the rules of its time zone have changed since it was computed. The right one may be
    earlier by as much as the clocks have moved.
    """
    start = first - _INSTANT
    is_slot = next(iterate_slots(schedule, job.timezone, job.anchor, start), None) == first
    return start if is_slot else first - MAX_GRACE


def _iterate_due(job: Job, schedule: Schedule, after: datetime, now: datetime) -> Iterator[datetime]:
    return takewhile(lambda slot: slot <= now, iterate_slots(schedule, job.timezone, job.anchor, after))


def compute_grace(job: Job, slot: datetime) -> timedelta:
    """Return how late a slot may be to be run: half the time to the next one, within limits."""
    period = get_period(read_schedule(job.schedule), job.timezone, job.anchor, slot - _INSTANT)
    return MAX_GRACE if period is None else min(max(period / 2, MIN_GRACE), MAX_GRACE)


def fire_job(tx: Transaction, config: GatewayConfig, seen_row: JobRow, plan: FiringPlan, now: int) -> bool:
    """Pass the slots of a job as planned; False, and nothing changes, if the job is no longer as it was seen."""
    row = jobs.lock(tx, seen_row.no)
    if row is None or _get_timing(row.job) != _get_timing(seen_row.job):
        return False
    run_slot = plan.run_slot
    if run_slot is not None and job_runs.has_run_at(tx, row.no, run_slot):
        run_slot = None  # the clock was set back, and this slot has been used
    row = _end_late_run(tx, row, now)
    is_started = run_slot is not None and job_runs.find_open(tx, row.no) is None
    runs_left = row.job.runs_left
    if runs_left is not None and is_started:
        runs_left -= 1
    next_slot = None if runs_left == 0 else plan.next_slot
    if not jobs.advance(tx, row, next_slot, now, runs_left=runs_left):
        return False
    _record_missed(tx, row, plan, next_slot, now)
    if run_slot is not None and is_started:
        start_after = _compute_start(row.job, run_slot, now)
        job_runs.enqueue(tx, row, run_slot, JobRunKind.SCHEDULED, now, start_after=start_after)
    elif run_slot is not None:
        job_runs.record_skipped(tx, row, run_slot, OVERLAP_REASON, now)
        if next_slot is None:
            text = say(
                "job.last_skipped",
                "The last run of the job {name} was skipped. {reason}",
                name=run_end.format_name(row.job),
                reason=OVERLAP_REASON,
            )
            run_end.notify(tx, config, [(row, text)], now)
    return True


def _end_late_run(tx: Transaction, row: JobRow, now: int) -> JobRow:
    """End a run that waits for so long that it will not be started, so that the slot of today is not skipped for it."""
    open_run = job_runs.find_open(tx, row.no)
    if open_run is None or not is_too_late(row.job, open_run, now):
        return row
    job_runs.end_run(tx, open_run.no, JobRunState.MISSED, now, reason=TOO_LATE_REASON)
    if open_run.run.kind is JobRunKind.MANUAL:
        return row
    jobs.restore_run(tx, row.no)
    return jobs.find_by_no(tx, row.no) or row


def is_too_late(job: Job, run_row: RunRow, now: int) -> bool:
    """Whether a run has waited for its start as long as a slot may be late; one that has started is not late."""
    waited = timedelta(microseconds=now - run_row.start_after)
    if run_row.run.state is not JobRunState.QUEUED or waited <= MIN_GRACE:
        return False
    if run_row.run.kind is JobRunKind.MANUAL:
        return waited > MAX_GRACE
    try:
        return waited > compute_grace(job, run_row.run.slot)
    except InvalidInput:  # its schedule cannot be read any more
        return waited > MAX_GRACE


def _record_missed(tx: Transaction, row: JobRow, plan: FiringPlan, next_slot: datetime | None, now: int) -> None:
    if plan.missed_slot is None or job_runs.has_run_at(tx, row.no, plan.missed_slot):
        return
    reason = _explain_missed(plan.missed_count)
    is_untold = plan.run_slot is None and run_end.should_tell(next_slot, from_micros(now))
    job_runs.record_missed(tx, row, plan.missed_slot, plan.missed_count, reason, now, is_untold=is_untold)


def pause_unreadable_job(tx: Transaction, config: GatewayConfig, seen_row: JobRow, reason: str, now: int) -> None:
    """Pause a job whose schedule or time zone cannot be read any more, and tell its person."""
    row = jobs.lock(tx, seen_row.no)
    if row is not None and _get_timing(row.job) == _get_timing(seen_row.job):
        jobs.set_state(tx, row.no, JobState.PAUSED, reason, None, now)
        text = say(
            "job.paused",
            "I paused the job {name}, because I can't tell when it should run: {reason}\n\nGive it another schedule or"
            " time zone, then resume it.",
            name=run_end.format_name(row.job),
            reason=escape_markdown(reason, run_end.MAX_REASON_CHARS),
        )
        run_end.notify(tx, config, [(row, text)], now)


def correct_next_slot(tx: Transaction, seen_row: JobRow, now: int) -> bool:
    """Give a job an earlier slot if there is one after `now`, because the clock was set back; False if there is none.

    A slot that has a run is never used again.
    """
    row = jobs.lock(tx, seen_row.no)
    if row is None or row.job.next_slot is None or row.job.state is not JobState.ACTIVE:
        return False
    job, known_slot = row.job, row.job.next_slot
    try:
        slots = iterate_slots(read_schedule(job.schedule), job.timezone, job.anchor, from_micros(now))
        earlier = list(islice(takewhile(lambda slot: slot < known_slot, slots), MAX_COUNTED_SLOTS))
    except InvalidInput:  # its schedule cannot be read any more: it is paused when its slot comes
        return False
    free = next((slot for slot in earlier if not job_runs.has_run_at(tx, row.no, slot)), None)
    return free is not None and jobs.advance(tx, row, free, now, runs_left=job.runs_left)


def _get_timing(job: Job) -> tuple[object, ...]:
    return job.state, job.next_slot, job.schedule, job.timezone, job.anchor


def _compute_start(job: Job, slot: datetime, now: int) -> int:
    """Return when a run may start: at once or, if it is late, within two minutes; each job at another moment."""
    if now - to_micros(slot) <= LATE_AFTER // timedelta(microseconds=1):
        return now
    return now + zlib.crc32(job.id.encode()) % SPREAD_SECONDS * _MICROS_PER_SECOND


def _explain_missed(count: int) -> str:
    if count == 1:
        return say("run.was_down", "Palaver was not running at this time.")
    shown = (
        say("run.more_than", "more than {number}", number=MAX_COUNTED_SLOTS)
        if count > MAX_COUNTED_SLOTS
        else str(count)
    )
    return say(
        "run.were_down", "Palaver was not running at this time and after it: {number} runs were missed.", number=shown
    )


# ---- starting runs ----------------------------------------------------------------------------------------------
# Starts queued runs of jobs, a few at a time: each as a turn in a new conversation of its own.
#
# From there on a run is a turn like any other. Leases, drafts and recovery after a crash apply to it as they are. A
# run that has waited as long as a slot may be late is not started any more.


def start_next_run(tx: Transaction, config: GatewayConfig, max_running: int, now: int, tried: list[str]) -> bool:
    """Start the run that has waited longest, if fewer than `max_running` are running in all processes; or end it.

    A person who has half of these runs waits for others who have fewer. False if no run may start now. The id of the
    run is added to `tried`, for a caller that needs to know it if starting it fails.
    """
    tx.lock_name(_START_LOCK)
    has_room = job_runs.count_running(tx) < max_running
    run_row = job_runs.find_startable(tx, now, max(max_running // 2, 1)) if has_room else None
    if run_row is None:
        return False
    tried.append(run_row.run.id)
    job_row = jobs.lock(tx, run_row.job_no)
    if job_row is None:  # deleted just now, with its runs
        return False
    if not _end_unwanted_run(tx, job_row, run_row, now):
        _start(tx, config, job_row, run_row, now)
    return True


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
    if state is JobRunState.MISSED and run_end.should_tell(job.next_slot, from_micros(now)):
        job_runs.set_untold(tx, [run_row.no], is_untold=True)
    if is_scheduled:
        jobs.restore_run(tx, job_row.no)
    return True


def _start(tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, now: int) -> None:
    job = job_row.job
    session_row = _create_session(tx, config, job_row, run_row, now)
    message = Message(role="user", content=job.prompt)
    seq = message_log.append_messages(tx, session_row.session.id, [message], now, person_id=job.person_id)
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
    session_no, _ = sessions.create(tx, place, StartReason.FIRST, now)
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
