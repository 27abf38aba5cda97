"""Checks whether people outside a session's audience read along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.people import table as people

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.session_rows import SessionRow


def is_private_to(tx: Transaction, session_row: SessionRow, person_id: PersonId) -> bool:
    """Whether this person belongs to the session's audience and no person outside that audience reads along.

    It is not always so: one person's session may continue in a lane that several people share, and an owner may write
    in another person's session.
    """
    if session_row.audience_no not in people.list_audiences(tx, person_id):
        return False
    if session_row.session.shared:
        return True
    return tx.fetch_one("SELECT 1 FROM lane WHERE session_no = $1 AND shared = 1 LIMIT 1", session_row.no) is None
