"""Requests of strangers for access, and the codes that link accounts. Codes arrive here only as digests."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from palaver.core.columns import Columns, insert_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.source import Platform, SessionSource, encode_source
from palaver.core.text import make_storable
from palaver.people import table as people
from palaver.people.model import RateLimit
from palaver.people.person_data import EraseAt, PersonColumn, Stays

if TYPE_CHECKING:
    from palaver.core.ids import PersonId

CODE_ALPHABET: Final = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_CHARS: Final = 8

PAIRING_CODE_LIFETIME: Final = timedelta(hours=1)
NEW_CODE_INTERVAL: Final = timedelta(minutes=10)  # a stranger who has lost the code gets another one after this
LINK_CODE_LIFETIME: Final = timedelta(minutes=15)
MAX_PENDING_REQUESTS: Final = 20

# Attempts to use a code: of one account, and of all strangers together.
CODE_ATTEMPTS_PER_ACCOUNT: Final = RateLimit(10, timedelta(minutes=1))
CODE_ATTEMPTS_OF_STRANGERS: Final = RateLimit(60, timedelta(seconds=5))
REPLIES_PER_STRANGER: Final = RateLimit(5, timedelta(minutes=1))  # after that, a stranger gets no reply


class Grant(StrEnum):
    """The access that an approval gives to the account that asked."""

    MEMBER = "member"  # may talk to the agent in direct messages and in groups
    GUEST = "guest"  # may talk to the agent in these direct messages only
    ME = "me"  # is another account of the person who approves


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRequest:
    """A stranger who has asked for access."""

    id: str
    platform: Platform
    account: str  # the platform's own id of the stranger, which never changes
    name: str  # as the platform shows it; the stranger chose it
    source: SessionSource
    created_at: datetime
    expires_at: datetime
    is_denied: bool = False

    @property
    def is_channel(self) -> bool:
        """Whether all who can post in a channel ask, as the account of the channel."""
        return self.source.is_written_by_chat


def generate_code() -> str:
    """Return a new code as people see it: `ABCD-EFGH`."""
    code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS))
    return f"{code[:4]}-{code[4:]}"


_SEPARATORS = re.compile(r"[\s-]+")
_CODE_CHAR = f"[{CODE_ALPHABET}]"
_CODE = re.compile(f"{_CODE_CHAR}{{{CODE_CHARS}}}")


def parse_code(text: str) -> str | None:
    """Return a typed code as `ABCD-EFGH`; letter case, spaces and hyphens don't count. None if it can't be one."""
    if len(text) > 40:
        return None
    code = _SEPARATORS.sub("", text).upper()
    return f"{code[:4]}-{code[4:]}" if _CODE.fullmatch(code) else None


_SHOWN_CODE = re.compile(rf"(?<![A-Za-z0-9]){_CODE_CHAR}{{4}}-{_CODE_CHAR}{{4}}(?![A-Za-z0-9])")


def hide_codes(text: str) -> str:
    """Return one of our own texts without the code that it contains: what is stored is read by programs, too."""
    return _SHOWN_CODE.sub("…", text)


# ---- requests --------------------------------------------------------------------------------------------

_REQUEST: Final = Columns(PairingRequest, is_denied="denied_at IS NOT NULL")
_SELECT = f"SELECT {_REQUEST.format_select()} FROM pairing_request"


def delete_expired(tx: Transaction, now: int) -> None:
    tx.execute("DELETE FROM pairing_request WHERE expires_at <= $1", now)


def find_by_account(tx: Transaction, platform: str, account: str, now: int) -> PairingRequest | None:
    """Return the request of an account, also a denied one."""
    row = tx.fetch_one(
        f"{_SELECT} WHERE platform = $1 AND account = $2 AND expires_at > $3 {tx.for_update}", platform, account, now
    )
    return _REQUEST.decode(row) if row else None


def find_pending(tx: Transaction, now: int, *, digest: str = "", request_id: str = "") -> PairingRequest | None:
    column, value = ("digest", digest) if digest else ("id", request_id)
    row = tx.fetch_one(
        f"{_SELECT} WHERE {column} = $1 AND expires_at > $2 AND denied_at IS NULL {tx.for_update}", value, now
    )
    return _REQUEST.decode(row) if row else None


def list_pending(tx: Transaction, now: int, limit: int) -> list[PairingRequest]:
    """List pending requests, the oldest first."""
    rows = tx.fetch_all(
        f"{_SELECT} WHERE expires_at > $1 AND denied_at IS NULL ORDER BY created_at, id LIMIT $2", now, limit
    )
    return [_REQUEST.decode(row) for row in rows]


def count_pending(tx: Transaction) -> int:
    return int(fetch_value(tx, "SELECT COUNT(*) FROM pairing_request WHERE denied_at IS NULL") or 0)


def save(tx: Transaction, source: SessionSource, digest: str, now: int, expires_at: int) -> None:
    """Store the request of a stranger, with a new code."""
    platform, account = people.find_account(source) or ("", "")
    sql = """INSERT INTO pairing_request (id, platform, account, name, source, digest, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (platform, account) DO UPDATE SET
        name = excluded.name, source = excluded.source, digest = excluded.digest, created_at = excluded.created_at,
        expires_at = excluded.expires_at, denied_at = NULL"""
    tx.execute(
        sql,
        f"pr_{secrets.token_hex(6)}",
        platform,
        account,
        make_storable(source.sender_name),
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


# ---- codes that link accounts ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkClaim:
    """The account that has sent a code, and whose it was at that moment."""

    source: SessionSource
    account: tuple[str, str]  # platform and account, as in `identity`
    person_id: PersonId | None  # None: a stranger's
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCode:
    """A code that a person has asked for and where they did; once it was sent, the link that waits for both sides."""

    person_id: PersonId
    source: SessionSource
    expires_at: int
    is_confirmed: bool = False  # by the person who has asked for it
    claim: LinkClaim | None = None


_LINK: Final = Columns(LinkCode, without=["claim"])
_CLAIM: Final = Columns(
    LinkClaim,
    without=["account"],
    source="claim_source",
    person_id="claim_person_id",
    is_confirmed="is_claim_confirmed",
)


def save_link_code(
    tx: Transaction, digest: str, person_id: PersonId, source: SessionSource, expires_at: int, issued_by: str | None
) -> None:
    """Store a person's code; the one before, and the link that waits with it, no longer work.

    `issued_by` is the sign-in that got it.
    """
    delete_links_of_person(tx, person_id)
    row = {"digest": digest, "person_id": person_id, "source": encode_source(source), "expires_at": expires_at}
    insert_row(tx, "link_code", row | {"issued_by": issued_by})


def find_link_code(tx: Transaction, digest: str, now: int) -> LinkCode | None:
    """Find a code that was not sent yet, or the link that waits with it."""
    return _find_link(tx, "digest = $1", now, digest)


def find_waiting_link(
    tx: Transaction, person_id: PersonId | None, account: tuple[str, str] | None, now: int, *, reads: bool = False
) -> LinkCode | None:
    """Find the link that waits with the code that this account has sent, or with a code of this person."""
    claimed = account and _find_link(tx, "claim_platform = $1 AND claim_account = $2", now, *account, reads=reads)
    if claimed or person_id is None:
        return claimed or None
    return _find_link(tx, "person_id = $1 AND claim_account IS NOT NULL", now, person_id, reads=reads)


def claim_link_code(tx: Transaction, code: LinkCode, claim: LinkClaim, expires_at: int) -> LinkCode:
    """Store which account has sent a code. The links that its person waits for otherwise end."""
    delete_links_of_account(tx, claim.account)
    if claim.person_id is not None:
        delete_links_of_person(tx, claim.person_id)
    sql = (
        "UPDATE link_code SET claim_source = $2, claim_platform = $3, claim_account = $4, claim_person_id = $5,"
        " expires_at = $6, is_confirmed = 0, is_claim_confirmed = 0 WHERE person_id = $1"
    )
    tx.execute(sql, code.person_id, encode_source(claim.source), *claim.account, claim.person_id, expires_at)
    return replace(code, claim=claim, expires_at=expires_at, is_confirmed=False)


def confirm_link(tx: Transaction, code: LinkCode, *, is_issuer: bool) -> LinkCode:
    column = "is_confirmed" if is_issuer else "is_claim_confirmed"
    tx.execute(f"UPDATE link_code SET {column} = 1 WHERE person_id = $1", code.person_id)
    if is_issuer or code.claim is None:
        return replace(code, is_confirmed=True)
    return replace(code, claim=replace(code.claim, is_confirmed=True))


def delete_links_of_person(tx: Transaction, person_id: PersonId) -> None:
    """Delete a person's code, and the links that wait for them on either side."""
    tx.execute("DELETE FROM link_code WHERE person_id = $1 OR claim_person_id = $1", person_id)


def delete_links_of_account(tx: Transaction, account: tuple[str, str]) -> None:
    """Delete the link that waits with the code that an account has sent."""
    tx.execute("DELETE FROM link_code WHERE claim_platform = $1 AND claim_account = $2", *account)


def delete_expired_links(tx: Transaction, now: int) -> None:
    tx.execute("DELETE FROM link_code WHERE expires_at <= $1", now)


def _find_link(tx: Transaction, condition: str, now: int, *params: str, reads: bool = False) -> LinkCode | None:
    """Find a link; one with the code of a browser that was signed out since is none."""
    lock = "" if reads else tx.for_update
    sql = f"""SELECT {_LINK.format_select()}, {_CLAIM.format_select()}, claim_platform, claim_account FROM link_code
        WHERE {condition} AND expires_at > ${len(params) + 1}
        AND (issued_by IS NULL OR EXISTS (SELECT 1 FROM sign_in WHERE sign_in.id = link_code.issued_by))
        {lock}"""
    row = tx.fetch_one(sql, *params, now)
    if row is None:
        return None
    *claimed, platform, account = row[len(_LINK) :]
    return _LINK.decode(row, claim=None if account is None else _CLAIM.decode(claimed, account=(platform, account)))


PERSON_DATA: Final = tuple(
    PersonColumn("link_code", column, merge=Stays("is deleted"), erase=EraseAt.START)
    for column in ("person_id", "claim_person_id")
)
