"""What is remembered, and who may know it.

`MemoryOperations` is what a person looks at and changes by themselves: all they may know, wherever it was said.
`Memories` is what the agent reaches for somebody who speaks in a conversation. What is said there is remembered for
those who may see it. In a conversation of one's own, everything one may know can be recalled; in one that several
people share, only what was said among them, whoever asks. `known_to` decides it for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession, NotAllowed, NotFound
from palaver.domain.message import preview
from palaver.services.argument_checks import check_count
from palaver.services.operation import Awaiting, operation
from palaver.storage import memories, memory_queries, people
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.clock import Clock
    from palaver.domain.ids import PersonId
    from palaver.domain.memory import Known, Memory
    from palaver.domain.person import Principal
    from palaver.domain.session import Page
    from palaver.storage.engines.base import Engine, Transaction, Work
    from palaver.storage.session_rows import SessionRow

MOST_RECALLED = 100
LONGEST_PAGE = 100


def known_to(tx: Transaction, person_id: PersonId, among: int | None) -> list[int]:
    """The audiences whose memories somebody may be told; among others, only what these remember together."""
    audiences = people.audiences_of(tx, person_id)
    return audiences if among is None else [no for no in audiences if no == among]


class MemoryOperations:
    """What somebody knows and has remembered; operations of their view. An owner sees no more than anybody else."""

    if TYPE_CHECKING:  # what the view gives
        _among: int | None
        _place: str | None

        @property
        def _person(self) -> PersonId: ...
        def _now(self) -> int: ...

    @operation
    def memories(self, query: str = "", *, limit: int = 50, cursor: str | None = None) -> Work[Page[Known]]:
        """What you may know, newest first; with a query, what has its words."""
        check_count("limit", limit, most=LONGEST_PAGE)
        return Read(lambda tx: memory_queries.listed(tx, self._known(tx), self._person, query, limit, cursor))

    @operation
    def remember(self, text: str) -> Work[Known]:
        """Remember something for yourself alone; the same thing twice is one."""
        now = self._now()

        def run(tx: Transaction) -> Known:
            resident = people.get(tx, self._person)
            if resident is None:
                raise NotFound(f"there is no person {self._person}")
            memory = memories.remember(tx, resident.audience_no, self._person, text, now)
            return self._entry(tx, memory.id).known

        return Write(run)

    @operation
    def change_memory(self, memory_id: str, text: str) -> Work[Known]:
        """Let something you know read otherwise, for all who know it."""
        now = self._now()

        def run(tx: Transaction) -> Known:
            entry = self._entry(tx, memory_id)
            memories.change(tx, entry.audience_no, entry.known.memory.id, self._person, text, now)
            return self._entry(tx, memory_id).known

        return Write(run)

    @operation
    def forget_memory(self, memory_id: str) -> Work[Known]:
        """Forget something you know, for all who know it."""

        def run(tx: Transaction) -> Known:
            entry = self._entry(tx, memory_id)
            memories.drop(tx, entry.known.memory.id)
            return entry.known

        return Write(run)

    def _known(self, tx: Transaction) -> list[int]:
        if self._place is not None and self._among is None:  # one person's lane, but everybody there reads along
            return []
        return known_to(tx, self._person, self._among)

    def _entry(self, tx: Transaction, memory_id: str) -> memory_queries.Entry:
        entry = memory_queries.get(tx, self._known(tx), self._person, memory_id)
        if entry is None:
            raise NotFound(f"there is no memory {memory_id}", memory_id=memory_id)
        return entry


class Memories(Awaiting):
    """The memory that a principal has in one conversation."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal, found: SessionRow) -> None:
        self._engine = engine
        self._clock = clock
        self._principal = principal
        self._found = found

    @operation
    def remember(self, text: str) -> Work[Memory]:
        """Remember something for those who may see this conversation; the same thing twice is one."""
        now = to_micros(self._clock.now())

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
            audiences = self._known(tx)
            forgotten = memories.forget(tx, [self._found.audience_no], what)
            if forgotten:
                return forgotten[0]
            if memories.find(tx, audiences, what):
                raise NotAllowed("this was said in another conversation, where others remember it too; forget it there")
            raise NotFound(f"nothing is remembered here that has this id or says just this: {preview(what)!r}")

        return Write(run)

    def _known(self, tx: Transaction) -> list[int]:
        """The audiences whose memories may be told here."""
        here = self._found.audience_no
        audiences = known_to(tx, self._principal.person_id, here if self._found.session.shared else None)
        if here not in audiences:
            raise NoSuchSession(f"there is no session {self._found.session.id}", session_id=self._found.session.id)
        return audiences
