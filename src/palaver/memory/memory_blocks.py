"""Which memories the agent is told of in the instructions of a session.

Always true: only ids are kept, so a memory that is forgotten or edited, or whose audience the reader has left, is gone
or changed in every session at once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction


def find_current(tx: Transaction, session_no: int) -> list[str] | None:
    """Return the ids that were chosen for a session; None if that has to be done, for the first time or again.

    It has to be done again after a compaction.
    """
    row = tx.fetch_one(
        "SELECT b.memory_ids FROM memory_block b JOIN session s ON s.no = b.session_no"
        " WHERE b.session_no = $1 AND b.seq >= COALESCE(s.compaction_seq, 0)",
        session_no,
    )
    return None if row is None else list(json.loads(row[0]))


def store(tx: Transaction, session_no: int, ids: Sequence[str], now: int) -> None:
    """Store the ids that were chosen for a session, as it is now."""
    tx.execute(
        "INSERT INTO memory_block (session_no, memory_ids, seq, created_at)"
        " SELECT no, $2, COALESCE(compaction_seq, 0), $3 FROM session WHERE no = $1"
        " ON CONFLICT (session_no) DO UPDATE SET memory_ids = excluded.memory_ids, seq = excluded.seq,"
        " created_at = excluded.created_at",
        session_no,
        json.dumps(list(ids)),
        now,
    )
