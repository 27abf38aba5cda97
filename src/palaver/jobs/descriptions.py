"""Jobs and their runs in words, as the terminal and chats show them. Texts of people are not escaped here."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from palaver.jobs.model import CostBasis, JobResult, JobRunKind, JobRunState, JobState, list_labeled_fields
from palaver.sessions.delivery import DeliveryState

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.jobs.model import Job, JobPreview, JobRun, LastRun
    from palaver.sessions.delivery import DeliveryStatus


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
    job = preview.fields
    times = ", ".join(format_slot(slot, job.timezone) for slot in preview.next_slots)
    return [
        ("Runs", preview.words + describe_repeat(job.runs_left)),
        ("Next", times or "never"),
        *([("Runs per day", _describe_frequency(preview.runs_per_day))] if preview.runs_per_day is not None else []),
        ("Estimated cost", describe_cost(preview)),
        ("Sends to", ", ".join(f"{target.name} ({target.words})" for target in preview.targets)),
        ("Tools", ", ".join(job.toolsets) or "none"),
        ("Model", preview.used_model if job.model else f"{preview.used_model} (default)"),
        *list_labeled_fields(job),
        ("Prompt", job.prompt),
    ]


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
