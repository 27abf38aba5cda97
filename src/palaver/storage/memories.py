"""Memories: what the agent was asked to remember, stored per audience.

Always true, by a unique index: no audience has the same memory twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import DuplicateMemory, LimitReached
from palaver.domain.ids import MemoryId, PersonId, new_memory_id
from palaver.domain.memory import MAX_MEMORIES_PER_AUDIENCE, Memory, build_memory_key, clean_memory, find_best_matches
from palaver.domain.text import is_storable
from palaver.storage.statements import build_placeholders
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.storage.engines.base import Row, Transaction

_COLUMNS = "id, text, person_id, created_at"


def add(tx: Transaction, audience_no: int, person_id: PersonId | None, text: str, now: int) -> Memory:
    """Add a memory to an audience; if the audience already has it, return the existing one."""
    clean = clean_memory(text)
    tx.lock_name(f"palaver memory {audience_no}")
    existing = tx.fetch_one(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no = $1 AND text_key = $2", audience_no, build_memory_key(clean)
    )
    if existing is not None:
        return memory_from_row(existing)
    count = tx.fetch_one("SELECT COUNT(*) FROM memory WHERE audience_no = $1", audience_no)
    if count is not None and count[0] >= MAX_MEMORIES_PER_AUDIENCE:
        raise LimitReached(
            f"There are already {MAX_MEMORIES_PER_AUDIENCE} memories here. Delete one before you add another.",
            what="memories",
            limit=MAX_MEMORIES_PER_AUDIENCE,
        )
    memory = Memory(id=new_memory_id(), text=clean, person_id=person_id, created_at=from_micros(now))
    tx.execute(
        "INSERT INTO memory (id, audience_no, person_id, text, text_key, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        memory.id,
        audience_no,
        person_id,
        clean,
        build_memory_key(clean),
        now,
    )
    return memory


def search(tx: Transaction, audiences: Sequence[int], query: str, limit: int) -> list[Memory]:
    """Return the memories of these audiences that match a query, the best first; without a query, the newest."""
    if not audiences:
        return []
    newest = f" LIMIT {int(limit)}" if not query.strip() else ""
    rows = tx.fetch_all(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no IN ({build_placeholders(len(audiences))})"
        f" ORDER BY no DESC{newest}",
        *audiences,
    )
    return find_best_matches((memory_from_row(row) for row in rows), query, limit)


def update_text(
    tx: Transaction, audience_no: int, memory_id: MemoryId, person_id: PersonId, text: str, now: int
) -> None:
    """Change the text of a memory; refuse a text that another memory of the audience already has."""
    clean = clean_memory(text)
    tx.lock_name(f"palaver memory {audience_no}")
    duplicate = tx.fetch_one(
        "SELECT id FROM memory WHERE audience_no = $1 AND text_key = $2 AND id <> $3",
        audience_no,
        build_memory_key(clean),
        memory_id,
    )
    if duplicate is not None:
        raise DuplicateMemory("Another memory already says this. Delete one of the two.", memory_id=duplicate[0])
    tx.execute(
        "UPDATE memory SET text = $2, text_key = $3, person_id = $4, created_at = $5 WHERE id = $1",
        memory_id,
        clean,
        build_memory_key(clean),
        person_id,
        now,
    )


def delete_matching(tx: Transaction, audiences: Sequence[int], id_or_text: str) -> list[Memory]:
    """Delete the memories with this id or text, and return them."""
    deleted = list_matching(tx, audiences, id_or_text)
    for memory in deleted:
        delete(tx, memory.id)
    return deleted


def delete(tx: Transaction, memory_id: MemoryId) -> None:
    tx.execute("DELETE FROM memory WHERE id = $1", memory_id)


def list_matching(tx: Transaction, audiences: Sequence[int], id_or_text: str) -> list[Memory]:
    """Return the memories with this id or text."""
    if not audiences or not is_storable(id_or_text):
        return []
    rows = tx.fetch_all(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no IN ({build_placeholders(len(audiences))})"
        f" AND (id = ${len(audiences) + 1} OR text_key = ${len(audiences) + 2}) ORDER BY no DESC",
        *audiences,
        id_or_text.strip(),
        build_memory_key(id_or_text),
    )
    return [memory_from_row(row) for row in rows]


def memory_from_row(row: Row) -> Memory:
    """Read a memory from a row that begins with its id, text, person and time."""
    memory_id, text, person_id, created_at = row[:4]
    return Memory(
        id=MemoryId(memory_id),
        text=text,
        person_id=None if person_id is None else PersonId(person_id),
        created_at=from_micros(created_at),
    )
