"""The memory that the agent has in one conversation.

The agent remembers for everyone who may see the conversation. In a conversation of one person it can recall everything
that this person may know; in one that several people share, only what was said there, whichever of them asks.
`ViewScope` decides this, here and for `view.memories`, where people look at memories themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NotAllowed, NotFound, SessionNotFound
from palaver.domain.message import make_excerpt
from palaver.services.argument_checks import check_count
from palaver.services.operation import AsyncRunner, Operations, operation
from palaver.services.view.scope import ViewScope
from palaver.storage import memories
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.clock import Clock
    from palaver.domain.memory import Memory
    from palaver.domain.person import Principal
    from palaver.storage.engines.base import Engine, Transaction, Work
    from palaver.storage.session_rows import SessionRow

MAX_RECALLED_MEMORIES = 100


class ConversationMemory(Operations[AsyncRunner]):
    """What the agent remembers, recalls and forgets for a principal in one conversation."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal, session_row: SessionRow) -> None:
        super().__init__(AsyncRunner(engine))
        self._session_row = session_row
        audience_no = session_row.audience_no if session_row.session.shared else None
        self._scope = ViewScope(principal=principal, clock=clock, audience_no=audience_no)

    @operation
    def remember(self, text: str) -> Work[Memory]:
        """Remember a text for everyone who may see this conversation; a text they have already is not added again."""
        now = self._scope.now()

        def run(tx: Transaction) -> Memory:
            self._list_audiences(tx)
            return memories.add(tx, self._session_row.audience_no, self._scope.person_id, text, now)

        return Write(run)

    @operation
    def recall(self, query: str = "", *, limit: int = 20) -> Work[Sequence[Memory]]:
        """Recall memories with words of the query, best match first; without a query, the newest."""
        check_count("limit", limit, maximum=MAX_RECALLED_MEMORIES)
        return Read(lambda tx: memories.search(tx, self._list_audiences(tx), query, limit))

    @operation
    def forget(self, id_or_text: str) -> Work[Memory]:
        """Delete a memory of this conversation's audience, given by its id or its exact text."""

        def run(tx: Transaction) -> Memory:
            audiences = self._list_audiences(tx)
            forgotten = memories.delete_matching(tx, [self._session_row.audience_no], id_or_text)
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
