"""Copies of conversations for people without an account. A copy is written once and never changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.domain.share import NoSuchShare, Share, known_share_id, new_share_id
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Row, Transaction

_SHARE = """SELECT h.id, s.id, h.body, h.message_count, h.created_at FROM share h
    JOIN session s ON s.no = h.session_no"""


def add(
    tx: Transaction, person_id: PersonId, session_no: int, secret_hash: str, body: dict[str, Any], now: int
) -> Share:
    """Keep a copy."""
    share_id = new_share_id()
    tx.run(
        "INSERT INTO share (id, secret_hash, person_id, session_no, body, message_count, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        share_id,
        secret_hash,
        person_id,
        session_no,
        json.dumps(body, separators=(",", ":")),
        len(body["messages"]),
        now,
    )
    row = tx.one(f"{_SHARE} WHERE h.id = $1", share_id)
    assert row is not None  # noqa: S101
    return _share(row)


def count(tx: Transaction, person_id: PersonId) -> int:
    """How many somebody has."""
    row = tx.one("SELECT COUNT(*) FROM share WHERE person_id = $1", person_id)
    return int(row[0]) if row else 0


def listed(tx: Transaction, person_id: PersonId) -> list[Share]:
    """Somebody's copies, newest first."""
    return [_share(row) for row in tx.all(f"{_SHARE} WHERE h.person_id = $1 ORDER BY h.no DESC", person_id)]


def opened(tx: Transaction, secret_hash: str) -> dict[str, Any]:
    """The copy that a secret opens, and when it was made."""
    row = tx.one("SELECT body, created_at FROM share WHERE secret_hash = $1", secret_hash)
    if row is None:
        raise NoSuchShare
    return {**json.loads(row[0]), "shared_at": from_micros(row[1])}


def revoke(tx: Transaction, share_id: str, person_id: PersonId | None) -> None:
    """Take back a copy of somebody's (None: of anybody's)."""
    known = known_share_id(share_id)
    revoked = tx.run("DELETE FROM share WHERE id = $1 AND ($2 = '' OR person_id = $2)", known, person_id or "")
    if not revoked:
        raise NoSuchShare


def _share(row: Row) -> Share:
    share_id, session_id, body, messages, created_at = row
    return Share(
        id=share_id,
        session_id=session_id,
        title=json.loads(body)["title"],
        message_count=messages,
        created_at=from_micros(created_at),
    )
