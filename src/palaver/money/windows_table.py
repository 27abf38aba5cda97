"""The windows of the budgets: what was used and is held in each day and month.

Always true: several windows are locked and changed in one order, so that two calls never wait for each other; what a
call holds in its windows is in its `model_call` row, until the same transaction that ends the row gives it back.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.config.budget_rules import BudgetKey, BudgetPeriod, BudgetScope
from palaver.core.engines.base import Transaction, list_columns
from palaver.core.old_rows import declare_old_rows
from palaver.money.table import WindowTotals
from palaver.people.person_data import EraseAt, PersonColumn, Stays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from palaver.core.ids import PersonId


class WindowId(NamedTuple):
    """One day or month of everybody, a person, a job or a profile; the order of windows is the order of locks."""

    scope: str
    subject: str
    period: str
    starts_at: int

    @property
    def key(self) -> BudgetKey:
        return BudgetKey(BudgetScope(self.scope), self.subject, BudgetPeriod(self.period))


class CallSubjects(NamedTuple):
    """The person, the job and the profile whose budgets a call counts in."""

    person_id: str | None
    job_id: str | None
    profile: str | None


_COUNTERS = list_columns(WindowTotals)
_USED = "used_nanos, used_tokens, unpriced_calls"
_IS_WINDOW = "scope = $1 AND subject = $2 AND period = $3 AND starts_at = $4"
_ADD = ", ".join(f"{column} = {column} + ${number}" for number, column in enumerate(WindowTotals._fields, start=5))


def load_call_subjects(
    tx: Transaction, session_no: int, person_id: str | None, job_run_id: str | None, *, lock: str = ""
) -> CallSubjects:
    """Return whose budgets a call in a session counts in; a person who was linked to another counts as that one."""
    if lock and person_id is not None:
        tx.fetch_one(f"SELECT 1 FROM person WHERE id = $1 {lock}", person_id)
    sql = """SELECT (SELECT COALESCE(merged_into, id) FROM person WHERE id = $1),
        (SELECT j.id FROM job_run r JOIN job j ON j.no = r.job_no WHERE r.id = $2),
        (SELECT profile FROM session WHERE no = $3)"""
    row = tx.fetch_one(sql, person_id, job_run_id, session_no)
    return CallSubjects(*(row or (None, None, None)))


def lock_windows(tx: Transaction, ids: Iterable[WindowId]) -> dict[WindowId, WindowTotals]:
    """Lock windows, creating those that are missing, and return what is used and held in them."""
    ordered = sorted(ids)
    found = _select_windows(tx, ordered, tx.for_update)
    missing = [window for window in ordered if window not in found]
    if missing:
        sql = """INSERT INTO budget_window (scope, subject, period, starts_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING"""
        tx.execute_many(sql, missing)
        found = _select_windows(tx, ordered, tx.for_update)
    return found


def _select_windows(tx: Transaction, ordered: Sequence[WindowId], lock: str) -> dict[WindowId, WindowTotals]:
    conditions = " OR ".join(
        f"(scope = ${first} AND subject = ${first + 1} AND period = ${first + 2} AND starts_at = ${first + 3})"
        for first in range(1, 4 * len(ordered), 4)
    )
    sql = f"""SELECT {list_columns(WindowId)}, {_COUNTERS} FROM budget_window WHERE {conditions}
        ORDER BY scope, subject, period, starts_at {lock}"""
    rows = tx.fetch_all(sql, *(value for window in ordered for value in window))
    return {
        WindowId(scope, subject, period, starts_at): WindowTotals(*map(int, counters))
        for scope, subject, period, starts_at, *counters in rows
    }


def change_windows(tx: Transaction, changes: Mapping[WindowId, WindowTotals]) -> None:
    """Change windows. Those that are not stored any more stay away: their day or month is long over."""
    sql = f"UPDATE budget_window SET {_ADD} WHERE {_IS_WINDOW}"
    tx.execute_many(sql, [(*window, *change) for window, change in sorted(changes.items())])


def add_used_tokens(tx: Transaction, ids: Iterable[WindowId], tokens: int) -> None:
    """Count a call that was free, and for which nothing was held."""
    sql = """INSERT INTO budget_window (scope, subject, period, starts_at, used_tokens) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (scope, subject, period, starts_at)
        DO UPDATE SET used_tokens = budget_window.used_tokens + excluded.used_tokens"""
    tx.execute_many(sql, [(*window, tokens) for window in sorted(ids)])


def mark_warned(tx: Transaction, window: WindowId) -> bool:
    """Remember that people were told that most of a window's limit is used; False if they had been."""
    return tx.execute(f"UPDATE budget_window SET is_warned = 1 WHERE {_IS_WINDOW} AND is_warned = 0", *window) > 0


def clear_warnings(tx: Transaction, key: BudgetKey, since: int) -> None:
    """Let people be told again, because the limit of these windows has changed; without a subject, of all of them."""
    sql = """UPDATE budget_window SET is_warned = 0 WHERE starts_at >= $1 AND scope = $2 AND period = $3 AND
        is_warned = 1 AND ($4 = '' OR subject = $4)"""
    tx.execute(sql, since, key.scope.value, key.period.value, key.subject)


def move_to_person(tx: Transaction, to_id: PersonId, from_id: PersonId) -> None:
    """Add what one person has used and holds to the windows of another.

    The first one's windows stay, with what that person has used, so that it can be taken away again.
    """
    add_used(tx, to_id, from_id, _COUNTERS)
    tx.execute(
        "UPDATE budget_window SET held_nanos = 0, held_tokens = 0 WHERE scope = 'person' AND subject = $1", from_id
    )


def add_used(tx: Transaction, to_id: PersonId, from_id: PersonId, columns: str = _USED) -> None:
    """Add what one person has used to the windows of another; the first one's windows stay as they are."""
    tx.execute(
        f"INSERT INTO budget_window (scope, subject, period, starts_at, {columns}, is_warned)"
        f" SELECT scope, $1, period, starts_at, {columns}, is_warned FROM budget_window"
        " WHERE scope = 'person' AND subject = $2"
        " ON CONFLICT (scope, subject, period, starts_at) DO UPDATE SET "
        + ", ".join(f"{column} = budget_window.{column} + excluded.{column}" for column in columns.split(", ")),
        to_id,
        from_id,
    )


def subtract_used(tx: Transaction, from_id: PersonId, other_id: PersonId) -> None:
    """Take what another person has used in their own windows out of a person's windows."""
    sql = f"""SELECT period, starts_at, {_USED} FROM budget_window WHERE scope = 'person' AND subject = $1
        ORDER BY period, starts_at"""
    for period, starts_at, *used in tx.fetch_all(sql, other_id):
        tx.execute(
            "UPDATE budget_window SET "
            + ", ".join(
                f"{column} = CASE WHEN {column} > ${number} THEN {column} - ${number} ELSE 0 END"
                for number, column in enumerate(_USED.split(", "), start=5)
            )
            + f" WHERE {_IS_WINDOW}",
            "person",
            from_id,
            period,
            starts_at,
            *used,
        )


MAX_WINDOW_AGE: Final = timedelta(days=400)  # a year and a month can be looked at; the usage itself stays
OLD_ROWS: Final = {
    "budget_windows": declare_old_rows(
        "budget_window", "starts_at", MAX_WINDOW_AGE, key="scope, subject, period, starts_at"
    )
}
PERSON_DATA: Final = (
    PersonColumn(
        "budget_window",
        "subject",
        only="scope = 'person'",
        merge=Stays("what was used is added, and taken away again: see `move_to_person`"),
        erase=EraseAt.END,
    ),
)
