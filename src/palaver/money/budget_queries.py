"""Reads of budgets for people: what was used in the current day and month, and for whom there is something to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.config.budget_rules import BudgetKey, BudgetPeriod, BudgetScope
from palaver.core.statements import build_placeholders
from palaver.core.text import make_name_key
from palaver.people.account import normalize_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId

MAX_MATCHES = 10
BudgetSubject = tuple[BudgetScope, str]


@dataclass(frozen=True, slots=True)
class WindowTotals:
    """What was used and is held in one window."""

    used_nanos: int = 0
    held_nanos: int = 0
    used_tokens: int = 0
    held_tokens: int = 0
    unpriced_calls: int = 0


def load_totals(
    tx: Transaction, subjects: Iterable[BudgetSubject], starts: Mapping[BudgetPeriod, int]
) -> dict[BudgetKey, WindowTotals]:
    """Return the totals of the windows that begin at these times; one in which nothing happened is missing."""
    by_scope: dict[BudgetScope, list[str]] = {}
    for scope, subject in subjects:
        by_scope.setdefault(scope, []).append(subject)
    totals: dict[BudgetKey, WindowTotals] = {}
    for scope, names in by_scope.items():
        rows = tx.fetch_all(
            "SELECT subject, period, used_nanos, held_nanos, used_tokens, held_tokens, unpriced_calls"
            f" FROM budget_window WHERE scope = $1 AND subject IN ({build_placeholders(len(names), 4)})"
            " AND ((period = 'day' AND starts_at = $2) OR (period = 'month' AND starts_at = $3))",
            scope.value,
            starts[BudgetPeriod.DAY],
            starts[BudgetPeriod.MONTH],
            *names,
        )
        for subject, period, *numbers in rows:
            totals[BudgetKey(scope, subject, BudgetPeriod(period))] = WindowTotals(*map(int, numbers))
    return totals


def list_subjects(tx: Transaction, month_start: int, after: BudgetSubject | None, limit: int) -> list[BudgetSubject]:
    """List for whom something was used in the month that began then, or an owner has set a limit; in a fixed order."""
    scope, subject = after or ("", "")
    rows = tx.fetch_all(
        "SELECT scope, subject FROM (SELECT scope, subject FROM budget_window WHERE starts_at = $1 AND period = 'month'"
        " UNION SELECT scope, subject FROM budget_limit) AS found"
        " WHERE scope > $2 OR (scope = $2 AND subject > $3) ORDER BY scope, subject LIMIT $4",
        month_start,
        str(scope),
        subject,
        limit,
    )
    return [(BudgetScope(row[0]), row[1]) for row in rows]


def list_job_subjects(tx: Transaction, person_id: PersonId, since: int, limit: int) -> list[BudgetSubject]:
    """List a person's own jobs for which something was used since a time, or an owner has set a limit."""
    rows = tx.fetch_all(
        "SELECT j.id FROM job j WHERE j.person_id = $1 AND (EXISTS (SELECT 1 FROM budget_window w"
        " WHERE w.scope = 'job' AND w.subject = j.id AND w.starts_at >= $2) OR EXISTS (SELECT 1 FROM budget_limit l"
        " WHERE l.scope = 'job' AND l.subject = j.id)) ORDER BY j.name_key LIMIT $3",
        person_id,
        since,
        limit,
    )
    return [(BudgetScope.JOB, row[0]) for row in rows]


def load_names(tx: Transaction, subjects: Collection[BudgetSubject]) -> dict[BudgetSubject, str]:
    """Return the names of people and jobs, for those who may see them."""
    names: dict[BudgetSubject, str] = {}
    for scope, table in ((BudgetScope.PERSON, "person"), (BudgetScope.JOB, "job")):
        ids = [subject for each, subject in subjects if each is scope and subject]
        if ids:
            rows = tx.fetch_all(f"SELECT id, name FROM {table} WHERE id IN ({build_placeholders(len(ids))})", *ids)
            names |= {(scope, row[0]): row[1] for row in rows}
    return names


def find_jobs(tx: Transaction, id_or_name: str) -> list[tuple[str, str]]:
    """Return the jobs with this id or name: their ids, and the names of the people they belong to."""
    rows = tx.fetch_all(
        "SELECT j.id, p.name FROM job j JOIN person p ON p.id = j.person_id WHERE (j.id = $1 OR j.name_key = $2)"
        " AND j.is_deleted = 0 ORDER BY j.no LIMIT $3",
        id_or_name,
        make_name_key(id_or_name),
        MAX_MATCHES,
    )
    return [(row[0], row[1]) for row in rows]


def find_people(tx: Transaction, id_or_name: str) -> list[tuple[str, str]]:
    """Return the people with this id or name: their ids and names. Reads the names of all people."""
    rows = tx.fetch_all("SELECT id, name FROM person WHERE merged_into IS NULL ORDER BY created_at, id")
    name = normalize_name(id_or_name)
    return [(row[0], row[1]) for row in rows if row[0] == id_or_name or normalize_name(row[1]) == name][:MAX_MATCHES]
