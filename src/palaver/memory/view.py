"""The memories that the principal may know, from all their conversations: `view.memories`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.argument_checks import check_count
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotAllowed, NotFound, NothingToDo
from palaver.core.operation import R, operation
from palaver.memory import queries as memory_queries, table as memories
from palaver.people import table as people
from palaver.sessions.view.part import ViewPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction, Work
    from palaver.core.ids import SessionId
    from palaver.core.page import Page
    from palaver.memory.model import MemoryEntry, MemoryOrigin

MAX_PAGE_MEMORIES = 100


class MemoryOperations(ViewPart[R]):
    """Lists and changes memories. An owner who sees everything still sees only the memories they may know."""

    @operation
    def list(
        self, query: str = "", *, origin: MemoryOrigin | None = None, limit: int = 50, cursor: str | None = None
    ) -> Work[Page[MemoryEntry]]:
        """List the memories, newest first; with a query, those that have all its words; with an origin, those of it."""
        check_count("limit", limit, maximum=MAX_PAGE_MEMORIES)

        def run(tx: Transaction) -> Page[MemoryEntry]:
            return memory_queries.list_memories(
                tx, self._list_audiences(tx), self._scope.person_id, query, limit, cursor, origin=origin
            )

        return Read(run)

    @operation
    def remember(self, text: str, *, session_id: SessionId | None = None) -> Work[MemoryEntry]:
        """Remember a text for the person alone or, in a shared chat, for that chat; the same text is not added twice.

        `session_id` is the conversation that it is from, if any.
        """
        now, person_id = self._scope.now(), self._scope.person_id

        def run(tx: Transaction) -> MemoryEntry:
            new = memories.NewMemory(text=text, person_id=person_id, session_id=session_id)
            memory = memories.add(tx, self._find_new_audience(tx), new, now)
            return self._get_entry(tx, memory.id).entry

        return Write(run)

    @operation
    def update(self, memory_id: str, text: str) -> Work[MemoryEntry]:
        """Change the text of a memory for everyone who knows it."""
        now = self._scope.now()

        def run(tx: Transaction) -> MemoryEntry:
            entry = self._get_entry(tx, memory_id)
            memories.update_text(tx, entry.audience_no, entry.entry.memory.id, self._scope.person_id, text, now)
            return self._get_entry(tx, memory_id).entry

        return Write(run)

    @operation
    def forget(self, memory_id: str) -> Work[MemoryEntry]:
        """Delete a memory for everyone who knows it."""
        now = self._scope.now()

        def run(tx: Transaction) -> MemoryEntry:
            entry = self._get_entry(tx, memory_id)
            memories.forget(tx, entry.entry.memory.id, now)
            return entry.entry

        return Write(run)

    def _find_new_audience(self, tx: Transaction) -> int:
        """Return the audience of a memory that the person adds."""
        person_row = people.find_by_id(tx, self._scope.person_id)
        if person_row is None:
            raise NotFound(f"There is no person {self._scope.person_id}.")
        if self._scope.is_personal_lane_in_group:
            raise NotAllowed("Other people read this chat. Manage your memories in a direct message.")
        if self._scope.audience_no is None:
            return person_row.audience_no
        if self._scope.audience_no not in self._scope.list_own_audiences(tx):
            raise NothingToDo("There is no conversation here yet. Send a message first.")
        return self._scope.audience_no

    def _list_audiences(self, tx: Transaction) -> Sequence[int]:
        if self._scope.is_personal_lane_in_group:  # the others there would read what the person knows
            return []
        return self._scope.list_own_audiences(tx)

    def _get_entry(self, tx: Transaction, memory_id: str) -> memory_queries.MemoryRow:
        entry = memory_queries.find_memory(tx, self._list_audiences(tx), self._scope.person_id, memory_id)
        if entry is None:
            raise NotFound(f"There is no memory {memory_id}.", memory_id=memory_id)
        return entry
