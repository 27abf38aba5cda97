"""Usage of turns: one row for each turn and model, and the totals on the session.

Always true, by the primary key: recording the usage of a turn a second time adds nothing.

Usage in a period, grouped by day, model, platform, person or session.

It is read through the index on times, in the asker's audiences only. The usage of a deleted session is included; only
its name is lost.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from palaver.core.columns import Columns
from palaver.core.engines.base import Row, Transaction, build_placeholders
from palaver.core.ids import PersonId, new_turn_id, parse_session_id
from palaver.people import table as people
from palaver.people.person_data import ErasureStep, ExportedTable, FieldKind, PersonColumn, Stays, make_fields
from palaver.sessions.usage import TOKEN_COUNTERS, CostStatus, TurnUsage, UsageGrouping, UsageReport, UsageRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_INSERT = """INSERT INTO usage (session_no, turn_id, base_url, model, provider, created_at, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, cost_status, cost_source, platform,
    audience_no)"""
NO_SESSION_NO = 0  # where something was used that belongs to no stored conversation: a temporary one
# Parameters: session number, now, platform, audience, then the values without the last.
_INSERT_VALUES = f"""{_INSERT} VALUES ($1, $5, $6, COALESCE($7, ''), $8, $2, $9, $10, $11, $12, $13, $14, $15, $16,
    $3, $4) ON CONFLICT DO NOTHING"""


# The usage of a turn as parameters: of an insert, all but the last; of `build_totals_update`, all but the first two.
_ROW_VALUE_NAMES = ("turn_id", "base_url")  # only the row of the turn has them
_TOTALS_VALUE_NAMES = (
    *("model", "provider", *TOKEN_COUNTERS, "cost_nanos"),
    *("cost_status", "cost_source", "last_prompt_tokens"),
)
ROW_VALUE_COUNT: Final = len(_ROW_VALUE_NAMES)
TOTALS_VALUE_COUNT: Final = len(_TOTALS_VALUE_NAMES)
_get_first_values = attrgetter("model", "provider", *TOKEN_COUNTERS, "cost_nanos")
_MICROS_PER_DAY = 86_400_000_000


def get_values(usage: TurnUsage) -> tuple[object, ...]:
    """Return the values of `_ROW_VALUE_NAMES` and `_TOTALS_VALUE_NAMES`."""
    last_values = (usage.effective_cost_status.value, usage.cost_source, usage.last_prompt_tokens)
    return (usage.turn_id or new_turn_id(), usage.base_url, *_get_first_values(usage), *last_values)


def _name_params(names: Sequence[str], first: int) -> dict[str, str]:
    return {name: f"${number}" for number, name in enumerate(names, first)}


@cache
def build_insert(first: int, now: str, condition: str = "id = $1") -> str:
    """Build the statement that records a turn of one session once. Its values begin at parameter `first`."""
    value = _name_params(_ROW_VALUE_NAMES + _TOTALS_VALUE_NAMES, first)
    counters = ", ".join(value[name] for name in TOKEN_COUNTERS)
    return f"""{_INSERT} SELECT no, {value["turn_id"]}, {value["base_url"]}, COALESCE({value["model"]}, ''),
        {value["provider"]}, {now}, {counters}, CAST({value["cost_nanos"]} AS BIGINT), {value["cost_status"]},
        {value["cost_source"]}, platform, audience_no FROM session WHERE {condition} ON CONFLICT DO NOTHING"""


@cache
def build_totals_update(first: int, is_new: str | None = None) -> str:
    """Build the assignments that add a turn to the totals of its session; `is_new` is an SQL condition for that.

    The values begin at parameter `first`, without those of the turn's own row.
    """
    value = _name_params(_TOTALS_VALUE_NAMES, first)
    status = value["cost_status"]

    def if_new(name: str, new_value: str, condition: str = "") -> str:
        conditions = " AND ".join(filter(None, (is_new, condition)))
        return (
            f"{name} = CASE WHEN {conditions} THEN {new_value} ELSE {name} END"
            if conditions
            else f"{name} = {new_value}"
        )

    return ", ".join(
        [
            *(if_new(name, f"{name} + {value[name]}") for name in TOKEN_COUNTERS),
            *(
                if_new(name, f"COALESCE({value[name]}, {name})")
                for name in ("model", "cost_source", "last_prompt_tokens")
            ),
            if_new("provider", value["provider"], f"{value['model']} IS NOT NULL"),
            if_new(
                "cost_nanos",
                f"COALESCE(cost_nanos, 0) + CAST({value['cost_nanos']} AS BIGINT)",
                f"{status} <> 'unknown'",
            ),
            if_new(
                "cost_status",
                f"CASE WHEN cost_status = 'unknown' THEN {status} ELSE 'estimated' END",
                f"{status} <> 'unknown' AND {status} <> cost_status",
            ),
            if_new("unpriced_turns", "unpriced_turns + 1", f"{status} = 'unknown'"),
        ]
    )


def insert(tx: Transaction, session_no: int, now: int, platform: str, audience_no: int, *values: object) -> bool:
    """Record the usage of a turn, as `get_values` returns it without the last; False if it was recorded before."""
    return tx.execute(_INSERT_VALUES, session_no, now, platform, audience_no, *values) > 0


def record_usage(tx: Transaction, session_id: str, usage: TurnUsage, now: int) -> bool:
    """Record the usage of a turn, once; return False if there is no such session."""
    session_id = parse_session_id(session_id)
    if not usage.has_usage:
        return _update_model(tx, session_id, usage)
    values = get_values(usage)
    if tx.execute(build_insert(3, "$2"), session_id, now, *values[:-1]):
        sql = f"UPDATE session SET {build_totals_update(2)} WHERE id = $1"
        return tx.execute(sql, session_id, *values[ROW_VALUE_COUNT:]) > 0
    return tx.fetch_one("SELECT 1 FROM session WHERE id = $1", session_id) is not None


class UsageSource(Protocol):
    """The turn and session that used something: a `TurnLease`, or the row of a call."""

    @property
    def turn_id(self) -> str | None: ...
    @property
    def session_no(self) -> int: ...
    @property
    def platform(self) -> str: ...
    @property
    def audience_no(self) -> int: ...


def record_orphan_usage(tx: Transaction, source: UsageSource, usage: TurnUsage, now: int) -> None:
    """Record what was used by a run that cannot end its turn, or beside turns: for a title, or to learn memories.

    The money is spent even if another run answers, or the turn was deleted with its session.
    """
    if not usage.has_usage:
        return
    orphan_id = f"{source.turn_id or new_turn_id()}.{secrets.token_hex(4)}"
    values = get_values(replace(usage, turn_id=orphan_id, last_prompt_tokens=None))
    insert(tx, source.session_no, now, source.platform, source.audience_no, *values[:-1])
    sql = f"UPDATE session SET {build_totals_update(2)} WHERE no = $1"
    tx.execute(sql, source.session_no, *values[ROW_VALUE_COUNT:])


def _update_model(tx: Transaction, session_id: str, usage: TurnUsage) -> bool:
    """Update the session's model and context size for a turn that used nothing."""
    sql = """UPDATE session SET model = COALESCE($2, model),
        provider = CASE WHEN $2 IS NULL THEN provider ELSE $3 END,
        last_prompt_tokens = COALESCE($4, last_prompt_tokens) WHERE id = $1"""
    return tx.execute(sql, session_id, usage.model, usage.provider, usage.last_prompt_tokens) > 0


