"""What was used between two moments, by day, model, platform, person or conversation.

Read through the index of times, among the asker's audiences alone. What a deleted conversation used is still there;
only its name is not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from palaver.domain.usage import COUNTERS
from palaver.domain.usage_report import Grouping, Report, Spent
from palaver.storage import transcript_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.storage.engines.base import Row, Transaction

_DAY = 86_400_000_000  # microseconds
_SUMS = ", ".join(f"COALESCE(SUM(u.{column}), 0)" for column in COUNTERS)
_SPENT = (
    f"COUNT(DISTINCT u.turn_id), {_SUMS}, SUM(u.cost_nanos),"
    " COALESCE(SUM(CASE WHEN u.cost_nanos IS NULL THEN 1 ELSE 0 END), 0)"
)

# What the rows are grouped by. Whoever a turn was for is known as long as its conversation is there, also where one of
# its runs was counted apart, under a longer name; afterwards it counts for the one whose conversation it was.
_GROUPS = {
    Grouping.DAY: f"u.at / {_DAY}",
    Grouping.MODEL: "u.model",
    Grouping.PLATFORM: "u.platform",
    Grouping.PERSON: "COALESCE((SELECT t.person_id FROM turn t WHERE t.id = substr(u.turn_id, 1, 18)),"
    " (SELECT p.id FROM person p WHERE p.audience_no = u.audience_no LIMIT 1))",
    Grouping.SESSION: "(SELECT s.id FROM session s WHERE s.no = u.session_no)",
}


def report(tx: Transaction, by: Grouping, begin: int, end: int, audiences: Sequence[int] | None, limit: int) -> Report:
    """The groups, those that cost most first (days: the newest), and all of it together."""
    among, numbers = _among(audiences)
    where = f"FROM usage u WHERE u.at >= $1 AND u.at < $2 {among}"
    order = "1 DESC" if by is Grouping.DAY else "8 DESC NULLS LAST, 3 DESC, 1"
    rows = tx.all(
        f"SELECT {_GROUPS[by]}, {_SPENT} {where} GROUP BY 1 ORDER BY {order} LIMIT {int(limit)}", begin, end, *numbers
    )
    whole = tx.one(f"SELECT NULL, {_SPENT} {where}", begin, end, *numbers)
    assert whole is not None  # noqa: S101
    labels = _labels(tx, by, [row[0] for row in rows if row[0] is not None])
    return Report([_named(_spent(row), by, labels) for row in rows], replace(_spent(whole), label="total"))


def _among(audiences: Sequence[int] | None) -> tuple[str, Sequence[int]]:
    if audiences is None:
        return "", ()
    places = ", ".join(f"${number}" for number in range(3, len(audiences) + 3))
    return f"AND u.audience_no IN ({places or 'NULL'})", audiences


def _labels(tx: Transaction, by: Grouping, groups: Sequence[str]) -> Mapping[str, str]:
    if by is Grouping.PERSON:
        return {str(person): name for person, name in transcript_queries.names(tx, groups).items()}  # type: ignore[arg-type]
    if by is not Grouping.SESSION or not groups:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(groups) + 1))
    rows = tx.all(f"SELECT id, COALESCE(title, preview) FROM session WHERE id IN ({places})", *groups)
    return dict(rows)


def _spent(row: Row) -> Spent:
    return Spent(
        group=None if row[0] is None else str(row[0]),
        turns=int(row[1]),
        input_tokens=int(row[2]),
        output_tokens=int(row[3]),
        cache_read_tokens=int(row[4]),
        cache_write_tokens=int(row[5]),
        reasoning_tokens=int(row[6]),
        cost_nanos=None if row[7] is None else int(row[7]),
        unpriced_turns=int(row[8]),
    )


def _named(spent: Spent, by: Grouping, labels: Mapping[str, str]) -> Spent:
    if spent.group is None:
        return replace(spent, label="deleted" if by is Grouping.SESSION else "unknown")
    if by is Grouping.DAY:
        day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(spent.group))).date().isoformat()
        return replace(spent, group=day, label=day)
    return replace(spent, label=labels.get(spent.group, "") or spent.group or "unknown")
