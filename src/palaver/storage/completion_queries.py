"""What the door for other programs reads of the store: what a turn used, and what a conversation says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.usage import TurnUsage
from palaver.storage import events, sessions

if TYPE_CHECKING:
    from palaver.domain.events import Event
    from palaver.storage.engines.base import Transaction


def used_by(tx: Transaction, turn_id: str, session_id: str) -> TurnUsage:
    """What a turn used, all models together."""
    row = tx.one(
        "SELECT CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT),"
        " CAST(COALESCE(SUM(cache_read_tokens), 0) AS BIGINT), CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT)"
        " FROM usage WHERE session_no = (SELECT no FROM session WHERE id = $2) AND turn_id = $1",
        turn_id,
        session_id,
    )
    given, said, cached, thought = row or (0, 0, 0, 0)
    return TurnUsage(input_tokens=given, output_tokens=said, cache_read_tokens=cached, reasoning_tokens=thought)


def said_in(tx: Transaction, session_id: str, most: int) -> list[Event] | None:
    """The visible messages of a conversation; None when there are more than `most`."""
    found = events.messages(tx, sessions.get(tx, session_id).no, limit=most + 1)
    return found if len(found) <= most else None