def get_turn_usage(tx: Transaction, turn_id: str, session_id: str) -> TurnUsage:
    """Return the tokens that a turn used, summed over all models."""
    sums = ", ".join(f"CAST(COALESCE(SUM({name}), 0) AS BIGINT)" for name in TOKEN_COUNTERS)
    sql = f"SELECT {sums} FROM usage WHERE session_no = (SELECT no FROM session WHERE id = $2) AND turn_id = $1"
    [tokens] = tx.fetch_all(sql, turn_id, session_id)
    return TurnUsage(**dict(zip(TOKEN_COUNTERS, tokens, strict=True)))


_REPORT = Columns(
    UsageRow,
    without={"group", "label"},
    types=(),
    turns="COUNT(DISTINCT u.turn_id)",
    **{name: f"CAST(COALESCE(SUM(u.{name}), 0) AS BIGINT)" for name in TOKEN_COUNTERS},
    cost_nanos="CAST(SUM(u.cost_nanos) AS BIGINT)",
    unpriced_turns="COALESCE(SUM(CASE WHEN u.cost_nanos IS NULL THEN 1 ELSE 0 END), 0)",
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
    some = build_placeholders(len(audiences or ()), first=3) or "NULL"  # in no audience there is nothing
    audience_condition = "" if audiences is None else f"AND u.audience_no IN ({some})"
    source = f"FROM usage u WHERE u.created_at >= $1 AND u.created_at < $2 {audience_condition}"
    order = "1 DESC" if grouping is UsageGrouping.DAY else "cost_nanos DESC NULLS LAST, input_tokens DESC, 1"
    sums, params = f"{_REPORT.format_select()} {source}", (begin, end, *(audiences or ()))
    by_group = f"SELECT {_GROUP_COLUMNS[grouping]}, {sums} GROUP BY 1 ORDER BY {order} LIMIT {int(limit)}"
    rows = [_usage_from_row(row) for row in tx.fetch_all(by_group, *params)]
    (total,) = tx.fetch_all(f"SELECT NULL, {sums}", *params)
    labels = _load_labels(tx, grouping, [row.group for row in rows if row.group is not None])
    return UsageReport(
        [_add_label(row, grouping, labels) for row in rows],
        replace(_usage_from_row(total), label="total"),
    )


def _load_labels(tx: Transaction, grouping: UsageGrouping, groups: Sequence[str]) -> Mapping[str, str]:
    if grouping is UsageGrouping.PERSON:
        names = people.load_names(tx, map(PersonId, groups))
        return {str(person_id): name for person_id, name in names.items()}
    if grouping is not UsageGrouping.SESSION or not groups:
        return {}
    some = build_placeholders(len(groups))
    sql = f"SELECT id, COALESCE(title, auto_title, preview) FROM session WHERE id IN ({some})"
    return dict(tx.fetch_all(sql, *groups))


def _usage_from_row(row: Row) -> UsageRow:
    group, *columns = row
    return _REPORT.decode(columns, group=None if group is None else str(group))


def _add_label(usage_row: UsageRow, grouping: UsageGrouping, labels: Mapping[str, str]) -> UsageRow:
    group = usage_row.group
    if group is None:
        return replace(usage_row, label="deleted" if grouping is UsageGrouping.SESSION else "unknown")
    if grouping is UsageGrouping.DAY:
        day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=int(group))).date().isoformat()
        return replace(usage_row, group=day, label=day)
    return replace(usage_row, label=labels.get(group, "") or group or "unknown")


PERSON_DATA: Final = (
    PersonColumn(
        "usage", "audience_no", merge=Stays("belongs to an audience"), erase=ErasureStep.USAGE, count="usage_rows"
    ),
)
EXPORT: Final = ExportedTable(
    table="usage",
    fields=(
        *make_fields("turn_id! model! provider"),
        *make_fields("created_at!", FieldKind.TIME),
        *make_fields("input_tokens! output_tokens! cache_read_tokens! cache_write_tokens!", FieldKind.NUMBER),
        *make_fields("reasoning_tokens! cost_nanos", FieldKind.NUMBER),
        *make_fields("cost_status!", choices=CostStatus),
        *make_fields("cost_source platform base_url"),
    ),
    references={"audience": "t.audience_no"},
    order=("turn_id", "model"),  # of one session
)
# Of sessions that were deleted since.
ORPHAN_EXPORT: Final = replace(
    EXPORT,
    order=("created_at", "turn_id", "model", "session_no"),
    only="NOT EXISTS (SELECT 1 FROM session s WHERE s.no = t.session_no AND s.is_deleted = 0)",
)
