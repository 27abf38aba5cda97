"""A job: a prompt that runs on a schedule, and its runs.

    proposed ──confirm──▶ active ◀──pause, resume──▶ paused      ended: its last run was
                             │
                             ▼ at each slot
    queued ──▶ running ──▶ done | failed            missed: Palaver did not run at the time, or could not start it
                                                    skipped: the run before it had not ended, or the job was paused

Three things are told apart: how a run ended (`JobRunState`), what came out of it (`JobResult`), and whether that
reached each target (its deliveries, and `target_errors` for targets that nothing could be sent to).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.ids import JobId, JobRunId, PersonId, SessionId
    from palaver.core.source import SessionSource
    from palaver.sessions.delivery import DeliveryStatus

SILENT_ANSWER = "[SILENT]"  # a run that answers this is kept and not sent
MAX_JOB_NAME_CHARS = 60
MAX_PROMPT_CHARS = 8000
MAX_TARGETS = 10
MAX_JOBS_PER_PERSON = 200
ALERT_AFTER_FAILURES = 2  # in a row
PAUSE_AFTER_FAILURES = 5  # in a row
NO_ACCESS_REASON = "The person of this job no longer has access."


class JobState(StrEnum):
    PROPOSED = "proposed"  # the agent has made it, and the person has not confirmed it yet
    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"  # it has no further runs


class JobRunKind(StrEnum):
    SCHEDULED = "scheduled"
    MANUAL = "manual"  # a person has asked for it


class JobRunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"
    SKIPPED = "skipped"

    @property
    def has_ended(self) -> bool:
        return self not in {JobRunState.QUEUED, JobRunState.RUNNING}


class JobResult(StrEnum):
    """What came out of a run that is done."""

    ANSWER = "answer"
    SILENT = "silent"  # the agent had nothing to report; nothing is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A prompt that runs on a schedule, on behalf of one person."""

    id: JobId
    person_id: PersonId
    name: str
    prompt: str
    schedule: str  # as `format_schedule` writes it; `parse_schedule` reads it
    timezone: str  # an IANA name
    anchor: datetime  # intervals count from here
    runs_left: int | None  # scheduled runs; None: without end
    targets: tuple[str, ...]
    origin: SessionSource  # where it was made
    origin_session_id: SessionId | None  # the conversation in which it was made
    toolsets: tuple[str, ...]  # that its runs may use
    model: str | None
    profile: str | None
    state: JobState
    state_reason: str | None
    proposed_change: Mapping[str, object] | None  # by the agent; a person has not confirmed it yet
    next_slot: datetime | None
    failure_count: int
    created_at: datetime
    updated_at: datetime
    asked_at: datetime | None = None  # when its person was asked to confirm it or its change


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job, or several slots that were missed together."""

    id: JobRunId
    job_id: JobId
    slot: datetime  # the scheduled time; of a manual run, when it was asked for
    slot_count: int
    kind: JobRunKind
    state: JobRunState
    reason: str | None
    result: JobResult | None
    refused_tools: tuple[str, ...]
    target_errors: Mapping[str, str]
    session_id: SessionId | None  # its own conversation
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    deliveries: tuple[DeliveryStatus, ...] = field(default=())
