"""Accounts: people who can sign in, their sign-in links, the browsers they are signed in with, and their API tokens.

Always true, by the schema: two people who can sign in have different names; closing an account deletes everything the
person signs in with; a link works once, even if several browsers open it at the same moment. Secrets arrive here only
as digests.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from palaver.core.columns import Columns, insert_row
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import NameTaken, NotFound
from palaver.core.source import Platform
from palaver.people import table as people
from palaver.people.model import (
    ALL_SCOPES,
    SIGN_IN_IDLE_LIMIT,
    SIGN_IN_LIFETIME,
    ApiToken,
    Device,
    Person,
    Role,
    Scope,
    SetupStep,
    SignedInPerson,
    SignInMethods,
    normalize_name,
)
from palaver.people.person_data import STAYS_WITH_ACCOUNT, EraseAt, PersonColumn
from palaver.people.table import PERSON_COLUMNS, read_person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.ids import PersonId

_MICROSECOND: Final = timedelta(microseconds=1)
_MIN_USE_INTERVAL_MICROS = 60_000_000  # a use is recorded again only after this long, to save writes
_DEVICE: Final = Columns(Device, name="s.device", sign_in_method="s.method", signed_in_at="s.created_at")
_TOKEN: Final = Columns(ApiToken, without=("scopes",))
_IS_OPEN = "s.created_at > $1 AND s.last_seen_at > $2"  # parameters: _compute_oldest_open_times(now)
_IS_VALID = "(t.expires_at IS NULL OR t.expires_at > $1)"  # parameter: now


# ---- accounts --------------------------------------------------------------------------------------------


def open_account(tx: Transaction, person: Person, now: int) -> None:
    """Let a person sign in, and give them identities on the web and the API; do nothing if they have an account."""
    if tx.fetch_one("SELECT 1 FROM account WHERE person_id = $1", person.id):
        return
    _check_name_is_free(tx, person.name, person.id)
    name_key = normalize_name(person.name)
    insert_row(tx, "account", {"person_id": person.id, "name_key": name_key, "created_at": now})
    sql = """INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING"""
    tx.execute_many(sql, [(platform, person.id, person.id, now) for platform in (Platform.WEB, Platform.API)])


def close_account(tx: Transaction, person_id: PersonId) -> None:
    """Delete a person's account, which ends all their sign-ins, and what they share."""
    tx.execute("DELETE FROM share WHERE person_id = $1", person_id)
    sign_out_everywhere(tx, person_id)
    tx.execute("DELETE FROM account WHERE person_id = $1", person_id)


def check_exists(tx: Transaction, person_id: PersonId) -> None:
    """Raise `NotFound` if the person has no account; otherwise keep it from being closed until this transaction
    ends.
    """
    if not tx.fetch_one(f"SELECT person_id FROM account WHERE person_id = $1 {tx.for_update}", person_id):
        raise NotFound("This account is closed.")


def rename_person(tx: Transaction, person_id: PersonId, name: str) -> None:
    """Change a person's name; the name of a person who can sign in must be unique among those who can."""
    if tx.fetch_one("SELECT 1 FROM account WHERE person_id = $1", person_id):
        _check_name_is_free(tx, name, person_id)
        tx.execute("UPDATE account SET name_key = $2 WHERE person_id = $1", person_id, normalize_name(name))
    tx.execute("UPDATE person SET name = $2 WHERE id = $1", person_id, name)


def _check_name_is_free(tx: Transaction, name: str, person_id: PersonId) -> None:
    is_taken = tx.fetch_one(
        "SELECT 1 FROM account WHERE name_key = $1 AND person_id <> $2", normalize_name(name), person_id
    )
    if is_taken:
        raise NameTaken(f"The name {name!r} is already taken. Choose another name.", name=name)


def find_credentials(tx: Transaction, name: str) -> tuple[Person | None, str | None]:
    """Return the person who signs in with a name, and the hash to check their password against."""
    sql = f"""SELECT {PERSON_COLUMNS}, a.password_hash FROM account a JOIN person p ON p.id = a.person_id
        WHERE a.name_key = $1"""
    row = tx.fetch_one(sql, normalize_name(name))
    if row is None:
        return None, None
    person, (password_hash,) = read_person(row)
    return person, password_hash


