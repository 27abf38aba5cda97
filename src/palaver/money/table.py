"""The limits that owners have set. They win over those of config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.config.budget_rules import BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit
from palaver.core.statements import build_placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId

_COLUMNS = "scope, subject, period, unit, amount"


def set_limit(tx: Transaction, limit: BudgetLimit, person_id: PersonId, now: int) -> None:
    tx.execute(
        f"INSERT INTO budget_limit ({_COLUMNS}, set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6, $7)"
        " ON CONFLICT (scope, subject, period, unit) DO UPDATE SET amount = excluded.amount, set_by = excluded.set_by,"
        " set_at = excluded.set_at",
        limit.key.scope.value,
        limit.key.subject,
        limit.key.period.value,
        limit.unit.value,
        limit.amount,
        person_id,
        now,
    )


def clear_limits(tx: Transaction, key: BudgetKey) -> int:
    """Remove the limits of a window in all units; return how many there were."""
    return tx.execute(
        "DELETE FROM budget_limit WHERE scope = $1 AND subject = $2 AND period = $3",
        key.scope.value,
        key.subject,
        key.period.value,
    )


def has_limit(tx: Transaction, scope: BudgetScope, subject: str) -> bool:
    """Whether an owner has set a limit for exactly this subject."""
    found = tx.fetch_one("SELECT 1 FROM budget_limit WHERE scope = $1 AND subject = $2 LIMIT 1", scope.value, subject)
    return found is not None


def delete_for_missing_jobs(tx: Transaction) -> None:
    """Remove the limits of jobs that were deleted."""
    tx.execute(
        "DELETE FROM budget_limit WHERE scope = 'job' AND subject <> ''"
        " AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = budget_limit.subject)"
    )


def list_for_keys(tx: Transaction, keys: Iterable[BudgetKey]) -> list[BudgetLimit]:
    """Return the limits for these windows, and those for each person, job or profile."""
    by_scope: dict[BudgetScope, set[str]] = {}
    for key in keys:
        by_scope.setdefault(key.scope, {""}).add(key.subject)
    conditions: list[str] = []
    params: list[str] = []
    for scope, subjects in by_scope.items():
        placeholders = build_placeholders(len(subjects), first=len(params) + 2)
        conditions.append(f"(scope = ${len(params) + 1} AND subject IN ({placeholders}))")
        params += [scope.value, *sorted(subjects)]
    if not conditions:
        return []
    return [
        _to_limit(row)
        for row in tx.fetch_all(f"SELECT {_COLUMNS} FROM budget_limit WHERE {' OR '.join(conditions)}", *params)
    ]


def list_all(tx: Transaction) -> list[BudgetLimit]:
    """Return every limit. There are as many as owners have set by hand."""
    return [_to_limit(row) for row in tx.fetch_all(f"SELECT {_COLUMNS} FROM budget_limit ORDER BY {_COLUMNS}")]


def _to_limit(row: Sequence[object]) -> BudgetLimit:
    scope, subject, period, unit, amount = row
    return BudgetLimit(
        key=BudgetKey(BudgetScope(str(scope)), str(subject), BudgetPeriod(str(period))),
        unit=BudgetUnit(str(unit)),
        amount=None if amount is None else int(str(amount)),
    )
