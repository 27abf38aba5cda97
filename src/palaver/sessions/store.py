"""The session store: all conversations, for trusted code.

The gateway itself and programs that use Palaver as a library call it. The store trusts its caller; code that answers a
person uses the view from `seen_by(principal)` instead. Several threads and several processes may use a store at once.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from palaver.core.clock import Clock, to_micros
from palaver.core.engines.base import Engine, Read, Transaction, Upgrade, Work, Write
from palaver.core.engines.open import open_engine
from palaver.core.errors import InvalidInput, InvalidSource, SessionNotFound
from palaver.core.operation import (
    AsyncRunner,
    BlockingRunner,
    Page,
    R,
    ReadAfterWork,
    check_count,
    check_minutes,
    operation,
    read_operation,
    write_operation,
)
from palaver.core.source import SessionSource
from palaver.core.text import is_storable
from palaver.people import table as people
from palaver.sessions import (
    lanes_table as lanes,
    list_table as session_lists,
    log_table as events,
    message_table as message_log,
    table as sessions,
    usage_table as usage,
)
from palaver.sessions.gateway_config import MACHINE_PLATFORMS, GatewayConfig
from palaver.sessions.indexer import Indexer
from palaver.sessions.message import Message
from palaver.sessions.usage import TurnUsage
from palaver.sessions.view import AsyncSessionView, SessionView, TrustedScope, ViewScope
from palaver.sessions.view.search import build_search
from palaver.sessions.view.session_view import SessionOperations

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from palaver.people.model import Person, Principal
    from palaver.sessions.events import Event
    from palaver.sessions.model import RecordedMessage, SearchHits, Session, SessionEntry

    MessageInput = str | Mapping[str, Any] | Message
    IsBusy = Callable[[str], bool | datetime | None]


MAX_KNOWN_SOURCES = 10_000


class StoreOperations(SessionOperations[R]):
    """The operations of a store: `SessionStore` blocks, `AsyncSessionStore` is awaited."""

    def __init__(
        self, runner: R, engine: Engine, config: GatewayConfig, clock: Clock, is_busy: IsBusy | None, indexer: Indexer
    ) -> None:
        super().__init__(runner)
        self._scope = TrustedScope(clock)
        self._engine = engine
        self._config = config
        self._clock = clock
        self._is_busy = is_busy
        self._indexer = indexer
        self._known_sources: set[SessionSource] = set()  # that this process has stored a message of

    # -- lanes ---------------------------------------------------------------------------------------------

    @operation
    def get_or_create_session(self, source: SessionSource, force_new: bool = False) -> Work[SessionEntry]:
        """Return the session that a message from this source belongs to now; applies the reset policy.

        With `force_new` the lane's current session ends and a new one starts.
        """
        arrival = self.build_arrival(source)
        return Write(
            lambda tx: lanes.get_or_create_entry(tx, arrival, force_new=force_new),
            read_first=None if force_new else (lambda tx: lanes.find_open_entry(tx, arrival)),
        )

    @operation
    def record_user_message(self, source: SessionSource, message: MessageInput) -> Work[RecordedMessage]:
        """Find or start the session of this source and append the message, in one durable transaction."""
        arrival = self.build_arrival(source)
        user_message = _to_message(message, "user")
        from_human = user_message.role == "user" and source.platform not in MACHINE_PLATFORMS
        may_start = self._engine.name == "postgres" and self._is_unknown(source)
        self._indexer.notify()
        return Write(
            lambda tx: lanes.append_message(tx, arrival, user_message, from_human=from_human),
            single_statement=lambda tx: lanes.append_in_one_statement(
                tx, arrival, user_message, from_human=from_human, may_start=may_start
            ),
        )

    @write_operation
    def reset_session(self, tx: Transaction, key: str) -> SessionEntry:
        """End the lane's session and start a new one. `restore` reverts it."""
        return _require_entry(lanes.reset_session(tx, key, self._scope.now()), key)

    @write_operation
    def switch_session(self, tx: Transaction, key: str, session_id: str) -> SessionEntry:
        """Move the lane to another session, which keeps its own totals. `restore` reverts it."""
        entry = lanes.switch_session(tx, key, sessions.get(tx, session_id), self._scope.now())
        return _require_entry(entry, key)

    @write_operation
    def restore(self, tx: Transaction, key: str) -> SessionEntry:
        """Revert the lane's last reset or switch; called again, the one before it."""
        return lanes.restore_session(tx, key, self._scope.now())

    # -- the transcript ------------------------------------------------------------------------------------

    @operation
    def append_to_transcript(
        self,
        session_id: str,
        message: MessageInput | Sequence[MessageInput],
        *,
        usage: TurnUsage | None = None,
        from_human: bool | None = None,
    ) -> Work[int]:
        """Append a message, or several in one transaction, with the usage of their turn; returns the last one's number.

        `from_human` says whether this is human activity, which moves the idle clock; by default a user message is.
        """
        messages = _to_messages(message, "assistant")
        if not messages:
            raise InvalidInput("There is no message to append.")
        if from_human is None:
            from_human = any(each.role == "user" for each in messages)
        now = self._scope.now()
        appended_usage = usage if usage is not None and usage.has_usage else None

        def run(tx: Transaction) -> int:
            if usage is not None and appended_usage is None:
                _add_usage(tx, session_id, usage, now)
            return message_log.append_messages(
                tx, session_id, messages, now, from_human=from_human, usage=appended_usage
            )

        self._indexer.notify()
        return Write(run, single_statement=run if usage is appended_usage else None)

    @operation
    def load_transcript(self, session_id: str, limit: int | None = None) -> Work[list[dict[str, Any]]]:
        """Load the conversation as dicts ready for a model, in log order; with `limit`, only the last messages."""
        check_count("limit", limit)
        return Read(lambda tx: events.load_transcript(tx, session_id, limit))

    @operation
    def rewrite_transcript(self, session_id: str, messages: Sequence[MessageInput]) -> Work[None]:
        """Replace the transcript. Messages that differ are hidden, not deleted; all of it happens, or nothing."""
        replacement = [_to_message(each, "user") for each in messages]
        now = self._scope.now()
        self._indexer.notify()
        return Write(lambda tx: events.rewrite_transcript(tx, sessions.get(tx, session_id).no, replacement, now))

    @read_operation
    def load_events(self, tx: Transaction, session_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Load the complete log after a number: all messages, hidden ones too, and every other event."""
        check_count("after", after, minimum=0)
        check_count("limit", limit)
        return events.list_events(tx, sessions.get(tx, session_id).no, after=after, limit=limit)

    # -- usage ---------------------------------------------------------------------------------------------

    @write_operation
    def update_session(self, tx: Transaction, id_or_key: str, /, usage: TurnUsage | None = None, **fields: Any) -> None:
        """Add the usage of one turn to a session, given by its id or by the key of the lane that is on it.

        Takes a `TurnUsage` or its fields. A field that is not given changes nothing, nor does a `turn_id` that was
        added before.
        """
        turn_usage = _build_usage(usage, fields)
        current = lanes.find_current_session(tx, id_or_key) if id_or_key.startswith("agent:") else None
        _add_usage(tx, current.session.id if current else id_or_key, turn_usage, self._scope.now())

    # -- finding and organizing ----------------------------------------------------------------------------

    get_session = read_operation(SessionOperations._get)

    @read_operation
    def find_entry(self, tx: Transaction, key: str) -> SessionEntry | None:
        """Find the entry of a lane without applying the reset policy; None if the lane does not exist."""
        return lanes.find_entry(tx, key)

    @read_operation
    def list_sessions(
        self,
        tx: Transaction,
        active_minutes: float | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        state: str = "active",
    ) -> Page[Session]:
        """List sessions with messages, newest first; with `active_minutes`, only those active since then."""
        since = None
        if active_minutes is not None:
            check_minutes("active_minutes", active_minutes)
            since = to_micros(self._clock.now() - timedelta(minutes=active_minutes))
        session_filter = session_lists.SessionFilter(state=state, limit=limit, cursor=cursor, active_since=since)
        return session_lists.list_sessions(tx, session_filter, None)

    @read_operation
    def has_any_sessions(self, tx: Transaction) -> bool:
        """Return whether any session of the store has messages."""
        return session_lists.has_any_messages(tx)

    rename_session = write_operation(SessionOperations._rename)
    move_to_project = write_operation(SessionOperations._move)
    delete_session = operation(SessionOperations._delete_completely)

    @read_operation
    def find_free_title(self, tx: Transaction, session_id: str, title: str) -> str:
        """Return the title itself if it is free for this session's owner, or its next free number (`My Project #2`)."""
        return sessions.find_free_title(tx, sessions.get(tx, session_id), title)

    @operation
    def search(self, text: str, *, limit: int = 20, cursor: str | None = None) -> ReadAfterWork[Any, SearchHits]:
        """Find the newest messages with these words in all sessions. The `cursor` of a hit continues after it.

        Everything that was stored before is indexed first.
        """
        return build_search(self._scope, text, limit=limit, cursor=cursor, max_seconds=math.inf)

    # -- people --------------------------------------------------------------------------------------------

    @operation
    def get_or_create_person(self, source: SessionSource) -> Work[Person]:
        """Return the person behind a source; an unknown account becomes a guest."""
        return self._get_or_create_person(_check_source(source))

    def _get_or_create_person(self, source: SessionSource) -> Write[Person]:
        now = self._scope.now()

        def find(tx: Transaction) -> Person | None:
            row = people.find_by_source(tx, source)
            return row.person if row else None

        def run(tx: Transaction) -> Person:
            row = people.find_or_add_by_source(tx, source, now)
            if row is None:
                raise InvalidInput("source: user_id is missing, so it does not identify a person.")
            return row.person

        return Write(run, read_first=find, is_quick=True)

    @operation
    def get_owner(self) -> Work[Person]:
        """Return the owner of this gateway: the person at its terminal."""
        return self._get_or_create_person(SessionSource.local_cli())

    # -- shared by the above -------------------------------------------------------------------------------

    def build_arrival(self, source: SessionSource, now: datetime | None = None) -> lanes.Arrival:
        """Build what is needed to find the lane of a source and to apply the reset policy there."""
        return lanes.Arrival(
            source=_check_source(source),
            config=self._config,
            now=now or self._clock.now(),
            busy_since=self.get_busy_since,
        )

    def _is_unknown(self, source: SessionSource) -> bool:
        """Whether a source is new to this process. It only chooses the statement that is tried first."""
        if source in self._known_sources:
            return False
        if len(self._known_sources) >= MAX_KNOWN_SOURCES:
            self._known_sources.clear()
        self._known_sources.add(source)
        return True

    def _build_scope(self, principal: Principal, everything: bool) -> ViewScope:
        return ViewScope(principal=principal, clock=self._clock, everything=everything)

    def get_busy_since(self, session_id: str) -> datetime | None:
        """Return since when background work runs in a session, as far as this process knows; None if none does."""
        busy = self._is_busy(session_id) if self._is_busy else None
        if isinstance(busy, datetime):
            return busy
        return self._clock.now() if busy else None

    def _expect_messages(self) -> None:
        self._indexer.notify()


class AsyncSessionStore(StoreOperations[AsyncRunner]):
    """The same operations as those of a `SessionStore`, awaited."""

    def __init__(self, store: SessionStore) -> None:
        runner = AsyncRunner(store._engine)
        super().__init__(runner, store._engine, store._config, store._clock, store._is_busy, store._indexer)

    def seen_by(self, principal: Principal, *, everything: bool = False) -> AsyncSessionView:
        """Open a view of what this principal may see and change; see `SessionStore.seen_by`."""
        return AsyncSessionView(self._engine, self._build_scope(principal, everything))


class SessionStore(StoreOperations[BlockingRunner]):
    """All conversations in one database. Use it as a context manager."""

    def __init__(
        self,
        engine: Engine,
        config: GatewayConfig,
        clock: Clock,
        is_busy: IsBusy | None = None,
    ) -> None:
        super().__init__(BlockingRunner(engine), engine, config, clock, is_busy, Indexer(engine))
        self.aio = AsyncSessionStore(self)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        config: GatewayConfig | None = None,
        clock: Clock | None = None,
        is_busy: IsBusy | None = None,
        state_folder: Path | None = None,
        upgrade: Upgrade = Upgrade.ALONE,
    ) -> SessionStore:
        """Open a store from `sqlite:///…`, `postgresql://…` or the path of a file.

        Without a `clock` the store uses the machine's or, on PostgreSQL, the server's, so that all processes agree.
        `is_busy(session_id)` says whether background work runs in a session, which is then not reset: True, or the
        time since when (work older than a day counts as forgotten). The store calls it inside a transaction, so it
        must be fast and must not call the store. In `state_folder` it is remembered which PostgreSQL server has the
        store, so that after a failover the old one is refused. A store of an older version is upgraded; `upgrade` says
        otherwise.
        """
        engine = open_engine(str(url), state_folder=state_folder, upgrade=upgrade)
        return cls(engine, config or GatewayConfig(), clock or engine.clock, is_busy)

    @property
    def engine(self) -> Engine:
        """The database of the store, for services that do several things in one transaction."""
        return self._engine

    @property
    def config(self) -> GatewayConfig:
        return self._config

    def replace_config(self, config: GatewayConfig) -> None:
        self._config = config
        self.aio._config = config

    def with_config(self, config: GatewayConfig) -> SessionStore:
        """Return this store with a configuration that stays as it is. Close only the store that was opened."""
        store = copy.copy(self)
        store._config = config
        store.aio = AsyncSessionStore(store)
        return store

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def indexer(self) -> Indexer:
        return self._indexer

    def seen_by(self, principal: Principal, *, everything: bool = False) -> SessionView:
        """Open a view of what this principal may see and change: their own conversations and those they share.

        With `everything` the view shows all conversations; only an owner may ask for that.
        """
        return SessionView(self._engine, self._build_scope(principal, everything))

    def close(self) -> None:
        """Wait for work in progress and close the database."""
        self._indexer.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_source(source: SessionSource) -> SessionSource:
    for part in (source.chat_id, source.thread_id, source.user_id, source.user_id_alt, source.chat_id_alt):
        if part and not is_storable(part):
            raise InvalidSource(f"{part!r} cannot be an id. It contains characters that can't be stored.")
    return source


