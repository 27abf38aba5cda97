"""Requests of strangers for access, and the codes that link accounts. Codes arrive here only as digests."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.ids import PersonId
from palaver.domain.pairing import PairingRequest
from palaver.domain.source import Platform
from palaver.domain.text import make_storable
from palaver.storage import people
from palaver.storage.sources import decode_source, encode_source
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from palaver.domain.source import SessionSource
    from palaver.storage.engines.base import Row, Transaction

_SELECT = "SELECT id, platform, account, name, source, created_at, expires_at, denied_at FROM pairing_request"


# ---- requests --------------------------------------------------------------------------------------------


def delete_expired(tx: Transaction, now: int) -> None:
    tx.execute("DELETE FROM pairing_request WHERE expires_at <= $1", now)


def find_by_account(tx: Transaction, platform: str, account: str, now: int) -> PairingRequest | None:
    """Return the request of an account, also a denied one."""
    row = tx.fetch_one(
        f"{_SELECT} WHERE platform = $1 AND account = $2 AND expires_at > $3 {tx.for_update}", platform, account, now
    )
    return _make_request(row) if row else None


def find_pending(tx: Transaction, now: int, *, digest: str = "", request_id: str = "") -> PairingRequest | None:
    """Return a pending request by the digest of its code or by its id."""
    column, value = ("digest", digest) if digest else ("id", request_id)
    row = tx.fetch_one(
        f"{_SELECT} WHERE {column} = $1 AND expires_at > $2 AND denied_at IS NULL {tx.for_update}", value, now
    )
    return _make_request(row) if row else None


def list_pending(tx: Transaction, now: int, limit: int) -> list[PairingRequest]:
    """List pending requests, the oldest first."""
    rows = tx.fetch_all(
        f"{_SELECT} WHERE expires_at > $1 AND denied_at IS NULL ORDER BY created_at, id LIMIT $2", now, limit
    )
    return [_make_request(row) for row in rows]


def count_pending(tx: Transaction) -> int:
    row = tx.fetch_one("SELECT COUNT(*) FROM pairing_request WHERE denied_at IS NULL")
    return int(row[0]) if row else 0


def save(tx: Transaction, source: SessionSource, digest: str, now: int, expires_at: int) -> None:
    """Store the request of a stranger, with a new code."""
    platform, account = people.find_account(source) or ("", "")
    tx.execute(
        "INSERT INTO pairing_request (id, platform, account, name, source, digest, created_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (platform, account) DO UPDATE SET"
        " name = excluded.name, source = excluded.source, digest = excluded.digest, created_at = excluded.created_at,"
        " expires_at = excluded.expires_at, denied_at = NULL",
        f"pr_{secrets.token_hex(6)}",
        platform,
        account,
        make_storable(source.user_name or source.chat_name or ""),
        encode_source(source),
        digest,
        now,
        expires_at,
    )


def delete(tx: Transaction, request: PairingRequest) -> bool:
    return bool(tx.execute("DELETE FROM pairing_request WHERE id = $1", request.id))


def deny(tx: Transaction, request: PairingRequest, now: int) -> None:
    """Keep a denied request until it has expired, so that the stranger gets no other code until then."""
    tx.execute("UPDATE pairing_request SET denied_at = $2 WHERE id = $1", request.id, now)


def _make_request(row: Row) -> PairingRequest:
    request_id, platform, account, name, source, created_at, expires_at, denied_at = row
    return PairingRequest(
        id=request_id,
        platform=Platform(platform),
        account=account,
        name=name,
        source=decode_source(source),
        created_at=from_micros(created_at),
        expires_at=from_micros(expires_at),
        is_denied=denied_at is not None,
    )


# ---- codes that link accounts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LinkCode:
    """A code that a person has asked for, and where they did."""

    person_id: PersonId
    source: SessionSource


def save_link_code(
    tx: Transaction,
    digest: str,
    person_id: PersonId,
    source: SessionSource,
    expires_at: int,
    issued_by: str | None,
) -> None:
    """Store a person's code; the one before no longer works. `issued_by` is the sign-in that got it."""
    tx.execute(
        "INSERT INTO link_code (digest, person_id, source, expires_at, issued_by) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (person_id) DO UPDATE SET digest = excluded.digest, source = excluded.source,"
        " expires_at = excluded.expires_at, issued_by = excluded.issued_by",
        digest,
        person_id,
        encode_source(source),
        expires_at,
        issued_by,
    )


def find_link_code(tx: Transaction, digest: str, now: int) -> LinkCode | None:
    """Return a valid code; the code of a browser that was signed out since is none."""
    row = tx.fetch_one(
        "SELECT person_id, source FROM link_code WHERE digest = $1 AND expires_at > $2"
        " AND (issued_by IS NULL OR EXISTS (SELECT 1 FROM sign_in WHERE sign_in.id = link_code.issued_by))"
        f" {tx.for_update}",
        digest,
        now,
    )
    return LinkCode(PersonId(row[0]), decode_source(row[1])) if row else None


def delete_link_code(tx: Transaction, person_id: PersonId) -> None:
    tx.execute("DELETE FROM link_code WHERE person_id = $1", person_id)
