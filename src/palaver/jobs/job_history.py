"""Deletes the history of jobs: old runs, their conversations in which no person has written, and jobs that are over.

The last run of a job stays as long as the job may run again, so that people see how it ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.money import table as budget_limits
from palaver.sessions import deletion_table as session_deletion, table as sessions

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

_OLD_RUNS = """FROM job_run r JOIN job j ON j.no = r.job_no WHERE r.ended_at IS NOT NULL AND r.ended_at < $1
    AND j.is_deleted = 0
    AND (j.state = 'ended' OR EXISTS (SELECT 1 FROM job_run l WHERE l.job_no = r.job_no AND l.slot > r.slot))"""
_OVER = "state = 'ended' AND updated_at < $1 AND NOT EXISTS (SELECT 1 FROM job_run r WHERE r.job_no = job.no)"

# No person has written in it, named it, put it elsewhere or shared it.
_IS_UNTOUCHED = """s.platform = 'cron' AND s.last_human_at IS NULL AND s.title IS NULL AND s.pinned_at IS NULL
    AND s.archived_at IS NULL AND EXISTS (SELECT 1 FROM project p WHERE p.no = s.project_no AND p.name_key = $2)
    AND NOT EXISTS (SELECT 1 FROM share h WHERE h.session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_no = s.no AND t.state IN ('queued', 'running'))"""


def has_old(tx: Transaction, before: int) -> bool:
    """Whether there are runs that ended before a moment, or jobs that were over then, and may be deleted."""
    if tx.fetch_one(f"SELECT 1 {_OLD_RUNS} LIMIT 1", before) is not None:
        return True
    return tx.fetch_one(f"SELECT 1 FROM job WHERE {_OVER} LIMIT 1", before) is not None


def delete_old(tx: Transaction, before: int, limit: int, project_key: str) -> int:
    """Delete the oldest of them, at most `limit` and with about as many entries as a piece has; return how many.

    `project_key` is the project in which the conversations of runs begin: one that was moved elsewhere stays.
    """
    runs = tx.fetch_all(f"SELECT r.no, r.session_no, r.turn_no {_OLD_RUNS} ORDER BY r.ended_at LIMIT $2", before, limit)
    run_count, row_count = 0, 0
    for no, session_no, turn_no in runs:
        if session_no is not None:
            row_count += _delete_untouched_session(tx, session_no, turn_no, project_key)
        tx.execute("DELETE FROM job_run WHERE no = $1", no)
        run_count += 1
        if row_count >= session_deletion.ROWS_PER_PIECE:
            break
    if run_count:
        return run_count
    deleted_count = tx.execute(
        f"DELETE FROM job WHERE no IN (SELECT no FROM job WHERE {_OVER} ORDER BY updated_at LIMIT $2)", before, limit
    )
    budget_limits.delete_for_missing_jobs(tx)
    return deleted_count


def _delete_untouched_session(tx: Transaction, session_no: int, turn_no: int | None, project_key: str) -> int:
    """Delete the conversation of a run if no person has touched it; return how many entries."""
    row = sessions.find_by_no(tx, session_no, tx.for_update)
    is_untouched = tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $1 AND {_IS_UNTOUCHED}", session_no, project_key)
    if row is None or not is_untouched:
        return 0
    if turn_no is not None:  # what was sent to chats is part of their conversations, which stay
        tx.execute(
            "UPDATE delivery SET turn_no = NULL WHERE turn_no = $1 AND (session_no IS NULL OR session_no <> $2)",
            turn_no,
            session_no,
        )
    return session_deletion.delete(tx, row).rows
