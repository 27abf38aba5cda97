"""The memory that the agent has in one conversation.

The agent remembers for everyone who may see the conversation. In a conversation of one person it can recall everything
that this person may know; in one that several people share, only what was said there, whichever of them asks.
`ViewScope` decides this, here and for `view.memories`, where people look at memories themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.argument_checks import check_count
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotAllowed, NotFound, SessionNotFound
from palaver.core.operation import AsyncRunner, Operations, operation
from palaver.memory import table as memories
from palaver.memory.model import (
    MAX_AGENT_MEMORY_CHARS,
    MAX_MEMORIES_PER_AUDIENCE,
    MemoryOrigin,
    clean_memory,
    find_conflict,
)
from palaver.sessions.message import make_excerpt
from palaver.sessions.view.scope import ViewScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.clock import Clock
    from palaver.core.engines.base import Engine, Transaction, Work
    from palaver.memory.model import Memory, MemoryConflict
    from palaver.people.model import Principal
    from palaver.sessions.session_rows import SessionRow

MAX_RECALLED_MEMORIES = 100


class ConversationMemory(Operations[AsyncRunner]):
    """What the agent remembers, recalls and forgets for a principal in one conversation."""

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

    @operation
    def find_conflict(self, text: str, supersedes: Sequence[str] = ()) -> Work[MemoryConflict | None]:
        """Return why a text should not be added in place of these memories; None if it may be."""
        clean = clean_memory(text, MAX_AGENT_MEMORY_CHARS)

        def run(tx: Transaction) -> MemoryConflict | None:
            self._list_audiences(tx)
            known = memories.search(tx, [self._session_row.audience_no], "", MAX_MEMORIES_PER_AUDIENCE)
            return find_conflict([each for each in known if each.id not in supersedes], clean, self._max_memories)

        return Read(run)

    @operation
    def remember(self, text: str, supersedes: Sequence[str] = ()) -> Work[Memory]:
        """Remember a text for everyone who may see this conversation, in place of some of their memories.

        A text that they have already is not added again.
        """
        now = self._scope.now()
        new = memories.NewMemory(
            text=clean_memory(text, MAX_AGENT_MEMORY_CHARS),
            person_id=self._scope.person_id,
            origin=MemoryOrigin.AGENT,
            session_id=self._session_row.session.id,
            supersedes=tuple(supersedes),
            limit=self._max_memories,
        )

        def run(tx: Transaction) -> Memory:
            self._list_audiences(tx)
            return memories.add(tx, self._session_row.audience_no, new, now)

        return Write(run)

    @operation
    def recall(self, query: str = "", *, limit: int = 20) -> Work[Sequence[Memory]]:
        """Recall memories with words of the query, best match first; without a query, the newest."""
        check_count("limit", limit, maximum=MAX_RECALLED_MEMORIES)
        return Read(lambda tx: memories.search(tx, self._list_audiences(tx), query, limit))

    @operation
    def forget(self, id_or_text: str) -> Work[Memory]:
        """Delete a memory of this conversation's audience, given by its id or its exact text."""
        now = self._scope.now()

        def run(tx: Transaction) -> Memory:
            audiences = self._list_audiences(tx)
            forgotten = memories.forget_matching(tx, [self._session_row.audience_no], id_or_text, now)
            if forgotten:
                return forgotten[0]
            if memories.list_matching(tx, audiences, id_or_text):
                raise NotAllowed(
                    "This belongs to another conversation that you share with other people. Forget it there."
                )
            raise NotFound(f"No memory here has this id or exactly this text: {make_excerpt(id_or_text)!r}.")

        return Write(run)

    def _list_audiences(self, tx: Transaction) -> Sequence[int]:
        """List the audiences whose memories may be used here; the principal must belong to the conversation's own."""
        audiences = self._scope.list_own_audiences(tx)
        if self._session_row.audience_no not in audiences:
            session_id = self._session_row.session.id
            raise SessionNotFound.for_id(session_id)
        return audiences
