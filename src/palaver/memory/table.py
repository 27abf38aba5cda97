"""Memories: what the agent remembers, stored per audience.

Always true, by a unique index: no audience has the same memory twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.errors import DuplicateMemory, LimitReached, NotFound
from palaver.core.ids import MemoryId, PersonId, new_memory_id
from palaver.core.statements import build_placeholders
from palaver.core.text import is_storable
from palaver.core.timestamps import from_micros
from palaver.memory import learning_table as memory_turns
from palaver.memory.model import (
    MAX_MEMORIES_PER_AUDIENCE,
    Memory,
    MemoryOrigin,
    build_memory_key,
    clean_memory,
    find_best_matches,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import SessionId

COLUMNS = "id, text, person_id, created_at, origin"  # for `memory_from_row`


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to add to an audience."""

    text: str
    person_id: PersonId | None
    origin: MemoryOrigin = MemoryOrigin.PERSON
    session_id: SessionId | None = None  # the conversation that it is from
    supersedes: tuple[str, ...] = ()  # ids of memories of the same audience that it replaces
    limit: int = MAX_MEMORIES_PER_AUDIENCE  # how many memories the audience may have afterwards
    id: MemoryId | None = None  # None: a new one


def add(tx: Transaction, audience_no: int, new: NewMemory, now: int) -> Memory:
    """Add a memory to an audience, in place of those that it supersedes.

    If the audience already has this text, and nothing is superseded, return the existing one. Raises `NotFound`,
    having changed nothing, if one of the superseded memories is not there.
    """
    clean = clean_memory(new.text)
    lock(tx, audience_no)
    superseded = list_by_ids(tx, [audience_no], [memory_id for memory_id in new.supersedes if is_storable(memory_id)])
    missing = set(new.supersedes) - {memory.id for memory in superseded}
    if missing:
        raise NotFound(f"There is no memory {min(missing)!r} here that could be replaced.", memory_id=min(missing))
    row = tx.fetch_one(
        f"SELECT {COLUMNS} FROM memory WHERE audience_no = $1 AND text_key = $2", audience_no, build_memory_key(clean)
    )
    if row is not None and not superseded:
        return memory_from_row(row)
    if row is not None and memory_from_row(row) not in superseded:
        raise DuplicateMemory("Another memory already says this.", memory_id=row[0])
    if count(tx, audience_no) - len(superseded) >= new.limit:
        raise LimitReached(
            f"There are already {new.limit} memories here. Delete one before you add another.",
            what="memories",
            limit=new.limit,
        )
    for memory in superseded:
        tx.execute("DELETE FROM memory WHERE id = $1", memory.id)
    return _insert(tx, audience_no, new, clean, now)


def _insert(tx: Transaction, audience_no: int, new: NewMemory, clean: str, now: int) -> Memory:
    memory = Memory(
        id=new.id or new_memory_id(),
        text=clean,
        person_id=new.person_id,
        created_at=from_micros(now),
        origin=new.origin,
    )
    tx.execute(
        "INSERT INTO memory (id, audience_no, person_id, text, text_key, created_at, origin, session_id)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        memory.id,
        audience_no,
        new.person_id,
        clean,
        build_memory_key(clean),
        now,
        new.origin.value,
        new.session_id,
    )
    return memory


def lock(tx: Transaction, audience_no: int) -> None:
    """Keep other transactions from adding or editing memories of an audience until this one ends."""
    tx.lock_name(f"palaver memory {audience_no}")


def count(tx: Transaction, audience_no: int) -> int:
    row = tx.fetch_one("SELECT COUNT(*) FROM memory WHERE audience_no = $1", audience_no)
    return 0 if row is None else int(row[0])


def search(tx: Transaction, audiences: Sequence[int], query: str, limit: int) -> list[Memory]:
    """Return the memories of these audiences that match a query, the best first; without a query, the newest."""
    if not audiences:
        return []
    newest = f" LIMIT {int(limit)}" if not query.strip() else ""
    rows = tx.fetch_all(
        f"SELECT {COLUMNS} FROM memory WHERE audience_no IN ({build_placeholders(len(audiences))})"
        f" ORDER BY no DESC{newest}",
        *audiences,
    )
    return find_best_matches((memory_from_row(row) for row in rows), query, limit)


def list_by_ids(tx: Transaction, audiences: Sequence[int], ids: Sequence[str]) -> list[Memory]:
    """Return those of these memories that still exist in these audiences, in the given order."""
    if not audiences or not ids:
        return []
    rows = tx.fetch_all(
        f"SELECT {COLUMNS} FROM memory WHERE id IN ({build_placeholders(len(ids))})"
        f" AND audience_no IN ({build_placeholders(len(audiences), first=len(ids) + 1)})",
        *ids,
        *audiences,
    )
    found = {row[0]: memory_from_row(row) for row in rows}
    return [found[memory_id] for memory_id in ids if memory_id in found]


def update_text(
    tx: Transaction, audience_no: int, memory_id: MemoryId, person_id: PersonId, text: str, now: int
) -> None:
    """Change the text of a memory for a person; refuse a text that another memory of the audience already has."""
    clean = clean_memory(text)
    lock(tx, audience_no)
    duplicate = tx.fetch_one(
        "SELECT id FROM memory WHERE audience_no = $1 AND text_key = $2 AND id <> $3",
        audience_no,
        build_memory_key(clean),
        memory_id,
    )
    if duplicate is not None:
        raise DuplicateMemory("Another memory already says this. Delete one of the two.", memory_id=duplicate[0])
    tx.execute(
        "UPDATE memory SET text = $2, text_key = $3, person_id = $4, created_at = $5, origin = 'person' WHERE id = $1",
        memory_id,
        clean,
        build_memory_key(clean),
        person_id,
        now,
    )


def forget_matching(tx: Transaction, audiences: Sequence[int], id_or_text: str, now: int) -> list[Memory]:
    """Forget the memories with this id or text, and return them."""
    forgotten = list_matching(tx, audiences, id_or_text)
    for memory in forgotten:
        forget(tx, memory.id, now)
    return forgotten


def forget(tx: Transaction, memory_id: MemoryId, now: int) -> None:
    """Delete a memory, and don't let the agent learn it again from the conversation that it is from."""
    row = tx.fetch_one("SELECT session_id FROM memory WHERE id = $1", memory_id)
    if row is not None and row[0] is not None:
        memory_turns.mark_read(tx, row[0], now)  # first, as the end of a memory turn locks them
    tx.execute("DELETE FROM memory WHERE id = $1", memory_id)


def list_matching(tx: Transaction, audiences: Sequence[int], id_or_text: str) -> list[Memory]:
    """Return the memories with this id or text."""
    if not audiences or not is_storable(id_or_text):
        return []
    rows = tx.fetch_all(
        f"SELECT {COLUMNS} FROM memory WHERE audience_no IN ({build_placeholders(len(audiences))})"
        f" AND (id = ${len(audiences) + 1} OR text_key = ${len(audiences) + 2}) ORDER BY no DESC",
        *audiences,
        id_or_text.strip(),
        build_memory_key(id_or_text),
    )
    return [memory_from_row(row) for row in rows]


def memory_from_row(row: Row) -> Memory:
    """Read a memory from a row that begins with `COLUMNS`."""
    memory_id, text, person_id, created_at, origin = row[:5]
    return Memory(
        id=MemoryId(memory_id),
        text=text,
        person_id=None if person_id is None else PersonId(person_id),
        created_at=from_micros(created_at),
        origin=MemoryOrigin(origin),
    )
