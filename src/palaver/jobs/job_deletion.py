"""Deletes jobs: one with few runs at once, one with many in pieces, so that no other writer waits for long.

A job with many runs first disappears, in one short transaction: it loses its id, name and prompt, its open run and what
its person is still to be told of. `is_deleted` keeps it out of everything that looks for jobs and runs. Then its runs
are deleted piece by piece; a process that dies leaves the rest to the cleanup of any server.

Always true: a reader sees a job with all its runs, or neither. The conversations of the runs stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.money import table as budget_limits
from palaver.sessions.deletion_pieces import SESSION_PIECES

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.deletion_pieces import Pieces

RUNS_PER_PIECE: Final = 300  # a job with up to so many is deleted at once


def delete(tx: Transaction, job_no: int) -> None:
    """Delete a job, the list of its runs and its limits, or let it disappear if it has many runs.

    The caller has locked it, so no run is added meanwhile.
    """
    if tx.fetch_one("SELECT 1 FROM job_run WHERE job_no = $1 LIMIT 1 OFFSET $2", job_no, RUNS_PER_PIECE) is None:
        tx.execute("DELETE FROM job WHERE no = $1", job_no)
    else:
        _hide(tx, job_no)
    budget_limits.delete_for_missing_jobs(tx)


def delete_piece(tx: Transaction, job_no: int) -> None:
    """Delete the next runs of a job that has disappeared; when none are left, the job."""
    if tx.fetch_one(f"SELECT 1 FROM job WHERE no = $1 AND is_deleted = 1 {tx.for_update}", job_no) is None:
        return  # another process was faster
    deleted = tx.execute(
        "DELETE FROM job_run WHERE no IN (SELECT no FROM job_run WHERE job_no = $1 ORDER BY slot LIMIT $2)",
        job_no,
        RUNS_PER_PIECE,
    )
    if deleted < RUNS_PER_PIECE:
        tx.execute("DELETE FROM job WHERE no = $1", job_no)


def _hide(tx: Transaction, job_no: int) -> None:
    tx.execute("DELETE FROM job_run WHERE job_no = $1 AND state IN ('queued', 'running')", job_no)
    tx.execute("DELETE FROM job_run WHERE job_no = $1 AND is_untold = 1", job_no)
    # Two spaces: no name that a person types has them (`jobs.make_name_key`).
    tx.execute(
        "UPDATE job SET is_deleted = 1, id = $2, name = '', name_key = $3, prompt = '', state = 'ended',"
        " state_reason = NULL, next_slot = NULL, origin_session_no = NULL, proposed_change = NULL, proposed_at = NULL,"
        " proposed_session_no = NULL WHERE no = $1",
        job_no,
        f"deleted-{job_no}",
        f"deleted  {job_no}",
    )


ALL_PIECES: Final[Pieces] = {**SESSION_PIECES, "job": delete_piece}
