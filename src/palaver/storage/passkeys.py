"""Passkeys: the public halves of people's keys, and what their authenticators were asked to sign.

Always true, by the schema and the statements: a credential is one person's; a challenge is answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.account import CHALLENGE_LASTS, Passkey
from palaver.storage.people import PERSON, person_from_row
from palaver.storage.timestamps import from_micros, from_micros_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.storage.engines.base import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A passkey as a signature is checked against it."""

    id: str
    person: Person
    site: str
    public_key: str
    sign_count: int


def challenge(tx: Transaction, digest: str, person_id: PersonId | None, now: int) -> None:
    """Remember what an authenticator is asked to sign; what nobody has answered in time is swept out."""
    tx.run("DELETE FROM passkey_challenge WHERE expires_at <= $1", now)
    tx.run(
        "INSERT INTO passkey_challenge (digest, person_id, expires_at) VALUES ($1, $2, $3)",
        digest,
        person_id,
        now + int(CHALLENGE_LASTS.total_seconds()) * 1_000_000,
    )


def answer(tx: Transaction, digest: str, person_id: PersonId | None, now: int) -> bool:
    """Whether this was asked, of this person or of anybody, and not answered yet; now it is."""
    row = tx.one(
        "DELETE FROM passkey_challenge WHERE digest = $1 AND COALESCE(person_id, '') = $2 AND expires_at > $3"
        " RETURNING 1",
        digest,
        person_id or "",
        now,
    )
    return row is not None


def add(
    tx: Transaction, person_id: PersonId, passkey: Passkey, credential: str, public_key: str, sign_count: int, now: int
) -> bool:
    """Keep a new passkey; False when the credential is known already."""
    return bool(
        tx.run(
            "INSERT INTO passkey (id, credential, person_id, site, public_key, sign_count, name, created_at)"
            " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
            passkey.id,
            credential,
            person_id,
            passkey.site,
            public_key,
            sign_count,
            passkey.name,
            now,
        )
    )


def find(tx: Transaction, credential: str) -> Stored | None:
    """A passkey by the authenticator's id of it."""
    row = tx.one(
        f"SELECT {PERSON}, k.id, k.site, k.public_key, k.sign_count"
        " FROM passkey k JOIN person p ON p.id = k.person_id WHERE k.credential = $1",
        credential,
    )
    if row is None:
        return None
    identity, site, public_key, sign_count = row[4:]
    return Stored(
        id=identity,
        person=person_from_row(row),
        site=site,
        public_key=public_key,
        sign_count=sign_count,
    )


def used(tx: Transaction, identity: str, *, count_before: int, count: int, now: int) -> bool:
    """Write down a use; False when somebody else has used it meanwhile, or it is gone."""
    return bool(
        tx.run(
            "UPDATE passkey SET sign_count = $3, used_at = $4 WHERE id = $1 AND sign_count = $2",
            identity,
            count_before,
            count,
            now,
        )
    )


def listed(tx: Transaction, person_id: PersonId) -> Sequence[Passkey]:
    """Somebody's passkeys, the latest first."""
    rows = tx.all(
        "SELECT id, name, site, created_at, used_at FROM passkey WHERE person_id = $1 ORDER BY created_at DESC, id",
        person_id,
    )
    return [
        Passkey(
            id=identity, name=name, site=site, created_at=from_micros(created_at), used_at=from_micros_or_none(used_at)
        )
        for identity, name, site, created_at, used_at in rows
    ]


def credentials_of(tx: Transaction, person_id: PersonId, site: str) -> Sequence[str]:
    """The ids by which authenticators know somebody's passkeys for a host."""
    rows = tx.all("SELECT credential FROM passkey WHERE person_id = $1 AND site = $2", person_id, site)
    return [credential for (credential,) in rows]


def any_for(tx: Transaction, site: str) -> bool:
    """Whether anybody has a passkey for a host."""
    return tx.one("SELECT 1 FROM passkey WHERE site = $1 LIMIT 1", site) is not None


def remove(tx: Transaction, person_id: PersonId, identity: str) -> bool:
    """Forget a passkey; False when it is none of theirs."""
    return bool(tx.run("DELETE FROM passkey WHERE person_id = $1 AND id = $2", person_id, identity))
