"""Accounts: who may sign in, and every sign-in that is open.

Always true, by the schema: two people who can sign in have different names; whatever somebody signs in with goes with
their account; a link works once, however many try it at the same moment. Secrets come in here only as digests.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from palaver.domain.account import (
    EVERY_SCOPE,
    SIGN_IN_LASTS,
    SIGN_IN_RESTS,
    ApiToken,
    Device,
    Scope,
    Signed,
    Ways,
    name_key,
)
from palaver.domain.errors import NameTaken, NotFound
from palaver.domain.person import Role
from palaver.domain.source import Platform
from palaver.storage import people
from palaver.storage.people import PERSON, person_from_row
from palaver.storage.timestamps import from_micros, from_micros_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.storage.engines.base import Transaction

_REMEMBERED = 60_000_000  # a sign-in that was seen within this many microseconds is not written again
_OPEN = "s.created_at > $1 AND s.seen_at > $2"


# ---- accounts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Credentials:
    """An account as a password is checked against it."""

    person: Person
    password: str | None


def open_account(tx: Transaction, person: Person, now: int) -> None:
    """Let somebody sign in, and let what they say on the web be theirs; nothing happens when they can already."""
    if tx.one("SELECT 1 FROM account WHERE person_id = $1", person.id):
        return
    _check_free(tx, person.name, person.id)
    tx.run(
        "INSERT INTO account (person_id, name_key, created_at) VALUES ($1, $2, $3)",
        person.id,
        name_key(person.name),
        now,
    )
    tx.many(
        "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT DO NOTHING",
        [(platform, person.id, person.id, now) for platform in (Platform.WEB, Platform.API)],
    )


def close_account(tx: Transaction, person_id: PersonId) -> None:
    """Let somebody not sign in any more; every sign-in of theirs ends."""
    tx.run("DELETE FROM account WHERE person_id = $1", person_id)


def check_exists(tx: Transaction, person_id: PersonId) -> None:
    """Refuse to go on for somebody who cannot sign in; nobody closes the account before this transaction ends."""
    if not tx.one(f"SELECT person_id FROM account WHERE person_id = $1 {tx.lock}", person_id):
        raise NotFound("this account is closed")


def rename(tx: Transaction, person_id: PersonId, name: str) -> None:
    """Give somebody another name; one who can sign in must be the only one with it."""
    if tx.one("SELECT 1 FROM account WHERE person_id = $1", person_id):
        _check_free(tx, name, person_id)
        tx.run("UPDATE account SET name_key = $2 WHERE person_id = $1", person_id, name_key(name))
    tx.run("UPDATE person SET name = $2 WHERE id = $1", person_id, name)


def _check_free(tx: Transaction, name: str, person_id: PersonId) -> None:
    taken = tx.one("SELECT 1 FROM account WHERE name_key = $1 AND person_id <> $2", name_key(name), person_id)
    if taken:
        raise NameTaken(f"somebody who can sign in is called {name!r} already; choose another name", name=name)


def credentials(tx: Transaction, name: str) -> Credentials | None:
    """The account that signs in by this name."""
    row = tx.one(
        f"SELECT {PERSON}, a.password FROM account a JOIN person p ON p.id = a.person_id WHERE a.name_key = $1",
        name_key(name),
    )
    return Credentials(person_from_row(row), row[4]) if row else None


def password_of(tx: Transaction, person_id: PersonId) -> str | None:
    """The hash of somebody's password."""
    row = tx.one("SELECT password FROM account WHERE person_id = $1", person_id)
    return row[0] if row else None


def set_password(tx: Transaction, person_id: PersonId, hashed: str, *, instead_of: str | None) -> bool:
    """Give somebody a password; False when it is not any more what it was thought to be."""
    return bool(
        tx.run(
            "UPDATE account SET password = $2 WHERE person_id = $1 AND COALESCE(password, '') = $3",
            person_id,
            hashed,
            instead_of or "",
        )
    )


def ways(tx: Transaction, person_id: PersonId) -> Ways:
    """How somebody can sign in."""
    row = tx.one(
        "SELECT a.password, (SELECT COUNT(*) FROM passkey k WHERE k.person_id = a.person_id)"
        " FROM account a WHERE a.person_id = $1",
        person_id,
    )
    password, passkeys = row or (None, 0)
    return Ways(password=password is not None, passkeys=passkeys)


