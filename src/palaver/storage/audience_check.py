"""Who reads along in a conversation, beside those it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.storage import people

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow


def among_themselves(tx: Transaction, found: SessionRow, person_id: PersonId) -> bool:
    """Whether this person speaks in a conversation of theirs that nobody else reads.

    One person's conversation may go on in a place that several people share, and an owner may speak in somebody's.
    """
    if found.audience_no not in people.audiences_of(tx, person_id):
        return False
    if found.session.shared:
        return True
    return tx.one("SELECT 1 FROM route WHERE session_no = $1 AND shared = 1 LIMIT 1", found.no) is None
