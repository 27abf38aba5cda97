"""How far each of our accounts has read on its platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.text import make_storable

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.platform_updates import Cursor


def save(tx: Transaction, account: AccountKey, cursor: Cursor, now: int) -> None:
    tx.execute(
        "INSERT INTO platform_cursor (platform, account, name, value, updated_at) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (platform, account, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        *map(str, account),
        cursor.name,
        make_storable(cursor.value),
        now,
    )


def load(tx: Transaction, account: AccountKey, name: str = "") -> str | None:
    """Return the cursor that was saved last; None if there is none."""
    row = tx.fetch_one(
        "SELECT value FROM platform_cursor WHERE platform = $1 AND account = $2 AND name = $3", *map(str, account), name
    )
    return None if row is None else str(row[0])
