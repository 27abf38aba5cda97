"""What has ended between two moments, and what is open now: read through indexes, for whoever counts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from palaver.domain.usage import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.storage.engines.base import Transaction

_SECOND = 1e6


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that has ended; seconds are None where it never began."""

    state: str
    waited: float | None
    ran: float | None


@dataclass(frozen=True, slots=True)
class EndedDelivery:
    """A delivery that has ended, and how long that took."""

    state: str
    took: float


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of one model."""

    model: str
    tokens: Mapping[str, int]  # by kind
    cost: Decimal  # US dollars, of what is known
    unpriced: int  # turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What has ended, and what is open."""

    turns: Sequence[EndedTurn]
    deliveries: Sequence[EndedDelivery]
    used: Sequence[Used]
    open_turns: Mapping[str, int]
    open_deliveries: Mapping[str, int]


def between(tx: Transaction, after: int, until: int) -> Counted:
    """What has ended after one moment and not after another."""
    return Counted(
        turns=_turns(tx, after, until),
        deliveries=_deliveries(tx, after, until),
        used=_used(tx, after, until),
        open_turns=_open(tx, "turn", ("queued", "running")),
        open_deliveries=_open(tx, "delivery", ("pending", "sending")),
    )


def _turns(tx: Transaction, after: int, until: int) -> list[EndedTurn]:
    rows = tx.all(
        "SELECT state, created_at, started_at, ended_at FROM turn WHERE ended_at IS NOT NULL AND ended_at > $1"
        " AND ended_at <= $2",
        after,
        until,
    )
    return [
        EndedTurn(
            state,
            None if started is None else max(0, started - created) / _SECOND,
            None if started is None else max(0, ended - started) / _SECOND,
        )
        for state, created, started, ended in rows
    ]


def _deliveries(tx: Transaction, after: int, until: int) -> list[EndedDelivery]:
    rows = tx.all(
        "SELECT state, created_at, ended_at FROM delivery WHERE ended_at IS NOT NULL AND ended_at > $1"
        " AND ended_at <= $2",
        after,
        until,
    )
    return [EndedDelivery(state, max(0, ended - created) / _SECOND) for state, created, ended in rows]


def _used(tx: Transaction, after: int, until: int) -> list[Used]:
    sums = ", ".join(f"SUM({column})" for column in COUNTERS)
    rows = tx.all(
        f"SELECT model, {sums}, COALESCE(SUM(cost_nanos), 0), SUM(CASE WHEN cost_nanos IS NULL THEN 1 ELSE 0 END)"
        " FROM usage WHERE at > $1 AND at <= $2 GROUP BY model",
        after,
        until,
    )
    return [
        Used(
            row[0] or "unknown",
            {name.removesuffix("_tokens"): int(count) for name, count in zip(COUNTERS, row[1:6], strict=True)},
            Decimal(row[6]) / 1_000_000_000,
            int(row[7]),
        )
        for row in rows
    ]


def _open(tx: Transaction, table: str, states: tuple[str, str]) -> dict[str, int]:
    both = "', '".join(states)
    rows = tx.all(f"SELECT state, COUNT(*) FROM {table} WHERE state IN ('{both}') GROUP BY state")
    return dict.fromkeys(states, 0) | {state: int(count) for state, count in rows}
