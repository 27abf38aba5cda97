"""The errors that people read when a limit refuses a call to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.config.budget_amounts import format_amount
from palaver.config.budget_rules import BudgetScope, BudgetUnit, get_window_bounds
from palaver.core.errors import BudgetExceeded
from palaver.money.limit_words import is_person
from palaver.money.texts import format_reset_time, name_budget
from palaver.sessions.turn_codes import FailureCode

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.config.budget_rules import BudgetKey
    from palaver.money.hold import HoldRefused

_NANOS_PER_CENT = 10_000_000


def make_refusal(
    refusal: HoldRefused, model: str, subject_name: str, *, now: datetime, timezone: str, can_see_amounts: bool
) -> BudgetExceeded:
    """Make the error for a call that a limit does not allow: what, how much, until when, and how to raise it."""
    key, unit = refusal.window.key, refusal.unit
    resets_at = get_window_bounds(key.period, now, timezone)[1]
    facts: dict[str, object] = {
        "model": model,
        "scope": key.scope.value,
        "subject": subject_name,
        "period": key.period.value,
        "unit": unit.value,
        "resets_at": resets_at.isoformat(),
        "timezone": timezone,
    }
    budget = describe_budget(key, subject_name)
    if refusal.needed is None:
        return BudgetExceeded(_explain_unknown_price(budget, model), code=FailureCode.PRICE_UNKNOWN, **facts)
    if can_see_amounts:
        facts |= {"used": refusal.window.get_used(unit), "limit": refusal.window.get_limit(unit)}
    text = (
        f"{_explain_limit(refusal, budget, refusal.needed, can_see_amounts=can_see_amounts)} It resets"
        f" {format_reset(resets_at, now, timezone)}. An owner can raise it:"
        f" `{_format_command(refusal, subject_name, can_see_amounts=can_see_amounts)}`."
    )
    return BudgetExceeded(text, code=FailureCode.BUDGET_EXCEEDED, **facts)


def describe_budget(key: BudgetKey, subject_name: str) -> str:
    """Say whose budget it is, and of which period, at the start of a sentence: "Your daily budget"."""
    name = name_budget(key.scope, key.period, subject_name)
    return f"{name[0].upper()}{name[1:]}"


def format_reset(resets_at: datetime, now: datetime, timezone: str) -> str:
    """Say when a window ends: "at 2026-11-17 00:00 (Europe/Vienna), in 5 hours"."""
    return f"at {format_reset_time(resets_at, timezone)}, {_format_wait(resets_at, now)}"


def _explain_limit(refusal: HoldRefused, budget: str, needed: int, *, can_see_amounts: bool) -> str:
    unit, window = refusal.unit, refusal.window
    used, limit = window.get_used(unit), window.get_limit(unit) or 0
    if not can_see_amounts:
        return f"{budget} is used up."
    if used >= limit:
        return f"{budget} is used up: {format_amount(unit, used)} of {format_amount(unit, limit)}."
    left = f"{format_amount(unit, limit - used)} of {format_amount(unit, limit)}"
    return f"{budget} has only {left} left, and this answer may need {format_amount(unit, needed)}."


def _explain_unknown_price(budget: str, model: str) -> str:
    return (
        f"{budget} has a limit in dollars, and the price of {model} is unknown. An owner can set it in the server"
        f' settings, in dollars per million tokens: `prices: {{"{model}": {{input: 0.5, output: 1.5}}}}`'
    )


def _format_wait(resets_at: datetime, now: datetime) -> str:
    """Say how long it takes until a window ends: "in 5 hours"."""
    minutes = max(round((resets_at - now).total_seconds() / 60), 1)
    if minutes < 60:
        number, word = minutes, "minute"
    elif minutes < 48 * 60:
        number, word = round(minutes / 60), "hour"
    else:
        number, word = round(minutes / (24 * 60)), "day"
    return f"in {number} {word}" if number == 1 else f"in {number} {word}s"


def _format_command(refusal: HoldRefused, subject_name: str, *, can_see_amounts: bool) -> str:
    """Return the command that would let the call pass."""
    key = refusal.window.key
    who = {
        BudgetScope.ALL: "all",
        BudgetScope.PERSON: subject_name if is_person(subject_name) else f"person {subject_name}",
        BudgetScope.JOB: f"job {subject_name}",
        BudgetScope.PROFILE: f"profile {subject_name}",
    }[key.scope]
    amount = _suggest_amount(refusal) if can_see_amounts else "…"
    return f"/budget set {who} {key.period.value} {amount}"


def _suggest_amount(refusal: HoldRefused) -> str:
    """Return a limit that would let the call pass: about twice as much."""
    limit = refusal.window.get_limit(refusal.unit) or 0
    amount = max(2 * limit, refusal.window.get_used(refusal.unit) + 2 * (refusal.needed or 0))
    if refusal.unit is BudgetUnit.TOKENS:
        return f"{-(-amount // 1000)}k tokens"
    cents = -(-amount // _NANOS_PER_CENT)
    return f"${cents // 100}.{cents % 100:02}"
