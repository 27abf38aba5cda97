"""The memories of a memory turn: what the model saves is collected, and stored together when the turn ends.

Always true: nothing is stored of a turn that did not end; a memory that a person wrote is never replaced.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.core.errors import DuplicateMemory, LimitReached, NotAllowed, NotFound
from palaver.core.ids import new_memory_id
from palaver.memory import table as memories
from palaver.memory.model import (
    MAX_AGENT_MEMORY_CHARS,
    Memory,
    MemoryOrigin,
    clean_memory,
    find_best_matches,
    find_conflict,
    looks_like_secret,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, SessionId
    from palaver.memory.model import MemoryConflict

MAX_LEARNED_MEMORIES = 10  # in one turn


class LearnedMemories:
    """What one memory turn knows and learns for one audience."""

    def __init__(
        self,
        known: Sequence[Memory],
        *,
        person_id: PersonId,
        session_id: SessionId,
        max_memories: int,
        now: datetime,
    ) -> None:
        self._known = {memory.id: memory for memory in known}  # the newest first
        self._new: dict[str, memories.NewMemory] = {}
        self._person_id = person_id
        self._session_id = session_id
        self._max_memories = max_memories
        self._now = now

    async def find_conflict(self, text: str, supersedes: Sequence[str]) -> MemoryConflict | None:
        """Return why a text should not be added in place of these memories; None if it may be."""
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)
        others = [memory for memory in self._list_current() if memory.id not in supersedes]
        return await asyncio.to_thread(find_conflict, others, clean, self._max_memories)

    async def remember(self, text: str, supersedes: Sequence[str]) -> Memory:
        """Collect a memory, in place of others."""
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)
        if looks_like_secret(clean):  # a model that obeys its instructions does not try
            raise NotAllowed("This looks like a password or another secret, so it isn't saved.")
        current: dict[str, Memory] = {memory.id: memory for memory in self._list_current()}
        for memory_id in supersedes:
            if memory_id not in current:
                raise NotFound(f"There is no memory {memory_id!r} here that could be replaced.")
            if current[memory_id].origin is MemoryOrigin.PERSON:
                raise NotAllowed(f"A person wrote {memory_id} themselves, so it can't be replaced here.")
        if len(self._new) >= MAX_LEARNED_MEMORIES:
            raise LimitReached(f"At most {MAX_LEARNED_MEMORIES} memories are saved at once. Answer with: done.")
        memory_id = new_memory_id()
        replaced = [self._new.pop(each) for each in supersedes if each in self._new]
        stored_ids = [each for each in supersedes if each in self._known]
        self._new[memory_id] = memories.NewMemory(
            id=memory_id,
            text=clean,
            person_id=self._person_id,
            origin=MemoryOrigin.LEARNED,
            session_id=self._session_id,
            supersedes=(*stored_ids, *(each for new in replaced for each in new.supersedes)),
            limit=self._max_memories,
        )
        return self._make_memory(self._new[memory_id])

    async def recall(self, query: str, *, limit: int) -> Sequence[Memory]:
        """Return memories of this audience with words of the query, or the newest ones if the query is empty."""
        return await asyncio.to_thread(find_best_matches, self._list_current(), query, limit)

    def store(self, tx: Transaction, audience_no: int, now: int) -> int:
        """Store what was learned, and return how many memories that were.

        A memory is left out if people have meanwhile said the same, or forgotten or edited what it would replace.
        """
        count = 0
        memories.lock(tx, audience_no)
        for new in self._new.values():
            replaced = memories.list_by_ids(tx, [audience_no], new.supersedes)
            if any(memory.origin is MemoryOrigin.PERSON for memory in replaced):
                continue
            try:
                count += memories.add(tx, audience_no, new, now).id == new.id
            except (DuplicateMemory, LimitReached, NotFound):
                continue
        return count

    def _list_current(self) -> list[Memory]:
        replaced = {memory_id for new in self._new.values() for memory_id in new.supersedes}
        learned = [self._make_memory(new) for new in reversed(self._new.values())]
        return [*learned, *(memory for memory in self._known.values() if memory.id not in replaced)]

    def _make_memory(self, new: memories.NewMemory) -> Memory:
        assert new.id is not None  # noqa: S101
        return Memory(
            id=new.id, text=new.text, person_id=new.person_id, created_at=self._now, origin=MemoryOrigin.LEARNED
        )
