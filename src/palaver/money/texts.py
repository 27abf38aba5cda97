"""Texts about budgets: how one stands, that most of it is used, and that it is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from palaver.config.budget_amounts import format_amount, format_dollars
from palaver.config.budget_rules import BudgetPeriod, BudgetScope, BudgetUnit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.config.budget_rules import BudgetStatus

PERIOD_NAMES = {BudgetPeriod.DAY: "Today", BudgetPeriod.MONTH: "This month"}
PERIOD_ADJECTIVES = {BudgetPeriod.DAY: "daily", BudgetPeriod.MONTH: "monthly"}
SHARED_SCOPES = frozenset({BudgetScope.ALL, BudgetScope.PROFILE})  # of several people: their amounts are for owners


def describe_named_status(status: BudgetStatus, name: str) -> str:
    """`Ada, today: $1.20 of $5.00 (24%) …`; without a subject, nothing is used: `Each person, daily: $5.00`."""
    if status.key.scope is BudgetScope.ALL or status.key.subject:
        return f"{name}, {PERIOD_NAMES[status.key.period].lower()}: {describe_status(status)}."
    limits = [format_amount(unit, limit) for unit, _used, _held, limit in list_amounts(status) if limit is not None]
    return f"{name}, {PERIOD_ADJECTIVES[status.key.period]}: {' and '.join(limits) or 'no limit'}."


def describe_status(status: BudgetStatus) -> str:
    """`$1.20 of $5.00 (24%), 12,000 of 200,000 tokens (6%); resets 2026-11-17 00:00 (Europe/Vienna)`."""
    text = ", ".join(_describe_units(status))
    if status.limit_nanos is None and status.limit_tokens is None:
        text += "; no limit"
    return f"{text}; resets {format_reset_time(status.resets_at, status.timezone)}"


def _describe_units(status: BudgetStatus) -> Iterator[str]:
    for unit, used, held, limit in list_amounts(status):
        text = format_amount(unit, used) if limit is None else _describe_share(unit, used, held, limit)
        yield f"{text} (plus {format_amount(unit, held)} held for running calls)" if held else text
    if status.unpriced_calls:
        calls = "1 call" if status.unpriced_calls == 1 else f"{status.unpriced_calls:,} calls"
        yield f"plus {calls} whose price is unknown"


def list_amounts(status: BudgetStatus) -> tuple[tuple[BudgetUnit, int, int, int | None], ...]:
    """Return what is used, held and allowed in each unit."""
    return (
        (BudgetUnit.USD, status.used_nanos, status.held_nanos, status.limit_nanos),
        (BudgetUnit.TOKENS, status.used_tokens, status.held_tokens, status.limit_tokens),
    )


def _describe_share(unit: BudgetUnit, used: int, held: int, limit: int) -> str:
    percent = 100 * (used + held) // limit if limit else 100
    amount = format_dollars(used) if unit is BudgetUnit.USD else f"{used:,}"
    return f"{amount} of {format_amount(unit, limit)} ({percent}%)"


def format_reset_time(moment: datetime, timezone: str) -> str:
    """`2026-11-17 00:00 (Europe/Vienna)`."""
    return f"{moment.astimezone(ZoneInfo(timezone)):%Y-%m-%d %H:%M} ({timezone})"


def name_budget(scope: BudgetScope, period: BudgetPeriod, subject_name: str) -> str:
    """`your daily budget`, `the monthly budget of the profile “research”`."""
    adjective = PERIOD_ADJECTIVES[period]
    return {
        BudgetScope.ALL: f"the {adjective} budget of everybody together",
        BudgetScope.PERSON: f"your {adjective} budget",
        BudgetScope.JOB: f"the {adjective} budget of the job “{subject_name}”",
        BudgetScope.PROFILE: f"the {adjective} budget of the profile “{subject_name}”",
    }[scope]