def any_password(tx: Transaction) -> bool:
    """Whether anybody signs in with a password."""
    return tx.one("SELECT 1 FROM account WHERE password IS NOT NULL LIMIT 1") is not None


def owner_has_a_way(tx: Transaction) -> bool:
    """Whether an owner can sign in without a link."""
    row = tx.one(
        "SELECT 1 FROM account a JOIN person p ON p.id = a.person_id WHERE p.role = $1 AND (a.password IS NOT NULL"
        " OR EXISTS (SELECT 1 FROM passkey k WHERE k.person_id = a.person_id)) LIMIT 1",
        Role.OWNER.value,
    )
    return row is not None


# ---- links -----------------------------------------------------------------------------------------------


def add_link(tx: Transaction, person_id: PersonId, digest: str, now: int, lasts: timedelta) -> int:
    """A link that signs somebody in once; when it expires. Those that have expired are swept out."""
    expires_at = now + _micros(lasts)
    tx.run("DELETE FROM sign_in_link WHERE expires_at <= $1", now)
    tx.run(
        "INSERT INTO sign_in_link (digest, person_id, expires_at) VALUES ($1, $2, $3)", digest, person_id, expires_at
    )
    return expires_at


def use_link(tx: Transaction, digest: str, now: int) -> Person | None:
    """Whose link this is; it is used up."""
    row = tx.one("DELETE FROM sign_in_link WHERE digest = $1 AND expires_at > $2 RETURNING person_id", digest, now)
    resident = people.get(tx, row[0]) if row else None
    return resident.person if resident else None


def drop_links(tx: Transaction, person_id: PersonId) -> None:
    """Make somebody's links worthless."""
    tx.run("DELETE FROM sign_in_link WHERE person_id = $1", person_id)


# ---- browsers --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """The browser that signs in."""

    device: str
    address: str


def sign_in(
    tx: Transaction,
    person_id: PersonId,
    digest: str,
    way: Literal["link", "password", "passkey"],
    browser: Browser,
    now: int,
) -> str:
    """Sign somebody in; the id of the sign-in. Their own that are over are swept out."""
    longest, resting = _since(now)
    tx.run(
        "DELETE FROM sign_in WHERE person_id = $1 AND (created_at <= $2 OR seen_at <= $3)", person_id, longest, resting
    )
    identity = f"dev_{secrets.token_hex(6)}"
    tx.run(
        "INSERT INTO sign_in (id, digest, person_id, way, device, address, created_at, seen_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
        identity,
        digest,
        person_id,
        way,
        browser.device,
        browser.address,
        now,
    )
    return identity


def signed_in(tx: Transaction, digest: str, now: int) -> tuple[Signed, bool] | None:
    """Who is signed in by this, and whether it is time to write down that they were seen."""
    row = tx.one(
        f"SELECT {PERSON}, s.id, s.seen_at FROM sign_in s JOIN person p ON p.id = s.person_id"
        f" WHERE {_OPEN} AND s.digest = $3",
        *_since(now),
        digest,
    )
    if row is None:
        return None
    return Signed(person=person_from_row(row), by="cookie", scopes=EVERY_SCOPE, id=row[4]), row[5] < now - _REMEMBERED


def seen(tx: Transaction, identity: str, now: int) -> None:
    """Write down that a sign-in is in use."""
    tx.run("UPDATE sign_in SET seen_at = $2 WHERE id = $1 AND seen_at < $2", identity, now)


def devices(tx: Transaction, person_id: PersonId, now: int) -> Sequence[Device]:
    """Where somebody is signed in, the latest first."""
    rows = tx.all(
        "SELECT s.id, s.device, s.way, s.address, s.created_at, s.seen_at FROM sign_in s"
        f" WHERE {_OPEN} AND s.person_id = $3 ORDER BY s.created_at DESC, s.id",
        *_since(now),
        person_id,
    )
    return [
        Device(
            id=identity,
            name=device,
            way=way,
            address=address,
            signed_in_at=from_micros(created_at),
            seen_at=from_micros(seen_at),
        )
        for identity, device, way, address, created_at, seen_at in rows
    ]


