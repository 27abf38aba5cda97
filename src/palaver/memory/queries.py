"""Lists memories as a person sees them: with the author, and the other people who can see them.

Newest first, page by page. The cost of a page depends on what its reader can see, not on how much others have stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput
from palaver.core.ids import SessionId
from palaver.core.page import Page
from palaver.core.statements import build_placeholders
from palaver.core.text import is_storable
from palaver.memory.model import MemoryEntry, matches_query
from palaver.memory.table import memory_from_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.memory.model import MemoryOrigin

MAX_OTHER_NAMES = 10
_SEARCH_ROWS_PER_READ = 200
_AFTER_ALL = 2**62
_CURSOR = re.compile(r"([0-9]{1,18})\.(m_[0-9a-f]{1,32})")
_SELECT = """SELECT m.id, m.text, m.person_id, m.created_at, m.origin, p.name, m.audience_no, m.no, m.session_id
    FROM memory m LEFT JOIN person p ON p.id = m.person_id"""
# The first members of each audience, how many there are, and whether the audience is one person's own.
_SELECT_MEMBERS = """SELECT audience_no, id, name, member_count, is_own FROM (
    SELECT m.audience_no, p.id, p.name,
        COUNT(*) OVER (PARTITION BY m.audience_no) AS member_count,
        CASE WHEN EXISTS (SELECT 1 FROM person o WHERE o.audience_no = m.audience_no) THEN 1 ELSE 0 END AS is_own,
        ROW_NUMBER() OVER (PARTITION BY m.audience_no ORDER BY m.joined_at, p.name, p.id) AS place
    FROM audience_member m JOIN person p ON p.id = m.person_id WHERE m.audience_no IN ({audiences})
    ) AS member WHERE place <= {limit} ORDER BY audience_no, place"""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory as a person sees it, and the audience it belongs to."""

    entry: MemoryEntry
    audience_no: int


@dataclass(slots=True)
class _Audience:
    """The people who can see a memory beside its reader."""

    other_names: list[str]  # the first of them
    other_count: int
    shared: bool


def list_memories(
    tx: Transaction,
    audiences: Sequence[int],
    reader: PersonId,
    query: str,
    limit: int,
    cursor: str | None,
    *,
    origin: MemoryOrigin | None = None,
) -> Page[MemoryEntry]:
    """Return a page of the memories of these audiences, newest first; with a query or origin, those that match it."""
    before = _find_cursor(tx, audiences, cursor)
    rows_per_read = _SEARCH_ROWS_PER_READ if query.strip() or origin is not None else limit
    rows: list[Row] = []
    while len(rows) < limit and (batch := _read_before(tx, audiences, before, rows_per_read)):
        rows += [row for row in batch if origin in {None, row[4]} and matches_query(row[1], query)]
        before = batch[-1][7]
    del rows[limit:]
    entries = [memory_row.entry for memory_row in _make_memory_rows(tx, rows, reader)]
    return Page(entries, f"{rows[-1][3]}.{rows[-1][0]}" if len(rows) == limit else None)


def find_memory(tx: Transaction, audiences: Sequence[int], reader: PersonId, memory_id: str) -> MemoryRow | None:
    """Return a memory of these audiences by its id."""
    if not audiences or not is_storable(memory_id):
        return None
    rows = tx.fetch_all(
        f"{_SELECT} WHERE m.audience_no IN ({build_placeholders(len(audiences))}) AND m.id = ${len(audiences) + 1}",
        *audiences,
        memory_id,
    )
    return next(iter(_make_memory_rows(tx, rows, reader)), None)


def _find_cursor(tx: Transaction, audiences: Sequence[int], cursor: str | None) -> int:
    """Return the number of the last memory of the page before.

    A cursor contains its id, and its time in case it was deleted since: the number would tell how many memories others
    have.
    """
    if cursor is None:
        return _AFTER_ALL
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    if not audiences:
        return 0
    is_visible = f"audience_no IN ({build_placeholders(len(audiences))})"
    by_id = f"SELECT no FROM memory WHERE {is_visible} AND id = ${len(audiences) + 1}"
    by_time = f"SELECT MAX(no) + 1 FROM memory WHERE {is_visible} AND created_at <= ${len(audiences) + 1}"
    row = tx.fetch_one(by_id, *audiences, match[2]) or tx.fetch_one(by_time, *audiences, int(match[1]))
    return 0 if row is None or row[0] is None else int(row[0])


def _read_before(tx: Transaction, audiences: Sequence[int], before: int, limit: int) -> list[Row]:
    if not audiences:
        return []
    return tx.fetch_all(
        f"{_SELECT} WHERE m.audience_no IN ({build_placeholders(len(audiences))}) AND m.no < ${len(audiences) + 1}"
        f" ORDER BY m.no DESC LIMIT ${len(audiences) + 2}",
        *audiences,
        before,
        limit,
    )


def _make_memory_rows(tx: Transaction, rows: Sequence[Row], reader: PersonId) -> list[MemoryRow]:
    audiences = _load_audiences(tx, sorted({row[6] for row in rows}), reader)
    visible_ids = _list_visible_sessions(tx, sorted({row[8] for row in rows if row[8] is not None}), reader)
    return [MemoryRow(_make_entry(row, audiences[row[6]], visible_ids), row[6]) for row in rows]


def _make_entry(row: Row, audience: _Audience, visible_ids: set[SessionId]) -> MemoryEntry:
    return MemoryEntry(
        memory=memory_from_row(row),
        author_name=row[5],
        shared=audience.shared,
        other_names=tuple(audience.other_names[:MAX_OTHER_NAMES]),
        other_count=audience.other_count,
        session_id=SessionId(row[8]) if row[8] in visible_ids else None,
    )


def _list_visible_sessions(tx: Transaction, session_ids: Sequence[str], reader: PersonId) -> set[SessionId]:
    """List those of these sessions that still exist and that the reader may see."""
    if not session_ids:
        return set()
    rows = tx.fetch_all(
        f"SELECT s.id FROM session s WHERE s.id IN ({build_placeholders(len(session_ids))}) AND EXISTS"
        " (SELECT 1 FROM audience_member m WHERE m.audience_no = s.audience_no"
        f" AND m.person_id = ${len(session_ids) + 1})",
        *session_ids,
        reader,
    )
    return {SessionId(session_id) for (session_id,) in rows}


def _load_audiences(tx: Transaction, audience_nos: Sequence[int], reader: PersonId) -> dict[int, _Audience]:
    """Load the other members of these audiences; the reader is a member of each of them."""
    if not audience_nos:
        return {}
    audiences: dict[int, _Audience] = {}
    statement = _SELECT_MEMBERS.format(audiences=build_placeholders(len(audience_nos)), limit=MAX_OTHER_NAMES + 1)
    for audience_no, person_id, name, member_count, is_own in tx.fetch_all(statement, *audience_nos):
        audience = audiences.setdefault(audience_no, _Audience([], member_count - 1, shared=not is_own))
        if person_id != reader:
            audience.other_names.append(name)
    return audiences