def find_password_hash(tx: Transaction, person_id: PersonId) -> str | None:
    return fetch_value(tx, "SELECT password_hash FROM account WHERE person_id = $1", person_id)


def set_password(tx: Transaction, person_id: PersonId, new_hash: str, *, expected_hash: str | None) -> bool:
    """Replace a person's password; return False if the current hash is not the expected one."""
    sql = "UPDATE account SET password_hash = $2 WHERE person_id = $1 AND COALESCE(password_hash, '') = $3"
    return bool(tx.execute(sql, person_id, new_hash, expected_hash or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountProgress:
    """The progress of a person in setting up their account and the server."""

    sign_in_methods: SignInMethods
    needs_welcome: bool  # they have no password and no passkey, and have not skipped choosing one
    skipped_steps: tuple[str, ...]  # of the first visit, in the order in which they were skipped


def load_progress(tx: Transaction, person_id: PersonId) -> AccountProgress:
    sql = """SELECT a.password_hash, (SELECT COUNT(*) FROM passkey k WHERE k.person_id = a.person_id), a.is_welcomed,
        a.skipped_steps FROM account a WHERE a.person_id = $1"""
    row = tx.fetch_one(sql, person_id)
    password_hash, passkey_count, is_welcomed, steps = row or (None, 0, 1, "")
    return AccountProgress(
        sign_in_methods=SignInMethods(has_password=password_hash is not None, passkey_count=passkey_count),
        needs_welcome=not is_welcomed and password_hash is None and not passkey_count,
        skipped_steps=tuple(steps.split(",")) if steps else (),
    )


def mark_welcomed(tx: Transaction, person_id: PersonId) -> None:
    tx.execute("UPDATE account SET is_welcomed = 1 WHERE person_id = $1", person_id)


def set_step_skipped(tx: Transaction, person_id: PersonId, step: SetupStep, *, is_skipped: bool) -> None:
    tx.fetch_one(f"SELECT person_id FROM account WHERE person_id = $1 {tx.for_update}", person_id)
    others = [each for each in load_progress(tx, person_id).skipped_steps if each != step]
    steps = [*others, step.value] if is_skipped else others
    tx.execute("UPDATE account SET skipped_steps = $2 WHERE person_id = $1", person_id, ",".join(steps))


def has_any_password(tx: Transaction) -> bool:
    return tx.fetch_one("SELECT 1 FROM account WHERE password_hash IS NOT NULL LIMIT 1") is not None


def can_owner_sign_in_without_link(tx: Transaction) -> bool:
    sql = """SELECT 1 FROM account a JOIN person p ON p.id = a.person_id WHERE p.role = $1
        AND (a.password_hash IS NOT NULL OR EXISTS (SELECT 1 FROM passkey k WHERE k.person_id = a.person_id)) LIMIT 1"""
    row = tx.fetch_one(sql, Role.OWNER.value)
    return row is not None


# ---- sign-in links ---------------------------------------------------------------------------------------


def add_sign_in_link(
    tx: Transaction, person_id: PersonId, digest: str, now: int, lifetime: timedelta, *, issued_by: str | None = None
) -> int:
    """Add a link that signs a person in once, delete all expired links, and return when the new one expires.

    `issued_by` is the sign-in whose browser gets the link; None: the terminal gets it.
    """
    expires_at = now + lifetime // _MICROSECOND
    tx.execute("DELETE FROM sign_in_link WHERE expires_at <= $1", now)
    link = {"digest": digest, "person_id": person_id, "expires_at": expires_at, "issued_by": issued_by}
    insert_row(tx, "sign_in_link", link)
    return expires_at


def use_sign_in_link(tx: Transaction, digest: str, now: int) -> Person | None:
    """Use up a link and return its person; None if there is no such link or it has expired."""
    sql = "DELETE FROM sign_in_link WHERE digest = $1 AND expires_at > $2 RETURNING person_id"
    person_id = fetch_value(tx, sql, digest, now)
    person_row = people.find_by_id(tx, person_id) if person_id else None
    return person_row.person if person_row else None


def delete_sign_in_links(tx: Transaction, person_id: PersonId) -> None:
    tx.execute("DELETE FROM sign_in_link WHERE person_id = $1", person_id)


# ---- signed-in browsers ----------------------------------------------------------------------------------


def sign_in(
    tx: Transaction,
    person_id: PersonId,
    digest: str,
    method: Literal["link", "password", "passkey"],
    device: str,
    ip_address: str,
    now: int,
) -> str:
    """Sign a person in, delete their expired sign-ins, and return the id of the new one."""
    sql = "DELETE FROM sign_in WHERE person_id = $1 AND (created_at <= $2 OR last_seen_at <= $3)"
    tx.execute(sql, person_id, *_compute_oldest_open_times(now))
    sign_in_id = f"dev_{secrets.token_hex(6)}"
    row = {"id": sign_in_id, "digest": digest, "person_id": person_id, "method": method, "device": device}
    insert_row(tx, "sign_in", row | {"ip_address": ip_address, "created_at": now, "last_seen_at": now})
    return sign_in_id


def find_sign_in(tx: Transaction, digest: str, now: int) -> tuple[SignedInPerson, bool] | None:
    """Find the person whom a cookie signs in, and whether it is time to call `mark_sign_in_seen`."""
    sql = f"""SELECT {PERSON_COLUMNS}, s.id, s.last_seen_at FROM sign_in s JOIN person p ON p.id = s.person_id
        WHERE {_IS_OPEN} AND s.digest = $3"""
    row = tx.fetch_one(sql, *_compute_oldest_open_times(now), digest)
    if row is None:
        return None
    person, (sign_in_id, last_seen_at) = read_person(row)
    signed_in = SignedInPerson(person=person, credential_type="cookie", scopes=ALL_SCOPES, credential_id=sign_in_id)
    return signed_in, last_seen_at < now - _MIN_USE_INTERVAL_MICROS


def is_sign_in_open(created_at: int, last_seen_at: int, now: int) -> bool:
    oldest_created_at, oldest_seen_at = _compute_oldest_open_times(now)
    return created_at > oldest_created_at and last_seen_at > oldest_seen_at


def mark_sign_in_seen(tx: Transaction, sign_in_id: str, now: int) -> None:
    tx.execute("UPDATE sign_in SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2", sign_in_id, now)


def list_devices(tx: Transaction, person_id: PersonId, now: int) -> Sequence[Device]:
    """List the browsers in which a person is signed in, the latest sign-in first."""
    sql = f"""SELECT {_DEVICE.format_select("s")} FROM sign_in s
        WHERE {_IS_OPEN} AND s.person_id = $3 ORDER BY s.created_at DESC, s.id"""
    rows = tx.fetch_all(sql, *_compute_oldest_open_times(now), person_id)
    return [_DEVICE.decode(row) for row in rows]


def sign_out(tx: Transaction, person_id: PersonId, sign_in_id: str, *, keeps_links: bool = False) -> bool:
    """End one of a person's sign-ins, and the links it got; return False if they have none with this id.

    `keeps_links` is for people who sign out themselves, and not a browser that they no longer trust.
    """
    if not keeps_links:
        _delete_issued_links(tx, person_id, "id = $2", sign_in_id)
    return bool(tx.execute("DELETE FROM sign_in WHERE person_id = $1 AND id = $2", person_id, sign_in_id))


def end_sign_in(tx: Transaction, digest: str) -> None:
    """End the sign-in of a browser that is about to get a new one."""
    tx.execute("DELETE FROM sign_in WHERE digest = $1", digest)


def sign_out_everywhere(tx: Transaction, person_id: PersonId, *, except_id: str | None = None) -> None:
    """End all of a person's sign-ins but one, and delete the links these got or with which the person could sign in."""
    _delete_issued_links(tx, person_id, "id <> $2", except_id or "")
    tx.execute("DELETE FROM sign_in WHERE person_id = $1 AND id <> $2", person_id, except_id or "")
    delete_sign_in_links(tx, person_id)


def _delete_issued_links(tx: Transaction, person_id: PersonId, condition: str, sign_in_id: str) -> None:
    """Delete the links, also of other people, that some sign-ins of a person got."""
    sql = f"DELETE FROM sign_in_link WHERE issued_by IN (SELECT id FROM sign_in WHERE person_id = $1 AND {condition})"
    tx.execute(sql, person_id, sign_in_id)


# ---- API tokens ------------------------------------------------------------------------------------------


def add_token(tx: Transaction, person_id: PersonId, token: ApiToken, digest: str) -> None:
    values = _TOKEN.encode_value(token)
    secret = {"digest": digest, "person_id": person_id, "scopes": " ".join(token.scopes)}
    insert_row(tx, "api_token", values | secret)


def find_token(tx: Transaction, digest: str, now: int) -> tuple[SignedInPerson, bool] | None:
    """Find the person whom a token signs in, and whether it is time to call `mark_token_used`."""
    sql = f"""SELECT {PERSON_COLUMNS}, t.id, t.scopes, t.last_used_at FROM api_token t
        JOIN person p ON p.id = t.person_id WHERE {_IS_VALID} AND t.digest = $2"""
    row = tx.fetch_one(sql, now, digest)
    if row is None:
        return None
    person, (token_id, scopes, last_used_at) = read_person(row)
    signed_in = SignedInPerson(
        person=person, credential_type="token", scopes=frozenset(map(Scope, scopes.split())), credential_id=token_id
    )
    return signed_in, (last_used_at or 0) < now - _MIN_USE_INTERVAL_MICROS


def mark_token_used(tx: Transaction, token_id: str, now: int) -> None:
    tx.execute("UPDATE api_token SET last_used_at = $2 WHERE id = $1 AND COALESCE(last_used_at, 0) < $2", token_id, now)


def list_tokens(tx: Transaction, person_id: PersonId) -> Sequence[ApiToken]:
    sql = f"SELECT {_TOKEN.format_select()}, scopes FROM api_token WHERE person_id = $1 ORDER BY created_at DESC, id"
    rows = tx.fetch_all(sql, person_id)
    return [_TOKEN.decode(row, scopes=tuple(map(Scope, row[-1].split()))) for row in rows]


def revoke_token(tx: Transaction, person_id: PersonId, token_id: str) -> bool:
    """Delete one of a person's tokens; return False if they have none with this id."""
    return bool(tx.execute("DELETE FROM api_token WHERE person_id = $1 AND id = $2", person_id, token_id))


def is_still_signed_in(tx: Transaction, signed_in: SignedInPerson, now: int) -> bool:
    """Return whether a sign-in or token that was valid a while ago still is, and the person still has the same role."""
    times: tuple[int, ...] = (now,)
    credential = f"api_token t JOIN person p ON p.id = t.person_id WHERE {_IS_VALID} AND t.id = $2"
    if signed_in.credential_type == "cookie":
        times = _compute_oldest_open_times(now)
        credential = f"sign_in s JOIN person p ON p.id = s.person_id WHERE {_IS_OPEN} AND s.id = $3"
    role = fetch_value(tx, f"SELECT p.role FROM {credential}", *times, signed_in.credential_id)
    return bool(role == signed_in.person.role)


def _compute_oldest_open_times(now: int) -> tuple[int, int]:
    """Return the moments after which a sign-in must have been created and last seen to be still open."""
    return now - SIGN_IN_LIFETIME // _MICROSECOND, now - SIGN_IN_IDLE_LIMIT // _MICROSECOND


PERSON_DATA: Final = tuple(
    PersonColumn(table, merge=STAYS_WITH_ACCOUNT, erase=EraseAt.CASCADE, count=count)
    for table, count in (("account", ""), ("api_token", "tokens"), ("sign_in", "sign_ins"), ("sign_in_link", ""))
)