def sign_out(tx: Transaction, person_id: PersonId, identity: str) -> bool:
    """End one of somebody's sign-ins; False when it is none of theirs."""
    return bool(tx.run("DELETE FROM sign_in WHERE person_id = $1 AND id = $2", person_id, identity))


def forget(tx: Transaction, digest: str) -> None:
    """End the sign-in that a browser has now, because it gets another."""
    tx.run("DELETE FROM sign_in WHERE digest = $1", digest)


def sign_out_everywhere(tx: Transaction, person_id: PersonId, *, but: str | None = None) -> None:
    """End all of somebody's sign-ins, and all links that would begin one."""
    tx.run("DELETE FROM sign_in WHERE person_id = $1 AND id <> $2", person_id, but or "")
    drop_links(tx, person_id)


# ---- tokens ----------------------------------------------------------------------------------------------


def add_token(tx: Transaction, person_id: PersonId, token: ApiToken, digest: str, now: int, ends: int | None) -> None:
    """A token for a program."""
    tx.run(
        "INSERT INTO api_token (id, digest, person_id, name, scopes, created_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        token.id,
        digest,
        person_id,
        token.name,
        " ".join(token.scopes),
        now,
        ends,
    )


def token_bearer(tx: Transaction, digest: str, now: int) -> tuple[Signed, bool] | None:
    """Whose token this is, and whether it is time to write down that it was used."""
    row = tx.one(
        f"SELECT {PERSON}, t.id, t.scopes, t.used_at FROM api_token t JOIN person p ON p.id = t.person_id"
        " WHERE t.digest = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)",
        digest,
        now,
    )
    if row is None:
        return None
    signed = Signed(
        person=person_from_row(row), by="token", scopes=frozenset(Scope(each) for each in row[5].split()), id=row[4]
    )
    return signed, (row[6] or 0) < now - _REMEMBERED


def used(tx: Transaction, identity: str, now: int) -> None:
    """Write down that a token is in use."""
    tx.run("UPDATE api_token SET used_at = $2 WHERE id = $1 AND COALESCE(used_at, 0) < $2", identity, now)


def tokens(tx: Transaction, person_id: PersonId) -> Sequence[ApiToken]:
    """Somebody's tokens, the latest first."""
    rows = tx.all(
        "SELECT id, name, scopes, created_at, used_at, expires_at FROM api_token"
        " WHERE person_id = $1 ORDER BY created_at DESC, id",
        person_id,
    )
    return [
        ApiToken(
            id=identity,
            name=name,
            scopes=tuple(Scope(each) for each in scopes.split()),
            created_at=from_micros(created_at),
            used_at=from_micros_or_none(used_at),
            expires_at=from_micros_or_none(expires_at),
        )
        for identity, name, scopes, created_at, used_at, expires_at in rows
    ]


def revoke_token(tx: Transaction, person_id: PersonId, identity: str) -> bool:
    """Take a token back; False when it is none of theirs."""
    return bool(tx.run("DELETE FROM api_token WHERE person_id = $1 AND id = $2", person_id, identity))


def still_signed_in(tx: Transaction, signed: Signed, now: int) -> bool:
    """Whether a sign-in or a token that was good a while ago still is, for somebody with the same role."""
    if signed.by == "token":
        row = tx.one(
            "SELECT p.role FROM api_token t JOIN person p ON p.id = t.person_id"
            " WHERE t.id = $1 AND (t.expires_at IS NULL OR t.expires_at > $2)",
            signed.id,
            now,
        )
    else:
        row = tx.one(
            f"SELECT p.role FROM sign_in s JOIN person p ON p.id = s.person_id WHERE {_OPEN} AND s.id = $3",
            *_since(now),
            signed.id,
        )
    return row is not None and row[0] == signed.person.role


# ---- shared by the above ---------------------------------------------------------------------------------


def _since(now: int) -> tuple[int, int]:
    """After when a sign-in must have been made, and used, to be open still."""
    return now - _micros(SIGN_IN_LASTS), now - _micros(SIGN_IN_RESTS)


def _micros(span: timedelta) -> int:
    return int(span.total_seconds()) * 1_000_000
