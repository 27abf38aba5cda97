"""The limits that owners have set. They win over those of config.yaml."""

from __future__ import annotations

from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.config.budget_rules import BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit
from palaver.core.engines.base import Transaction, build_placeholders, list_columns
from palaver.core.text import make_name_key
from palaver.people.model import normalize_name
from palaver.people.person_data import EraseAt, Moved, PersonColumn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from palaver.core.ids import PersonId


_COLUMNS = "scope, subject, period, unit, amount"
MAX_MATCHES = 10


def set_limit(tx: Transaction, limit: BudgetLimit, person_id: PersonId, now: int) -> None:
    sql = f"""INSERT INTO budget_limit ({_COLUMNS}, set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (scope, subject, period, unit) DO UPDATE SET amount = excluded.amount, set_by = excluded.set_by,
        set_at = excluded.set_at"""
    tx.execute(
        sql,
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
    sql = "DELETE FROM budget_limit WHERE scope = $1 AND subject = $2 AND period = $3"
    return tx.execute(sql, key.scope.value, key.subject, key.period.value)


def has_limit(tx: Transaction, scope: BudgetScope, subject: str) -> bool:
    """Whether an owner has set a limit for exactly this subject."""
    found = tx.fetch_one("SELECT 1 FROM budget_limit WHERE scope = $1 AND subject = $2 LIMIT 1", scope.value, subject)
    return found is not None


def delete_for_missing_jobs(tx: Transaction) -> None:
    sql = """DELETE FROM budget_limit WHERE scope = 'job' AND subject <> ''
        AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = budget_limit.subject)"""
    tx.execute(sql)


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


# ---- reads for people -------------------------------------------------------------------------------------------

BudgetSubject = tuple[BudgetScope, str]


class WindowTotals(NamedTuple):
    """The amounts that were used and are held in one window, or a change of them."""

    used_nanos: int = 0
    held_nanos: int = 0
    used_tokens: int = 0
    held_tokens: int = 0
    unpriced_calls: int = 0

    def plus(self, other: WindowTotals) -> WindowTotals:
        return WindowTotals(*map(add, self, other))


def load_totals(
    tx: Transaction, subjects: Iterable[BudgetSubject], starts: Mapping[BudgetPeriod, int]
) -> dict[BudgetKey, WindowTotals]:
    """Return the totals of the windows that begin at these times; one in which nothing happened is missing."""
    by_scope: dict[BudgetScope, list[str]] = {}
    for scope, subject in subjects:
        by_scope.setdefault(scope, []).append(subject)
    totals: dict[BudgetKey, WindowTotals] = {}
    for scope, names in by_scope.items():
        sql = f"""SELECT subject, period, {list_columns(WindowTotals)}
            FROM budget_window WHERE scope = $1 AND subject IN ({build_placeholders(len(names), 4)})
            AND ((period = 'day' AND starts_at = $2) OR (period = 'month' AND starts_at = $3))"""
        rows = tx.fetch_all(sql, scope.value, starts[BudgetPeriod.DAY], starts[BudgetPeriod.MONTH], *names)
        for subject, period, *numbers in rows:
            totals[BudgetKey(scope, subject, BudgetPeriod(period))] = WindowTotals(*map(int, numbers))
    return totals


def list_subjects(tx: Transaction, month_start: int, after: BudgetSubject | None, limit: int) -> list[BudgetSubject]:
    """List for whom something was used in the month that began then, or an owner has set a limit; in a fixed order."""
    scope, subject = after or ("", "")
    sql = """SELECT scope, subject FROM (SELECT scope, subject FROM budget_window WHERE starts_at = $1
        AND period = 'month' UNION SELECT scope, subject FROM budget_limit) AS found
        WHERE scope > $2 OR (scope = $2 AND subject > $3) ORDER BY scope, subject LIMIT $4"""
    rows = tx.fetch_all(sql, month_start, str(scope), subject, limit)
    return [(BudgetScope(found_scope), found_subject) for found_scope, found_subject in rows]


def list_job_subjects(tx: Transaction, person_id: PersonId, since: int, limit: int) -> list[BudgetSubject]:
    """List a person's own jobs for which something was used since a time, or an owner has set a limit."""
    sql = """SELECT j.id FROM job j WHERE j.person_id = $1 AND (EXISTS (SELECT 1 FROM budget_window w
        WHERE w.scope = 'job' AND w.subject = j.id AND w.starts_at >= $2) OR EXISTS (SELECT 1 FROM budget_limit l
        WHERE l.scope = 'job' AND l.subject = j.id)) ORDER BY j.name_key LIMIT $3"""
    rows = tx.fetch_all(sql, person_id, since, limit)
    return [(BudgetScope.JOB, job_id) for (job_id,) in rows]


def load_names(tx: Transaction, subjects: Collection[BudgetSubject]) -> dict[BudgetSubject, str]:
    """Return the names of people and jobs, for those who may see them."""
    names: dict[BudgetSubject, str] = {}
    for scope, table in ((BudgetScope.PERSON, "person"), (BudgetScope.JOB, "job")):
        ids = [subject for each, subject in subjects if each is scope and subject]
        if ids:
            rows = tx.fetch_all(f"SELECT id, name FROM {table} WHERE id IN ({build_placeholders(len(ids))})", *ids)
            names |= {(scope, subject): name for subject, name in rows}
    return names


def find_jobs(tx: Transaction, id_or_name: str) -> list[tuple[str, str]]:
    """Return the jobs with this id or name: their ids, and the names of the people they belong to."""
    sql = """SELECT j.id, p.name FROM job j JOIN person p ON p.id = j.person_id WHERE (j.id = $1 OR j.name_key = $2)
        AND j.is_deleted = 0 ORDER BY j.no LIMIT $3"""
    rows = tx.fetch_all(sql, id_or_name, make_name_key(id_or_name), MAX_MATCHES)
    return [(job_id, person_name) for job_id, person_name in rows]


def find_people(tx: Transaction, id_or_name: str) -> list[tuple[str, str]]:
    """Return the people with this id or name: their ids and names. Reads the names of all people."""
    rows = tx.fetch_all("SELECT id, name FROM person WHERE merged_into IS NULL ORDER BY created_at, id")
    wanted = normalize_name(id_or_name)
    matches = ((each, name) for each, name in rows if each == id_or_name or normalize_name(name) == wanted)
    return list(islice(matches, MAX_MATCHES))


PERSON_DATA: Final = (
    PersonColumn(
        "budget_limit",
        "set_by",
        merge=Moved("scope || ':' || subject || ':' || period || ':' || unit || ':' || set_at"),
        erase=EraseAt.START_CLEARED,
    ),
    PersonColumn(  # after the one above, whose marks name the subject
        "budget_limit",
        "subject",
        only="scope = 'person'",
        merge=Moved(
            "period || ':' || unit || ':' || set_at",
            unless="SELECT 1 FROM budget_limit theirs WHERE theirs.scope = 'person' AND theirs.subject = $1"
            " AND theirs.period = budget_limit.period AND theirs.unit = budget_limit.unit",
        ),
        erase=EraseAt.END,
        belonging="budgets",
    ),
)
