"""Jobs and their runs in words, as the terminal and chats show them. Texts of people are not escaped here."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from palaver.core.texts import join_texts, name_text, say, say_count
from palaver.jobs import cron
from palaver.jobs.model import (
    CostBasis,
    Job,
    JobPreview,
    JobResult,
    JobRun,
    JobRunKind,
    JobRunState,
    JobState,
    LastRun,
    list_labeled_fields,
)
from palaver.sessions.delivery import DeliveryState

if TYPE_CHECKING:
    from datetime import datetime


_BASIS_WORDS: Final = {
    CostBasis.RUNS: say("jobs.cost_of_runs", "average of its last runs"),
    CostBasis.ESTIMATE: say("jobs.cost_estimate", "a rough estimate"),
}
_DELIVERY_WORDS: Final = {
    DeliveryState.PENDING: say("delivery.pending", "not sent yet"),
    DeliveryState.SENDING: say("delivery.sending", "being sent"),
    DeliveryState.SENT: say("delivery.sent", "delivered"),
    DeliveryState.UNCERTAIN: say("delivery.uncertain", "maybe delivered"),
    DeliveryState.FAILED: say("delivery.failed", "not delivered"),
}
JOB_STATES: Final = {state: name_text(f"job.state_{state}", str(state)) for state in JobState}
RUN_STATES: Final = {state: name_text(f"run.{state}", str(state)) for state in JobRunState}
WEEKDAYS: Final = tuple(
    name_text(f"weekday.{name.lower()}", name[:3]) for name in (*cron.WEEKDAYS[1:], cron.WEEKDAYS[0])
)
MONTHS: Final = tuple(name_text(f"month.{name.lower()}", name[:3]) for name in cron.MONTHS)
_RUN_RESULTS: Final = {
    JobResult.ANSWER: say("run.answered", "answered"),
    JobResult.SILENT: say("run.silent", "nothing to report"),
    None: say("run.no_result", "none"),
}
NO_RUN: Final = say("job.never", "never")
NONE: Final = say("text.none", "none")


def format_slot(slot: datetime, timezone: str) -> str:
    """`Tue 2026-11-17 07:00`, by the clock of a time zone."""
    local = slot.astimezone(ZoneInfo(timezone))
    return WEEKDAYS[local.weekday()] + f" {local:%Y-%m-%d %H:%M}"


def list_preview_lines(preview: JobPreview) -> list[tuple[str, str]]:
    """Return what a person confirms, as labels and texts."""
    job = preview.fields
    times = join_texts(", ", (format_slot(slot, job.timezone) for slot in preview.next_slots))
    targets = [f"{target.name} (" + target.words + ")" for target in preview.targets]
    default = " (" + say("text.default", "default") + ")"
    frequency = [] if preview.runs_per_day is None else [_describe_frequency(preview.runs_per_day)]
    repeat: str = ""
    if job.runs_left is not None:
        repeat = say_count("job.runs_left", job.runs_left, ", {count} more time", ", {count} more times")
    return [
        (say("job.runs", "Runs"), preview.words + repeat),
        (say("job.next", "Next"), times or NO_RUN),
        *((say("job.frequency", "Runs per day"), each) for each in frequency),
        (say("job.cost", "Estimated cost"), describe_cost(preview)),
        (say("job.targets", "Sends to"), join_texts(", ", targets)),
        (say("job.tools", "Tools"), ", ".join(job.toolsets) or NONE),
        (say("job.model", "Model"), preview.used_model if job.model else preview.used_model + default),
        *list_labeled_fields(job),
        (say("job.prompt", "Prompt"), job.prompt),
    ]


def describe_cost(preview: JobPreview) -> str:
    """`about $0.12 per day (average of its last runs)`; an unknown price is never nothing."""
    cost = preview.cost_per_day
    if cost is None:
        return say("job.price_unknown", "unknown (the price of {model} is not known)", model=preview.used_model)
    if cost == 0:
        return say("cost.free", "free")
    amount = say("job.small_cost", "less than $0.01")
    if cost >= Decimal("0.01"):
        amount = say("job.about", "about ${cost}", cost=f"{cost:.2f}")
    if preview.runs_per_day is not None:
        amount += say("job.per_day", " per day")
    return amount + " (" + _BASIS_WORDS[preview.cost_basis] + ")"


def _describe_frequency(runs_per_day: float) -> str:
    if runs_per_day >= 1:
        return f"{runs_per_day:.1f}".removesuffix(".0")
    days = round(1 / runs_per_day) if runs_per_day else 0
    return f"{runs_per_day:.2f}" if days <= 1 else say("job.every_days", "about one every {days} days", days=days)


def describe_state(job: Job) -> str:
    """`active`, `paused: five runs in a row failed`, `proposed: waits for your confirmation`."""
    if job.state is JobState.PROPOSED:
        return say("job.waits", "proposed: waits for your confirmation")
    text: str = JOB_STATES[job.state]
    if job.state_reason:
        text += ": " + job.state_reason
    if job.proposed_change is not None:
        text += say("job.change_waits", "; a proposed change waits for your confirmation")
    return text


def describe_next(job: Job) -> str:
    return "" if job.next_slot is None else format_slot(job.next_slot, job.timezone)


def describe_last_run(last_run: LastRun | None, timezone: str) -> str:
    if last_run is None:
        return say("run.none", "not run yet")
    silent = [_RUN_RESULTS[JobResult.SILENT]] if last_run.result is JobResult.SILENT else []
    return join_texts(", ", [RUN_STATES[last_run.state], *silent, format_slot(last_run.slot, timezone)])


# ---- runs ------------------------------------------------------------------------------------------------------


def _describe_run_state(run: JobRun) -> str:
    """Say how a run ended: `done`, `failed`, `missed (3 times)`."""
    text: str = RUN_STATES[run.state]
    if run.slot_count > 1:
        text += say("run.times", " ({times} times)", times=str(run.slot_count))
    if run.kind is JobRunKind.MANUAL:
        text += say("run.manual", ", started manually")
    return text


def _list_run_deliveries(run: JobRun) -> list[str]:
    """Say for each target apart whether it was reached."""
    reached = [(delivery.target, delivery.state, delivery.error) for delivery in run.deliveries]
    failed = [(target, DeliveryState.FAILED, error) for target, error in run.target_errors.items()]
    return [
        f"{target}: " + _DELIVERY_WORDS[state] + (join_texts("", (" (", error, ")")) if error else "")
        for target, state, error in (*reached, *failed)
    ]


def _describe_run_duration(run: JobRun) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    seconds = (run.ended_at - run.started_at).total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def list_run_lines(run: JobRun) -> list[tuple[str, str]]:
    """Return a run as labels and texts: how it ended, its result, and its deliveries, each apart."""
    lines: list[tuple[str, str]] = [(say("run.run", "Run"), _describe_run_state(run))]
    if run.reason:
        lines.append((say("run.reason", "Reason"), run.reason))
    if run.state is JobRunState.DONE:
        lines.append((say("run.result", "Result"), _RUN_RESULTS[run.result]))
    lines += [(say("run.delivery", "Delivery"), text) for text in _list_run_deliveries(run)]
    if run.refused_tools:
        lines.append((say("run.refused_tools", "Refused tools"), ", ".join(run.refused_tools)))
    if duration := _describe_run_duration(run):
        lines.append((say("run.duration", "Duration"), duration))
    if run.session_id is not None:
        lines.append((say("run.session", "Conversation"), run.session_id))
    return lines
