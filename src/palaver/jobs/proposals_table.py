"""Jobs, and changes of jobs, that wait for the confirmation of their person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.jobs.model import JobState

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.turn_leases import TurnLease

_EXPIRED = "proposed_at IS NOT NULL AND proposed_at < $1"


def mark_proposed(tx: Transaction, job_no: int, session_no: int, now: int) -> None:
    """Record in which conversation the person is asked, and since when."""
    tx.execute("UPDATE job SET proposed_at = $3, proposed_session_no = $2 WHERE no = $1", job_no, session_no, now)


def find_session_no(tx: Transaction, job_no: int) -> int | None:
    """Return the conversation in which the person is asked to confirm a job or its change."""
    row = tx.fetch_one("SELECT proposed_session_no FROM job WHERE no = $1 AND proposed_at IS NOT NULL", job_no)
    return None if row is None else row[0]


def was_proposed_in_turn(tx: Transaction, job_no: int, lease: TurnLease) -> bool:
    """Whether the person was asked in this turn already: by an attempt whose worker died, or by an earlier call."""
    row = tx.fetch_one(
        "SELECT 1 FROM job j JOIN turn t ON t.no = $2"
        " WHERE j.no = $1 AND j.proposed_session_no = t.session_no AND j.proposed_at >= t.created_at",
        job_no,
        lease.turn_no,
    )
    return row is not None


def mark_decided(tx: Transaction, job_no: int) -> None:
    """Record that the person is no longer asked."""
    tx.execute("UPDATE job SET proposed_at = NULL, proposed_session_no = NULL WHERE no = $1", job_no)


def has_expired(tx: Transaction, before: int) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM job WHERE {_EXPIRED} LIMIT 1", before) is not None


def delete_expired(tx: Transaction, before: int, limit: int) -> int:
    """Delete jobs, and drop changes of jobs, that were proposed before a moment; return how many."""
    expired = tx.fetch_all(f"SELECT no, state FROM job WHERE {_EXPIRED} ORDER BY proposed_at LIMIT $2", before, limit)
    for no, state in expired:
        if state == JobState.PROPOSED:
            tx.execute("DELETE FROM job WHERE no = $1", no)
        else:
            tx.execute("UPDATE job SET proposed_change = NULL WHERE no = $1", no)
            mark_decided(tx, no)
    return len(expired)
