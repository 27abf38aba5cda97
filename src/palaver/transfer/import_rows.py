"""Writes whole rows of an import: sessions with their log, and everything else that an export has.

A long session is written by several transactions. Until the last one, `finish_session`, it has no `active_at` and no
title, so that no list, search or lane shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.core.columns import update_row
from palaver.core.engines.base import Transaction, build_placeholders, fetch_number, fetch_value, list_columns
from palaver.core.titles import parse_title_slot
from palaver.people import table as people
from palaver.sessions import log_table as events, table as sessions, versions_table as versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.transfer.report import ImportReport


class EventRow(NamedTuple):
    """An event that has its number already."""

    seq: int
    kind: str
    created_at: int
    role: str | None
    content: str | None
    body: str | None
    person_id: str | None
    platform_message_id: str | None
    hidden_by: int | None
    edited_by: int | None

    @property
    def size(self) -> int:
        """The characters of its texts."""
        return len(self.content or "") + len(self.body or "")


_INSERT_EVENT = (
    f"INSERT INTO event (session_no, {list_columns(EventRow)}, version_of, is_near_hidden)"
    f" VALUES ({build_placeholders(len(EventRow._fields) + 3)})"
)


def insert_row(tx: Transaction, table: str, columns: Mapping[str, object], returning: str = "1") -> Any:
    return fetch_value(tx, f"{_build_insert(table, columns)} RETURNING {returning}", *columns.values())


def insert_row_if_new(tx: Transaction, table: str, columns: Mapping[str, object]) -> bool:
    return bool(tx.execute(f"{_build_insert(table, columns)} ON CONFLICT DO NOTHING", *columns.values()))


def _build_insert(table: str, columns: Mapping[str, object]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({build_placeholders(len(columns))})"


def find_value(tx: Transaction, table: str, wanted: str, keys: Mapping[str, object]) -> Any:
    """Return one column of the row with these values; None if there is none."""
    condition = " AND ".join(f"{name} = ${number}" for number, name in enumerate(keys, 1))
    return fetch_value(tx, f"SELECT {wanted} FROM {table} WHERE {condition} LIMIT 1", *keys.values())


def find_session_no(tx: Transaction, session_id: str | None) -> int | None:
    return None if session_id is None else find_value(tx, "session", "no", {"id": session_id})


def start_session(tx: Transaction, columns: Mapping[str, object]) -> int:
    """Insert a session that no list shows yet, and return its number.

    Its parent comes later, because inserting a fork would give it the files of its parent.
    """
    hidden = {"active_at", "title", "title_base", "title_number", "parent_no", "message_count", "compaction_seq"}
    shown = {name: value for name, value in columns.items() if name not in hidden}
    return int(insert_row(tx, "session", shown | {"last_seq": 0}, "no"))


def append_events(tx: Transaction, session_no: int, rows: Sequence[EventRow]) -> None:
    if rows:
        # The first and the last row are always marked as near a hidden one, for the rows before and after them.
        hidden = [True, *(row.hidden_by is not None for row in rows), True]
        marks = (1 if any(hidden[index : index + 3]) else None for index in range(len(rows)))
        groups = (versions.read_group(row.kind, row.body) for row in rows)
        tx.execute_many(
            _INSERT_EVENT,
            [(session_no, *row, group, mark) for row, group, mark in zip(rows, groups, marks, strict=True)],
        )
        tx.execute("UPDATE session SET last_seq = $2 WHERE no = $1", session_no, rows[-1].seq)


def update_session(tx: Transaction, session_no: int, columns: Mapping[str, object]) -> None:
    update_row(tx, "session", "no", session_no, columns)


def set_free_title(
    tx: Transaction, session_no: int, title: str, report: ImportReport, *, is_own_format: bool = False
) -> str:
    """Give a session a title, with the next number if its owner has the title already; return it.

    Two people with the same title can be merged into one. So an export of Palaver may have a title twice, but not twice
    for one audience.
    """
    row = sessions.get_by_no(tx, session_no)
    audiences = [row.audience_no]
    if not is_own_format:
        audiences = people.list_title_audiences(tx, row.audience_no, shared=row.session.shared)
    same = sessions.list_by_title(tx, parse_title_slot(title), audiences, exact=True)
    is_free = all(other.no == row.no for other in same)
    free = title if is_free else sessions.find_free_title(tx, row, title)
    slot = parse_title_slot(free)
    update_session(tx, session_no, {"title": free, "title_base": slot.base, "title_number": slot.number})
    if free != title:
        report.notes.add(f"The title “{title}” is taken here: the conversation is now “{free}”.")
    return free


def repair_session(tx: Transaction, session_no: int) -> None:
    """Make the counters of a session match its log, of which entries are missing.

    The last entry becomes visible: only a later one can have hidden it.
    """
    sql = """UPDATE event SET hidden_by = NULL WHERE session_no = $1
        AND seq = (SELECT MAX(e.seq) FROM event e WHERE e.session_no = $1)"""
    tx.execute(sql, session_no)
    update_session(tx, session_no, {"message_count": 0})
    sql = "SELECT COUNT(*) FROM event WHERE session_no = $1 AND kind = 'message' AND hidden_by IS NULL"
    events.update_counters(tx, session_no, fetch_number(tx, sql, session_no))
    for column in ("compaction_seq", "redo_seq"):
        sql = f"""UPDATE session SET {column} = NULL WHERE no = $1 AND {column} IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM event e WHERE e.session_no = $1 AND e.seq = session.{column})"""
        tx.execute(sql, session_no)


def find_shared_audience(tx: Transaction, key: str) -> int | None:
    """Return the audience of a place that several people share: of its lane, or of an earlier session there."""
    shared: dict[str, object] = {"key": key, "shared": 1}
    no: int | None = find_value(tx, "lane", "audience_no", shared)
    if no is None:
        no = find_value(tx, "session", "audience_no", shared)
    return no


def is_first_contact(tx: Transaction, audience_no: int) -> bool:
    """Return whether an audience has no session with messages yet."""
    sql = "SELECT 1 FROM session WHERE audience_no = $1 AND active_at IS NOT NULL LIMIT 1"
    return tx.fetch_one(sql, audience_no) is None


def find_last_seq_if_unchanged(tx: Transaction, session_no: int, seq: int) -> int | None:
    """Return the last event; None if the conversation has changed after one, by a message, an undo, an edit or so."""
    sql = """SELECT last_seq FROM session WHERE no = $1 AND NOT EXISTS (SELECT 1 FROM event e WHERE e.session_no = $1
        AND e.seq > $2 AND e.kind IN ('message', 'undone', 'redone', 'rewritten', 'version_started',
        'version_chosen', 'message_edited', 'message_deleted', 'compacted', 'compaction_undone', 'turn_failed',
        'turn_interrupted'))"""
    return fetch_value(tx, sql, session_no, seq)


def find_lane_session(tx: Transaction, key: str) -> tuple[int | None, bool]:
    sql = f"""SELECT l.session_no, s.active_at FROM lane l LEFT JOIN session s ON s.no = l.session_no WHERE l.key = $1
        {tx.for_update if tx.name == "sqlite" else "FOR UPDATE OF l"}"""
    row = tx.fetch_one(sql, key)
    session_no, active_at = row or (None, None)
    return session_no, active_at is not None


def list_owner_ids(tx: Transaction) -> list[str]:
    return [person_id for (person_id,) in tx.fetch_all("SELECT id FROM person WHERE role = 'owner'")]


def find_free_usage_no(tx: Transaction) -> int:
    """Return a session number for the usage of sessions that no longer exist, which no session ever gets."""
    return min(fetch_number(tx, "SELECT MIN(session_no) FROM usage"), 0) - 1
