"""The memory that the agent has in one conversation.

The agent remembers for everyone who may see the conversation. In a conversation of one person it can recall everything
that this person may know; in one that several people share, only what was said there, whichever of them asks.
`ViewScope` decides this, here and for `view.memories`, where people look at memories themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import NotAllowed, NotFound, NothingToDo, SessionNotFound
from palaver.core.operation import AsyncRunner, Operations, Page, R, check_count, read_operation, write_operation
from palaver.core.texts import say
from palaver.memory import table as memories
from palaver.memory.model import (
    MAX_AGENT_MEMORY_CHARS,
    MAX_MEMORIES_PER_AUDIENCE,
    Memory,
    MemoryConflict,
    MemoryEntry,
    MemoryOrigin,
    clean_memory,
    find_conflict,
)
from palaver.people import table as people
from palaver.sessions.message import make_excerpt
from palaver.sessions.view.scope import ViewPart, ViewScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.clock import Clock
    from palaver.core.engines.base import Engine, Transaction
    from palaver.core.ids import SessionId
    from palaver.people.model import Principal
    from palaver.sessions.table import SessionRow


MAX_RECALLED_MEMORIES = 100
MAX_PAGE_MEMORIES = 100


class ConversationMemory(Operations[AsyncRunner]):
    """Remembers, recalls and forgets for a principal in one conversation."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        principal: Principal,
        session_row: SessionRow,
        *,
        max_memories: int = MAX_MEMORIES_PER_AUDIENCE,
    ) -> None:
        super().__init__(AsyncRunner(engine))
        self._session_row = session_row
        self._max_memories = max_memories
        audience_no = session_row.audience_no if session_row.session.shared else None
        self._scope = ViewScope(principal=principal, clock=clock, audience_no=audience_no)

    @read_operation
    def find_conflict(self, tx: Transaction, text: str, supersedes: Sequence[str] = ()) -> MemoryConflict | None:
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)
        self._list_audiences(tx)
        known = memories.search(tx, [self._session_row.audience_no], "", MAX_MEMORIES_PER_AUDIENCE)
        return find_conflict([each for each in known if each.id not in supersedes], clean, self._max_memories)

    @write_operation
    def remember(self, tx: Transaction, text: str, supersedes: Sequence[str] = ()) -> Memory:
        """Remember a text for everyone who may see this conversation, in place of some of their memories.

        A text that they have already is not added again.
        """
        new = memories.NewMemory(
            text=clean_memory(text, MAX_AGENT_MEMORY_CHARS),
            person_id=self._scope.person_id,
            origin=MemoryOrigin.AGENT,
            session_id=self._session_row.session.id,
            supersedes=tuple(supersedes),
            limit=self._max_memories,
        )
        self._list_audiences(tx)
        return memories.add(tx, self._session_row.audience_no, new, self._scope.now())

    @read_operation
    def recall(self, tx: Transaction, query: str = "", *, limit: int = 20) -> Sequence[Memory]:
        """Recall memories with words of the query, best match first; without a query, the newest."""
        check_count("limit", limit, maximum=MAX_RECALLED_MEMORIES)
        return memories.search(tx, self._list_audiences(tx), query, limit)

    @write_operation
    def forget(self, tx: Transaction, id_or_text: str) -> Memory:
        """Delete a memory of this conversation's audience, given by its id or its exact text."""
        audiences = self._list_audiences(tx)
        own, now = [self._session_row.audience_no], self._scope.now()
        forgotten = memories.list_matching(tx, own, id_or_text)
        for memory in forgotten:
            memories.forget(tx, memory.id, now)
        if forgotten:
            return forgotten[0]
        if memories.list_matching(tx, audiences, id_or_text):
            raise NotAllowed.say(
                "memory.elsewhere",
                "This belongs to another conversation that you share with other people. Forget it there.",
            )
        raise NotFound.say(
            "memory.not_found",
            "No memory here has this id or exactly this text: {text}.",
            text=repr(make_excerpt(id_or_text)),
        )

    def _list_audiences(self, tx: Transaction) -> Sequence[int]:
        """List the audiences whose memories may be used here; the principal must belong to the conversation's own."""
        audiences = self._scope.list_own_audiences(tx)
        if self._session_row.audience_no not in audiences:
            session_id = self._session_row.session.id
            raise SessionNotFound.for_id(session_id)
        return audiences


# ---- for a principal --------------------------------------------------------------------------------------------


class MemoryOperations(ViewPart[R]):
    """Lists and changes memories. An owner who sees everything still sees only the memories they may know."""

    @read_operation
    def list(
        self,
        tx: Transaction,
        query: str = "",
        *,
        origin: MemoryOrigin | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]:
        """List the memories, newest first; with a query, those that have all its words; with an origin, those of it."""
        check_count("limit", limit, maximum=MAX_PAGE_MEMORIES)
        return memories.list_memories(
            tx, self._list_audiences(tx), self._scope.person_id, query, limit, cursor, origin=origin
        )

    @write_operation
    def remember(self, tx: Transaction, text: str, *, session_id: SessionId | None = None) -> MemoryEntry:
        """Remember a text for the person alone or, in a shared chat, for that chat; the same text is not added twice.

        `session_id` is the conversation that it is from, if any.
        """
        new = memories.NewMemory(text=text, person_id=self._scope.person_id, session_id=session_id)
        memory = memories.add(tx, self._find_new_audience(tx), new, self._scope.now())
        return self._get_entry(tx, memory.id)[0]

    @write_operation
    def update(self, tx: Transaction, memory_id: str, text: str) -> MemoryEntry:
        """Change the text of a memory for everyone who knows it."""
        now = self._scope.now()
        entry, audience_no = self._get_entry(tx, memory_id)
        memories.update_text(tx, audience_no, entry.memory.id, self._scope.person_id, text, now)
        return self._get_entry(tx, memory_id)[0]

    @write_operation
    def forget(self, tx: Transaction, memory_id: str) -> MemoryEntry:
        """Delete a memory for everyone who knows it."""
        now = self._scope.now()
        entry, _ = self._get_entry(tx, memory_id)
        memories.forget(tx, entry.memory.id, now)
        return entry

    def _find_new_audience(self, tx: Transaction) -> int:
        """Return the audience of a memory that the person adds."""
        person_row = people.find_by_id(tx, self._scope.person_id)
        if person_row is None:
            raise NotFound(f"There is no person {self._scope.person_id}.")
        if self._scope.is_personal_lane_in_group:
            raise NotAllowed.say(
                "memory.private", "Other people read this chat. Manage your memories in a direct message."
            )
        if self._scope.audience_no is None:
            return person_row.audience_no
        if self._scope.audience_no not in self._scope.list_own_audiences(tx):
            raise NothingToDo.say("memory.no_session", "There is no conversation here yet. Send a message first.")
        return self._scope.audience_no

    def _list_audiences(self, tx: Transaction) -> Sequence[int]:
        if self._scope.is_personal_lane_in_group:  # the others there would read what the person knows
            return []
        return self._scope.list_own_audiences(tx)

    def _get_entry(self, tx: Transaction, memory_id: str) -> tuple[MemoryEntry, int]:
        found = memories.find_memory(tx, self._list_audiences(tx), self._scope.person_id, memory_id)
        if found is None:
            raise NotFound(say("memory.unknown", "There is no memory {id}.", id=memory_id), memory_id=memory_id)
        return found
