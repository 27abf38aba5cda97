"""Usage in a period, grouped by day, model, platform, person or session.

It is read through the index on times, in the asker's audiences only. The usage of a deleted session is included;
only its name is lost.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from palaver.core.ids import PersonId
from palaver.core.statements import build_placeholders
from palaver.people import table as people
from palaver.sessions.usage import TOKEN_COUNTERS
from palaver.sessions.usage_report import UsageGrouping, UsageReport, UsageRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Row, Transaction

_MICROS_PER_DAY = 86_400_000_000
_TOKEN_SUMS = ", ".join(f"COALESCE(SUM(u.{column}), 0)" for column in TOKEN_COUNTERS)
_USAGE_COLUMNS = (
    f"COUNT(DISTINCT u.turn_id), {_TOKEN_SUMS}, SUM(u.cost_nanos),"
    " COALESCE(SUM(CASE WHEN u.cost_nanos IS NULL THEN 1 ELSE 0 END), 0)"
)

# Usage belongs to the person whom the turn was for, as long as its session exists; also the usage of orphaned runs,
# whose ids are longer (`usage.record_orphan_usage`). After that it belongs to the person whose session it was.
_GROUP_COLUMNS = {
    UsageGrouping.DAY: f"u.created_at / {_MICROS_PER_DAY}",
    UsageGrouping.MODEL: "u.model",
    UsageGrouping.PLATFORM: "u.platform",
    UsageGrouping.PERSON: "COALESCE((SELECT COALESCE(p.merged_into, t.person_id) FROM turn t"
    " LEFT JOIN person p ON p.id = t.person_id WHERE t.id = substr(u.turn_id, 1, 18)),"
    " (SELECT COALESCE(p.merged_into, p.id) FROM person p WHERE p.audience_no = u.audience_no LIMIT 1))",
    UsageGrouping.SESSION: "(SELECT s.id FROM session s WHERE s.no = u.session_no AND s.is_deleted = 0)",
}


def load_report(
    tx: Transaction, grouping: UsageGrouping, begin: int, end: int, audiences: Sequence[int] | None, limit: int
) -> UsageReport:
    """Return the usage of each group, the most expensive first (days: the newest first), and the total."""
    audience_condition, audience_params = _build_audience_condition(audiences)
    source = f"FROM usage u WHERE u.created_at >= $1 AND u.created_at < $2 {audience_condition}"
    order = "1 DESC" if grouping is UsageGrouping.DAY else "8 DESC NULLS LAST, 3 DESC, 1"
    rows = tx.fetch_all(
        f"SELECT {_GROUP_COLUMNS[grouping]}, {_USAGE_COLUMNS} {source} GROUP BY 1 ORDER BY {order} LIMIT {int(limit)}",
        begin,
        end,
        *audience_params,
    )
    total = tx.fetch_one(f"SELECT NULL, {_USAGE_COLUMNS} {source}", begin, end, *audience_params)
    assert total is not None  # noqa: S101
    labels = _load_labels(tx, grouping, [row[0] for row in rows if row[0] is not None])
    return UsageReport(
        [_add_label(_usage_from_row(row), grouping, labels) for row in rows],
        replace(_usage_from_row(total), label="total"),
    )


def _build_audience_condition(audiences: Sequence[int] | None) -> tuple[str, Sequence[int]]:
    if audiences is None:
        return "", ()
    placeholders = build_placeholders(len(audiences), first=3)
    return f"AND u.audience_no IN ({placeholders or 'NULL'})", audiences


def _load_labels(tx: Transaction, grouping: UsageGrouping, groups: Sequence[str]) -> Mapping[str, str]:
    if grouping is UsageGrouping.PERSON:
        names = people.load_names(tx, map(PersonId, groups))
        return {str(person_id): name for person_id, name in names.items()}
    if grouping is not UsageGrouping.SESSION or not groups:
        return {}
    rows = tx.fetch_all(
        f"SELECT id, COALESCE(title, auto_title, preview) FROM session WHERE id IN ({build_placeholders(len(groups))})",
        *groups,
    )
    return dict(rows)


def _usage_from_row(row: Row) -> UsageRow:
    return UsageRow(
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


def _add_label(usage_row: UsageRow, grouping: UsageGrouping, labels: Mapping[str, str]) -> UsageRow:
    group = usage_row.group
    if group is None:
        return replace(usage_row, label="deleted" if grouping is UsageGrouping.SESSION else "unknown")
    if grouping is UsageGrouping.DAY:
        day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(group))).date().isoformat()
        return replace(usage_row, group=day, label=day)
    return replace(usage_row, label=labels.get(group, "") or group or "unknown")
