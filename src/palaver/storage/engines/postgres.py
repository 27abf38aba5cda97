"""PostgreSQL: for more than one machine.

It runs the same statements as on SQLite, through a pool of connections. Work with a `Write.single_statement` is first
tried without a transaction around it, which saves two round trips; everything else runs in a transaction. After a
conflict with another process the work runs again. A read whose connection breaks runs once more on another one; a write
does not, because it may have been stored.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from palaver.domain.errors import (
    ConfigError,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from palaver.domain.upgrade import Upgrade
from palaver.storage.engines.base import Conflict, Read, Work, Write, run_on_thread
from palaver.storage.engines.copy_target import TargetContent, find_content

try:
    import psycopg
    from psycopg import errors as pg
    from psycopg.conninfo import conninfo_to_dict

    from palaver.storage.engines.postgres_clock import ServerClock
    from palaver.storage.engines.postgres_migration import migrate_database
    from palaver.storage.engines.postgres_pool import (
        MAX_CONNECTIONS,
        PooledConnection,
        PostgresPool,
        PostgresTransaction,
        connect,
    )
    from palaver.storage.engines.postgres_watch import PostgresWatch
except ModuleNotFoundError as error:
    raise ConfigError(
        "PostgreSQL support is not installed. Install it with: pip install 'palaver[postgres]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import LiteralString

    from palaver.storage.engines.base import OnChange, Transaction, Watch

T = TypeVar("T")

MAX_ATTEMPTS = 20  # of one unit of work that keeps meeting conflicts with other processes

_CONFLICTS = (Conflict, pg.UniqueViolation, pg.ForeignKeyViolation, pg.SerializationFailure, pg.DeadlockDetected)


# The server ends a connection like this when it shuts down, or does not open one because it is starting.
_SHUTDOWNS = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow)


class _ConnectionLost(Exception):
    """The connection broke while it was used."""


class PostgresEngine:
    """One database on a server."""

    name: Literal["postgres"] = "postgres"

    def __init__(self, url: str, pool: PostgresPool, server: str, clock: ServerClock) -> None:
        self.clock = clock
        self._url = url
        self._pool = pool
        self._server = server  # for error messages
        self._threads: ThreadPoolExecutor | None = None
        self._close_lock = threading.Lock()
        self._closed = False
        self._watches: list[PostgresWatch] = []

    @classmethod
    def open(
        cls,
        url: str,
        clock: ServerClock | None = None,
        *,
        allow_unfinished_copy: bool = False,
        upgrade: Upgrade = Upgrade.ALONE,
    ) -> PostgresEngine:
        """Connect and bring the schema up to date."""
        server = _describe_server(url)
        clock = clock or ServerClock()
        try:
            with connect(url) as connection:
                migrate_database(connection, upgrade, allow_unfinished_copy=allow_unfinished_copy)
                clock.sync(connection)
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"Cannot connect to PostgreSQL at {server}: {_get_first_line(error)}") from None
        except pg.InsufficientPrivilege as error:
            raise StoreReadOnly(f"PostgreSQL at {server} denied access: {_get_first_line(error)}") from None
        return cls(url, PostgresPool(url), server, clock)

    def run(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreClosed
        try:
            if isinstance(work, Read):
                return self._read(work.run)
            if work.read_first is not None and (result := self._read(work.read_first)) is not None:
                return result
            return self._run_once(partial(_write, work=work))
        except _ConnectionLost as lost:
            raise self._make_unavailable(lost.args[0]) from lost.args[0]
        except (pg.DiskFull, pg.OutOfMemory) as error:
            raise StoreFull(f"PostgreSQL at {self._server} is out of space: {_get_first_line(error)}") from error
        except (pg.DataCorrupted, pg.IndexCorrupted) as error:
            raise StoreDamaged(
                f"PostgreSQL at {self._server} reports damaged data: {_get_first_line(error)}. Check the server's disk,"
                " and restore its latest backup (docs/guides/backup.md)."
            ) from error
        except (pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege) as error:
            raise StoreReadOnly(
                f"PostgreSQL at {self._server} does not allow writing: {_get_first_line(error)}"
            ) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise self._make_unavailable(error) from error

    def _read(self, run: Callable[[Transaction], T]) -> T:
        """Read, and once more if the connection breaks."""
        read = partial(_read, run=run)
        try:
            return self._run_once(read)
        except _ConnectionLost:
            return self._run_once(read)

    def _run_once(self, run: Callable[[PooledConnection], T]) -> T:
        with self._pool.borrow() as connection:
            try:
                if self.clock.needs_sync:
                    self.clock.sync(connection)
                return run(connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if connection.closed or isinstance(error, _SHUTDOWNS):
                    raise _ConnectionLost(error) from error
                raise

    async def arun(self, work: Work[T]) -> T:
        return await run_on_thread(self._get_worker_threads(), self.run, work)

    def watch(self, on_change: OnChange) -> Watch:
        watch = PostgresWatch(self._url, on_change, self._watches)
        self._watches.append(watch)
        return watch

    def _make_unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"Lost the connection to PostgreSQL at {self._server}: {_get_first_line(error)}")

    def close(self) -> None:
        for watch in list(self._watches):
            watch.close()
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        if self._threads is not None:
            self._threads.shutdown()
        self._pool.close()

    def _get_worker_threads(self) -> ThreadPoolExecutor:
        with self._close_lock:
            if self._closed:
                raise StoreClosed
            if self._threads is None:
                self._threads = ThreadPoolExecutor(MAX_CONNECTIONS, "palaver-postgres")
            return self._threads


def _read(connection: PooledConnection, run: Callable[[Transaction], T]) -> T:
    """Read from one consistent state. A single statement needs no transaction for that: it takes one round trip."""
    try:
        return run(_SingleStatementTransaction(connection))
    except _SecondStatementNeeded:
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return run(connection.tx)


class _SecondStatementNeeded(Exception):
    """A read needs more than one statement, and so a transaction."""


class _SingleStatementTransaction(PostgresTransaction):
    """Runs one statement without a transaction; raises `_SecondStatementNeeded` at the second."""

    def __init__(self, connection: PooledConnection) -> None:
        super().__init__(connection)
        execute = self._execute
        has_executed = False

        def execute_once(sql: LiteralString, params: Sequence[object]) -> object:
            nonlocal has_executed
            if has_executed:
                raise _SecondStatementNeeded
            has_executed = True
            return execute(sql, params)

        self._execute = execute_once

    def execute(self, sql: str, *params: object) -> int:
        raise _SecondStatementNeeded  # a change: the read-only transaction that follows refuses it


def _write(connection: PooledConnection, work: Write[T]) -> T:
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            if work.single_statement is not None:
                result = work.single_statement(connection.tx)
                if result is not None:
                    return result
            with connection.transaction():
                return work.run(connection.tx)
        except _CONFLICTS as error:
            if attempt == MAX_ATTEMPTS:
                raise StoreBusy("Other processes keep changing the same conversation. Try again.") from error
            time.sleep(random.uniform(0, 0.002 * attempt))  # noqa: S311
    raise AssertionError("unreachable")


def describe_content(url: str) -> TargetContent | None:
    """Return what a database holds before it becomes the target of a copy; None if it has no rows."""
    server = _describe_server(url)
    try:
        with connect(url) as connection:
            return find_content(connection.tx)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"Cannot connect to PostgreSQL at {server}: {_get_first_line(error)}") from None


def _describe_server(url: str) -> str:
    """Return host, port and database name for messages, without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text may quote the password
        raise ConfigError(
            "database_url: not a valid PostgreSQL address. Write it like postgresql://user@host:5432/name,"
            " with special characters percent-encoded."
        ) from None
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or ''}"


def _get_first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
