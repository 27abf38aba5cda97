"""What was used of a budget, stored as the meter stores it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.config.budget_rules import BudgetPeriod, BudgetScope, get_window_bounds
from palaver.core.clock import to_micros

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Transaction

DOLLAR = 1_000_000_000  # nano-dollars


def store_usage(
    tx: Transaction,
    scope: BudgetScope,
    subject: str,
    now: datetime,
    *,
    nanos: int = 0,
    tokens: int = 0,
    held_nanos: int = 0,
    unpriced_calls: int = 0,
) -> None:
    """Store what a budget has used today and this month, in UTC."""
    for period in BudgetPeriod:
        start, _ = get_window_bounds(period, now, "UTC")
        tx.execute(
            "INSERT INTO budget_window (scope, subject, period, starts_at, used_nanos, held_nanos, used_tokens,"
            " unpriced_calls) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            scope.value,
            subject,
            period.value,
            to_micros(start),
            nanos,
            held_nanos,
            tokens,
            unpriced_calls,
        )
