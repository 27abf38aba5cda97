"""What is remembered, for somebody who speaks in a conversation.

What is said in a conversation is remembered for those who may see it. In a conversation of one's own, everything one
may know can be recalled; in one that several people share, only what was said among them, whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession, NotAllowed, NotFound
from palaver.domain.message import preview
from palaver.services.limits import check_count
from palaver.services.operation import Awaiting, operation
from palaver.storage import memories, people
from palaver.storage.engine import Read, Write
from palaver.storage.values import micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.clock import Clock
    from palaver.domain.memory import Memory
    from palaver.domain.person import Principal
    from palaver.storage.engine import Engine, Transaction, Work
    from palaver.storage.session_rows import Found

MOST_RECALLED = 100


class Memories(Awaiting):
    """The memory that a principal has in one conversation."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal, found: Found) -> None:
        self._engine = engine
        self._clock = clock
        self._principal = principal
        self._found = found

    @operation
    def remember(self, text: str) -> Work[Memory]:
        """Remember something for those who may see this conversation; the same thing twice is one."""
        now = micros(self._clock.now())

        def run(tx: Transaction) -> Memory:
            self._known(tx)
            return memories.remember(tx, self._found.audience_no, self._principal.person_id, text, now)

        return Write(run)

    @operation
    def recall(self, query: str = "", *, limit: int = 20) -> Work[Sequence[Memory]]:
        """What is remembered with words of the query, the best first; without one, the newest."""
        check_count("limit", limit, most=MOST_RECALLED)
        return Read(lambda tx: memories.recall(tx, self._known(tx), query, limit))

    @operation
    def forget(self, what: str) -> Work[Memory]:
        """Forget what has this id or says this, if it was said among those who may see this conversation."""

        def run(tx: Transaction) -> Memory:
            known = self._known(tx)
            forgotten = memories.forget(tx, [self._found.audience_no], what)
            if forgotten:
                return forgotten[0]
            if memories.find(tx, known, what):
                raise NotAllowed("this was said in another conversation, where others remember it too; forget it there")
            raise NotFound(f"nothing is remembered here that has this id or says just this: {preview(what)!r}")

        return Write(run)

    def _known(self, tx: Transaction) -> list[int]:
        """The audiences whose memories may be told here."""
        audiences = people.audiences_of(tx, self._principal.person_id)
        if self._found.audience_no not in audiences:
            raise NoSuchSession(f"there is no session {self._found.session.id}", session_id=self._found.session.id)
        return [self._found.audience_no] if self._found.session.shared else audiences
