"""Jobs and their runs as JSON-ready data, for the API and the terminal.

Times of a schedule are in the job's time zone, all others in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from palaver.jobs.model import JobResult, JobRunKind, JobRunState, JobState
from palaver.sessions.delivery import DeliveryState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.core.ids import JobId
    from palaver.jobs.model import Job, JobRun
    from palaver.jobs.runs_table import LastRun
    from palaver.sessions.delivery import DeliveryStatus


class CostBasis(StrEnum):
    """What an estimated cost is based on."""

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

    job_id: JobId | None
    name: str
    prompt: str
    schedule: str  # as it is stored
    words: str  # the schedule in words, with the time zone
    timezone: str
    next_slots: tuple[datetime, ...]  # at most three, in the job's time zone
    runs_left: int | None
    runs_per_day: float | None  # None: it runs once
    cost_per_run: Decimal | None  # in dollars; None: unknown
    cost_per_day: Decimal | None  # of a job that runs once, the same as `cost_per_run`
    cost_basis: CostBasis
    targets: tuple[NamedItem, ...]
    toolsets: tuple[NamedItem, ...]
    model: str | None  # that it has chosen
    used_model: str
    profile: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as it is listed."""

    job: Job
    words: str  # the schedule in words, with the time zone
    person_name: str
    last_run: LastRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """A job, what it means, and the change that the agent proposes."""

    job: Job
    person_name: str
    last_run: LastRun | None
    preview: JobPreview
    proposed_change: JobPreview | None = None  # the job as it would be

    @property
    def words(self) -> str:
        return self.preview.words


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a person can choose from when they make a job."""

    timezone: str  # the default
    toolsets: tuple[NamedItem, ...]
    default_toolsets: tuple[str, ...]
    targets: tuple[NamedItem, ...]


# --------------------------------------------------------------------------------------------------


def summary_to_json(summary: JobSummary) -> dict[str, Any]:
    """Return a job as it is listed."""
    return _job_to_json(summary.job, summary.words, summary.person_name, summary.last_run)


def details_to_json(details: JobDetails) -> dict[str, Any]:
    """Return a job with its prompt, what it means, and the change that waits for confirmation."""
    change = details.proposed_change
    return {
        **_job_to_json(details.job, details.words, details.person_name, details.last_run),
        "preview": preview_to_json(details.preview),
        "proposed_change": None if change is None else preview_to_json(change),
    }


def preview_to_json(preview: JobPreview) -> dict[str, Any]:
    return {
        "name": preview.name,
        "prompt": preview.prompt,
        "schedule": preview.schedule,
        "words": preview.words,
        "timezone": preview.timezone,
        "next_slots": [slot.isoformat() for slot in preview.next_slots],
        "runs_left": preview.runs_left,
        "runs_per_day": preview.runs_per_day,
        "cost_per_run_usd": _format_dollars(preview.cost_per_run),
        "cost_per_day_usd": _format_dollars(preview.cost_per_day),
        "cost_basis": preview.cost_basis.value,
        "targets": items_to_json(preview.targets),
        "toolsets": items_to_json(preview.toolsets),
        "model": preview.model,
        "used_model": preview.used_model,
        "profile": preview.profile,
    }


def options_to_json(options: JobOptions) -> dict[str, Any]:
    return {
        "timezone": options.timezone,
        "toolsets": items_to_json(options.toolsets),
        "default_toolsets": list(options.default_toolsets),
        "targets": items_to_json(options.targets),
    }


def run_to_json(run: JobRun) -> dict[str, Any]:
    """Return a run: how it ended, what came out of it, and what reached each target."""
    return {
        "id": run.id,
        "slot": run.slot.isoformat(),
        "slot_count": run.slot_count,
        "kind": run.kind.value,
        "state": run.state.value,
        "reason": run.reason,
        "result": None if run.result is None else run.result.value,
        "refused_tools": list(run.refused_tools),
        "deliveries": [_delivery_to_json(each) for each in run.deliveries],
        "target_errors": [{"target": target, "error": error} for target, error in run.target_errors.items()],
        "session_id": run.session_id,
        "created_at": run.created_at.isoformat(),
        "started_at": _format_time(run.started_at),
        "ended_at": _format_time(run.ended_at),
    }


def items_to_json(items: Iterable[NamedItem]) -> list[dict[str, str]]:
    return [{"name": item.name, "words": item.words} for item in items]


def _job_to_json(job: Job, words: str, person_name: str, last_run: LastRun | None) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "person_id": job.person_id,
        "person_name": person_name,
        "prompt": job.prompt,
        "schedule": job.schedule,
        "words": words,
        "timezone": job.timezone,
        "runs_left": job.runs_left,
        "targets": list(job.targets),
        "toolsets": list(job.toolsets),
        "model": job.model,
        "profile": job.profile,
        "state": job.state.value,
        "state_reason": job.state_reason,
        "has_proposed_change": job.proposed_change is not None,
        "asked_at": _format_time(job.asked_at),
        "next_slot": _format_time(job.next_slot),
        "failure_count": job.failure_count,
        "origin_platform": str(job.origin.platform),
        "origin_session_id": job.origin_session_id,
        "last_run": None if last_run is None else _last_run_to_json(last_run),
        "created_at": job.created_at.isoformat(),
        "updated_at": job.updated_at.isoformat(),
    }


def _last_run_to_json(last_run: LastRun) -> dict[str, Any]:
    return {
        "id": last_run.id,
        "slot": last_run.slot.isoformat(),
        "state": last_run.state.value,
        "result": None if last_run.result is None else last_run.result.value,
        "reason": last_run.reason,
        "ended_at": _format_time(last_run.ended_at),
    }


def _delivery_to_json(delivery: DeliveryStatus) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "target": delivery.target,
        "platform": str(delivery.platform),
        "state": delivery.state.value,
        "error": delivery.error,
        "ended_at": _format_time(delivery.ended_at),
    }


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _format_dollars(dollars: Decimal | None) -> str | None:
    """Write an estimate with six decimals; None stays unknown."""
    return None if dollars is None else f"{dollars:.6f}"


# --------------------------------------------------------------------------------------------------
# Jobs and their runs in words, as the terminal and chats show them. Texts of people are not escaped here.

_BASIS_WORDS: Final = {CostBasis.RUNS: "average of its last runs", CostBasis.ESTIMATE: "a rough estimate"}
_DELIVERY_WORDS: Final = {
    DeliveryState.PENDING: "not sent yet",
    DeliveryState.SENDING: "being sent",
    DeliveryState.SENT: "delivered",
    DeliveryState.UNCERTAIN: "maybe delivered",
    DeliveryState.FAILED: "not delivered",
}
_SECONDS_PER_HOUR: Final = 3600


def format_slot(slot: datetime, timezone: str) -> str:
    """`Tue 2026-11-17 07:00`, by the clock of a time zone."""
    return f"{slot.astimezone(ZoneInfo(timezone)):%a %Y-%m-%d %H:%M}"


def list_preview_lines(preview: JobPreview) -> list[tuple[str, str]]:
    """Return what a person confirms, as labels and texts."""
    times = ", ".join(format_slot(slot, preview.timezone) for slot in preview.next_slots)
    lines = [
        ("Runs", preview.words + describe_repeat(preview.runs_left)),
        ("Next", times or "never"),
        *([("Runs per day", _describe_frequency(preview.runs_per_day))] if preview.runs_per_day is not None else []),
        ("Estimated cost", describe_cost(preview)),
        ("Sends to", ", ".join(f"{target.name} ({target.words})" for target in preview.targets)),
        ("Tools", ", ".join(toolset.name for toolset in preview.toolsets) or "none"),
        ("Model", preview.used_model if preview.model else f"{preview.used_model} (default)"),
    ]
    return [*lines, *([("Profile", preview.profile)] if preview.profile else []), ("Prompt", preview.prompt)]


def describe_repeat(runs_left: int | None) -> str:
    return "" if runs_left is None else f", {runs_left} more {'time' if runs_left == 1 else 'times'}"


def describe_cost(preview: JobPreview) -> str:
    """`about $0.12 per day (average of its last runs)`; an unknown price is never nothing."""
    cost = preview.cost_per_day
    if cost is None:
        return f"unknown (the price of {preview.used_model} is not known)"
    if cost == 0:
        return "free"
    period = "" if preview.runs_per_day is None else " per day"
    amount = f"about ${cost:.2f}" if cost >= Decimal("0.01") else "less than $0.01"
    return f"{amount}{period} ({_BASIS_WORDS[preview.cost_basis]})"


def _describe_frequency(runs_per_day: float) -> str:
    if runs_per_day >= 1:
        return f"{runs_per_day:.1f}".removesuffix(".0")
    days = round(1 / runs_per_day) if runs_per_day else 0
    return f"{runs_per_day:.2f}" if days <= 1 else f"about one every {days} days"


def describe_state(job: Job) -> str:
    """`active`, `paused: five runs in a row failed`, `proposed: waits for your confirmation`."""
    if job.state is JobState.PROPOSED:
        return "proposed: waits for your confirmation"
    change = "; a proposed change waits for your confirmation" if job.proposed_change is not None else ""
    return (f"{job.state}: {job.state_reason}" if job.state_reason else str(job.state)) + change


def describe_next(job: Job) -> str:
    return "" if job.next_slot is None else format_slot(job.next_slot, job.timezone)


def describe_last_run(last_run: LastRun | None, timezone: str) -> str:
    if last_run is None:
        return "not run yet"
    silent = ", nothing to report" if last_run.result is JobResult.SILENT else ""
    return f"{last_run.state}{silent}, {format_slot(last_run.slot, timezone)}"


# ---- runs ------------------------------------------------------------------------------------------------------


def describe_run_state(run: JobRun) -> str:
    """Say how a run ended: `done`, `failed`, `missed (3 times)`."""
    times = f" ({run.slot_count} times)" if run.slot_count > 1 else ""
    manual = ", started manually" if run.kind is JobRunKind.MANUAL else ""
    return f"{run.state}{times}{manual}"


def describe_run_result(run: JobRun) -> str:
    if run.result is JobResult.SILENT:
        return "nothing to report"
    return "answered" if run.result is JobResult.ANSWER else "none"


def list_run_deliveries(run: JobRun) -> list[str]:
    """Say for each target apart whether it was reached."""
    sent = [_describe_delivery(delivery) for delivery in run.deliveries]
    failed = [f"{target}: not delivered ({error})" for target, error in run.target_errors.items()]
    return sent + failed


def describe_run_duration(run: JobRun) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60} min" if seconds >= _SECONDS_PER_HOUR else f"{minutes} min"


def list_run_lines(run: JobRun) -> list[tuple[str, str]]:
    """Return a run as labels and texts: how it ended, its result, and its deliveries, each apart."""
    lines = [("Run", describe_run_state(run))]
    if run.reason:
        lines.append(("Reason", run.reason))
    if run.state is JobRunState.DONE:
        lines.append(("Result", describe_run_result(run)))
    lines += [("Delivery", text) for text in list_run_deliveries(run)]
    if run.refused_tools:
        lines.append(("Refused tools", ", ".join(run.refused_tools)))
    if duration := describe_run_duration(run):
        lines.append(("Duration", duration))
    if run.session_id is not None:
        lines.append(("Conversation", run.session_id))
    return lines


def _describe_delivery(delivery: DeliveryStatus) -> str:
    error = f" ({delivery.error})" if delivery.error else ""
    return f"{delivery.target}: {_DELIVERY_WORDS[delivery.state]}{error}"
