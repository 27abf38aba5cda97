"""Known devices: browsers in which a person has signed in before. A browser proves that with a cookie of its own.

They are not signed in by it. Guesses of strangers do not count against them (see decision 18).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.people.account import KNOWN_DEVICE_LIFETIME, normalize_name

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId

MAX_DEVICES_PER_PERSON: Final = 20


def remember(tx: Transaction, person_id: PersonId, old_digest: str, new_digest: str, now: int) -> None:
    """Remember that a person has signed in with a browser, whose cookie is replaced by a new one."""
    tx.execute("UPDATE known_device SET digest = $2 WHERE digest = $1", old_digest, new_digest)  # also of other people
    tx.execute(
        "INSERT INTO known_device (digest, person_id, signed_in_at) VALUES ($1, $2, $3)"
        " ON CONFLICT (digest, person_id) DO UPDATE SET signed_in_at = EXCLUDED.signed_in_at",
        new_digest,
        person_id,
        now,
    )
    tx.execute(
        "DELETE FROM known_device WHERE person_id = $1 AND (signed_in_at <= $2 OR digest NOT IN"
        " (SELECT digest FROM known_device WHERE person_id = $1 ORDER BY signed_in_at DESC LIMIT $3))",
        person_id,
        now - int(KNOWN_DEVICE_LIFETIME.total_seconds()) * 1_000_000,
        MAX_DEVICES_PER_PERSON,
    )


def is_known(tx: Transaction, digest: str, name: str, now: int) -> bool:
    """Whether the person with this sign-in name has signed in before with the browser that has this cookie."""
    row = tx.fetch_one(
        "SELECT 1 FROM known_device d JOIN account a ON a.person_id = d.person_id"
        " WHERE d.digest = $1 AND a.name_key = $2 AND d.signed_in_at > $3",
        digest,
        normalize_name(name),
        now - int(KNOWN_DEVICE_LIFETIME.total_seconds()) * 1_000_000,
    )
    return row is not None
