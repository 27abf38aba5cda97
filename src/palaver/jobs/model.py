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
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from palaver.core.errors import InvalidInput
from palaver.sessions.context import quote_chat_text
from palaver.sessions.targets import parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from decimal import Decimal

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


# --------------------------------------------------------------------------------------------------
# What the agent proposes and a person confirms: a new job, or a change of one.

DEFAULT_CHOICE: Final = "default"  # the word that resets a model or a profile


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """The fields of a job as a person or the agent gives them; None: not given, or unchanged."""

    name: str | None = None
    prompt: str | None = None
    schedule: str | None = None  # in the grammar of `jobs/schedule.py`
    timezone: str | None = None
    targets: tuple[str, ...] | None = None
    toolsets: tuple[str, ...] | None = None
    repeat: int | None = None  # how many scheduled runs; 0: without end
    model: str | None = None  # `default`: the gateway's
    profile: str | None = None  # `default`: none


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProposal:
    """A job as it will be once its person confirms it."""

    job_id: JobId
    name: str
    prompt: str
    schedule: str  # as it is stored
    words: str  # its schedule, with the time zone
    timezone: str
    next_slots: tuple[datetime, ...]
    cost_per_day: Decimal | None  # in dollars, estimated; None: unknown
    runs_left: int | None
    targets: tuple[str, ...]
    target_words: tuple[str, ...]  # where each of them leads, for people
    toolsets: tuple[str, ...]
    is_change: bool = False  # of a job that exists already, and stays as it is until then
    is_new: bool = True  # False: the same was proposed before, and still waits for the person

    def build_facts(self) -> dict[str, Any]:
        """Build what the log of the conversation holds, from which a page shows the proposal."""
        return {
            "job_id": self.job_id,
            "name": self.name,
            "prompt": self.prompt,
            "schedule": self.schedule,
            "words": self.words,
            "timezone": self.timezone,
            "next_slots": [slot.isoformat() for slot in self.next_slots],
            "cost_per_day": None if self.cost_per_day is None else f"{self.cost_per_day:f}",
            "runs_left": self.runs_left,
            "targets": list(self.targets),
            "target_words": list(self.target_words),
            "toolsets": list(self.toolsets),
            "is_change": self.is_change,
        }


def format_cost_per_day(dollars: Decimal | None) -> str:
    """Write an estimated cost in words."""
    if dollars is None:
        return "unknown"
    if dollars == 0:
        return "free"
    return f"about ${dollars:.2f} per day" if dollars * 100 >= 1 else "less than $0.01 per day"


# --------------------------------------------------------------------------------------------------
# What the agent is told in a run of a job: that no person is there, and what its answer is for.
#
# Always true: equal contexts give equal bytes, so the text is the same during a run. Names are inside double quotes
# that they cannot break out of, and ids of chats are left out.


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunContext:
    """The run of a job that the agent works on."""

    job_name: str
    person_name: str
    slot: datetime  # the scheduled time; of a manual run, when it was asked for
    timezone: str
    kind: JobRunKind
    targets: tuple[str, ...]
    origin: SessionSource  # where the job was made


def build_job_run_prompt(context: JobRunContext) -> str:
    """Build the text that tells the agent which run it works on."""
    person = _quote_name(context.person_name) or "its person"
    time = f"{context.slot.astimezone(ZoneInfo(context.timezone)):%A, %Y-%m-%d %H:%M} ({context.timezone})"
    when = f"scheduled for {time}" if context.kind is JobRunKind.SCHEDULED else f"started by hand at {time}"
    outputs = [f"- {_describe_target(target, context.origin)}" for target in context.targets]
    lines = [
        "# This is an unattended run of a job",
        "",
        f"- Job: {quote_chat_text(context.job_name)}, on behalf of {person}, {when}.",
        "- The user message is the job's task. No person is here: don't ask questions, and don't wait for an answer or"
        " an approval. Tools that you don't have were not granted to this job.",
        "- Your last answer is the output of this run. Write it so that it is understood on its own.",
        f"- If there is nothing to report, answer exactly {SILENT_ANSWER}: then nothing is sent.",
        "- If you can't do the task, call `report_failure` with the reason instead of answering as if it was done.",
        "",
        *(["The output is sent to:", *outputs] if outputs else ["The output is kept in this conversation only."]),
    ]
    return "\n".join(lines) + "\n"


def _describe_target(text: str, origin: SessionSource) -> str:
    try:
        target = parse_target(text)
    except InvalidInput:  # the grammar has changed since the job was made
        return "a place that no longer exists"
    if target.kind == "origin":
        name = _quote_name(origin.chat_name or "")
        return f"the conversation where the job was made: {origin.platform.label}{f' {name}' if name else ''}"
    if target.kind == "local":
        return "a file on the machine that runs Palaver"
    if target.kind == "home":
        return f"the home channel of {target.platform.label}"
    return f"a chat on {target.platform.label}"


def _quote_name(name: str) -> str:
    """Quote a name; empty for one without letters, which may be a phone number that the agent must not see."""
    return quote_chat_text(name) if any(map(str.isalpha, name)) else ""
