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

from collections.abc import Mapping  # noqa: TC003 - the columns of jobs and runs derive from their types
from dataclasses import field, fields
from datetime import datetime  # noqa: TC003
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from palaver.core.columns import TRANSLATABLE
from palaver.core.dataclass import dataclass
from palaver.core.ids import JobId, JobRunId, PersonId, SessionId  # noqa: TC001
from palaver.core.source import SessionSource  # noqa: TC001
from palaver.core.texts import say
from palaver.core.wire import Doc, TypedDict
from palaver.sessions.delivery import DeliveryStatus  # noqa: TC001

if TYPE_CHECKING:
    from decimal import Decimal


SILENT_ANSWER = "[SILENT]"  # a run that answers this is kept and not sent
MAX_JOB_NAME_CHARS = 60
MAX_PROMPT_CHARS = 8000
MAX_TARGETS = 10
MAX_TOOLSETS = 100
MAX_REPEAT = 100_000
MAX_JOBS_PER_PERSON = 200
ALERT_AFTER_FAILURES = 2  # in a row
PAUSE_AFTER_FAILURES = 5  # in a row
DEFAULT_CHOICE: Final = "default"  # the word that resets a model or a profile
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
    """The outcome of a run that is done."""

    ANSWER = "answer"
    SILENT = "silent"  # the agent had nothing to report; nothing is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFields:
    """The fields of a job that a person decides, checked and as stored. `JobDraft` declares how each is given."""

    name: str
    prompt: str
    schedule: str  # as `format_schedule` writes it; `read_schedule` reads it
    timezone: str  # an IANA name
    anchor: datetime  # intervals count from here
    targets: tuple[str, ...]
    toolsets: tuple[str, ...]  # that its runs may use
    runs_left: int | None = None  # scheduled runs; None: without end
    model: str | None = None
    profile: str | None = None

    def list_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in JobFields.__slots__}

    def list_changes(self, job: JobFields) -> dict[str, Any]:
        """Return the fields that differ from those of a job."""
        return {name: value for name, value in self.list_fields().items() if value != getattr(job, name)}


class JobFieldsJson(TypedDict):
    """What a person decides about a job, besides its targets and toolsets."""

    name: str
    prompt: str
    schedule: Annotated[str, Doc("As it is stored.", "0 7 * * MON-FRI")]
    words: Annotated[str, Doc("The schedule in words, with the time zone.", "every weekday at 07:00 (Europe/Vienna)")]
    timezone: str
    runs_left: Annotated[int | None, Doc("Scheduled runs that are left; null: without end.")]
    model: Annotated[str | None, Doc("The model that it has chosen; null: the default.")]
    profile: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(JobFields):
    """A prompt that runs on a schedule, on behalf of one person."""

    id: JobId
    person_id: PersonId
    origin: SessionSource  # where it was made
    state: JobState
    state_reason: str | None = field(metadata=TRANSLATABLE)
    proposed_change: Mapping[str, object] | None  # by the agent; a person has not confirmed it yet
    next_slot: datetime | None
    failure_count: int
    created_at: datetime
    updated_at: datetime
    origin_session_id: SessionId | None  # the conversation in which it was made
    asked_at: datetime | None = None  # when its person was asked to confirm it or its change


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The latest run of a job, as lists show it."""

    id: JobRunId
    slot: datetime  # the scheduled time; of a manual run, when it was asked for
    state: JobRunState
    result: JobResult | None
    reason: str | None = field(metadata=TRANSLATABLE)
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun(LastRun):
    """One run of a job, or several slots that were missed together."""

    job_id: JobId
    slot_count: int
    kind: JobRunKind
    refused_tools: tuple[str, ...] = ()
    target_errors: Mapping[str, str] = field(default_factory=dict, metadata=TRANSLATABLE)
    session_id: SessionId | None  # its own conversation
    created_at: datetime
    started_at: datetime | None
    deliveries: tuple[DeliveryStatus, ...] = ()


# ---- how the fields of a job are given -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDeclaration:
    """A field as people and the agent give it: in the API, the terminal, `/jobs edit` and the agent's tools."""

    help: str
    kind: Literal["text", "names", "count"] = "text"
    maximum: int = 500  # characters, names, or the number itself
    option: str | None = None  # in the terminal; None: the name of the field
    command_word: str | None = None  # in `/jobs edit`; None: the name of the field
    example: str | None = None
    agent_help: str | None = None  # None: the agent can't give it
    reset_value: str | int | None = None  # stands for null, which resets it; None: null is not given
    label: str | None = None  # it is shown below this label if it is set, besides what has its own place


