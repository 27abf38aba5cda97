"""Reads for the metrics endpoint: the turns, deliveries and runs of jobs that ended in a period or are open, and usage.

All of it is read through indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.sessions import deletion_table as session_deletion, table as sessions
from palaver.sessions.usage import TOKEN_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction


_MICROS_PER_SECOND = 1e6


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that has ended; the seconds are None if it never started."""

    state: str
    wait_seconds: float | None
    run_seconds: float | None


@dataclass(frozen=True, slots=True)
class EndedDelivery:
    """A delivery that has ended, and how long it took."""

    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The usage of one model."""

    model: str
    tokens: Mapping[str, int]  # by kind
    cost_usd: Decimal  # of the turns whose price is known
    unpriced_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSnapshot:
    ended_turns: Sequence[EndedTurn]
    ended_deliveries: Sequence[EndedDelivery]
    ended_job_runs: Mapping[str, int]  # by state; slots that were missed together count one by one
    model_usage: Sequence[ModelUsage]
    open_turns: Mapping[str, int]  # by state
    open_deliveries: Mapping[str, int]  # by state
    open_job_runs: Mapping[str, int]  # by state


def load_metrics(tx: Transaction, after: int, until: int) -> MetricsSnapshot:
    """Return what ended later than `after` and not later than `until`, and what is open now."""
    return MetricsSnapshot(
        ended_turns=_load_ended_turns(tx, after, until),
        ended_deliveries=_load_ended_deliveries(tx, after, until),
        ended_job_runs=_count_ended_job_runs(tx, after, until),
        model_usage=_load_model_usage(tx, after, until),
        open_turns=_count_by_state(tx, "turn", ("queued", "running")),
        open_deliveries=_count_by_state(tx, "delivery", ("pending", "sending")),
        open_job_runs=_count_by_state(tx, "job_run", ("queued", "running")),
    )


def _load_ended_turns(tx: Transaction, after: int, until: int) -> list[EndedTurn]:
    rows = tx.fetch_all(
        "SELECT state, created_at, started_at, ended_at FROM turn WHERE ended_at IS NOT NULL AND ended_at > $1"
        " AND ended_at <= $2",
        after,
        until,
    )
    return [
        EndedTurn(
            state,
            None if started_at is None else max(0, started_at - created_at) / _MICROS_PER_SECOND,
            None if started_at is None else max(0, ended_at - started_at) / _MICROS_PER_SECOND,
        )
        for state, created_at, started_at, ended_at in rows
    ]


def _load_ended_deliveries(tx: Transaction, after: int, until: int) -> list[EndedDelivery]:
    rows = tx.fetch_all(
        "SELECT state, created_at, ended_at FROM delivery WHERE ended_at IS NOT NULL AND ended_at > $1"
        " AND ended_at <= $2",
        after,
        until,
    )
    return [
        EndedDelivery(state, max(0, ended_at - created_at) / _MICROS_PER_SECOND) for state, created_at, ended_at in rows
    ]


def _count_ended_job_runs(tx: Transaction, after: int, until: int) -> dict[str, int]:
    rows = tx.fetch_all(
        "SELECT state, SUM(slot_count) FROM job_run WHERE ended_at IS NOT NULL AND ended_at > $1 AND ended_at <= $2"
        " GROUP BY state",
        after,
        until,
    )
    return {state: int(count) for state, count in rows}


def _load_model_usage(tx: Transaction, after: int, until: int) -> list[ModelUsage]:
    sums = ", ".join(f"SUM({column})" for column in TOKEN_COUNTERS)
    rows = tx.fetch_all(
        f"SELECT model, {sums}, COALESCE(SUM(cost_nanos), 0), SUM(CASE WHEN cost_nanos IS NULL THEN 1 ELSE 0 END)"
        " FROM usage WHERE created_at > $1 AND created_at <= $2 GROUP BY model",
        after,
        until,
    )
    return [
        ModelUsage(
            model or "unknown",
            {name.removesuffix("_tokens"): int(count) for name, count in zip(TOKEN_COUNTERS, tokens, strict=True)},
            Decimal(nanos) / 1_000_000_000,
            int(unpriced),
        )
        for model, *tokens, nanos, unpriced in rows
    ]


def _count_by_state(tx: Transaction, table: str, states: tuple[str, str]) -> dict[str, int]:
    state_list = "', '".join(states)
    rows = tx.fetch_all(f"SELECT state, COUNT(*) FROM {table} WHERE state IN ('{state_list}') GROUP BY state")
    return dict.fromkeys(states, 0) | {state: int(count) for state, count in rows}


# ---- old conversations -----------------------------------------------------------------------------------

# Old conversations: finds those that a retention policy deletes, by their last activity, the oldest first.
#
# Always true: a conversation is deleted only if nothing happened in it since the given moment, judged by the newest of
# its times inside the transaction that deletes it, and only if nothing in it is pinned, runs, waits or is on its way.
# Bringing a conversation in from another program counts as activity, however old its messages are.

_ROW_BYTES: Final = 100  # of an entry of a log, besides its texts
# Lists are ordered by `active_at`; a quick answer moves only `last_message_at`, and reading along only `last_human_at`.
_LAST_ACTIVITY = (
    "CASE WHEN COALESCE(s.last_human_at, 0) > COALESCE(s.last_message_at, 0) THEN"
    " COALESCE(s.last_human_at, 0) ELSE COALESCE(s.last_message_at, 0) END"
)
_IS_UNUSED = f"""s.pinned_at IS NULL AND s.active_at < $1 AND {_LAST_ACTIVITY} < $1
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_no = s.no AND t.state IN ('queued', 'running'))
    AND NOT EXISTS (SELECT 1 FROM job j WHERE j.proposed_session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM job j WHERE j.origin_session_no = s.no AND j.state <> 'ended')
    AND NOT EXISTS (SELECT 1 FROM job_run r WHERE r.session_no = s.no AND r.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.session_no = s.no AND d.state IN ('pending', 'sending'))
    AND NOT EXISTS (SELECT 1 FROM memory_turn m WHERE m.session_no = s.no AND m.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM imported_item i WHERE i.session_id = s.id AND i.imported_at >= $1)"""
# Two ranges of two indexes: conversations that are archived are not exempt.
_IS_LISTED = {
    False: "s.active_at IS NOT NULL AND s.archived_at IS NULL",
    True: "s.active_at IS NOT NULL AND s.archived_at IS NOT NULL",
}


class Position(NamedTuple):
    """A conversation in the order of their activity."""

    active_at: int
    no: int


START: Final = Position(-(2**62), 0)


@dataclass(frozen=True, slots=True)
class OldSession:
    """A conversation that may be deleted."""

    position: Position
    id: str
    message_count: int

    @property
    def no(self) -> int:
        return self.position.no


def list_old(
    tx: Transaction, before: int, after: Position, limit: int, *, is_archived: bool, platform: str | None = None
) -> tuple[list[OldSession], Position | None]:
    """Return the next conversations without activity since `before` that may be deleted, the oldest first.

    Also returns where to go on; None at the end. It reads `limit` rows of the index, however many of them are exempt.
    """
    rows = tx.fetch_all(
        f"SELECT s.active_at, s.no, s.id, s.message_count, s.platform, CASE WHEN {_IS_UNUSED} THEN 1 ELSE 0 END"
        f" FROM session s WHERE {_IS_LISTED[is_archived]} AND s.active_at < $1 AND s.active_at >= $2"
        " AND (s.active_at > $2 OR s.no > $3) ORDER BY s.active_at, s.no LIMIT $4",
        before,
        *after,
        limit,
    )
    old = [
        OldSession(Position(active_at, no), session_id, count)
        for active_at, no, session_id, count, its_platform, is_unused in rows
        if is_unused and platform in (None, its_platform)
    ]
    return old, Position(rows[-1][0], rows[-1][1]) if len(rows) == limit else None


def has_old(tx: Transaction, before: int) -> bool:
    """Return whether there is a conversation without activity since a moment, exempt or not."""
    select = "SELECT 1 FROM session s WHERE {} AND s.active_at < $1 LIMIT 1"
    return any(tx.fetch_one(select.format(condition), before) is not None for condition in _IS_LISTED.values())


def delete_if_unused(tx: Transaction, session_no: int, before: int) -> bool:
    """Delete a conversation, unless something has happened in it meanwhile, or it is exempt."""
    session_row = sessions.find_by_no(tx, session_no, tx.for_update)
    if session_row is None:
        return False
    if tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $2 AND {_IS_UNUSED}", before, session_no) is None:
        return False
    session_deletion.delete(tx, session_row)
    return True


def measure_session(tx: Transaction, session_no: int) -> int:
    """Return about how many bytes the log of a conversation takes."""
    row = tx.fetch_one(
        "SELECT COUNT(*), COALESCE(SUM(LENGTH(COALESCE(content, '')) + LENGTH(COALESCE(body, ''))), 0) FROM event"
        " WHERE session_no = $1",
        session_no,
    )
    return 0 if row is None else int(row[0]) * _ROW_BYTES + int(row[1])


def measure_database(tx: Transaction) -> int | None:
    """Return how many bytes of the SQLite file are in use; None on PostgreSQL, whose files don't tell."""
    if tx.name != "sqlite":
        return None
    pages, free_pages, page_size = (
        int((tx.fetch_one(f"PRAGMA {name}") or (0,))[0]) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free_pages) * page_size
