"""How far each person has read in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.ids import PersonId

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction


def mark_read(tx: Transaction, session_no: int, person_id: PersonId, seq: int, now: int) -> int:
    """Record that a person has read everything up to `seq`, and return how far they have read.

    The mark never moves back, nor past the end of the log.
    """
    row = tx.fetch_one(
        "INSERT INTO read_mark (session_no, person_id, read_seq, updated_at) SELECT no, $2,"
        " CASE WHEN last_seq < $3 THEN last_seq ELSE CAST($3 AS BIGINT) END, $4 FROM session WHERE no = $1"
        " ON CONFLICT (session_no, person_id) DO UPDATE SET"
        " read_seq = CASE WHEN excluded.read_seq > read_mark.read_seq THEN excluded.read_seq"
        " ELSE read_mark.read_seq END, updated_at = excluded.updated_at RETURNING read_seq",
        session_no,
        person_id,
        seq,
        now,
    )
    return int(row[0]) if row else 0


def move_from_end(tx: Transaction, session_no: int, last_seq: int) -> None:
    """Let people who had read everything before the event `last_seq` have read that event too."""
    tx.execute(
        "UPDATE read_mark SET read_seq = $2 WHERE session_no = $1 AND read_seq = $3", session_no, last_seq, last_seq - 1
    )


def get_read_seq(tx: Transaction, session_no: int, person_id: PersonId) -> int:
    """Return the last event that a person has read; 0 if they have read nothing yet."""
    row = tx.fetch_one("SELECT read_seq FROM read_mark WHERE session_no = $1 AND person_id = $2", session_no, person_id)
    return int(row[0]) if row else 0


def list_read_seqs(tx: Transaction, session_no: int) -> dict[PersonId, int]:
    """Return how far each person has read in a session."""
    rows = tx.fetch_all("SELECT person_id, read_seq FROM read_mark WHERE session_no = $1", session_no)
    return {PersonId(person_id): int(read_seq) for person_id, read_seq in rows}
