"""Reads for the OpenAI-compatible API: the usage of a turn, and the messages of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.sessions import log_table as events, table as sessions
from palaver.sessions.usage import TurnUsage

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Event


def get_turn_usage(tx: Transaction, turn_id: str, session_id: str) -> TurnUsage:
    """Return what a turn used, summed over all models."""
    row = tx.fetch_one(
        "SELECT CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT),"
        " CAST(COALESCE(SUM(cache_read_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT)"
        " FROM usage WHERE session_no = (SELECT no FROM session WHERE id = $2) AND turn_id = $1",
        turn_id,
        session_id,
    )
    input_tokens, output_tokens, cache_read_tokens, reasoning_tokens = row or (0, 0, 0, 0)
    return TurnUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        reasoning_tokens=reasoning_tokens,
    )


def list_messages(tx: Transaction, session_id: str, max_messages: int) -> list[Event] | None:
    """Return the visible messages of a session; None if there are more than `max_messages`."""
    messages = events.list_messages(tx, sessions.get(tx, session_id).no, limit=max_messages + 1)
    return messages if len(messages) <= max_messages else None
