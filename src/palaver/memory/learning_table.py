"""Memory turns: the queue of conversations that a model looks through once, to remember facts.

    queued → running → done | failed

Always true: a row goes forward only, so it never runs twice; two rows of a session never cover the same message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.engines.base import Transaction, fetch_number, fetch_value
from palaver.core.ids import PersonId
from palaver.memory.model import MemoryTurnKind
from palaver.people.person_data import EraseAt, Follows, PersonColumn

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_AUTHORS = 20
_FORGOTTEN_ERROR = "A memory from this conversation was forgotten."
KEEP_MICROS = 30 * 24 * 3600 * 1_000_000  # earlier memory turns of a session, after they have ended


class MemoryTurn(NamedTuple):
    """A memory turn that a process has claimed."""

    session_no: int
    up_to_seq: int
    person_id: PersonId
    owner: str


def find_unread_messages(
    tx: Transaction, session_no: int, up_to: int
) -> tuple[int, tuple[PersonId | None, ...]] | None:
    """Find what people wrote up to a seq since the last memory turn; None for nothing.

    Returns the last seq, and the authors of the newest messages, the newest first, each once.
    """
    sql = f"""SELECT seq, person_id FROM event WHERE session_no = $1 AND seq > $2 AND seq <= $3 AND kind = 'message'
        AND role = 'user' AND hidden_by IS NULL ORDER BY seq DESC LIMIT {_MAX_AUTHORS}"""
    rows = tx.fetch_all(sql, session_no, find_covered_seq(tx, session_no, up_to + 1), up_to)
    if not rows:
        return None
    author_ids = dict.fromkeys(None if author is None else PersonId(author) for _, author in rows)
    return rows[0][0], tuple(author_ids)


def find_covered_seq(tx: Transaction, session_no: int, before: int) -> int:
    """Return up to which seq the memory turns of a session before this one have read it."""
    statement = "SELECT MAX(up_to_seq) FROM memory_turn WHERE session_no = $1 AND up_to_seq < $2"
    return fetch_number(tx, statement, session_no, before)


def find_copied_seq(tx: Transaction, session_no: int) -> int:
    """Return up to which seq the messages of a fork are copies of another session's."""
    statement = "SELECT MAX(seq) FROM event WHERE session_no = $1 AND kind = 'started'"
    return fetch_number(tx, statement, session_no)


def find_audience_person(tx: Transaction, audience_no: int) -> PersonId | None:
    """Return the person whose own audience this is, or who has taken it over."""
    sql = """SELECT p.id FROM audience_member m JOIN person p ON p.id = m.person_id WHERE m.audience_no = $1
        ORDER BY CASE WHEN p.audience_no = $1 THEN 0 ELSE 1 END, m.joined_at LIMIT 1"""
    person_id: PersonId | None = fetch_value(tx, sql, audience_no)
    return person_id


def queue(
    tx: Transaction, session_no: int, up_to_seq: int, person_id: PersonId, kind: MemoryTurnKind, now: int
) -> None:
    """Queue a memory turn, unless there is one up to the same message."""
    sql = """INSERT INTO memory_turn (session_no, up_to_seq, person_id, kind, state, created_at)
        VALUES ($1, $2, $3, $4, 'queued', $5) ON CONFLICT DO NOTHING"""
    tx.execute(sql, session_no, up_to_seq, person_id, kind.value, now)
    sql = "DELETE FROM memory_turn WHERE session_no = $1 AND up_to_seq < $2 AND ended_at < $3"
    tx.execute(  # the last one stays: it says how far the session was read
        sql, session_no, up_to_seq, now - KEEP_MICROS
    )


def mark_read(tx: Transaction, session_id: str, now: int) -> None:
    """Keep memory turns from what was written in a session until now, also one that is queued or running."""
    sql = """UPDATE memory_turn SET state = 'failed', error = $2, ended_at = $3, lease_until = NULL
        WHERE session_no = (SELECT no FROM session WHERE id = $1) AND ended_at IS NULL"""
    tx.execute(sql, session_id, _FORGOTTEN_ERROR, now)
    sql = """INSERT INTO memory_turn (session_no, up_to_seq, person_id, kind, state, created_at, ended_at)
        SELECT no, last_seq, '', $2, 'done', $3, $3 FROM session WHERE id = $1 ON CONFLICT DO NOTHING"""
    tx.execute(sql, session_id, MemoryTurnKind.FORGOTTEN.value, now)


def has_queued(tx: Transaction) -> bool:
    return tx.fetch_one("SELECT 1 FROM memory_turn WHERE ended_at IS NULL AND state = 'queued' LIMIT 1") is not None


def claim_next(tx: Transaction, owner: str, until: int) -> MemoryTurn | None:
    """Claim the oldest memory turn that waits; None if there is none, or another process was faster."""
    sql = """UPDATE memory_turn SET state = 'running', lease_owner = $1, lease_until = $2 WHERE state = 'queued'
        AND (session_no, up_to_seq) = (SELECT session_no, up_to_seq FROM memory_turn WHERE ended_at IS NULL
        AND state = 'queued' ORDER BY created_at, session_no LIMIT 1)
        RETURNING session_no, up_to_seq, person_id, lease_owner"""
    row = tx.fetch_one(sql, owner, until)
    return None if row is None else MemoryTurn(*row)


def end(tx: Transaction, turn: MemoryTurn, error: str | None, now: int) -> bool:
    """End a memory turn that this process runs; False if it has ended, or was deleted with its session."""
    sql = """UPDATE memory_turn SET state = $4, error = $5, ended_at = $6, lease_until = NULL
        WHERE session_no = $1 AND up_to_seq = $2 AND state = 'running' AND lease_owner = $3"""
    return bool(
        tx.execute(sql, turn.session_no, turn.up_to_seq, turn.owner, "done" if error is None else "failed", error, now)
    )


def list_orphans(tx: Transaction, now: int, is_owner_dead: Callable[[str], bool]) -> list[MemoryTurn]:
    """List the memory turns of dead processes; none of them runs again."""
    sql = """SELECT session_no, up_to_seq, person_id, lease_owner, lease_until FROM memory_turn
        WHERE ended_at IS NULL AND state = 'running' ORDER BY created_at"""
    rows = tx.fetch_all(sql)
    turns = [(MemoryTurn(*turn), until) for *turn, until in rows]
    return [turn for turn, until in turns if until <= now or is_owner_dead(turn.owner)]


PERSON_DATA: Final = (
    PersonColumn("memory_turn", merge=Follows("ended_at IS NULL"), erase=EraseAt.START, erase_only="ended_at IS NULL"),
)
