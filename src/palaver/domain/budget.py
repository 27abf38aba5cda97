"""Budgets: limits on tokens and money per day and month, for everybody, a person, a job or a profile.

Before a model is called, the most that the call can cost is held in every window that it counts in. When it has ended,
what it really used replaces what was held. Always true: what is used and held together never passes a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

WARNING_PERCENT = 80
INPUT_ESTIMATE_FACTOR = 1.2  # the estimate of a prompt's tokens may be too low
DEFAULT_MAX_TOKENS = 8000  # of an answer, when a limit applies
MIN_MAX_TOKENS = 1000  # an answer is shortened to this before a call is refused


class BudgetScope(StrEnum):
    ALL = "all"
    PERSON = "person"
    JOB = "job"
    PROFILE = "profile"


class BudgetPeriod(StrEnum):
    DAY = "day"
    MONTH = "month"


class BudgetUnit(StrEnum):
    USD = "usd"
    TOKENS = "tokens"


class CallPurpose(StrEnum):
    """What a model is called for."""

    ANSWER = "answer"
    SUMMARY = "summary"
    TITLE = "title"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class BudgetKey:
    """What a limit or a window is about; the subject is a person's id, a job's id or a profile's name.

    A limit without a subject is about all people together (`all`), or about each person, job or profile.
    """

    scope: BudgetScope
    subject: str
    period: BudgetPeriod


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimit:
    key: BudgetKey
    unit: BudgetUnit
    amount: int | None  # nano-dollars or tokens; None: no limit, whatever config.yaml says
    is_from_file: bool = False  # config.yaml; otherwise an owner has set it


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """One window and its limits, for people."""

    key: BudgetKey
    subject_name: str  # for people to read
    used_nanos: int
    held_nanos: int
    used_tokens: int
    held_tokens: int
    unpriced_calls: int
    limit_nanos: int | None
    limit_tokens: int | None
    resets_at: datetime
    timezone: str

    @property
    def percent(self) -> int | None:
        """How much of the tighter limit is used or held; None without a limit."""
        shares = [
            100 * (used + held) // limit if limit else 100
            for used, held, limit in (
                (self.used_nanos, self.held_nanos, self.limit_nanos),
                (self.used_tokens, self.held_tokens, self.limit_tokens),
            )
            if limit is not None
        ]
        return max(shares, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Prices in US dollars for a million tokens, at the highest tier of the price list."""

    input_usd: Decimal
    output_usd: Decimal
