"""What a page shows of conversations to one principal: lists, parts of a log, how far they have read.

These are operations of a principal's view (`view.py`), kept apart by their subject. Everything is found through the
view's own rules of what may be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from palaver.domain.errors import InvalidInput, NotAllowed
from palaver.domain.events import EventKind
from palaver.domain.person import Action
from palaver.domain.session import Page
from palaver.domain.text import is_storable
from palaver.services.argument_checks import check_count
from palaver.services.operation import operation
from palaver.storage import people, projects, session_lists, session_settings, sessions, transcript_queries
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.domain.ids import PersonId
    from palaver.domain.person import Principal
    from palaver.domain.session import Session
    from palaver.domain.session_summary import Excerpt, Overview
    from palaver.domain.turn import BusyPolicy
    from palaver.storage.engines.base import Transaction, Work
    from palaver.storage.session_rows import SessionRow

_CHOSEN_BY = {"model": "model", "busy": "busy", "toolsets": "tools"}  # what may be chosen, and the command that does so
MOST_EVENTS = 500  # of a log, at once


class Changes(TypedDict, total=False):
    """What is to be different in a conversation; what is not given stays."""

    title: str | None
    pinned: bool
    archived: bool
    project: str | None
    model: str | None  # already checked by the agent
    busy: BusyPolicy | None
    toolsets: Mapping[str, bool] | None  # switched on or off; None: all on


class ReadingOperations:
    """What a page asks for; the view that it belongs to says what may be seen."""

    if TYPE_CHECKING:  # what the view gives
        _principal: Principal
        _everything: bool

        @property
        def _person(self) -> Any: ...
        def _now(self) -> int: ...
        def _audiences(self, tx: Transaction) -> Sequence[int] | None: ...
        def _seen(self, tx: Transaction, session_id: str, action: Action) -> SessionRow: ...

    @operation
    def overview(self, session_id: str) -> Work[Overview]:
        """One conversation as a page shows it."""
        return Read(lambda tx: self._shown(tx, self._seen(tx, session_id, Action.READ).session))

    @operation
    def overviews(
        self,
        *,
        shelf: str = "current",
        limit: int = 50,
        cursor: str | None = None,
        project: str | None = None,
        platform: str | None = None,
        person: str | None = None,
        text: str | None = None,
    ) -> Work[Page[Overview]]:
        """Conversations in which something was said, newest first, that fit all that is asked for.

        `text` stands in the title, the last line or the name of the place. With `platform` or `text` a page may end
        early, even empty: it goes on as long as there is a cursor.
        """
        fits = _fitting(platform, text)

        def run(tx: Transaction) -> Page[Overview]:
            project_id = None if project is None else projects.find(tx, self._person, project)[1].id
            wanted = session_lists.SessionFilter(shelf=shelf, limit=limit, cursor=cursor, project_id=project_id)
            audiences = self._audiences(tx)
            if person is not None:
                theirs = people.audiences_of(tx, person) if is_storable(person) else []  # type: ignore[arg-type]
                audiences = theirs if audiences is None else [no for no in audiences if no in set(theirs)]
            if fits is None:
                page = session_lists.listed(tx, wanted, audiences)
            else:
                page = session_lists.matching(tx, wanted, audiences, fits)
            return Page(transcript_queries.overviews(tx, page, self._person), page.cursor)

        return Read(run)

    @operation
    def excerpt(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        limit: int = 50,
    ) -> Work[Excerpt]:
        """Part of what people read in a conversation: its end, or what is before, after or around a place."""
        given = [each for each in (before, after, around) if each is not None]
        if len(given) > 1:
            raise InvalidInput("before, after and around exclude each other; give one of them")
        for name, value in (("before", before), ("after", after), ("around", around)):
            check_count(name, value, least=0)
        check_count("limit", limit, most=MOST_EVENTS)

        def run(tx: Transaction) -> Excerpt:
            no = self._seen(tx, session_id, Action.READ).no
            if after is not None:
                return transcript_queries.following(tx, no, after=after, limit=limit)
            if around is not None:
                return transcript_queries.around(tx, no, seq=around, limit=limit)
            return transcript_queries.last(tx, no, before=before, limit=limit)

        return Read(run)

    @operation
    def log(self, session_id: str, *, after: int = 0, limit: int = 100) -> Work[Excerpt]:
        """The log itself after a place in it, hidden messages included."""
        check_count("after", after, least=0)
        check_count("limit", limit, most=MOST_EVENTS)
        return Read(
            lambda tx: transcript_queries.whole(
                tx, self._seen(tx, session_id, Action.READ).no, after=after, limit=limit
            )
        )

    @operation
    def mark_read(self, session_id: str, seq: int) -> Work[int]:
        """Everything up to a place in the log has been seen; how far that is now, which is never back."""
        check_count("seq", seq, least=0)
        now = self._now()

        def look(tx: Transaction) -> int | None:
            reached = transcript_queries.marked(tx, self._seen(tx, session_id, Action.READ).no, self._person)
            return reached if reached >= seq else None

        def run(tx: Transaction) -> int:
            return transcript_queries.mark(tx, self._seen(tx, session_id, Action.READ).no, self._person, seq, now)

        return Write(run, look=look)

    @operation
    def change(self, session_id: str, changes: Changes) -> Work[Overview]:
        """Change several things of a conversation together: all of them, or none."""
        now, person = self._now(), self._person
        self._check_settings(changes)

        def run(tx: Transaction) -> Overview:
            found = self._seen(tx, session_id, Action.READ)
            if "title" in changes:
                self._seen(tx, session_id, Action.RENAME)
                sessions.rename(tx, found, changes["title"], now, person)
            if changes.keys() & {"pinned", "archived", "project"}:
                self._organise(tx, self._seen(tx, session_id, Action.ORGANISE), changes, now)
            if "model" in changes:
                session_settings.choose_model(tx, found.no, changes["model"], now, person)
            if "busy" in changes:
                session_settings.choose_busy(tx, found.no, changes["busy"], now, person)
            if "toolsets" in changes:
                session_settings.switch_toolsets(tx, found.no, changes["toolsets"], now, person)
            return self._shown(tx, sessions.by_number(tx, found.no).session)

        return Write(run)

    def _organise(self, tx: Transaction, found: SessionRow, changes: Changes, now: int) -> None:
        if "pinned" in changes:
            kind = EventKind.PINNED if changes["pinned"] else EventKind.UNPINNED
            sessions.mark(tx, found, kind, now, self._person)
        if "archived" in changes:
            kind = EventKind.ARCHIVED if changes["archived"] else EventKind.UNARCHIVED
            sessions.mark(tx, found, kind, now, self._person)
        if "project" in changes:
            named = changes["project"]
            into = None if named is None else projects.find(tx, self._person, named)
            sessions.move(tx, found, into and into[1].id, into and into[0], now, self._person)

    def _check_settings(self, changes: Changes) -> None:
        from palaver.services.commands.permissions import allows  # the terminal's lists do without the commands

        for name, command in _CHOSEN_BY.items():
            if name in changes and not allows(self._principal.role, command):
                raise NotAllowed(f"as a guest you may not choose the {name} of a conversation", setting=name)

    def _shown(self, tx: Transaction, session: Session) -> Overview:
        person: PersonId = self._person
        return transcript_queries.overviews(tx, [session], person)[0]


def _fitting(platform: str | None, text: str | None) -> Callable[[Session], bool] | None:
    """What a session must be like; None when everything fits."""
    words = (text or "").casefold().split()
    if platform is None and not words:
        return None

    def fits(session: Session) -> bool:
        if platform is not None and session.platform != platform.lower():
            return False
        if not words:
            return True
        place = session.origin
        shown = f"{session.title or ''} {session.preview} {place.chat_name or ''} {place.user_name or ''}".casefold()
        return all(word in shown for word in words)

    return fits
