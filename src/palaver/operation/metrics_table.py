"""Reads for the metrics endpoint: the turns, deliveries and runs of jobs that ended in a period or are open, and usage.

All of it is read through indexes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.sessions.usage import TOKEN_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Row, Transaction


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

    def load(table: str, columns: str, rest: str = "") -> Sequence[Row]:
        has_ended = "ended_at IS NOT NULL AND ended_at > $1 AND ended_at <= $2"
        return tx.fetch_all(f"SELECT {columns} FROM {table} WHERE {has_ended} {rest}", after, until)

    return MetricsSnapshot(
        ended_turns=[
            EndedTurn(state, _measure_seconds(created_at, started_at), _measure_seconds(started_at, ended_at))
            for state, created_at, started_at, ended_at in load("turn", "state, created_at, started_at, ended_at")
        ],
        ended_deliveries=[
            EndedDelivery(state, max(0, micros) / _MICROS_PER_SECOND)
            for state, micros in load("delivery", "state, ended_at - created_at")
        ],
        ended_job_runs={
            state: int(count) for state, count in load("job_run", "state, SUM(slot_count)", "GROUP BY state")
        },
        model_usage=_load_model_usage(tx, after, until),
        open_turns=_count_by_state(tx, "turn", ("queued", "running")),
        open_deliveries=_count_by_state(tx, "delivery", ("pending", "sending")),
        open_job_runs=_count_by_state(tx, "job_run", ("queued", "running")),
    )


def _measure_seconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else max(0, end - start) / _MICROS_PER_SECOND


def _load_model_usage(tx: Transaction, after: int, until: int) -> list[ModelUsage]:
    sums = ", ".join(f"SUM({column})" for column in TOKEN_COUNTERS)
    sql = f"""SELECT model, {sums}, COALESCE(SUM(cost_nanos), 0), SUM(CASE WHEN cost_nanos IS NULL THEN 1 ELSE 0 END)
        FROM usage WHERE created_at > $1 AND created_at <= $2 GROUP BY model"""
    rows = tx.fetch_all(sql, after, until)
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