def _declare(**declaration: Any) -> Any:
    return field(default=None, metadata={"declaration": FieldDeclaration(**declaration)})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """The fields of a job as a person or the agent gives them; None: not given, or unchanged.

    A new field also needs a column, its value in `JobFields`, which `jobs/fields.py` checks by its kind, and its key in
    `JobFieldsJson`.
    """

    name: str | None = _declare(
        help="Its name; by default the first words of the prompt.",
        maximum=MAX_JOB_NAME_CHARS,
        agent_help="a short name in the person's language; a person has one job of a name",
    )
    prompt: str | None = _declare(
        help="What the agent should do.",
        maximum=MAX_PROMPT_CHARS,
        agent_help=(
            "what to do at each run, with everything that is needed: a run does not see this conversation and can't"
            f" ask questions. Its answer is what is sent; {SILENT_ANSWER} sends nothing"
        ),
    )
    schedule: str | None = _declare(
        help=(
            "When it runs: `30m` (once, in 30 minutes), `every 2h`, five fields of cron by the wall clock of the time"
            " zone, or a time such as `2026-12-24 18:00`."
        ),
        example="0 7 * * MON-FRI",
        agent_help=(
            "one of: `30m` (once, in 30 minutes; also h and d), `every 2h` (again and again, at least 5m apart), five"
            " cron fields by the wall clock of the time zone (`0 7 * * MON-FRI` is every weekday at 07:00,"
            " `30 18 1 * *` the first of each month at 18:30), or `2026-12-24 18:00` (once). Translate what the person"
            " says into this; ask if a time is missing"
        ),
    )
    timezone: str | None = _declare(
        help="An IANA time zone, such as Europe/Berlin; yours by default.",
        example="Europe/Vienna",
        agent_help="an IANA name such as Europe/Vienna; only if the person named another place than their own",
    )
    targets: tuple[str, ...] | None = _declare(
        help=(
            "Where the answer goes: `origin` (where the job is made, the default), `local` (a file), a platform (its"
            " home channel) or `platform:chat[:thread]`."
        ),
        kind="names",
        maximum=MAX_TARGETS,
        option="to",
        agent_help=(
            "where the answer goes: `origin` (here, the default), `local` (a file), a platform such as `telegram`"
            " (its home channel), or `platform:chat`"
        ),
    )
    toolsets: tuple[str, ...] | None = _declare(
        help="The toolsets that its runs may use; `history` and `memory` by default, if you may use them.",
        kind="names",
        maximum=MAX_TOOLSETS,
        option="tools",
        command_word="tools",
        agent_help="the toolsets that its runs need, and no others; none by default",
    )
    repeat: int | None = _declare(
        help="How many scheduled runs it has; 0: without end.",
        kind="count",
        maximum=MAX_REPEAT,
        agent_help="how many times it runs; without it, until it is stopped",
        reset_value=0,
    )
    model: str | None = _declare(help="The model; `default` for the default.", reset_value=DEFAULT_CHOICE)
    profile: str | None = _declare(
        help=say("job_field.profile.help", "A profile of the settings; `default` for none."),
        agent_help="the name of a profile that its runs use; only if the person asks for one",
        reset_value=DEFAULT_CHOICE,
        label=say("job_field.profile", "Profile"),
    )

    def list_given(self) -> dict[str, Any]:
        return {name: value for name in JOB_FIELDS if (value := getattr(self, name)) is not None}


JOB_FIELDS: Final[Mapping[str, FieldDeclaration]] = {
    each.name: each.metadata["declaration"] for each in fields(JobDraft)
}


def list_labeled_fields(job: JobFields) -> list[tuple[str, str]]:
    """Return the fields of a job that are shown below their label, if they are set."""
    values = [(declared.label, getattr(job, name, None)) for name, declared in JOB_FIELDS.items()]
    return [(label, str(value)) for label, value in values if label is not None and value]


# ---- a job in words --------------------------------------------------------------------------------------------


class CostBasis(StrEnum):
    RUNS = "runs"  # the average of its last runs
    ESTIMATE = "estimate"  # the length of its prompt, and an answer of typical length
    UNKNOWN = "unknown"  # the price of the model is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedItem:
    """A target or a toolset, and what it is in words."""

    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPreview:
    """A job as it is, or as it will be: everything that a person confirms."""

    fields: JobFields
    words: str  # the schedule in words, with the time zone
    next_slots: tuple[datetime, ...]  # at most three, in the job's time zone
    runs_per_day: float | None  # None: it runs once
    cost_per_run: Decimal | None  # in dollars; None: unknown
    cost_per_day: Decimal | None  # of a job that runs once, the same as `cost_per_run`
    cost_basis: CostBasis
    targets: tuple[NamedItem, ...]
    toolsets: tuple[NamedItem, ...]
    used_model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as it is listed."""

    job: Job
    words: str  # the schedule in words, with the time zone
    person_name: str
    last_run: LastRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails(JobSummary):
    """A job, what it means, and the change that the agent proposes."""

    preview: JobPreview
    proposed_change: JobPreview | None = None  # the job as it would be


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The choices of a person who makes a job."""

    timezone: str  # the default
    toolsets: tuple[NamedItem, ...]
    default_toolsets: tuple[str, ...]
    targets: tuple[NamedItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProposal:
    """A proposal of the agent that a person confirms: a new job, or a change of one."""

    job_id: JobId
    preview: JobPreview  # as it will be
    is_change: bool = False  # of a job that exists already, and stays as it is until then
    is_new: bool = True  # False: the same was proposed before, and still waits for the person

    @property
    def fields(self) -> JobFields:
        return self.preview.fields

    def build_facts(self) -> dict[str, Any]:
        """Build what the log of the conversation holds, from which a page shows the proposal."""
        preview, values = self.preview, self.fields.list_fields()
        del values["anchor"]
        return {
            "job_id": self.job_id,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
            "words": preview.words,
            "next_slots": [slot.isoformat() for slot in preview.next_slots],
            "cost_per_day": None if preview.cost_per_day is None else f"{preview.cost_per_day:f}",
            "target_words": [target.words for target in preview.targets],
            "is_change": self.is_change,
        }


def format_cost_per_day(dollars: Decimal | None) -> str:
    if dollars is None:
        return say("cost.unknown", "unknown")
    if dollars == 0:
        return say("cost.free", "free")
    if dollars * 100 < 1:
        return say("cost.tiny_per_day", "less than $0.01 per day")
    return say("cost.per_day", "about ${cost} per day", cost=f"{dollars:.2f}")
