"""Merges SQLite's search index a few pages at a time, so that no writer waits for a merge.

Every transaction that indexes messages adds a part to the index, and a search looks into all parts. By itself, FTS5
merges hundreds of pages in the transaction that happens to come then, so that is off (migration 21), and the indexer
calls `merge_parts` instead. FTS5 also keeps the words of a deleted message until the part that has them is merged:
`merge_piece` does that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.sessions import deletion_table as session_deletion

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

MERGED_PAGES: Final = 20  # in one transaction
MAX_MERGE_STEPS: Final = 100_000  # one after the other, also of a very large index
MERGED_DELETIONS_PERCENT: Final = 5  # of the messages of a part are deleted: it is merged


def merge_parts(tx: Transaction) -> bool:
    """Merge a few pages of the parts that new messages have added; return whether there may be more to merge.

    Not while a conversation is being deleted: a merge that writes few pages may then have to read very many.
    """
    return tx.name == "sqlite" and session_deletion.find_hidden(tx) is None and merge_pages(tx, MERGED_PAGES)


def merge_piece(tx: Transaction) -> bool:
    """Merge a few pages of the parts of which much is deleted; return whether there may be more to merge."""
    if tx.name != "sqlite":  # in PostgreSQL the words are deleted with their message
        return False
    before = tx.fetch_one("SELECT v FROM search_config WHERE k = 'deletemerge'")
    set_delete_merge(tx, MERGED_DELETIONS_PERCENT)
    has_merged = merge_pages(tx, MERGED_PAGES)
    set_delete_merge(tx, int(before[0]) if before else 0)  # an erasure, too, may be merging
    return has_merged


def merge_pages(tx: Transaction, pages: int) -> bool:
    """Merge about so many pages (negative: begin to merge everything); return whether anything was merged."""
    before = tx.fetch_one("SELECT total_changes()")
    tx.execute("INSERT INTO search (search, rank) VALUES ('merge', $1)", pages)
    after = tx.fetch_one("SELECT total_changes()")
    return before is not None and after is not None and after[0] - before[0] >= 2  # so says the documentation of FTS5


def set_delete_merge(tx: Transaction, percent: int) -> None:
    """Let the index merge a part of which so much is deleted; 0: only when there are other reasons to."""
    tx.execute("INSERT INTO search (search, rank) VALUES ('deletemerge', $1)", percent)
