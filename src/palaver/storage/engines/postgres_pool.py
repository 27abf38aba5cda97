"""The connections to a PostgreSQL server: a few, opened when needed, and shared by all callers.

A caller opens its connection itself, on its own thread. There is nothing in the background that could fall behind, so
callers are served as soon as the server accepts connections again, however many of them wait.

Always true: while the server is away, all callers together wait at most `OUTAGE_WAIT_SECONDS` from the first failure
on. After that, callers fail at once, and one of them at a time finds out whether the server is back.
Also: no connection is lent that was opened before a newer version upgraded the schema, or after it.
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
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from palaver.domain.errors import SchemaTooNew, StoreBusy, StoreClosed
from palaver.storage.engines.postgres_migration import name_application, refuse_newer_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from palaver.storage.engines.base import Row

MAX_CONNECTIONS = 16
BUSY_TIMEOUT_SECONDS: Final = 30.0  # how long a caller waits while all connections are in use
CONNECT_TIMEOUT_SECONDS: Final = 5
OUTAGE_WAIT_SECONDS: Final = 2.0  # a server that is back within this time is not noticed by those who wait for it
RETRY_SECONDS: Final = 0.1  # between two attempts to connect to a server that is away
MAX_IDLE_SECONDS: Final = 600.0  # then a connection that is not needed is closed
MAX_AGE_SECONDS: Final = 3600.0  # then a connection is replaced: the server's processes grow with time

# So that a server that disappears without a word (power, network) is noticed, also in the middle of a statement.
_DEFAULT_PARAMETERS: Final = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}


log = logging.getLogger(__name__)


class PostgresTransaction:
    """Runs statements on one connection."""

    name: Literal["postgres"] = "postgres"
    supports_data_ctes = True
    for_update = "FOR UPDATE"
    for_key_share = "FOR KEY SHARE"

    def __init__(self, connection: PooledConnection) -> None:
        self._cursor: psycopg.RawCursor[Row] = psycopg.RawCursor(connection)
        self._execute: Any = self._cursor.execute

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        row: Row | None = self._execute(sql, params).fetchone()
        return row

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        rows: list[Row] = self._execute(sql, params).fetchall()
        return rows

    def execute(self, sql: str, *params: object) -> int:
        count: int = self._execute(sql, params).rowcount
        return count

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._cursor.executemany(sql, rows)

    def lock_name(self, name: str) -> None:
        self._execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (name,))


class PooledConnection(psycopg.Connection["Row"]):
    """A connection that reuses one cursor."""

    opened_at = 0.0
    returned_at = 0.0

    @cached_property
    def tx(self) -> PostgresTransaction:
        return PostgresTransaction(self)


def connect(url: str) -> PooledConnection:
    """Open a connection with the settings that the store needs; parameters in the URL win."""
    parameters: dict[str, Any] = {**_DEFAULT_PARAMETERS, **conninfo_to_dict(url)}
    parameters["application_name"] = name_application(parameters.get("application_name"))
    return PooledConnection.connect(autocommit=True, prepare_threshold=1, **parameters)


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

    def __init__(self, url: str) -> None:
        self._url = url
        self._free_slots: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        for _ in range(MAX_CONNECTIONS):
            self._free_slots.put(_Slot(weakref.ref(self._free_slots)))
        self._idle: deque[PooledConnection] = deque()  # the last one returned is the first one lent
        self._lock = threading.Lock()
        self._outage: _Outage | None = None
        self._upgrade: SchemaTooNew | None = None
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Iterator[PooledConnection]:
        """Lend a connection. Raises `psycopg.OperationalError` if the server is away."""
        slot = self._take_slot()
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._return(connection)
        finally:
            self._free_slots.put(slot)

    def close(self) -> None:
        """Close the connections that are not in use; the others are closed when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for connection in idle:
            connection.close()

    def _take_slot(self) -> _Slot:
        try:
            return self._free_slots.get(timeout=BUSY_TIMEOUT_SECONDS)
        except queue.Empty:
            raise StoreBusy(
                f"All connections to PostgreSQL were busy for {BUSY_TIMEOUT_SECONDS:.0f} s. Try again later."
            ) from None

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
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:  # broken, or left in a transaction
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
            if time.monotonic() >= outage.started + OUTAGE_WAIT_SECONDS or _is_permanent(outage.error):
                raise psycopg.OperationalError(*outage.error.args)
            time.sleep(RETRY_SECONDS)

    def _try_to_connect(self) -> PooledConnection | None:
        if self._upgrade is not None:
            raise SchemaTooNew(str(self._upgrade), **self._upgrade.facts)
        if not self._may_connect():
            return None
        try:
            connection = connect(self._url)
            self._check_schema(connection)
        except psycopg.OperationalError as error:
            self._note_outage(error)
            return None
        connection.opened_at = time.monotonic()
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
            started = now if self._outage is None else self._outage.started
            self._outage = _Outage(started, now + RETRY_SECONDS, error)


def _is_usable(connection: PooledConnection) -> bool:
    """Whether an idle connection is still connected and not too old.

    A server that closes a connection says so: then there is something to read on it.
    """
    if connection.closed or time.monotonic() - connection.opened_at > MAX_AGE_SECONDS:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def _is_permanent(error: psycopg.OperationalError) -> bool:
    """Whether waiting does not help: a wrong password or an unknown database."""
    return isinstance(error, pg.InvalidPassword | pg.InvalidAuthorizationSpecification | pg.InvalidCatalogName)
