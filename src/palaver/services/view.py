"""What one principal may see and change: the only way to answer a person.

Everything here is found through the principal's audiences, in the query itself. What is not theirs and what
does not exist are one and the same answer, `NoSuchSession`. What they see but may not do is `NotAllowed`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import Ambiguous, InvalidTitle, NoSuchSession, NotFound, StillAnswering
from palaver.domain.events import EventKind
from palaver.domain.person import Action, check_allowed
from palaver.domain.text import is_storable
from palaver.domain.titles import title_slot
from palaver.services.argument_checks import check_count
from palaver.services.delivery.reports import DeliveryOperations
from palaver.services.indexer import search_work
from palaver.services.memories import MemoryOperations
from palaver.services.operation import After, Awaiting, Blocking, Within, operation
from palaver.services.reading import ReadingOperations
from palaver.services.usage_reports import ReportOperations
from palaver.storage import events, lanes, people, projects, session_lists, sessions, turns
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.clock import Clock
    from palaver.domain.events import Event
    from palaver.domain.person import Principal
    from palaver.domain.session import Page, Project, SearchHit, Session, Undone
    from palaver.domain.turn import Turn
    from palaver.storage.engines.base import Engine, Transaction, Work
    from palaver.storage.session_rows import SessionRow

SHORTEST_PREFIX = 4


class ViewOperations(ReadingOperations, ReportOperations, MemoryOperations, DeliveryOperations):
    """What a principal can do; `SessionView` blocks, `AsyncSessionView` is awaited."""

    def __init__(
        self,
        clock: Clock,
        principal: Principal,
        *,
        everything: bool = False,
        among: int | None = None,
        place: str | None = None,
    ) -> None:
        self._clock = clock
        self._principal = principal
        self._everything = everything
        self._among = among  # only what belongs to this audience
        self._place = place  # only what belongs to this lane, because others read along there

    # -- looking -------------------------------------------------------------------------------------------

    @operation
    def list(
        self,
        *,
        shelf: str = "current",
        limit: int = 50,
        cursor: str | None = None,
        project: str | None = None,
    ) -> Work[Page[Session]]:
        """Conversations in which something was said, newest first. Shelves: current, archived, pinned."""

        def run(tx: Transaction) -> Page[Session]:
            project_id = None if project is None else projects.find(tx, self._person, project)[1].id
            wanted = session_lists.SessionFilter(shelf=shelf, limit=limit, cursor=cursor, project_id=project_id)
            if self._place is not None:
                return session_lists.matching(tx, wanted, self._audiences(tx), self._belongs)
            return session_lists.listed(tx, wanted, self._audiences(tx))

        return Read(run)

    @operation
    def get(self, session_id: str) -> Work[Session]:
        """One conversation by its id."""
        return Read(lambda tx: self._seen(tx, session_id, Action.READ).session)

    @operation
    def find(self, text: str) -> Work[Session]:
        """One conversation by id, by the beginning of its id, or by title (the newest of a numbered line)."""
        return Read(lambda tx: self._find(tx, text.strip()))

    @operation
    def load(self, session_id: str, *, before: int | None = None, limit: int | None = 50) -> Work[Sequence[Event]]:
        """The last visible messages before a place in the log, oldest first (limit None: all of them)."""
        check_count("before", before, least=0)
        check_count("limit", limit)
        return Read(
            lambda tx: events.messages(tx, self._seen(tx, session_id, Action.READ).no, before=before, limit=limit)
        )

    @operation
    def events(self, session_id: str, *, after: int = 0, limit: int = 1000) -> Work[Sequence[Event]]:
        """The log itself after a place in it."""
        check_count("after", after, least=0)
        check_count("limit", limit)
        return Read(lambda tx: events.log(tx, self._seen(tx, session_id, Action.READ).no, after=after, limit=limit))

    @operation
    def search(
        self, text: str, *, limit: int = 20, before: int | None = None, within: str | None = None
    ) -> After[Any, Sequence[SearchHit]]:
        """The newest messages with these words; `before` a position continues, `within` one conversation."""
        where = None
        if within is not None:

            def where(tx: Transaction) -> int:
                return self._seen(tx, within, Action.READ).no

        elif self._place is not None and self._among is None:  # one person's lane in a group: the words said there

            def where(tx: Transaction) -> int:
                found = lanes.current(tx, self._place or "")
                return found.no if found else 0

        return search_work(text, self._audiences, limit=limit, before=before, session_no=where)

    @operation
    def turn(self, turn_id: str) -> Work[Turn]:
        """A turn as it stands now."""

        def run(tx: Transaction) -> Turn:
            found = turns.get(tx, turn_id)
            with suppress(NoSuchSession):
                if found is not None:
                    self._seen(tx, found.session_id, Action.READ)
                    return found
            raise NotFound(f"there is no turn {turn_id}", turn_id=turn_id)

        return Read(run)

    @operation
    def export(self, session_id: str) -> Work[dict[str, Any]]:
        """A conversation and its whole log as JSON-ready data."""
        return Read(lambda tx: exported(tx, self._seen(tx, session_id, Action.READ)))

    # -- changing ------------------------------------------------------------------------------------------

    @operation
    def rename(self, session_id: str, title: str | None) -> Work[Session]:
        """Give a conversation a title; None takes it away."""
        now = self._now()
        return Write(
            lambda tx: sessions.rename(tx, self._seen(tx, session_id, Action.RENAME), title, now, self._person)
        )

    @operation
    def pin(self, session_id: str, pinned: bool = True) -> Work[Session]:
        """Pin a conversation, or let it go."""
        return self._mark(session_id, EventKind.PINNED if pinned else EventKind.UNPINNED)

    @operation
    def archive(self, session_id: str, archived: bool = True) -> Work[Session]:
        """Take a conversation out of the lists, or put it back."""
        return self._mark(session_id, EventKind.ARCHIVED if archived else EventKind.UNARCHIVED)

    @operation
    def move(self, session_id: str, project: str | None) -> Work[Session]:
        """Put a conversation into one of your projects (by id or name), or out of any."""
        now = self._now()

        def run(tx: Transaction) -> Session:
            found = self._seen(tx, session_id, Action.ORGANISE)
            if project is None:
                return sessions.move(tx, found, None, None, now, self._person)
            project_no, into = projects.find(tx, self._person, project)
            return sessions.move(tx, found, into.id, project_no, now, self._person)

        return Write(run)

    @operation
    def undo(self, session_id: str, turns: int = 1) -> Work[Undone]:
        """Hide the last turns, whole; not while the agent is answering."""
        check_count("turns", turns)
        now = self._now()
        return Write(lambda tx: events.undo(tx, self._idle(tx, session_id), turns, now, self._person))

    @operation
    def redo(self, session_id: str) -> Work[Undone]:
        """Show again what the last undo hid; not while the agent is answering."""
        now = self._now()
        return Write(lambda tx: events.redo(tx, self._idle(tx, session_id), now, self._person))

    @operation
    def fork(self, session_id: str, at: int | None = None) -> Work[Session]:
        """A conversation of your own that begins as a copy, up to and including the turn of message `at`."""
        check_count("at", at, least=0)
        now = self._now()

        def run(tx: Transaction) -> Session:
            found = self._seen(tx, session_id, Action.FORK)
            mine = people.get(tx, self._person)
            if mine is None:
                raise NoSuchSession
            own = mine.audience_no if found.session.shared else found.audience_no
            return sessions.fork(tx, found, at, now, person_id=self._person, audience_no=own).session

        return Write(run)

    @operation
    def delete(self, session_id: str) -> Work[None]:
        """Delete a conversation and its log for good."""
        return Write(lambda tx: sessions.delete(tx, self._seen(tx, session_id, Action.DELETE)))

    # -- projects ------------------------------------------------------------------------------------------

    @operation
    def projects(self) -> Work[Sequence[Project]]:
        """Your projects by name."""
        return Read(lambda tx: projects.listed(tx, self._person))

    @operation
    def create_project(self, name: str, colour: str | None = None) -> Work[Project]:
        """A new project."""
        now = self._now()
        return Write(lambda tx: projects.create(tx, self._person, name, colour, now))

    @operation
    def change_project(self, project: str, *, name: str | None = None, colour: str | None = None) -> Work[Project]:
        """Give a project (by id or name) another name or colour."""
        return Write(lambda tx: projects.change(tx, self._person, project, name, colour))

    @operation
    def delete_project(self, project: str) -> Work[Project]:
        """Delete a project; its conversations stay."""
        return Write(lambda tx: projects.delete(tx, self._person, project))

    # -- shared by the above -------------------------------------------------------------------------------

    @property
    def _person(self) -> Any:
        return self._principal.person_id

    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _audiences(self, tx: Transaction) -> Sequence[int] | None:
        if self._everything:
            return None
        audiences = people.audiences_of(tx, self._person)
        return audiences if self._among is None else [no for no in audiences if no == self._among]

    def _seen(self, tx: Transaction, session_id: str, action: Action) -> SessionRow:
        found = sessions.seen(tx, session_id, None if self._everything else self._person)
        if (self._among is not None and found.audience_no != self._among) or not self._belongs(found.session):
            raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)
        check_allowed(self._principal, action, shared=found.session.shared)
        return found

    def _idle(self, tx: Transaction, session_id: str) -> int:
        """The number of a conversation in which nothing is being answered, and nothing is asked meanwhile."""
        session_no = self._seen(tx, session_id, Action.UNDO).no
        if turns.held_open_in(tx, session_no).any:
            raise StillAnswering
        return session_no

    def _belongs(self, session: Session) -> bool:
        return self._place is None or session.key == self._place

    def _mark(self, session_id: str, kind: EventKind) -> Write[Session]:
        now = self._now()
        return Write(lambda tx: sessions.mark(tx, self._seen(tx, session_id, Action.ORGANISE), kind, now, self._person))

    def _find(self, tx: Transaction, text: str) -> Session:
        audiences = self._audiences(tx)
        if len(text) >= SHORTEST_PREFIX and is_storable(text):
            begins = [each for each in sessions.with_id_prefix(tx, text, audiences, 5) if self._belongs(each.session)]
            exact = [found for found in begins if found.session.id == text]
            if exact or len(begins) == 1:
                return (exact or begins)[0].session
            if begins:
                raise _several(f"several sessions begin with {text!r}", begins)
        with suppress(InvalidTitle):  # what cannot be a title is nobody's
            slot = title_slot(text)
            exactly = slot.number > 1 or text.endswith("#1")
            titled = [
                each for each in sessions.titled(tx, slot, audiences, exact=exactly) if self._belongs(each.session)
            ]
            if self._everything and len(titled) > 1:
                raise _several(f"several people have a conversation called {text!r}", titled)
            if titled:
                return titled[0].session
        raise NoSuchSession(f"no session matches {text!r}", text=text)


class SessionView(Blocking, ViewOperations):
    """One principal's view of the store."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal, **scope: Any) -> None:
        super().__init__(clock, principal, **scope)
        self._engine = engine


