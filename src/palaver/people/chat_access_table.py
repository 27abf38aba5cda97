"""Chats in which people without access of their own may talk to the agent: groups, and direct messages of guests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource


def is_granted(tx: Transaction, source: SessionSource, person_id: PersonId | None) -> bool:
    """Whether everybody in the chat of this source may talk to the agent, or this guest may."""
    row = tx.fetch_one(
        "SELECT 1 FROM chat_access WHERE platform = $1 AND account = $2 AND chat_id = $3"
        " AND (person_id IS NULL OR person_id = $4)",
        *_get_key(source),
        person_id or "",
    )
    return row is not None


def grant(tx: Transaction, source: SessionSource, person_id: PersonId | None, granted_by: PersonId, now: int) -> bool:
    """Let one guest, or everybody, talk to the agent in the chat of this source; False if it was so before."""
    if is_granted(tx, source, person_id):
        return False
    tx.execute(
        "INSERT INTO chat_access (platform, account, chat_id, person_id, granted_by, granted_at)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (platform, account, chat_id) DO UPDATE SET"
        " person_id = excluded.person_id, granted_by = excluded.granted_by, granted_at = excluded.granted_at",
        *_get_key(source),
        person_id,
        granted_by,
        now,
    )
    return True


def revoke(tx: Transaction, source: SessionSource) -> bool:
    """End the access to the chat of this source; False if there was none."""
    return bool(
        tx.execute("DELETE FROM chat_access WHERE platform = $1 AND account = $2 AND chat_id = $3", *_get_key(source))
    )


def revoke_from_person(tx: Transaction, person_id: PersonId) -> None:
    """End a guest's access to their direct messages."""
    tx.execute("DELETE FROM chat_access WHERE person_id = $1", person_id)


def _get_key(source: SessionSource) -> tuple[str, str, str]:
    return str(source.platform), source.account, source.chat_id
