"""Recent activity in a session: when a person was last there, and the latest events that are not messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.sessions.message_rows import SELECT_EVENT, event_from_row

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Event, EventKind


MAX_EVENTS_SEARCHED = 500  # from the end of the log


def mark_active(tx: Transaction, session_no: int, now: int) -> None:
    """Record that a person is there: the reset policy counts from now, as it does after a message."""
    tx.execute("UPDATE session SET last_human_at = $2 WHERE no = $1", session_no, now)


def list_recent_events(tx: Transaction, session_no: int, kinds: Collection[EventKind], limit: int) -> list[Event]:
    """Return events of these kinds from the end of the log, newest first."""
    rows = tx.fetch_all(
        f"{SELECT_EVENT} WHERE session_no = $1 AND kind <> 'message'"
        " AND seq > (SELECT last_seq FROM session WHERE no = $1) - $2 ORDER BY seq DESC",
        session_no,
        MAX_EVENTS_SEARCHED,
    )
    events = (event_from_row(row) for row in rows if row[1] in kinds)
    return [event for event in events if event.kind in kinds][:limit]


def has_waiting_proposal(tx: Transaction, session_no: int) -> bool:
    """Whether a person is being asked to confirm a job in this conversation."""
    return tx.fetch_one("SELECT 1 FROM job WHERE proposed_session_no = $1 LIMIT 1", session_no) is not None