class AsyncSessionView(Awaiting, ViewOperations):
    """The awaitable twin of a `SessionView`."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal, **scope: Any) -> None:
        super().__init__(clock, principal, **scope)
        self._engine = engine


class ViewWithin(Within, ViewOperations):
    """The same view inside a transaction that is under way."""

    def __init__(self, tx: Transaction, clock: Clock, principal: Principal, **scope: Any) -> None:
        super().__init__(clock, principal, **scope)
        self._tx = tx


def _several(what: str, found: Sequence[SessionRow]) -> Ambiguous:
    ids = [each.session.id for each in found]
    return Ambiguous(f"{what}: {', '.join(ids)}", matches=ids)


def exported(tx: Transaction, found: SessionRow) -> dict[str, Any]:
    """A session and its whole log as JSON-ready data."""
    session = found.session
    log = []
    after = 0
    while batch := events.log(tx, found.no, after=after, limit=1000):
        log += [_exported_event(event) for event in batch]
        after = batch[-1].seq
    return {
        "format": "palaver.session/1",
        "id": session.id,
        "title": session.title,
        "source": session.origin.to_dict(),
        "created_at": session.created_at.isoformat(),
        "ended_at": session.ended_at and session.ended_at.isoformat(),
        "end_reason": session.end_reason,
        "message_count": session.message_count,
        "usage": {
            "input_tokens": session.usage.input_tokens,
            "output_tokens": session.usage.output_tokens,
            "cache_read_tokens": session.usage.cache_read_tokens,
            "cache_write_tokens": session.usage.cache_write_tokens,
            "reasoning_tokens": session.usage.reasoning_tokens,
            "cost_usd": None if session.usage.cost is None else str(session.usage.cost),
            "cost_status": session.usage.cost_status,
        },
        "events": log,
    }


def _exported_event(event: Event) -> dict[str, Any]:
    data: dict[str, Any] = {"seq": event.seq, "kind": event.kind, "at": event.at.isoformat()}
    if event.message is not None:
        data |= event.message.to_dict()
        if event.message.platform_message_id is not None:
            data["platform_message_id"] = event.message.platform_message_id
    elif event.facts:
        data["facts"] = dict(event.facts)
    if event.hidden:
        data["hidden"] = True
    return data
