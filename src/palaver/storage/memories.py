"""Memories: what the agent was asked to remember, kept per audience.

Always true, by a unique index: an audience remembers the same thing once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import AlreadyRemembered, LimitReached
from palaver.domain.ids import MemoryId, PersonId, new_memory_id
from palaver.domain.memory import MOST, Memory, best_matching, clean_memory, memory_key
from palaver.domain.text import is_storable
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.storage.engines.base import Row, Transaction

_COLUMNS = "id, text, person_id, created_at"


def remember(tx: Transaction, audience_no: int, person_id: PersonId | None, text: str, now: int) -> Memory:
    """Remember something for an audience; what it remembers already is given back as it was said first."""
    clean = clean_memory(text)
    tx.hold(f"palaver memory {audience_no}")
    known = tx.one(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no = $1 AND text_key = $2", audience_no, memory_key(clean)
    )
    if known is not None:
        return memory_from_row(known)
    count = tx.one("SELECT COUNT(*) FROM memory WHERE audience_no = $1", audience_no)
    if count is not None and count[0] >= MOST:
        raise LimitReached(
            f"{MOST} things are remembered here already; forget one before remembering another",
            what="memories",
            limit=MOST,
        )
    memory = Memory(id=new_memory_id(), text=clean, person_id=person_id, created_at=from_micros(now))
    tx.run(
        "INSERT INTO memory (id, audience_no, person_id, text, text_key, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        memory.id,
        audience_no,
        person_id,
        clean,
        memory_key(clean),
        now,
    )
    return memory


def recall(tx: Transaction, audiences: Sequence[int], query: str, limit: int) -> list[Memory]:
    """What these audiences remember with words of the query, the best first; without a query, the newest."""
    if not audiences:
        return []
    newest = f" LIMIT {int(limit)}" if not query.strip() else ""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no IN ({places(audiences)}) ORDER BY no DESC{newest}",
        *audiences,
    )
    return best_matching((memory_from_row(row) for row in rows), query, limit)


def change(tx: Transaction, audience_no: int, memory_id: MemoryId, person_id: PersonId, text: str, now: int) -> None:
    """Let a memory read otherwise, as somebody asks now; refused where its audience remembers just that already."""
    clean = clean_memory(text)
    tx.hold(f"palaver memory {audience_no}")
    twin = tx.one(
        "SELECT id FROM memory WHERE audience_no = $1 AND text_key = $2 AND id <> $3",
        audience_no,
        memory_key(clean),
        memory_id,
    )
    if twin is not None:
        raise AlreadyRemembered("the same thing is remembered already; forget one of the two", memory_id=twin[0])
    tx.run(
        "UPDATE memory SET text = $2, text_key = $3, person_id = $4, created_at = $5 WHERE id = $1",
        memory_id,
        clean,
        memory_key(clean),
        person_id,
        now,
    )


def forget(tx: Transaction, audiences: Sequence[int], what: str) -> list[Memory]:
    """Forget what has this id or says this; what was forgotten, which may be nothing."""
    forgotten = find(tx, audiences, what)
    for memory in forgotten:
        drop(tx, memory.id)
    return forgotten


def drop(tx: Transaction, memory_id: MemoryId) -> None:
    """Forget one thing."""
    tx.run("DELETE FROM memory WHERE id = $1", memory_id)


def find(tx: Transaction, audiences: Sequence[int], what: str) -> list[Memory]:
    """What has this id or says this."""
    if not audiences or not is_storable(what):
        return []
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM memory WHERE audience_no IN ({places(audiences)})"
        f" AND (id = ${len(audiences) + 1} OR text_key = ${len(audiences) + 2}) ORDER BY no DESC",
        *audiences,
        what.strip(),
        memory_key(what),
    )
    return [memory_from_row(row) for row in rows]


def places(audiences: Sequence[int]) -> str:
    """The parameters that stand for audiences, which come first in a statement."""
    return ", ".join(f"${place}" for place in range(1, len(audiences) + 1))


def memory_from_row(row: Row) -> Memory:
    """A memory, from a row that begins with its columns."""
    identity, text, person_id, created_at = row[:4]
    return Memory(
        id=MemoryId(identity),
        text=text,
        person_id=None if person_id is None else PersonId(person_id),
        created_at=from_micros(created_at),
    )
