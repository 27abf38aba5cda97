"""The table of imported items: a second import recognizes them, and one that was interrupted continues.

Always true: the progress of a conversation is stored in the transaction that stores its entries. A row stays when its
conversation is deleted here, so that a later import does not bring that back.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final, Literal, NamedTuple

from palaver.core.engines.base import Transaction, list_columns
from palaver.core.old_rows import OldRows
from palaver.core.text import make_storable
from palaver.sessions import deletion_table as session_deletion, table as sessions

ItemKind = Literal["conversation", "account", "home_channel", "memory", "job"]

MAX_ORIGIN_ID_CHARS: Final = 200  # of which an id is stored as it is; an index takes only so much
_BY_KEY = "format = $1 AND kind = $2 AND owner = $3 AND origin_id = $4"


class ItemKey(NamedTuple):
    format: str
    kind: ItemKind
    owner: str  # the person it was imported for; empty: its files name the people
    origin_id: str


def make_key(import_format: str, kind: ItemKind, owner: str, origin_id: str) -> ItemKey:
    """Build the key of an item from its id in the other program, which may be any text."""
    text = make_storable(origin_id)
    if len(text) > MAX_ORIGIN_ID_CHARS:
        text = f"long-{hashlib.sha256(text.encode()).hexdigest()}"
    return ItemKey(import_format, kind, owner, text)


class ItemProgress(NamedTuple):
    """An item that came in before, as a whole or in part."""

    session_id: str | None
    state: str
    entry_count: int
    digest: str
    last_seq: int

    @property
    def is_done(self) -> bool:
        return self.state == "done"


def find(tx: Transaction, key: ItemKey) -> ItemProgress | None:
    row = tx.fetch_one(f"SELECT {list_columns(ItemProgress)} FROM imported_item WHERE {_BY_KEY}", *key)
    return None if row is None else ItemProgress(*row)


def add(tx: Transaction, key: ItemKey, now: int, *, session_id: str | None = None, is_done: bool = True) -> bool:
    """Record an item; False if it is recorded already."""
    sql = """INSERT INTO imported_item (format, kind, owner, origin_id, session_id, state, imported_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"""
    return bool(tx.execute(sql, *key, session_id, "done" if is_done else "writing", now))


def save_progress(
    tx: Transaction, key: ItemKey, entry_count: int, digest: str, last_seq: int, *, is_done: bool
) -> None:
    """Record how much of a conversation is stored."""
    sql = f"UPDATE imported_item SET entry_count = $5, digest = $6, last_seq = $7, state = $8 WHERE {_BY_KEY}"
    tx.execute(sql, *key, entry_count, digest, last_seq, "done" if is_done else "writing")


def remove(tx: Transaction, key: ItemKey, session_id: str | None) -> int:
    """Forget a conversation that is not complete, so that it comes in again; return how many entries it had."""
    tx.execute(f"DELETE FROM imported_item WHERE {_BY_KEY}", *key)
    row = tx.fetch_one("SELECT no FROM session WHERE id = $1", session_id)
    return 0 if row is None else session_deletion.delete(tx, sessions.get_by_no(tx, row[0])).rows


def has_unfinished(tx: Transaction, before: int) -> bool:
    """Return whether an import began before a moment and was never finished."""
    sql = "SELECT 1 FROM imported_item WHERE state = 'writing' AND imported_at < $1 LIMIT 1"
    return tx.fetch_one(sql, before) is not None


def delete_unfinished(tx: Transaction, before: int, limit: int) -> int:
    """Delete conversations whose import began before a moment and was never finished; return how many."""
    sql = """SELECT format, kind, owner, origin_id, session_id FROM imported_item WHERE state = 'writing'
        AND imported_at < $1 ORDER BY imported_at LIMIT $2"""
    rows = tx.fetch_all(sql, before, limit)
    item_count, row_count = 0, 0
    for *key, session_id in rows:
        row_count += remove(tx, ItemKey(*key), session_id)
        item_count += 1
        if row_count >= session_deletion.ROWS_PER_PIECE:
            break
    return item_count


MAX_UNFINISHED_IMPORT_AGE: Final = timedelta(days=30)  # after that, it is not expected to be run again
CONVERSATIONS_PER_BATCH: Final = 20
OLD_ROWS: Final = {
    "unfinished_imports": OldRows(MAX_UNFINISHED_IMPORT_AGE, has_unfinished, delete_unfinished, CONVERSATIONS_PER_BATCH)
}
