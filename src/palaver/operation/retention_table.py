"""Finds the conversations that a retention policy deletes, by their last activity, the oldest first.

Always true: a conversation is deleted only if nothing happened in it since the given moment, judged by the newest of
its times inside the transaction that deletes it, and only if nothing in it is pinned, runs, waits or is on its way.
Bringing a conversation in from another program counts as activity, however old its messages are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from palaver.core.engines.base import Row, Transaction, fetch_value
from palaver.sessions import deletion_table as session_deletion, table as sessions

_ROW_BYTES: Final = 100  # of an entry of a log, besides its texts
# Lists are ordered by `active_at`; a quick answer moves only `last_message_at`, and reading along only `last_human_at`.
_LAST_ACTIVITY = (
    "CASE WHEN COALESCE(s.last_human_at, 0) > COALESCE(s.last_message_at, 0) THEN"
    " COALESCE(s.last_human_at, 0) ELSE COALESCE(s.last_message_at, 0) END"
)
_IS_UNUSED = f"""s.pinned_at IS NULL AND s.active_at < $1 AND {_LAST_ACTIVITY} < $1
    AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.session_no = s.no AND t.state IN ('queued', 'running'))
    AND NOT EXISTS (SELECT 1 FROM job j WHERE j.proposed_session_no = s.no)
    AND NOT EXISTS (SELECT 1 FROM job j WHERE j.origin_session_no = s.no AND j.state <> 'ended')
    AND NOT EXISTS (SELECT 1 FROM job_run r WHERE r.session_no = s.no AND r.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.session_no = s.no AND d.state IN ('pending', 'sending'))
    AND NOT EXISTS (SELECT 1 FROM memory_turn m WHERE m.session_no = s.no AND m.ended_at IS NULL)
    AND NOT EXISTS (SELECT 1 FROM imported_item i WHERE i.session_id = s.id AND i.imported_at >= $1)"""
# Two ranges of two indexes: conversations that are archived are not exempt.
_RANGES = ("s.archived_at IS NULL", "s.archived_at IS NOT NULL")


Position = tuple[int, int]  # the last activity and the number of a conversation
START: Final[Position] = (-(2**62), 0)


class OldSession(NamedTuple):
    active_at: int
    no: int
    id: str
    message_count: int


def list_old(
    tx: Transaction, before: int, after: Position, limit: int, platform: str | None = None
) -> tuple[list[OldSession], Position | None]:
    """Return the next conversations without activity since `before` that may be deleted, the oldest first.

    Also returns where to go on; None at the end. It reads `limit` rows of each index, however many of them are exempt.
    """
    rows: list[Row] = []
    for is_in_range in _RANGES:
        sql = f"""SELECT s.active_at, s.no, s.id, s.message_count, s.platform, CASE WHEN {_IS_UNUSED} THEN 1 ELSE 0 END
            FROM session s WHERE s.active_at IS NOT NULL AND {is_in_range} AND s.active_at < $1
            AND s.active_at >= $2 AND (s.active_at > $2 OR s.no > $3) ORDER BY s.active_at, s.no LIMIT $4"""
        rows += tx.fetch_all(sql, before, *after, limit)
    rows = sorted(rows)[:limit]
    old = [
        OldSession(*session)
        for *session, its_platform, is_unused in rows
        if is_unused and platform in (None, its_platform)
    ]
    return old, rows[-1][:2] if len(rows) == limit else None


def delete_if_unused(tx: Transaction, session_no: int, before: int) -> bool:
    """Delete a conversation, unless something has happened in it meanwhile, or it is exempt."""
    session_row = sessions.find_by_no(tx, session_no, tx.for_update)
    is_unused = tx.fetch_one(f"SELECT 1 FROM session s WHERE s.no = $2 AND {_IS_UNUSED}", before, session_no)
    if session_row is None or is_unused is None:
        return False
    session_deletion.delete(tx, session_row)
    return True


def measure_session(tx: Transaction, session_no: int) -> int:
    sql = f"""SELECT SUM({_ROW_BYTES} + LENGTH(COALESCE(content, '')) + LENGTH(COALESCE(body, ''))) FROM event
        WHERE session_no = $1"""
    size = fetch_value(tx, sql, session_no)
    return int(size or 0)


def measure_database(tx: Transaction) -> int | None:
    """Return how many bytes of the SQLite file are in use; None on PostgreSQL, whose files don't tell."""
    if tx.name != "sqlite":
        return None
    pages, free_pages, page_size = (
        int(fetch_value(tx, f"PRAGMA {name}") or 0) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free_pages) * page_size
