"""Passkeys and their challenges, the browsers in which people have signed in before, and the attempts to sign in.

Always true, by the schema and the statements: a credential belongs to one person; a challenge is used once; an attempt
is counted before it is made, so a hundred attempts at the same moment count as a hundred.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.columns import Columns, insert_row
from palaver.core.dataclass import dataclass
from palaver.people.model import CHALLENGE_LIFETIME, KNOWN_DEVICE_LIFETIME, Passkey, Person, RateLimit, normalize_name
from palaver.people.person_data import STAYS_WITH_ACCOUNT, EraseAt, PersonColumn
from palaver.people.table import PERSON_COLUMNS, read_person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId


_MICROSECOND: Final = timedelta(microseconds=1)
_PASSKEY: Final = Columns(Passkey)
_MAX_DEVICES_PER_PERSON: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A passkey as an authenticator has created it."""

    credential_id: str
    public_key: str
    sign_count: int


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """A passkey with what is needed to check a signature against it."""

    person: Person
    id: str
    site: str
    public_key: str
    sign_count: int


def add_challenge(tx: Transaction, digest: str, person_id: PersonId | None, now: int) -> None:
    """Store a challenge, for one person (None: for everyone who signs in), and delete the expired ones."""
    tx.execute("DELETE FROM passkey_challenge WHERE expires_at <= $1", now)
    expires_at = now + CHALLENGE_LIFETIME // _MICROSECOND
    insert_row(tx, "passkey_challenge", {"digest": digest, "person_id": person_id, "expires_at": expires_at})


def use_challenge(tx: Transaction, digest: str, person_id: PersonId | None, now: int) -> bool:
    """Use up a challenge; return False if it was not given to this person, has expired or was used before."""
    sql = """DELETE FROM passkey_challenge WHERE digest = $1 AND COALESCE(person_id, '') = $2 AND expires_at > $3
        RETURNING 1"""
    row = tx.fetch_one(sql, digest, person_id or "", now)
    return row is not None


def add(tx: Transaction, person_id: PersonId, passkey: Passkey, registration: Registration, now: int) -> bool:
    """Store a new passkey; return False if its credential is stored already."""
    sql = """INSERT INTO passkey (id, credential_id, person_id, site, public_key, sign_count, name, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"""
    return bool(
        tx.execute(
            sql,
            passkey.id,
            registration.credential_id,
            person_id,
            passkey.site,
            registration.public_key,
            registration.sign_count,
            passkey.name,
            now,
        )
    )


def find_by_credential(tx: Transaction, credential_id: str) -> StoredPasskey | None:
    sql = f"""SELECT {PERSON_COLUMNS}, k.id, k.site, k.public_key, k.sign_count
        FROM passkey k JOIN person p ON p.id = k.person_id WHERE k.credential_id = $1"""
    row = tx.fetch_one(sql, credential_id)
    if row is None:
        return None
    person, rest = read_person(row)
    return StoredPasskey(person, *rest)


def record_use(tx: Transaction, passkey_id: str, *, count_before: int, count: int, now: int) -> bool:
    """Store the new signature count; return False if another request used the passkey meanwhile, or it is deleted."""
    sql = "UPDATE passkey SET sign_count = $3, last_used_at = $4 WHERE id = $1 AND sign_count = $2"
    return bool(tx.execute(sql, passkey_id, count_before, count, now))


def list_passkeys(tx: Transaction, person_id: PersonId) -> Sequence[Passkey]:
    sql = f"SELECT {_PASSKEY.format_select()} FROM passkey WHERE person_id = $1 ORDER BY created_at DESC, id"
    return [_PASSKEY.decode(row) for row in tx.fetch_all(sql, person_id)]


def list_credentials(tx: Transaction, person_id: PersonId, site: str) -> Sequence[str]:
    rows = tx.fetch_all("SELECT credential_id FROM passkey WHERE person_id = $1 AND site = $2", person_id, site)
    return [credential_id for (credential_id,) in rows]


def has_any(tx: Transaction, site: str) -> bool:
    return tx.fetch_one("SELECT 1 FROM passkey WHERE site = $1 LIMIT 1", site) is not None


