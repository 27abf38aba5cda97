"""Shares: read-only copies of sessions for people without an account. A copy never changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.domain.share import Share, ShareNotFound, new_share_id, parse_share_id
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Row, Transaction

_SELECT = """SELECT h.id, s.id, h.body, h.message_count, h.created_at FROM share h
    JOIN session s ON s.no = h.session_no"""


def add(
    tx: Transaction, person_id: PersonId, session_no: int, secret_hash: str, body: dict[str, Any], now: int
) -> Share:
    share_id = new_share_id()
    tx.execute(
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
    row = tx.fetch_one(f"{_SELECT} WHERE h.id = $1", share_id)
    assert row is not None  # noqa: S101
    return _share_from_row(row)


def count_shares(tx: Transaction, person_id: PersonId) -> int:
    row = tx.fetch_one("SELECT COUNT(*) FROM share WHERE person_id = $1", person_id)
    return int(row[0]) if row else 0


def list_shares(tx: Transaction, person_id: PersonId) -> list[Share]:
    """List a person's shares, newest first."""
    rows = tx.fetch_all(f"{_SELECT} WHERE h.person_id = $1 ORDER BY h.no DESC", person_id)
    return [_share_from_row(row) for row in rows]


def open_share(tx: Transaction, secret_hash: str) -> dict[str, Any]:
    """Return the copy that a secret opens, with the time it was made."""
    row = tx.fetch_one("SELECT body, created_at FROM share WHERE secret_hash = $1", secret_hash)
    if row is None:
        raise ShareNotFound
    return {**json.loads(row[0]), "shared_at": from_micros(row[1])}


def revoke(tx: Transaction, share_id: str, person_id: PersonId | None) -> None:
    """Delete one of a person's shares (None: any person's)."""
    valid_id = parse_share_id(share_id)
    deleted = tx.execute("DELETE FROM share WHERE id = $1 AND ($2 = '' OR person_id = $2)", valid_id, person_id or "")
    if not deleted:
        raise ShareNotFound


def _share_from_row(row: Row) -> Share:
    share_id, session_id, body, message_count, created_at = row
    return Share(
        id=share_id,
        session_id=session_id,
        title=json.loads(body)["title"],
        message_count=message_count,
        created_at=from_micros(created_at),
    )
