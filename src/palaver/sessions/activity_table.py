"""Recent activity in a session: when a person was last there, and the latest events that are not messages.

Automatic titles of sessions: the first words, set with the first message (`message_table.py`), later a model's title.

They are not unique and never change a title that a person chose. `auto_title_asked` is set before a model is asked, so
that it is asked at most once for a session, whatever happens to the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.titles import TitleSlot, parse_title_slot
from palaver.sessions import log_table as events
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message_table import SELECT_EVENT, EventColumns, event_from_row

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from palaver.core.engines.base import Transaction


MAX_EVENTS_SEARCHED = 500  # from the end of the log
_MAX_SEARCHED_SESSIONS = 1000  # of one audience, the newest first


def mark_active(tx: Transaction, session_no: int, now: int) -> None:
    """Record that a person is there: the reset policy counts from now, as it does after a message."""
    tx.execute("UPDATE session SET last_human_at = $2, expiry_base = $2 WHERE no = $1", session_no, now)


def list_recent_events(tx: Transaction, session_no: int, kinds: Collection[EventKind], limit: int) -> list[Event]:
    """Return events of these kinds from the end of the log, newest first."""
    sql = f"""{SELECT_EVENT} WHERE session_no = $1 AND kind <> 'message'
        AND seq > (SELECT last_seq FROM session WHERE no = $1) - $2 ORDER BY seq DESC"""
    rows = tx.fetch_all(sql, session_no, MAX_EVENTS_SEARCHED)
    wanted = (event_from_row(row) for row in map(EventColumns._make, rows) if row.kind in kinds)
    return [event for event in wanted if event.kind in kinds][:limit]  # without those that can't be read


def has_waiting_proposal(tx: Transaction, session_no: int) -> bool:
    """Return whether a person is being asked to confirm a job in this conversation."""
    return tx.fetch_one("SELECT 1 FROM job WHERE proposed_session_no = $1 LIMIT 1", session_no) is not None


_CAN_ASK = "auto_title_asked = 0 AND auto_title IS NOT NULL AND title IS NULL"


def can_ask_model(tx: Transaction, session_no: int) -> bool:
    """Return whether no model was asked for a title of this session yet, and no person chose one."""
    return tx.fetch_one(f"SELECT 1 FROM session WHERE no = $1 AND {_CAN_ASK}", session_no) is not None


def mark_model_asked(tx: Transaction, session_no: int) -> bool:
    """Record that a model is asked for a title; return False if none may be asked (any more)."""
    return tx.execute(f"UPDATE session SET auto_title_asked = 1 WHERE no = $1 AND {_CAN_ASK}", session_no) > 0


def set_model_title(tx: Transaction, session_no: int, title: str, now: int) -> None:
    """Replace the first words by a model's title; nothing changes for a session that has been deleted."""
    if tx.execute("UPDATE session SET auto_title = $2 WHERE no = $1", session_no, title):
        events.append_event(tx, session_no, EventKind.RENAMED, now, title=title, automatic=True)


def set_copied_title(tx: Transaction, session_no: int, title: str) -> None:
    """Set the automatic title of a copy, which keeps it."""
    tx.execute("UPDATE session SET auto_title = $2, auto_title_asked = 1 WHERE no = $1", session_no, title)


def find_newest(tx: Transaction, slot: TitleSlot, audiences: Sequence[int] | None, *, exact: bool) -> list[int]:
    """Return, for each audience, the number of the newest session without a chosen title that has this automatic title.

    Without `exact`, any number of the series matches. Only the newest sessions are searched, in these audiences (None:
    in all).
    """
    select = "SELECT no, audience_no, auto_title FROM session WHERE title IS NULL AND auto_title IS NOT NULL"
    newest_first = f"ORDER BY id DESC LIMIT {_MAX_SEARCHED_SESSIONS}"
    if audiences is None:
        rows = tx.fetch_all(f"{select} {newest_first}")
    else:
        batches = (tx.fetch_all(f"{select} AND audience_no = $1 {newest_first}", number) for number in audiences)
        rows = [row for batch in batches for row in batch]
    matches = sorted((no, audience_no) for no, audience_no, title in rows if _matches(title, slot, exact=exact))
    return list({audience_no: int(no) for no, audience_no in matches}.values())


def _matches(title: str, slot: TitleSlot, *, exact: bool) -> bool:
    own = parse_title_slot(title)
    return own.base == slot.base and (not exact or own.number == slot.number)
