"""A budget as JSON, for the API, the terminal and the data of commands. Money is decimal text, never a float."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from palaver.config.budget_amounts import nanos_to_text
from palaver.sessions.json import format_time

if TYPE_CHECKING:
    from palaver.config.budget_rules import BudgetStatus


class BudgetJson(TypedDict):
    """One window of a budget: a day or a month of everybody, a person, a job or a profile."""

    scope: str
    subject: str
    subject_name: str
    period: str
    used_usd: str
    held_usd: str
    limit_usd: str | None
    used_tokens: int
    held_tokens: int
    limit_tokens: int | None
    unpriced_calls: int
    percent: int | None
    is_limit_set: bool
    resets_at: str
    timezone: str


def status_to_json(status: BudgetStatus) -> BudgetJson:
    return {
        "scope": status.key.scope.value,
        "subject": status.key.subject,
        "subject_name": status.subject_name,
        "period": status.key.period.value,
        "used_usd": nanos_to_text(status.used_nanos),
        "held_usd": nanos_to_text(status.held_nanos),
        "limit_usd": None if status.limit_nanos is None else nanos_to_text(status.limit_nanos),
        "used_tokens": status.used_tokens,
        "held_tokens": status.held_tokens,
        "limit_tokens": status.limit_tokens,
        "unpriced_calls": status.unpriced_calls,
        "percent": status.percent,
        "is_limit_set": bool(status.owner_units),
        "resets_at": format_time(status.resets_at),
        "timezone": status.timezone,
    }
