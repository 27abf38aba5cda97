"""The connections to a PostgreSQL server: a few, opened when needed, and shared by all callers.

A caller opens its connection itself, on its own thread. There is nothing in the background that could fall behind, so
callers are served as soon as the server accepts connections again, however many of them wait.

Always true: while the server is away, all callers together wait at most `OUTAGE_WAIT_SECONDS` from the first failure
on. After that, callers fail at once, and one of them at a time finds out whether the server is back. Each kind of work
has connections of its own, so none can take them all. All connections are to the same server on the same timeline, and
none is lent that was opened before a newer version upgraded the schema, or after it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import select
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg

from palaver.core.engines.base import WorkKind
from palaver.core.engines.postgres_connection import CONNECT_TIMEOUT_SECONDS, connect, list_addresses
from palaver.core.engines.postgres_errors import ServerAway, get_first_line
from palaver.core.engines.postgres_identity import TimelineFile, WrongServer, read_report
from palaver.core.engines.postgres_migration import refuse_newer_schema
from palaver.core.errors import SchemaTooNew, StoreBusy, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from palaver.core.engines.postgres_connection import PooledConnection
    from palaver.core.engines.postgres_identity import ServerIdentity, ServerReport

MAX_CONNECTIONS: Final[Mapping[WorkKind, int]] = {
    WorkKind.READ: 6,
    WorkKind.REQUEST: 8,
    WorkKind.TURN: 4,
    WorkKind.BACKGROUND: 2,
}
BUSY_TIMEOUT_SECONDS = 10.0  # how long a caller waits while all connections of its kind are in use
# After this time a connection is broken off: its server does not even keep the time limit of a statement.
MAX_WORK_SECONDS = 60.0
OUTAGE_WAIT_SECONDS: Final = 2.0  # a server that is back within this time is not noticed by those who wait for it
RETRY_SECONDS: Final = 0.1  # between two attempts to connect to a server that is away
MAX_IDLE_SECONDS: Final = 600.0  # then a connection that is not needed is closed
MAX_AGE_SECONDS: Final = 3600.0  # then a connection is replaced: the server's processes grow with time
ALL_BUSY: Final = "The database is busy with other changes. Try again in a moment."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outage:
    """The server is away since `started`."""

    started: float
    retry_at: float
    error: psycopg.OperationalError


class _Slot:
    """The right to use one connection.

    No interrupt (Ctrl-C) can lose it, at whatever moment it comes: a slot that is not returned goes back by itself. A
    semaphore of `threading` would stay locked for good if the interrupt came inside its own code.
    """

    __slots__ = ("_free",)

    def __init__(self, free: weakref.ref[queue.SimpleQueue[_Slot]]) -> None:
        self._free = free

    def __del__(self) -> None:
        if (free := self._free()) is not None:
            free.put(_Slot(self._free))


class PostgresPool:
    """Lends connections to callers."""

    def __init__(self, url: str, state_folder: Path | None = None) -> None:
        self._addresses = list_addresses(url)
        self._free_slots: dict[WorkKind, queue.SimpleQueue[_Slot]] = {}
        for kind, count in MAX_CONNECTIONS.items():
            slots = self._free_slots[kind] = queue.SimpleQueue()
            for _ in range(count):
                slots.put(_Slot(weakref.ref(slots)))
        self._idle: deque[PooledConnection] = deque()  # the last one returned is the first one lent
        self._lent: set[PooledConnection] = set()
        self._lock = threading.Lock()
        self._outage: _Outage | None = None
        self._upgrade: SchemaTooNew | None = None
        self._closed = False
        self._timeline_file = TimelineFile(state_folder)
        self._identity: ServerIdentity | None = None
        self._has_connected = False
        self.is_pooled = False  # a pooler is between us and the server

    @contextlib.contextmanager
    def borrow(self, kind: WorkKind = WorkKind.READ, *, is_long: bool = False) -> Iterator[PooledConnection]:
        """Lend a connection. Raises `psycopg.OperationalError` if the server is away."""
        slot = self._take_slot(kind)
        try:
            connection = self._take()
            connection.lent_at, connection.is_doing_long_work = time.monotonic(), is_long
            self._lent.add(connection)
            try:
                yield connection
            finally:
                self._lent.discard(connection)
                self._return(connection)
        finally:
            self._free_slots[kind].put(slot)

    @contextlib.contextmanager
    def borrow_first(self) -> Iterator[PooledConnection]:
        """Connect, and lend the connection. Does not wait for a server that is away."""
        connection = self.connect()
        try:
            yield connection
        finally:
            self._return(connection)

    def close(self) -> None:
        """Close the connections that are not in use; the others are closed when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for connection in idle:
            connection.close()

    def is_current(self, connection: PooledConnection) -> bool:
        """Whether a connection is to the server that has the store now."""
        return connection.identity == self._identity

    def abort(self) -> None:
        """Break off the connections that are in use, for a process that has to end."""
        self.close()
        for connection in list(self._lent):
            connection.abort()

    def abort_overdue(self) -> None:
        """Break off the connections on which nothing has come back for far too long."""
        since = time.monotonic() - MAX_WORK_SECONDS
        for connection in list(self._lent):
            if connection.lent_at < since and not connection.is_doing_long_work:
                connection.abort()

    def _take_slot(self, kind: WorkKind) -> _Slot:
        try:
            return self._free_slots[kind].get(timeout=BUSY_TIMEOUT_SECONDS)
        except queue.Empty:
            self.abort_overdue()
            raise StoreBusy(ALL_BUSY) from None

    # -- connecting ----------------------------------------------------------------------------------------

    def connect(self) -> PooledConnection:
        """Connect to the first server that has the store. The connection is not one of those that are lent."""
        errors: list[psycopg.OperationalError] = []
        for address in self._addresses:
            try:
                connection = self._connect_to(address)
            except psycopg.OperationalError as error:
                errors.append(error)
            else:
                for refusal in errors:
                    if isinstance(refusal, WrongServer):
                        log.warning("postgres_server_refused", extra={"reason": str(refusal)})
                return connection
        raise next((error for error in errors if isinstance(error, WrongServer)), errors[-1])

    def _connect_to(self, address: Mapping[str, Any]) -> PooledConnection:
        refusal: psycopg.OperationalError | None = None
        try:
            connection = connect(address, is_pooled=self.is_pooled)
        except psycopg.errors.ConnectionTimeout:
            raise
        except psycopg.OperationalError as error:
            if self._has_connected:
                raise
            # A pooler refuses our time limits, and a replica is not "read-write": without both we see what it is.
            refusal = error
            connection = connect({**address, "target_session_attrs": "any"}, is_pooled=True)
        try:
            report = read_report(connection)
            self._check(report)
            if report.backend_pid != connection.info.backend_pid:
                self._note_pooler(connection)
            elif refusal is not None:
                raise refusal
        except BaseException:
            connection.close()
            raise
        connection.opened_at, connection.identity = time.monotonic(), report.identity
        self._has_connected = True
        return connection

    def _note_pooler(self, connection: PooledConnection) -> None:
        connection.is_pooled, connection.prepare_threshold = True, None
        if not self.is_pooled:
            self.is_pooled = True
            log.info("postgres_pooler_found")

    def _check(self, report: ServerReport) -> None:
        """Raise `WrongServer` if the store must not be used on the server of a new connection."""
        if report.is_replica:
            raise WrongServer(
                "this server is a replica, which only reads. Write the address of the primary into database_url, or"
                " the addresses of all: postgresql://user@first,second/name."
            )
        if (found := report.identity) is None:
            return
        with self._lock:
            known = self._identity
            if known == found:
                return
            if known is not None and known.system_id != found.system_id:
                raise WrongServer("this is another database server than before. If that is intended, restart Palaver.")
            newest = self._timeline_file.load(found.system_id) if known is None else known.timeline
            if found.timeline < newest:
                raise WrongServer(_describe_old_primary(found.timeline, newest, self._timeline_file))
            self._identity = found
            idle, self._idle = self._idle, deque()
            lent = [connection for connection in self._lent if connection.identity != found]
        for connection in lent:  # of the server before: what is still written there is not in the store
            connection.abort()
        for connection in idle:
            connection.close()
        self._timeline_file.save(found)

    def _take_idle(self) -> PooledConnection | None:
        while True:
            with self._lock:
                if self._closed:
                    raise StoreClosed
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if _is_usable(connection):
                return connection
            connection.close()

    def _return(self, connection: PooledConnection) -> None:
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if not is_idle or not self.is_current(connection):  # broken, left in a transaction, or of an old server
            connection.close()
            return
        connection.returned_at = now = time.monotonic()
        unneeded: list[PooledConnection] = []
        with self._lock:
            if self._closed:
                unneeded.append(connection)
            else:
                self._idle.append(connection)
                while self._idle[0].returned_at < now - MAX_IDLE_SECONDS:
                    unneeded.append(self._idle.popleft())
        for each in unneeded:
            each.close()

    # -- while the server is away --------------------------------------------------------------------------

    def _take(self) -> PooledConnection:
        """Take an idle connection or open one, waiting for a server that has just gone away."""
        while True:
            connection = self._take_idle() or self._try_to_connect()
            if connection is not None:
                return connection
            outage = self._outage
            if outage is None:  # another caller has just found that the server is back
                continue
            if time.monotonic() >= outage.started + OUTAGE_WAIT_SECONDS or isinstance(outage.error, WrongServer):
                raise ServerAway(*outage.error.args)
            time.sleep(RETRY_SECONDS)

    def _try_to_connect(self) -> PooledConnection | None:
        if self._upgrade is not None:
            raise SchemaTooNew(str(self._upgrade), **self._upgrade.facts)
        if not self._may_connect():
            return None
        try:
            connection = self.connect()
            self._check_schema(connection)
        except psycopg.OperationalError as error:
            self._note_outage(error)
            return None
        self._outage = None
        return connection

    def _check_schema(self, connection: PooledConnection) -> None:
        """Raise `SchemaTooNew` if a newer version has upgraded the schema: it has ended all connections to say so."""
        try:
            refuse_newer_schema(connection)
        except SchemaTooNew as error:
            connection.close()
            self._upgrade = error
            log.error("store_upgraded", extra={"error": str(error)})
            raise
        except psycopg.Error:
            connection.close()
            raise

    def _may_connect(self) -> bool:
        """Whether this caller should try to connect: during an outage one caller at a time does."""
        with self._lock:
            outage, now = self._outage, time.monotonic()
            if outage is None:
                return True
            if now < outage.retry_at:
                return False
            self._outage = _Outage(outage.started, now + CONNECT_TIMEOUT_SECONDS, outage.error)
            return True

    def _note_outage(self, error: psycopg.OperationalError) -> None:
        with self._lock:
            now = time.monotonic()
            is_new = self._outage is None
            started = now if self._outage is None else self._outage.started
            self._outage = _Outage(started, now + RETRY_SECONDS, error)
        if is_new:
            log.warning("postgres_unreachable", extra={"reason": get_first_line(error)})


def _is_usable(connection: PooledConnection) -> bool:
    """Whether an idle connection is still connected and not too old.

    A server that closes a connection says so: then there is something to read on it.
    """
    if connection.closed or time.monotonic() - connection.opened_at > MAX_AGE_SECONDS:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _describe_old_primary(found: int, newest: int, file: TimelineFile) -> str:
    text = (
        f"this server is an old primary: it is on timeline {found}, and Palaver has already used timeline {newest}."
        " Writing there would split your conversations between two servers. Stop it, or make it a replica of the new"
        " primary."
    )
    return text if file.path is None else f"{text} If you restored this server on purpose, delete {file.path} first."
