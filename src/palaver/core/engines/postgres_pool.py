"""The connections to a PostgreSQL server: a few, opened when needed, and shared by all callers.

A caller opens its connection itself, on its own thread. There is nothing in the background that could fall behind, so
callers are served as soon as the server accepts connections again, however many of them wait.

Always true: while the server is away, all callers together wait at most `OUTAGE_WAIT_SECONDS` from the first failure
on. After that, callers fail at once, and one of them at a time finds out whether the server is back. Each kind of work
has connections of its own, so none can take them all. All connections are to the same server on the same timeline, and
none is lent that was opened before a newer version upgraded the schema, or after it.

Besides: the threads on which a server waits for PostgreSQL, and the connection that listens to changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import select
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

import psycopg

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import OnChange, WorkKind, fetch_value, run_without_stop_iteration
from palaver.core.engines.postgres_connection import (
    CONNECT_TIMEOUT_SECONDS,
    PooledConnection,
    ServerAway,
    ServerIdentity,
    ServerReport,
    TimelineFile,
    WrongServer,
    connect,
    get_first_line,
    list_addresses,
    read_report,
)
from palaver.core.engines.postgres_migration import refuse_newer_schema
from palaver.core.engines.sqlite_watch import WakeUp
from palaver.core.errors import SchemaTooNew, StoreBusy, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


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
RECONNECT_SECONDS = 0.5  # pause before a new connection that listens, when the server has gone away
CHECK_SECONDS = 1.0  # between two reads of the snapshot
CLOSE_SECONDS = 2.0  # for the thread that listens to end; then its connection is broken off

T = TypeVar("T")

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
        try:
            slot = self._free_slots[kind].get(timeout=BUSY_TIMEOUT_SECONDS)
        except queue.Empty:
            self.abort_overdue()
            raise StoreBusy(ALL_BUSY) from None
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

    @property
    def is_lending(self) -> bool:
        return bool(self._lent)

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
                connection.is_pooled, connection.prepare_threshold = True, None
                if not self.is_pooled:
                    self.is_pooled = True
                    log.info("postgres_pooler_found")
            elif refusal is not None:
                raise refusal
        except BaseException:
            connection.close()
            raise
        connection.opened_at, connection.identity = time.monotonic(), report.identity
        self._has_connected = True
        return connection

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
            path = self._timeline_file.path
            if found.timeline < newest:
                raise WrongServer(
                    f"this server is an old primary: it is on timeline {found.timeline}, and Palaver has already used"
                    f" timeline {newest}. Writing there would split your conversations between two servers. Stop it, or"
                    " make it a replica of the new primary."
                    + (f" If you restored this server on purpose, delete {path} first." if path else "")
                )
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
            self._idle.append(connection)
            while self._idle and (self._closed or self._idle[0].returned_at < now - MAX_IDLE_SECONDS):
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
            with self._lock:
                known, now = self._outage, time.monotonic()
                self._outage = _Outage(known.started if known else now, now + RETRY_SECONDS, error)
            if known is None:
                log.warning("postgres_unreachable", extra={"reason": get_first_line(error)})
            return None
        self._outage = None
        return connection

    def _check_schema(self, connection: PooledConnection) -> None:
        """Raise `SchemaTooNew` if a newer version has upgraded the schema: it has ended all connections to say so."""
        try:
            refuse_newer_schema(connection)
        except (SchemaTooNew, psycopg.Error) as error:
            connection.close()
            if isinstance(error, SchemaTooNew):
                self._upgrade = error
                log.error("store_upgraded", extra={"error": str(error)})
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


def _is_usable(connection: PooledConnection) -> bool:
    """Whether an idle connection is still connected and not too old.

    A server that closes a connection says so: then there is something to read on it.
    """
    if connection.closed or time.monotonic() - connection.opened_at > MAX_AGE_SECONDS:
        return False
    return not connection.poll_input.poll(0)


class PostgresThreads:
    """Runs blocking work for an event loop, on as many threads for each kind of work as it has connections.

    Always true: a caller gets its result, or `StoreBusy` before its work has started. Work that has started is waited
    for, because a write may be stored; the pool breaks off connections on which nothing comes back.
    """

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self._executors = {
            kind: ThreadPoolExecutor(count, f"palaver-postgres-{kind}") for kind, count in MAX_CONNECTIONS.items()
        }
        # One write at a time of those with the same key has a thread: the others would wait in it for the same lock.
        self._locks: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = WeakValueDictionary()

    async def run(self, work: Callable[[], T], kind: WorkKind, key: str | None) -> T:
        """Run work on a thread of its kind; raise `StoreBusy` if it can't start in time."""
        if key is None:
            return await self._run(work, kind)
        lock = self._locks.setdefault((asyncio.get_running_loop(), key), asyncio.Lock())
        try:
            async with asyncio.timeout(BUSY_TIMEOUT_SECONDS):
                await lock.acquire()
        except TimeoutError:
            raise StoreBusy(ALL_BUSY) from None
        try:
            return await self._run(work, kind)
        finally:
            lock.release()

    def close(self) -> None:
        """Let the work that has started finish."""
        for executor in self._executors.values():
            executor.shutdown()

    async def _run(self, work: Callable[[], T], kind: WorkKind) -> T:
        try:
            future = self._executors[kind].submit(run_without_stop_iteration, work)
        except RuntimeError:  # the threads have been shut down
            raise StoreClosed from None
        loop = asyncio.get_running_loop()
        start_limit = _StartLimit(loop, self._pool, future)
        try:
            return await asyncio.wrap_future(future, loop=loop)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if start_limit.is_over and (task is None or not task.cancelling()):
                raise StoreBusy(ALL_BUSY) from None
            raise
        finally:
            start_limit.timer.cancel()


