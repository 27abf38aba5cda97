"""The ids of one person on a platform where a message may carry any of them, such as a phone number or a LID.

Always true: an id belongs to one person at a time, and every id here was named by the platform itself. The rows of a
person follow the row of `identity` that has their main id, and go with it. `accounts/sender_folding.py` decides which
ids belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.statements import build_placeholders
from palaver.people.sender_ids import list_sender_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.people.sender_ids import SenderId


def find_main_ids(tx: Transaction, platform: str, ids: Sequence[SenderId]) -> dict[str, str]:
    """Return the id that each of these people is stored under, by the ids that are known."""
    texts = [each.id for each in ids]
    if not texts:
        return {}
    some = build_placeholders(len(texts), first=2)
    rows = tx.fetch_all(
        f"SELECT 0, account, account FROM identity WHERE platform = $1 AND account IN ({some})"
        f" UNION ALL SELECT 1, id, main_id FROM sender_id WHERE platform = $1 AND id IN ({some})",
        platform,
        *texts,
    )
    return {text: main_id for _, text, main_id in sorted(rows)}


def list_ids(tx: Transaction, platform: str, main_id: str) -> list[str]:
    """List all ids of a person, the main one first."""
    rows = tx.fetch_all("SELECT id FROM sender_id WHERE platform = $1 AND main_id = $2 ORDER BY id", platform, main_id)
    return [main_id, *(text for (text,) in rows if text != main_id)]


def find_lasting_id(tx: Transaction, platform: str, main_id: str, *, other_than: Iterable[str] = ()) -> str | None:
    """Return a present id of a person that no other person ever gets."""
    rows = tx.fetch_all(
        "SELECT id FROM sender_id WHERE platform = $1 AND main_id = $2 AND is_lasting = 1 ORDER BY id",
        platform,
        main_id,
    )
    ignored = set(other_than)
    return next((text for (text,) in rows if text not in ignored), None)


def find_replaced(tx: Transaction, platform: str, text: str) -> str | None:
    """Return the main id of the person who had this lasting id before they got another one."""
    row = tx.fetch_one(
        "SELECT main_id FROM sender_id WHERE platform = $1 AND id = $2 AND is_lasting = 0", platform, text
    )
    return str(row[0]) if row else None


def save(tx: Transaction, source: SessionSource, main_id: str, now: int) -> None:
    """Store that the ids of a source belong to one person. A single id needs no row."""
    ids = list_sender_ids(source)
    if len(ids) > 1 or any(each.id != main_id for each in ids):
        save_ids(tx, source.platform, ids, main_id, now)


def save_ids(tx: Transaction, platform: str, ids: Iterable[SenderId], main_id: str, now: int) -> None:
    """Store that these are ids of one person, and that they are the present ones."""
    for each in ids:
        tx.execute(
            "INSERT INTO sender_id (platform, id, main_id, is_lasting, seen_at) VALUES ($1, $2, $3, $4, $5)"
            " ON CONFLICT (platform, id) DO UPDATE SET main_id = excluded.main_id, is_lasting = excluded.is_lasting,"
            " seen_at = excluded.seen_at",
            str(platform),
            each.id,
            main_id,
            int(each.is_lasting),
            now,
        )


def remove(tx: Transaction, platform: str, text: str) -> None:
    """Forget an id: it belongs to no person until the platform names its person again."""
    tx.execute("DELETE FROM sender_id WHERE platform = $1 AND id = $2", platform, text)


def mark_replaced(tx: Transaction, platform: str, main_id: str) -> None:
    """Let all ids of a person be old ones: they have others now."""
    tx.execute("UPDATE sender_id SET is_lasting = 0 WHERE platform = $1 AND main_id = $2", platform, main_id)


def change_main_id(tx: Transaction, platform: str, old_id: str, new_id: str) -> None:
    """Give all ids of a person to the one who is stored under another id."""
    tx.execute("UPDATE sender_id SET main_id = $3 WHERE platform = $1 AND main_id = $2", platform, old_id, new_id)
