"""Reads a log without what is hidden, and steps over hidden events however many they are.

Undone messages and versions that are not chosen stay in the log. `event.is_near_hidden` marks every event that is or
was hidden, and the events next to it. So the visible event before (or after) a hidden one is the nearest one with this
mark, which an index finds in one step: `event_near_hidden` has the visible ones only.

Always true: an event that is hidden, the event before it and the event after it have the mark. What hides events calls
`mark_near_hidden`. The mark stays when they are shown again; marks on other events do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Row, Transaction, fetch_value
from palaver.core.ids import PersonId
from palaver.people.person_data import ErasureStep, ExportedTable, FieldKind, PersonColumn, Stays, make_fields
from palaver.sessions.message_table import SELECT_EVENT, EventColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


BY_NO: Final = "session_no = $1"
BY_ID: Final = "session_no = (SELECT no FROM session WHERE id = $1)"  # a subquery, to save a round trip
MAX_ROWS_PER_READ: Final = 1000
_MAX_FIRST_ROWS: Final = 100  # more are read as long as nothing hidden is among them
_SPARE_ROWS: Final = 8
IS_NEAR_HIDDEN: Final = "near.is_near_hidden = 1 AND near.hidden_by IS NULL"
# A transcript has thousands of rows: by position, they are read in half the time that it takes to name their columns.
_SEQ: Final = EventColumns._fields.index("seq")
_HIDDEN_BY: Final = EventColumns._fields.index("hidden_by")


def mark_near_hidden(tx: Transaction, session_no: int, first_seq: int, last_seq: int) -> None:
    """Mark the events between two that are hidden, these two, and the ones next to them."""
    sql = """UPDATE event SET is_near_hidden = 1 WHERE session_no = $1 AND is_near_hidden IS NULL
        AND seq >= COALESCE((SELECT MAX(b.seq) FROM event b WHERE b.session_no = $1 AND b.seq < $2), $2)
        AND seq <= COALESCE((SELECT MIN(a.seq) FROM event a WHERE a.session_no = $1 AND a.seq > $3), $3)"""
    tx.execute(sql, session_no, first_seq, last_seq)


def iterate_backwards(
    tx: Transaction,
    session: object,
    before: int,
    expected: int,
    *,
    session_condition: str = BY_NO,
    first_seq: int = 0,
    select: str = SELECT_EVENT,
) -> Iterator[Row]:
    """Yield the visible events from before `before` back to `first_seq`, newest first, as rows of `EventColumns`."""
    is_before = f"near.{session_condition} AND near.seq < $2"
    previous = f"(SELECT MAX(near.seq) FROM event near WHERE {is_before} AND {IS_NEAR_HIDDEN})"

    def read(position: int, is_hidden: bool, row_limit: int) -> list[Row]:
        end = f"<= {previous}" if is_hidden else "< $2"
        sql = f"{select} WHERE {session_condition} AND seq {end} AND seq >= $3 ORDER BY seq DESC LIMIT $4"
        return tx.fetch_all(sql, session, position, first_seq, row_limit)

    return _iterate_visible(read, before, expected)


def iterate_forwards(tx: Transaction, session_no: int, after: int, expected: int) -> Iterator[Row]:
    """Yield the visible events after `after`, oldest first, as rows of `EventColumns`."""
    following = f"(SELECT MIN(near.seq) FROM event near WHERE near.{BY_NO} AND near.seq > $2 AND {IS_NEAR_HIDDEN})"

    def read(position: int, is_hidden: bool, row_limit: int) -> list[Row]:
        start = f">= {following}" if is_hidden else "> $2"
        sql = f"{SELECT_EVENT} WHERE {BY_NO} AND seq {start} ORDER BY seq LIMIT $3"
        return tx.fetch_all(sql, session_no, position, row_limit)

    return _iterate_visible(read, after, expected)


def _iterate_visible(read: Callable[[int, bool, int], list[Row]], position: int, expected: int) -> Iterator[Row]:
    """Yield visible events. `read` returns at most so many from a position on, which may be that of a hidden event.

    More are read at once as long as nothing is hidden; else about as much as was visible.
    """
    row_limit, is_hidden = min(expected + _SPARE_ROWS, _MAX_FIRST_ROWS), False
    while True:
        rows = read(position, is_hidden, row_limit)
        visible = [row for row in rows if row[_HIDDEN_BY] is None]
        yield from visible
        if len(rows) < row_limit:
            return
        position, is_hidden = rows[-1][_SEQ], rows[-1][_HIDDEN_BY] is not None
        row_limit = min(len(visible) + _SPARE_ROWS if is_hidden else row_limit * 2, MAX_ROWS_PER_READ)


def mark_read(tx: Transaction, session_no: int, person_id: PersonId, seq: int, now: int) -> int:
    """Record that a person has read everything up to `seq`, and return how far they have read.

    The mark never moves back, nor past the end of the log.
    """
    sql = """INSERT INTO read_mark (session_no, person_id, read_seq, updated_at) SELECT no, $2,
        CASE WHEN last_seq < $3 THEN last_seq ELSE CAST($3 AS BIGINT) END, $4 FROM session WHERE no = $1
        ON CONFLICT (session_no, person_id) DO UPDATE SET
        read_seq = CASE WHEN excluded.read_seq > read_mark.read_seq THEN excluded.read_seq
        ELSE read_mark.read_seq END, updated_at = excluded.updated_at RETURNING read_seq"""
    read_seq: int | None = fetch_value(tx, sql, session_no, person_id, seq, now)
    return read_seq or 0


def move_from_end(tx: Transaction, session_no: int, last_seq: int) -> None:
    """Let people who had read everything before the event `last_seq` have read that event too."""
    tx.execute(
        "UPDATE read_mark SET read_seq = $2 WHERE session_no = $1 AND read_seq = $3", session_no, last_seq, last_seq - 1
    )


def get_read_seq(tx: Transaction, session_no: int, person_id: PersonId) -> int:
    """Return the last event that a person has read; 0 if they have read nothing yet."""
    sql = "SELECT read_seq FROM read_mark WHERE session_no = $1 AND person_id = $2"
    return fetch_value(tx, sql, session_no, person_id) or 0


def list_read_seqs(tx: Transaction, session_no: int) -> dict[PersonId, int]:
    rows = tx.fetch_all("SELECT person_id, read_seq FROM read_mark WHERE session_no = $1", session_no)
    return {PersonId(person_id): int(read_seq) for person_id, read_seq in rows}


PERSON_DATA: Final = (
    PersonColumn(
        "read_mark",
        merge=Stays("the one who has read further counts: see `move_read_marks`"),
        erase=ErasureStep.READ_MARKS,
        batch_key="session_no, person_id",
        count="read_marks",
    ),
)
EXPORT: Final = ExportedTable(
    table="read_mark",
    fields=(*make_fields("read_seq!", FieldKind.NUMBER), *make_fields("updated_at!", FieldKind.TIME)),
    references={"person": "t.person_id"},
    order=("person_id",),
)
