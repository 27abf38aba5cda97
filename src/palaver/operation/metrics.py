"""Reads from the store what ended since the last reading, for the metrics endpoint.

It reads a few seconds behind the present, so that it does not miss what is being committed right now.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.config.budget_rules import BudgetScope
from palaver.core.engines.base import Read
from palaver.core.timestamps import to_micros
from palaver.money.overview import load_statuses
from palaver.operation import metrics_table as metrics
from palaver.operation.metrics_table import MetricsSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.config.budget_rules import BudgetRules, BudgetStatus
    from palaver.sessions.store import SessionStore

__all__ = ["MetricsReader", "MetricsSnapshot"]

READ_DELAY = timedelta(seconds=2)


class MetricsReader:
    """Remembers up to which time everything was counted."""

    def __init__(self, store: SessionStore, get_budget_rules: Callable[[], BudgetRules]) -> None:
        self._store = store
        self._get_budget_rules = get_budget_rules  # those that are in force now
        self._counted_until = self._get_end()

    async def read_new(self) -> MetricsSnapshot:
        """Return what ended since the last call, or since the reader was created."""
        after, until = self._counted_until, max(self._counted_until, self._get_end())
        snapshot = await self._store.engine.arun(Read(lambda tx: metrics.load_metrics(tx, after, until)))
        self._counted_until = until
        return snapshot

    async def load_overall_budgets(self) -> list[BudgetStatus]:
        """Return how the day and the month of everybody together stand."""
        now = self._store.clock.now()
        subjects, rules = [(BudgetScope.ALL, "")], self._get_budget_rules()
        return await self._store.engine.arun(Read(lambda tx: load_statuses(tx, subjects, rules, now)))

    def _get_end(self) -> int:
        return to_micros(self._store.clock.now() - READ_DELAY)
