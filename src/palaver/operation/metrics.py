"""Monitoring: reads what ended since the last reading, whether requests can be served, and what is new in a version."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from palaver import __version__
from palaver.config.budget_rules import BudgetRules, BudgetScope, BudgetStatus
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, ReadinessProblem, Transaction
from palaver.money.service import load_statuses
from palaver.operation import metrics_table as metrics
from palaver.operation.metrics_table import MetricsSnapshot
from palaver.sessions import turn_leases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.sessions.store import SessionStore


__all__ = ["MetricsReader", "MetricsSnapshot"]

READ_DELAY = timedelta(seconds=2)
MAX_WAIT_SECONDS: Final = 3.0
MAX_TURN_WAIT_SECONDS: Final = 120
MAX_NOTES_CHARS: Final = 200_000
_PACKAGE = Path(__file__).parents[1]
_FILES: Final = (_PACKAGE / "CHANGELOG.md", _PACKAGE.parents[1] / "CHANGELOG.md")  # in a wheel, in a checkout
_HEADING = re.compile(r"^## \[?v?([^\]\s]+)\]?.*$", re.MULTILINE)


class MetricsReader:
    """Remembers up to which time everything was counted.

    It reads a few seconds behind the present, so that it does not miss what is being committed right now.
    """

    def __init__(self, store: SessionStore, get_budget_rules: Callable[[], BudgetRules]) -> None:
        self._store = store
        self._get_budget_rules = get_budget_rules  # those that are in force now
        self._counted_until = self._get_end()

    async def read_new(self) -> MetricsSnapshot:
        after, until = self._counted_until, max(self._counted_until, self._get_end())
        snapshot = await self._store.engine.arun(Read(lambda tx: metrics.load_metrics(tx, after, until)))
        self._counted_until = until
        return snapshot

    async def load_overall_budgets(self) -> list[BudgetStatus]:
        """Return how the day and the month of all people together stand."""
        now = self._store.clock.now()
        subjects, rules = [(BudgetScope.ALL, "")], self._get_budget_rules()
        return await self._store.engine.arun(Read(lambda tx: load_statuses(tx, subjects, rules, now)))

    def _get_end(self) -> int:
        return to_micros(self._store.clock.now() - READ_DELAY)


def find_wait_minutes(tx: Transaction, now: int) -> int:
    """Return for how many minutes a message has waited for the agent; 0 while that is not too long."""
    wait = turn_leases.find_longest_wait(tx, now)
    return wait // 60_000_000 if wait > MAX_TURN_WAIT_SECONDS * 1_000_000 else 0


async def find_problems(store: SessionStore) -> Sequence[ReadinessProblem]:
    """Return what keeps the database and the agent from working; raise `StoreError` if nothing can be read.

    For `/readyz` and monitoring. Always true: the answer comes within `MAX_WAIT_SECONDS`, whatever the database does.
    """
    now = to_micros(store.clock.now())
    try:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            problems = list(await asyncio.to_thread(store.engine.find_problems))
            minutes = await store.engine.arun(Read(lambda tx: find_wait_minutes(tx, now)))
    except TimeoutError:
        text = f"The database did not answer within {MAX_WAIT_SECONDS:.0f} seconds."
        return [ReadinessProblem("database_slow", text, is_blocking=True)]
    if minutes:
        text = f"A message has been waiting for the agent for {minutes} minutes: no server takes it, or all are busy."
        problems.append(ReadinessProblem("turns_waiting", text, is_blocking=False))
    return problems


@lru_cache(maxsize=1)
def load_update_notes() -> str:
    """Return the notes of the running version as Markdown; empty if there are none."""
    for file in _FILES:
        try:
            return find_section(file.read_text(encoding="utf-8")[: 4 * MAX_NOTES_CHARS], __version__)[:MAX_NOTES_CHARS]
        except OSError:
            continue
    return ""


def find_section(changelog: str, version: str) -> str:
    """Return the section of a version without its heading, or that of what is not released yet."""
    headings = list(_HEADING.finditer(changelog))
    for wanted in (version, "Unreleased"):
        for heading, following in zip(headings, [*headings[1:], None], strict=False):
            if heading[1].casefold() == wanted.casefold():
                return changelog[heading.end() : following.start() if following else len(changelog)].strip()
    return ""
