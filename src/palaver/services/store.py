"""The session store: every conversation, for trusted code.

This is the gateway's own path and the library's front door. It trusts its caller: whatever answers a person
goes through `seen_by(principal)` instead. Safe to use from several threads and by several processes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from palaver.domain.errors import InvalidInput, InvalidSource, NoSuchSession
from palaver.domain.events import EventKind
from palaver.domain.gateway_config import GatewayConfig
from palaver.domain.message import Message
from palaver.domain.person import Principal, check_sees_everything
from palaver.domain.source import Platform, SessionSource
from palaver.domain.text import is_storable
from palaver.domain.usage import TurnUsage
from palaver.services.argument_checks import check_count, check_minutes
from palaver.services.indexer import Indexer, search_work
from palaver.services.operation import After, Awaiting, Blocking, operation
from palaver.services.view import AsyncSessionView, SessionView, exported
from palaver.storage import append, events, lanes, people, projects, session_lists, sessions, usage
from palaver.storage.engines.base import Read, Write
from palaver.storage.engines.open import open_engine
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from palaver.domain.clock import Clock
    from palaver.domain.events import Event
    from palaver.domain.person import Person
    from palaver.domain.session import Page, Recorded, SearchHit, Session, SessionEntry, Undone
    from palaver.storage.engines.base import Engine, Transaction, Work

    Said = str | Mapping[str, Any] | Message
    IsBusy = Callable[[str], bool | datetime | None]

# Where nobody sits: what these say does not count as somebody being there.
MACHINES = frozenset({Platform.CRON, Platform.WEBHOOK})


class StoreOperations:
    """What a store can do; `SessionStore` blocks, its `aio` twin is awaited."""

    _engine: Engine
    _config: GatewayConfig
    _clock: Clock
    _is_busy: IsBusy | None
    _indexer: Indexer

    # -- where a message goes ------------------------------------------------------------------------------

    @operation
    def get_or_create_session(self, source: SessionSource, force_new: bool = False) -> Work[SessionEntry]:
        """The session that a message from here belongs to now; applies the reset policy.

        With `force_new` the current session is ended and another begins.
        """
        arrival = self._arrival(source)
        return Write(
            lambda tx: lanes.enter(tx, arrival, force_new=force_new),
            look=None if force_new else (lambda tx: lanes.entered(tx, arrival)),
        )

    @operation
    def record_user_message(self, source: SessionSource, message: Said) -> Work[Recorded]:
        """Find or begin the session and append what the person said, in one durable transaction."""
        arrival = self._arrival(source)
        said = _message(message, "user")
        human = said.role == "user" and source.platform not in MACHINES
        self._indexer.soon()
        return Write(
            lambda tx: lanes.say(tx, arrival, said, human=human),
            short=lambda tx: lanes.say_shortly(tx, arrival, said, human=human),
        )

    @operation
    def reset_session(self, key: str) -> Work[SessionEntry]:
        """End the lane's session, by somebody's wish, and begin another. `restore` takes it back."""
        now = to_micros(self._clock.now())
        return Write(lambda tx: _lane(lanes.reset(tx, key, now), key))

    @operation
    def switch_session(self, key: str, session_id: str) -> Work[SessionEntry]:
        """Put the lane on another session, which goes on with its own totals. `restore` takes it back."""
        now = to_micros(self._clock.now())
        return Write(lambda tx: _lane(lanes.switch(tx, key, sessions.get(tx, session_id), now), key))

    @operation
    def restore(self, key: str) -> Work[SessionEntry]:
        """Take back the lane's last reset or switch; repeated, the one before it."""
        now = to_micros(self._clock.now())
        return Write(lambda tx: lanes.restore(tx, key, now))

    # -- the transcript ------------------------------------------------------------------------------------

    @operation
    def append_to_transcript(
        self,
        session_id: str,
        message: Said | Sequence[Said],
        *,
        usage: TurnUsage | None = None,
        human: bool | None = None,
    ) -> Work[int]:
        """Append a message, or several as one change, with the usage of their turn; the last one's number.

        `human` tells whether somebody is there (it moves the idle clock); by default a user message says so.
        """
        said = _messages(message, "assistant")
        if not said:
            raise InvalidInput("there is no message to append")
        there = any(each.role == "user" for each in said) if human is None else human
        now = to_micros(self._clock.now())
        counted = usage if usage is not None and usage.counts else None

        def run(tx: Transaction) -> int:
            if usage is not None and counted is None:
                _add_usage(tx, session_id, usage, now)
            return append.append(tx, session_id, said, now, human=there, usage=counted) or 0

        self._indexer.soon()
        return Write(run, short=run if usage is counted else None)

    @operation
    def load_transcript(self, session_id: str, limit: int | None = None) -> Work[list[dict[str, Any]]]:
        """The conversation as dicts ready for a model, in log order; only the last `limit`, if given."""
        check_count("limit", limit)
        return Read(lambda tx: events.transcript(tx, session_id, limit))

    @operation
    def rewrite_transcript(self, session_id: str, messages: Sequence[Said]) -> Work[None]:
        """Make the conversation read as given. What differs is hidden, not deleted; all of it or nothing happens."""
        said = [_message(each, "user") for each in messages]
        now = to_micros(self._clock.now())
        self._indexer.soon()
        return Write(lambda tx: events.rewrite(tx, sessions.get(tx, session_id).no, said, now))

    @operation
    def events(self, session_id: str, after: int = 0, limit: int = 1000) -> Work[list[Event]]:
        """The log itself after a place in it: messages, hidden ones too, and everything else that happened."""
        check_count("after", after, least=0)
        check_count("limit", limit)
        return Read(lambda tx: events.log(tx, sessions.get(tx, session_id).no, after=after, limit=limit))

    @operation
    def undo(self, session_id: str, turns: int = 1) -> Work[Undone]:
        """Hide the last turns, whole; `redo` shows them again."""
        check_count("turns", turns)
        now = to_micros(self._clock.now())
        return Write(lambda tx: events.undo(tx, sessions.get(tx, session_id).no, turns, now))

    @operation
    def redo(self, session_id: str) -> Work[Undone]:
        """Show again what the last undo hid."""
        now = to_micros(self._clock.now())
        return Write(lambda tx: events.redo(tx, sessions.get(tx, session_id).no, now))

    @operation
    def fork(self, session_id: str, at: int | None = None) -> Work[Session]:
        """A new session that begins as a copy, up to and including the turn of message number `at`."""
        check_count("at", at, least=0)
        now = to_micros(self._clock.now())
        self._indexer.soon()

        def run(tx: Transaction) -> Session:
            found = sessions.get(tx, session_id)
            return sessions.fork(tx, found, at, now, person_id=None, audience_no=found.audience_no).session

        return Write(run)

    # -- what it cost --------------------------------------------------------------------------------------

    @operation
    def update_session(self, session: str, /, used: TurnUsage | None = None, **fields: Any) -> Work[None]:
        """Add the usage of one turn to a session (its id, or the key of the lane that is on it).

        Takes a `TurnUsage` or its fields. What is not given is not touched; a `turn_id` counted before
        changes nothing.
        """
        given = _usage(used, fields)
        now = to_micros(self._clock.now())

        def run(tx: Transaction) -> None:
            session_id = session
            if session.startswith("agent:"):
                found = lanes.current(tx, session)
                session_id = found.session.id if found else session
            _add_usage(tx, session_id, given, now)

        return Write(run)

    # -- looking and arranging -----------------------------------------------------------------------------

    @operation
    def get_session(self, session_id: str) -> Work[Session]:
        """One session by its id."""
        return Read(lambda tx: sessions.get(tx, session_id).session)

    @operation
    def get_entry(self, key: str) -> Work[SessionEntry | None]:
        """The lane's entry as it is, without applying any policy; None when the lane does not exist."""
        return Read(lambda tx: lanes.entry(tx, key))

    @operation
    def list_sessions(
        self,
        active_minutes: float | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        shelf: str = "current",
    ) -> Work[Page[Session]]:
        """Sessions in which something was said, newest first; only those active in the last minutes, if given."""
        since = None
        if active_minutes is not None:
            check_minutes(active_minutes)
            since = to_micros(self._clock.now() - timedelta(minutes=active_minutes))
        wanted = session_lists.SessionFilter(shelf=shelf, limit=limit, cursor=cursor, since=since)
        return Read(lambda tx: session_lists.listed(tx, wanted, None))

    @operation
    def has_any_sessions(self) -> Work[bool]:
        """Whether anything was ever said here."""
        return Read(session_lists.any_with_messages)

    @operation
    def rename_session(self, session_id: str, title: str | None) -> Work[Session]:
        """Give a session a title, unique for its owner; None takes it away."""
        now = to_micros(self._clock.now())
        return Write(lambda tx: sessions.rename(tx, sessions.get(tx, session_id), title, now, None))

    @operation
    def next_title(self, session_id: str, title: str) -> Work[str]:
        """The title as given when it is free for this session's owner, otherwise the next of its line."""
        return Read(lambda tx: sessions.next_title(tx, sessions.get(tx, session_id), title))

    @operation
    def pin(self, session_id: str, pinned: bool = True) -> Work[Session]:
        """Pin a session, or let it go."""
        return self._mark(session_id, EventKind.PINNED if pinned else EventKind.UNPINNED)

    @operation
    def archive(self, session_id: str, archived: bool = True) -> Work[Session]:
        """Take a session out of the lists, or put it back."""
        return self._mark(session_id, EventKind.ARCHIVED if archived else EventKind.UNARCHIVED)

    @operation
    def move_to_project(self, session_id: str, project_id: str | None) -> Work[Session]:
        """Put a session into a project, or take it out of any."""
        now = to_micros(self._clock.now())

        def run(tx: Transaction) -> Session:
            found = sessions.get(tx, session_id)
            if project_id is None:
                return sessions.move(tx, found, None, None, now, None)
            project_no, project = projects.get(tx, project_id)
            return sessions.move(tx, found, project.id, project_no, now, None)

        return Write(run)

    @operation
    def search(self, text: str, *, limit: int = 20, before: int | None = None) -> After[Any, Sequence[SearchHit]]:
        """The newest messages with these words, among everybody's."""
        return search_work(text, lambda _tx: None, limit=limit, before=before)

    @operation
    def export(self, session_id: str) -> Work[dict[str, Any]]:
        """A session and its whole log as JSON-ready data."""
        return Read(lambda tx: exported(tx, sessions.get(tx, session_id)))

    @operation
    def delete_session(self, session_id: str) -> Work[None]:
        """Delete a session and its log for good. A late write to it is refused."""
        return Write(lambda tx: sessions.delete(tx, sessions.get(tx, session_id)))

    # -- people --------------------------------------------------------------------------------------------

    @operation
    def person_for(self, source: SessionSource) -> Work[Person]:
        """The person behind a source; a stranger becomes a guest."""
        return self._person(_checked(source))

    def _person(self, source: SessionSource) -> Write[Person]:
        now = to_micros(self._clock.now())

        def known(tx: Transaction) -> Person | None:
            resident = people.find(tx, source)
            return resident.person if resident else None

        def run(tx: Transaction) -> Person:
            resident = people.find_or_add(tx, source, now)
            if resident is None:
                raise InvalidInput("source: nobody can be told apart here; a user_id is missing")
            return resident.person

        return Write(run, look=known)

    @operation
    def owner(self) -> Work[Person]:
        """The owner of this gateway: whoever sits at its terminal."""
        return self._person(SessionSource.local_cli())

    # -- shared by the above -------------------------------------------------------------------------------

    def _arrival(self, source: SessionSource) -> lanes.Arrival:
        return self.arrival(source, self._clock.now())

    def arrival(self, source: SessionSource, now: datetime) -> lanes.Arrival:
        """Something arrives from a source, as storage needs to know it."""
        return lanes.Arrival(source=_checked(source), config=self._config, now=now, busy_since=self._busy_since)

    def _busy_since(self, session_id: str) -> datetime | None:
        busy = self._is_busy(session_id) if self._is_busy else None
        if isinstance(busy, datetime):
            return busy
        return self._clock.now() if busy else None

    def _mark(self, session_id: str, kind: EventKind) -> Write[Session]:
        now = to_micros(self._clock.now())
        return Write(lambda tx: sessions.mark(tx, sessions.get(tx, session_id), kind, now, None))