class _StartLimit:
    """Cancels work that has not started in time. `asyncio.wait` with a timeout would take longer than a short query."""

    __slots__ = ("_future", "_loop", "_pool", "is_over", "timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: PostgresPool, future: Future[Any]) -> None:
        self._loop = loop
        self._pool = pool
        self._future = future
        self.is_over = False
        self.timer = loop.call_later(BUSY_TIMEOUT_SECONDS, self._check)

    def _check(self) -> None:
        self._pool.abort_overdue()
        self.is_over = self._future.cancel()
        if not self.is_over:  # it has started, or is done: look again for a connection on which nothing comes back
            self.timer = self._loop.call_later(BUSY_TIMEOUT_SECONDS, self._check)


class PostgresWatch:
    """A thread that calls `on_change` after every change by any process: it listens to notifications of writes.

    Now and then it also compares the server's snapshot, in which every commit leaves a trace. So a change without a
    notification is found too, and all who wait for changes need no queries of their own. Behind a pooler only the
    snapshot is compared: there, notifications would reach the connections of others.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(self, pool: PostgresPool, on_change: OnChange, watches: list[PostgresWatch]) -> None:
        self._pool = pool
        self._connection: PooledConnection | None = None
        self._on_change = on_change
        self._watches = watches
        self._closed = threading.Event()
        self._wake_up = WakeUp()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="palaver-listen", daemon=True)
        self._thread.start()
        self._listening.wait(5)  # from here on no change is missed

    def close(self) -> None:
        self._closed.set()
        self._wake_up.send()
        with contextlib.suppress(ValueError):  # closed before
            self._watches.remove(self)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive() and (connection := self._connection) is not None:
                connection.abort()
                self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            except psycopg.Error as error:  # the connection broke: open another after a pause
                log.debug("postgres_watch_interrupted", extra={"error": str(error)})
            except Exception:  # whatever it is, changes must still be noticed
                log.exception("postgres_watch_failed")
            self._closed.wait(RECONNECT_SECONDS)
        self._wake_up.close()

    def _listen(self) -> None:
        with self._pool.connect() as connection:
            self._connection = connection
            if not connection.is_pooled:
                connection.execute("LISTEN palaver")
            snapshot, check_at = _read_snapshot(connection), time.monotonic() + CHECK_SECONDS
            if self._listening.is_set():
                self._on_change(None)  # a reconnect: what changed in between is not known
            self._listening.set()
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            poll.register(self._wake_up.fd, select.POLLIN)
            while not self._closed.is_set() and self._pool.is_current(connection):
                if time.monotonic() >= check_at:
                    last_snapshot, snapshot = snapshot, _read_snapshot(connection)
                    check_at = time.monotonic() + CHECK_SECONDS
                    if snapshot != last_snapshot:
                        self._on_change(frozenset())
                # Last: the read may have received notifications, which are no longer on the socket.
                payloads = [notify.payload for notify in connection.notifies(timeout=0)]
                if payloads and not self._closed.is_set():
                    self._on_change(frozenset(int(number) for number in payloads if number.lstrip("-").isdecimal()))
                poll.poll(max(0.0, check_at - time.monotonic()) * 1000)


def _read_snapshot(connection: PooledConnection) -> str:
    """Return which transactions are visible now. It is the same as long as none has committed on this server."""
    return str(fetch_value(connection.tx, "SELECT pg_current_snapshot()::text"))
