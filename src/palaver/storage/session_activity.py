"""Signs of life in a session: that somebody is there, and what has happened lately beside messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.storage.message_rows import EVENT, event_from_row

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.domain.events import Event, EventKind
    from palaver.storage.engines.base import Transaction

LATELY = 500  # lines of a log


def touch(tx: Transaction, session_no: int, now: int) -> None:
    """Somebody is there: the reset policy counts from now, as it does from a message."""
    tx.run("UPDATE session SET last_human_at = $2 WHERE no = $1", session_no, now)


def lately(tx: Transaction, session_no: int, kinds: Collection[EventKind], most: int) -> list[Event]:
    """What of these kinds has happened in the last lines of a log, newest first."""
    rows = tx.all(
        f"{EVENT} WHERE session_no = $1 AND kind <> 'message'"
        " AND seq > (SELECT last_seq FROM session WHERE no = $1) - $2 ORDER BY seq DESC",
        session_no,
        LATELY,
    )
    return [event_from_row(row) for row in rows if row[1] in kinds][:most]