class AsyncSessionStore(Awaiting, StoreOperations):
    """The awaitable twin of a `SessionStore`: the same operations, awaited."""

    def __init__(self, store: SessionStore) -> None:
        self._engine = store._engine
        self._config = store._config
        self._clock = store._clock
        self._is_busy = store._is_busy
        self._indexer = store._indexer

    def seen_by(self, principal: Principal, *, everything: bool = False) -> AsyncSessionView:
        """What this principal may see and change; see `SessionStore.seen_by`."""
        if everything:
            check_sees_everything(principal)
        return AsyncSessionView(self._engine, self._clock, principal, everything=everything)


class SessionStore(Blocking, StoreOperations):
    """Every conversation, in one database. Use it as a context manager."""

    def __init__(
        self,
        engine: Engine,
        config: GatewayConfig,
        clock: Clock,
        is_busy: IsBusy | None = None,
    ) -> None:
        self._engine = engine
        self._config = config
        self._clock = clock
        self._is_busy = is_busy
        self._indexer = Indexer(engine)
        self.aio = AsyncSessionStore(self)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        config: GatewayConfig | None = None,
        clock: Clock | None = None,
        is_busy: IsBusy | None = None,
    ) -> SessionStore:
        """Open `sqlite:///…`, `postgresql://…` or a path to a file.

        Without a `clock` of its own it goes by the machine's or, on PostgreSQL, by the server's, as all others do.
        `is_busy(session_id)` says whether background work runs in a session, which then is not reset: True, or
        since when (work older than a day counts as forgotten). It is called while the database is held, so it
        must be quick and must not call the store.
        """
        engine = open_engine(str(url))
        return cls(engine, config or GatewayConfig(), clock or engine.clock, is_busy)

    @property
    def engine(self) -> Engine:
        """The database behind the store, for services that need more of it in one transaction."""
        return self._engine

    @property
    def config(self) -> GatewayConfig:
        """What the operator has decided."""
        return self._config

    @property
    def clock(self) -> Clock:
        """What tells the time."""
        return self._clock

    @property
    def indexer(self) -> Indexer:
        """What brings the search index up to date."""
        return self._indexer

    def seen_by(self, principal: Principal, *, everything: bool = False) -> SessionView:
        """What this principal may see and change: their own conversations and those they share.

        With `everything`, which only the owner may ask for, everybody's.
        """
        if everything:
            check_sees_everything(principal)
        return SessionView(self._engine, self._clock, principal, everything=everything)

    def close(self) -> None:
        """Finish what is under way and let go of the database."""
        self._indexer.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked(source: SessionSource) -> SessionSource:
    for part in (source.chat_id, source.thread_id, source.user_id, source.user_id_alt, source.chat_id_alt):
        if part and not is_storable(part):
            raise InvalidSource(f"{part!r} cannot be an id: it holds characters that no database keeps")
    return source


def _message(said: Said, role: str) -> Message:
    if isinstance(said, Message):
        return said
    if isinstance(said, str):
        return Message(role, said)
    return Message.from_dict(said)


def _messages(said: Said | Sequence[Said], role: str) -> list[Message]:
    if isinstance(said, str | Mapping | Message):
        return [_message(said, role)]
    return [_message(each, role) for each in said]


def _usage(used: TurnUsage | None, fields: dict[str, Any]) -> TurnUsage:
    if used is not None and fields:
        raise InvalidInput("give a TurnUsage or its fields, not both")
    try:
        return used if used is not None else TurnUsage(**fields)
    except TypeError as error:
        known = ", ".join(TurnUsage.__slots__)
        raise InvalidInput(f"{str(error).split(') ')[-1]}; known are {known}") from None


def _add_usage(tx: Transaction, session_id: str, used: TurnUsage, now: int) -> None:
    if not usage.add(tx, session_id, used, now):
        raise NoSuchSession(f"there is no session {session_id}", session_id=session_id)


def _lane(entry: SessionEntry | None, key: str) -> SessionEntry:
    if entry is None:
        raise NoSuchSession(f"nothing has been said in {key} yet", key=key)
    return entry
