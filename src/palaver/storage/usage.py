"""What turns used: one row for each turn and model, and the totals on the session.

The row's primary key makes counting a turn twice impossible: the second time nothing is added.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from palaver.domain.ids import known_session_id, new_turn_id

if TYPE_CHECKING:
    from palaver.domain.usage import TurnUsage
    from palaver.storage.engines.base import Transaction
    from palaver.storage.leases import Lease

_INSERT = (
    "INSERT INTO usage (session_no, turn_id, model, provider, at, input_tokens, output_tokens,"
    " cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_nanos, cost_status, cost_source, platform,"
    " audience_no)"
)

# How many values `values` gives.
WIDTH = 12

# Parameters: the session's number, now, the platform, the audience, then the turn's values.
_APART = f"{_INSERT} VALUES ($1, $5, COALESCE($6, ''), $7, $2, $8, $9, $10, $11, $12, $13, $14, $15, $3, $4)"


def values(usage: TurnUsage) -> tuple[object, ...]:
    """The usage of a turn in the order of `recorded` and `totals`."""
    return (
        usage.turn_id or new_turn_id(),
        usage.model,
        usage.provider,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        usage.nanos,
        usage.status.value,
        usage.cost_source,
        usage.last_prompt_tokens,
    )


@cache
def recorded(first: int, session_id: str, at: str) -> str:
    """The statement that stores the turn, once. Its values begin at parameter `first`."""
    turn, model, provider, *counters = (f"${first + i}" for i in range(WIDTH - 1))
    return (
        f"{_INSERT} SELECT no, {turn}, COALESCE({model}, ''), {provider}, {at}, {', '.join(counters[:5])},"
        f" CAST({counters[5]} AS BIGINT), {counters[6]}, {counters[7]}, platform, audience_no"
        f" FROM session WHERE id = {session_id}"
        " ON CONFLICT DO NOTHING"
    )


@cache
def totals(first: int, fresh: str) -> str:
    """The assignments that add the turn to the totals of its session where the condition `fresh` holds."""
    _, model, provider, tin, tout, read, write, thought, nanos, status, source, prompt = (
        f"${first + i}" for i in range(WIDTH)
    )
    sums = ", ".join(
        f"{column} = {column} + CASE WHEN {fresh} THEN {value} ELSE 0 END"
        for column, value in (
            ("input_tokens", tin),
            ("output_tokens", tout),
            ("cache_read_tokens", read),
            ("cache_write_tokens", write),
            ("reasoning_tokens", thought),
        )
    )
    latest = ", ".join(
        f"{column} = CASE WHEN {fresh} THEN COALESCE({value}, {column}) ELSE {column} END"
        for column, value in (
            ("model", model),
            ("provider", provider),
            ("cost_source", source),
            ("last_prompt_tokens", prompt),
        )
    )
    return (
        f"{sums}, {latest}, cost_nanos = CASE WHEN {fresh} AND {status} <> 'unknown'"
        f" THEN COALESCE(cost_nanos, 0) + CAST({nanos} AS BIGINT) ELSE cost_nanos END,"
        f" cost_status = CASE WHEN NOT {fresh} OR {status} IN ('unknown', cost_status) THEN cost_status"
        f" WHEN cost_status = 'unknown' THEN {status} ELSE 'estimated' END,"
        f" unpriced_turns = unpriced_turns + CASE WHEN {fresh} AND {status} = 'unknown' THEN 1 ELSE 0 END"
    )


def add(tx: Transaction, session_id: str, usage: TurnUsage, now: int) -> bool:
    """Count a turn; False when there is no such session. Counting it again changes nothing."""
    session_id = known_session_id(session_id)
    if not usage.counts:
        return _note_latest(tx, session_id, usage)
    turn, *rest = values(usage)
    fresh = tx.run(recorded(3, "$1", "$2"), session_id, now, turn, *rest[:-1])
    return tx.run(f"UPDATE session SET {totals(2, '$2 = 1')} WHERE id = $1", session_id, fresh, *rest) > 0


def add_apart(tx: Transaction, lease: Lease, usage: TurnUsage, now: int) -> None:
    """Count what a run used that cannot end its turn, beside what the turn's own run uses: that another run answers,
    or that the turn is gone with its session, makes nobody's bill smaller.
    """
    if not usage.counts:
        return
    turn_id = f"{lease.turn_id}.{secrets.token_hex(4)}"
    turn, *rest = values(replace(usage, turn_id=turn_id, last_prompt_tokens=None))
    tx.run(_APART, lease.session_no, now, lease.platform, lease.audience_no, turn, *rest[:-1])
    tx.run(f"UPDATE session SET {totals(2, '$2 = 1')} WHERE no = $1", lease.session_no, 1, *rest)


def _note_latest(tx: Transaction, session_id: str, usage: TurnUsage) -> bool:
    """Nothing was used: only what is known of the model and its context is brought up to date."""
    changed = tx.run(
        "UPDATE session SET model = COALESCE($2, model), provider = COALESCE($3, provider),"
        " last_prompt_tokens = COALESCE($4, last_prompt_tokens) WHERE id = $1",
        session_id,
        usage.model,
        usage.provider,
        usage.last_prompt_tokens,
    )
    return changed > 0
