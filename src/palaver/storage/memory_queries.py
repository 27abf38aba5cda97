"""What is remembered, as those who know it see it: who asked for it, and among whom it is known.

Newest first, page by page. A page costs what its reader may know, however much others have remembered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput
from palaver.domain.memory import Known, has_words
from palaver.domain.session import Page
from palaver.domain.text import is_storable
from palaver.storage.memories import memory_from_row, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Row, Transaction

NAMED = 10  # of those who know something together
_AT_ONCE = 200  # memories looked through for words
_CURSOR = re.compile(r"[0-9]{1,18}")
_SELECT = """SELECT m.id, m.text, m.person_id, m.created_at, p.name, m.audience_no, m.no
    FROM memory m LEFT JOIN person p ON p.id = m.person_id"""
_CIRCLE = """SELECT audience_no, id, name, members, owned FROM (
    SELECT m.audience_no, p.id, p.name,
        COUNT(*) OVER (PARTITION BY m.audience_no) AS members,
        MAX(CASE WHEN p.audience_no = m.audience_no THEN 1 ELSE 0 END) OVER (PARTITION BY m.audience_no) AS owned,
        ROW_NUMBER() OVER (PARTITION BY m.audience_no ORDER BY m.since, p.name, p.id) AS place
    FROM audience_member m JOIN person p ON p.id = m.person_id WHERE m.audience_no IN ({audiences})
    ) AS member WHERE place <= {most} ORDER BY audience_no, place"""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that is known, and whose it is."""

    known: Known
    audience_no: int


@dataclass(slots=True)
class _Circle:
    """Those who know something together."""

    names: list[str]  # of the first of them, without the reader
    others: int
    shared: bool


def listed(
    tx: Transaction, audiences: Sequence[int], reader: PersonId, query: str, limit: int, cursor: str | None
) -> Page[Known]:
    """A page of what these audiences remember, newest first; with a query, of what has its words."""
    before = _place(cursor)
    rows: list[Row] = []
    while len(rows) < limit and (batch := _older(tx, audiences, before, _AT_ONCE if query.strip() else limit)):
        rows += [row for row in batch if has_words(row[1], query)]
        before = batch[-1][6]
    del rows[limit:]
    found = [entry.known for entry in _entries(tx, rows, reader)]
    return Page(found, str(rows[-1][6]) if len(rows) == limit else None)


def get(tx: Transaction, audiences: Sequence[int], reader: PersonId, memory_id: str) -> Entry | None:
    """Something that these audiences remember, by its id."""
    if not audiences or not is_storable(memory_id):
        return None
    rows = tx.all(
        f"{_SELECT} WHERE m.audience_no IN ({places(audiences)}) AND m.id = ${len(audiences) + 1}",
        *audiences,
        memory_id,
    )
    return next(iter(_entries(tx, rows, reader)), None)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 2**62
    if not _CURSOR.fullmatch(cursor):
        raise InvalidInput("cursor: this is not a cursor that a list has given")
    return int(cursor)


def _older(tx: Transaction, audiences: Sequence[int], before: int, limit: int) -> list[Row]:
    if not audiences:
        return []
    return tx.all(
        f"{_SELECT} WHERE m.audience_no IN ({places(audiences)}) AND m.no < ${len(audiences) + 1}"
        f" ORDER BY m.no DESC LIMIT ${len(audiences) + 2}",
        *audiences,
        before,
        limit,
    )


def _entries(tx: Transaction, rows: Sequence[Row], reader: PersonId) -> list[Entry]:
    circles = _circles(tx, sorted({row[5] for row in rows}), reader)
    return [_entry(row, circles[row[5]]) for row in rows]


def _entry(row: Row, circle: _Circle) -> Entry:
    known = Known(
        memory=memory_from_row(row),
        asked_by=row[4],
        shared=circle.shared,
        others=tuple(circle.names[:NAMED]),
        other_count=circle.others,
    )
    return Entry(known, row[5])


def _circles(tx: Transaction, audiences: Sequence[int], reader: PersonId) -> dict[int, _Circle]:
    """Those who are in each of these audiences, of all of which the reader is a member."""
    if not audiences:
        return {}
    circles: dict[int, _Circle] = {}
    statement = _CIRCLE.format(audiences=places(audiences), most=NAMED + 1)
    for audience_no, identity, name, members, owned in tx.all(statement, *audiences):
        circle = circles.setdefault(audience_no, _Circle([], members - 1, shared=not owned))
        if identity != reader:
            circle.names.append(name)
    return circles
