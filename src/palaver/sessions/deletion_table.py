"""Deletes sessions: a short one at once, a long one in pieces, so that no other writer waits for long.

A long session first disappears, in one short transaction: it loses its id, its title and its place in every list and
lane, its shared links and what is open in it end, and it moves to an audience without members. So nothing that looks
for sessions finds it, and `is_deleted` keeps readers that go by numbers from it. Then its rows are deleted piece by
piece. A process that dies leaves the rest to the cleanup of any server.

Always true: a reader sees a session whole or not at all. Its usage stays, and deliveries of other sessions continue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, build_placeholders, fetch_value
from palaver.people.person_data import EraseAt, PersonColumn, Stays
from palaver.sessions import delivery_queries

if TYPE_CHECKING:
    from palaver.sessions.table import SessionRow

MAX_SHORT_ROWS: Final = 60  # entries of a session that is deleted at once
ROWS_PER_PIECE: Final = 300  # entries of a log, turns and deliveries together
_EVENTS_PER_STATEMENT: Final = 100
# What must be gone at once, because a reader gets there without the session, or because it would still be done.
_ROWS_TO_DELETE: Final = (
    *((table, "session_no = $1") for table in ("share", "push_message", "memory_turn", "memory_block", "read_mark")),
    ("delivery", "session_no = $1 AND state IN ('pending', 'sending')"),
    ("turn", "session_no = $1 AND state IN ('queued', 'running')"),
    ("lane_move", "from_session_no = $1"),
    ("lane_move", "to_session_no = $1"),
)
_COLUMNS_TO_CLEAR: Final = (
    ("lane", "session_no"),
    ("session", "parent_no"),
    ("job", "proposed_session_no"),
    ("job_run", "session_no"),
)


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """The rows that a deletion has taken, or will take with its pieces."""

    messages: int  # those that people saw
    deliveries: int
    rows: int  # entries of the log in this transaction, to do only so many in one


def delete(tx: Transaction, session_row: SessionRow) -> DeletedRows:
    """Delete a session, or let it disappear if it is long. A later write to it finds no session."""
    no = session_row.no
    lock = f"SELECT last_seq FROM session WHERE no = $1 AND is_deleted = 0 {tx.for_update}"  # others can't add to it
    last_seq: int | None = fetch_value(tx, lock, no)
    if last_seq is None:  # another process was faster
        return DeletedRows(0, 0, 0)
    delivery_count = fetch_value(tx, "SELECT COUNT(*) FROM delivery WHERE session_no = $1", no) or 0
    addresses = delivery_queries.lock_open_addresses(tx, no)
    if _is_short(tx, no):
        if tx.name == "sqlite":  # in PostgreSQL the search rows are deleted by a foreign key
            tx.execute("DELETE FROM search WHERE rowid IN (SELECT no FROM event WHERE session_no = $1)", no)
        tx.execute("DELETE FROM session WHERE no = $1", no)
    else:
        _hide(tx, no)
    delivery_queries.make_next_due(tx, addresses)
    return DeletedRows(session_row.session.message_count, delivery_count, min(last_seq, MAX_SHORT_ROWS))


def find_hidden(tx: Transaction) -> int | None:
    """Return the number of a session that has disappeared and still has rows; None if there is none."""
    return fetch_value(tx, "SELECT MIN(no) FROM session WHERE is_deleted = 1")


def delete_piece(tx: Transaction, session_no: int) -> None:
    """Delete the next rows of a session that has disappeared; when none are left, the session."""
    lock = f"SELECT audience_no FROM session WHERE no = $1 AND is_deleted = 1 {tx.for_update}"
    audience_no: int | None = fetch_value(tx, lock, session_no)
    if audience_no is None:  # another process was faster
        return
    left = ROWS_PER_PIECE
    for table, key in (("delivery", "no"), ("turn", "no"), ("attachment_use", "attachment_no")):
        oldest = f"SELECT {key} FROM {table} WHERE session_no = $1 ORDER BY {key} LIMIT $2"
        left -= tx.execute(f"DELETE FROM {table} WHERE session_no = $1 AND {key} IN ({oldest})", session_no, left)
        if left == 0:
            return
    left -= _delete_events(tx, session_no, left)
    if left == ROWS_PER_PIECE:
        tx.execute("DELETE FROM session WHERE no = $1", session_no)
        tx.execute("DELETE FROM audience WHERE no = $1", audience_no)


def _is_short(tx: Transaction, session_no: int) -> bool:
    more = "EXISTS (SELECT 1 FROM {} WHERE session_no = $1 LIMIT 1 OFFSET $2)"
    is_short = f"last_seq <= $2 AND NOT {more.format('turn')} AND NOT {more.format('delivery')}"
    sql = f"SELECT 1 FROM session WHERE no = $1 AND {is_short} AND NOT {more.format('attachment_use')}"
    return tx.fetch_one(sql, session_no, MAX_SHORT_ROWS) is not None


def _hide(tx: Transaction, session_no: int) -> None:
    """Let a session disappear: what is left of it are rows that nothing finds."""
    for table, rows in _ROWS_TO_DELETE:
        tx.execute(f"DELETE FROM {table} WHERE {rows}", session_no)
    for table, column in _COLUMNS_TO_CLEAR:
        tx.execute(f"UPDATE {table} SET {column} = NULL WHERE {column} = $1", session_no)
    audience_no = fetch_value(
        tx, "INSERT INTO audience (created_at) SELECT created_at FROM session WHERE no = $1 RETURNING no", session_no
    )
    sql = """UPDATE session SET is_deleted = 1, id = $2, audience_no = $3, key = $2, source = '{}', title = NULL,
        title_base = NULL, title_number = NULL, auto_title = NULL, preview = '', project_no = NULL, parent_no = NULL,
        active_at = NULL, pinned_at = NULL, archived_at = NULL, ended_at = COALESCE(ended_at, created_at),
        end_reason = COALESCE(end_reason, 'manual'), indexed_seq = last_seq, unindexed = 0, workspace = NULL
        WHERE no = $1"""
    tx.execute(sql, session_no, f"deleted-{session_no}", audience_no)


def _delete_events(tx: Transaction, session_no: int, limit: int) -> int:
    rows = tx.fetch_all("SELECT no FROM event WHERE session_no = $1 ORDER BY seq LIMIT $2", session_no, limit)
    for start in range(0, len(rows), _EVENTS_PER_STATEMENT):
        nos = [no for (no,) in rows[start : start + _EVENTS_PER_STATEMENT]]
        some = build_placeholders(len(nos))
        if tx.name == "sqlite":
            tx.execute(f"DELETE FROM search WHERE rowid IN ({some})", *nos)
        tx.execute(f"DELETE FROM event WHERE no IN ({some})", *nos)
    return len(rows)


PERSON_DATA: Final = (
    PersonColumn("deleted_session", "audience_no", merge=Stays("belongs to an audience"), erase=EraseAt.END),
)
