"""Home channels that owners chose with /sethome: one chat for each platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.core.sources import decode_source, encode_source

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource


def load_chosen(tx: Transaction) -> dict[Platform, SessionSource]:
    """Return the chosen chat of each platform, as the owner wrote there."""
    rows = tx.fetch_all("SELECT platform, source FROM home_channel ORDER BY platform")
    return {Platform(platform): decode_source(source) for platform, source in rows}


def choose(tx: Transaction, source: SessionSource, person_id: PersonId, now: int) -> None:
    """Make the chat of this source the home channel of its platform."""
    tx.execute(
        "INSERT INTO home_channel (platform, source, set_by, set_at) VALUES ($1, $2, $3, $4) ON CONFLICT (platform)"
        " DO UPDATE SET source = excluded.source, set_by = excluded.set_by, set_at = excluded.set_at",
        str(source.platform),
        encode_source(source),
        person_id,
        now,
    )


def remove(tx: Transaction, platform: Platform, set_by: PersonId | None = None) -> bool:
    """Remove the chosen home channel of a platform, or only one that this person has set; False if there was none."""
    return bool(
        tx.execute(
            "DELETE FROM home_channel WHERE platform = $1 AND ($2 = '' OR set_by = $2)", str(platform), set_by or ""
        )
    )