def delete(tx: Transaction, person_id: PersonId, passkey_id: str) -> bool:
    """Delete one of a person's passkeys; return False if they have none with this id."""
    return bool(tx.execute("DELETE FROM passkey WHERE person_id = $1 AND id = $2", person_id, passkey_id))


# ---- known devices ---------------------------------------------------------------------------------------

# A browser proves with a cookie of its own that a person has signed in with it before. The cookie does not sign them
# in, but guesses of strangers do not count against it (see decision 18).


def remember(tx: Transaction, person_id: PersonId, old_digest: str, new_digest: str, now: int) -> None:
    """Remember that a person has signed in with a browser, whose cookie is replaced by a new one."""
    tx.execute("UPDATE known_device SET digest = $2 WHERE digest = $1", old_digest, new_digest)  # also of other people
    sql = """INSERT INTO known_device (digest, person_id, signed_in_at) VALUES ($1, $2, $3)
        ON CONFLICT (digest, person_id) DO UPDATE SET signed_in_at = EXCLUDED.signed_in_at"""
    tx.execute(sql, new_digest, person_id, now)
    sql = """DELETE FROM known_device WHERE person_id = $1 AND (signed_in_at <= $2 OR digest NOT IN
        (SELECT digest FROM known_device WHERE person_id = $1 ORDER BY signed_in_at DESC LIMIT $3))"""
    tx.execute(sql, person_id, now - KNOWN_DEVICE_LIFETIME // _MICROSECOND, _MAX_DEVICES_PER_PERSON)


def is_known(tx: Transaction, digest: str, name: str, now: int) -> bool:
    """Return whether the person with this sign-in name has signed in before with the browser that has this cookie."""
    sql = """SELECT 1 FROM known_device d JOIN account a ON a.person_id = d.person_id
        WHERE d.digest = $1 AND a.name_key = $2 AND d.signed_in_at > $3"""
    row = tx.fetch_one(sql, digest, normalize_name(name), now - KNOWN_DEVICE_LIFETIME // _MICROSECOND)
    return row is not None


# ---- sign-in attempts ------------------------------------------------------------------------------------

# Each subject (a name, a network address or a device) has one moment. An attempt moves it ahead by one refill interval;
# if it then lies further ahead than the allowed burst, the attempt is refused. As time passes, the moment falls behind
# again (this is the generic cell rate algorithm).

# One transaction at a time: each changes several rows, and two of them could wait for each other for ever.
_LOCK_NAME = "palaver sign-in attempts"


def count_attempt(tx: Transaction, limits: dict[str, RateLimit], now: int) -> float:
    """Count an attempt against each subject and return 0; if it is too many, count nothing and return the seconds
    to wait.
    """
    tx.lock_name(_LOCK_NAME)
    tx.execute("DELETE FROM sign_in_attempt WHERE busy_until <= $1", now)
    wait_micros = 0
    rows = []
    for subject, limit in limits.items():
        row = tx.fetch_one("SELECT busy_until FROM sign_in_attempt WHERE subject = $1", subject)
        interval = limit.refill_interval // _MICROSECOND
        busy_until = (row[0] if row else now) + interval
        wait_micros = max(wait_micros, busy_until - now - limit.burst * interval)
        rows.append((subject, busy_until))
    if wait_micros > 0:
        return wait_micros / 1_000_000
    sql = """INSERT INTO sign_in_attempt (subject, busy_until) VALUES ($1, $2)
        ON CONFLICT (subject) DO UPDATE SET busy_until = EXCLUDED.busy_until"""
    tx.execute_many(sql, rows)
    return 0.0


def uncount_attempt(tx: Transaction, limits: dict[str, RateLimit]) -> None:
    """Take an attempt out of the count, because it succeeded."""
    tx.lock_name(_LOCK_NAME)
    for subject, limit in limits.items():
        sql = "UPDATE sign_in_attempt SET busy_until = busy_until - $2 WHERE subject = $1"
        tx.execute(sql, subject, limit.refill_interval // _MICROSECOND)


PERSON_DATA: Final = tuple(
    PersonColumn(table, merge=STAYS_WITH_ACCOUNT, erase=EraseAt.CASCADE, count=count)
    for table, count in (("passkey", "passkeys"), ("passkey_challenge", ""), ("known_device", ""))
)