def _to_message(message: MessageInput, role: str) -> Message:
    if isinstance(message, Message):
        return message
    if isinstance(message, str):
        return Message(role, message)
    return Message.from_dict(message)


def _to_messages(message: MessageInput | Sequence[MessageInput], role: str) -> list[Message]:
    if isinstance(message, str | Mapping | Message):
        return [_to_message(message, role)]
    return [_to_message(each, role) for each in message]


def _build_usage(turn_usage: TurnUsage | None, fields: dict[str, Any]) -> TurnUsage:
    if turn_usage is not None and fields:
        raise InvalidInput("Give a TurnUsage or its fields, not both.")
    try:
        return turn_usage if turn_usage is not None else TurnUsage(**fields)
    except TypeError as error:
        names = ", ".join(TurnUsage.__slots__)
        raise InvalidInput(f"{str(error).split(') ')[-1]}. Valid fields: {names}.") from None


def _add_usage(tx: Transaction, session_id: str, turn_usage: TurnUsage, now: int) -> None:
    if not usage.record_usage(tx, session_id, turn_usage, now):
        raise SessionNotFound.for_id(session_id)


def _require_entry(entry: SessionEntry | None, key: str) -> SessionEntry:
    if entry is None:
        raise SessionNotFound(f"There is no conversation at {key} yet.", key=key)
    return entry
