"""Leases by name: what only one process on the database may do at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.engines.base import Transaction


def take(tx: Transaction, name: str, owner: str, until: int, now: int, is_owner_dead: Callable[[str], bool]) -> bool:
    """Take or extend a lease; False if another process that may still be alive holds it."""
    tx.lock_name(f"palaver lease {name}")
    if is_held_by_other(tx, name, owner, now, is_owner_dead):
        return False
    tx.execute(
        "INSERT INTO named_lease (name, owner, until) VALUES ($1, $2, $3)"
        " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until",
        name,
        owner,
        until,
    )
    return True


def is_held_by_other(tx: Transaction, name: str, owner: str, now: int, is_owner_dead: Callable[[str], bool]) -> bool:
    """Whether `take` would fail now, for a caller who does not want to write in vain."""
    row = tx.fetch_one("SELECT owner, until FROM named_lease WHERE name = $1", name)
    return row is not None and row[0] != owner and row[1] > now and not is_owner_dead(row[0])


def release(tx: Transaction, name: str, owner: str) -> None:
    """Give a lease back, if this process holds it."""
    tx.execute("DELETE FROM named_lease WHERE name = $1 AND owner = $2", name, owner)
