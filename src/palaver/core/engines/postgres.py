"""PostgreSQL: for more than one machine.

It runs the same statements as on SQLite, through a pool of connections. Work with a `Write.single_statement` is first
tried without a transaction around it, which saves two round trips; everything else runs in a transaction. After a
conflict with another process the work runs again. A read whose connection breaks runs once more on another one; a write
does not, because it may have been stored.

Always true: work waits a limited time, for a connection of its kind (`WorkKind`) and for locks; then it fails with
`StoreBusy`. Writes of one process that change the same thing (`write_key`) wait for each other without a connection.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeVar

from palaver.core.engines.base import (
    Conflict,
    OnChange,
    Read,
    ReadinessProblem,
    Transaction,
    Upgrade,
    Watch,
    Work,
    WorkKind,
    Write,
    get_kind,
    write_key,
)
from palaver.core.engines.table_copy import TargetContent, find_content
from palaver.core.errors import ConfigError, StoreBusy, StoreClosed, StoreReadOnly, StoreUnavailable

try:
    import psycopg
    from psycopg import errors as pg
    from psycopg.conninfo import conninfo_to_dict

    from palaver.core.engines.postgres_batches import StatementBatches
    from palaver.core.engines.postgres_connection import (
        LONG_TIME_LIMITS,
        PooledConnection,
        PostgresTransaction,
        ServerClock,
        WrongServer,
        get_first_line,
        translate_error,
    )
    from palaver.core.engines.postgres_migration import migrate_database, read_applied
    from palaver.core.engines.postgres_pool import MAX_CONNECTIONS, PostgresPool, PostgresThreads, PostgresWatch
except ModuleNotFoundError as error:
    raise ConfigError(
        "PostgreSQL support is not installed. Install it with: pip install 'palaver[postgres]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import LiteralString


T = TypeVar("T")

MAX_ATTEMPTS = 20  # of one unit of work that keeps meeting conflicts with other processes
CLOSE_SECONDS: Final = 5.0  # for work in progress when the store is closed; then its connections are broken off
CLOSE_POLL_SECONDS: Final = 0.01

# The server has ended a transaction that stood still: its work can safely run again.
_ROLLED_BACK = pg.IdleInTransactionSessionTimeout
_CONFLICTS = (Conflict, pg.UniqueViolation, pg.ForeignKeyViolation, pg.SerializationFailure, pg.DeadlockDetected)


# The server ends a connection like this when it shuts down, or does not open one because it is starting.
_SHUTDOWNS = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow)


class PostgresEngine:
    name: Literal["postgres"] = "postgres"

    def __init__(self, pool: PostgresPool, server: str, clock: ServerClock) -> None:
        self.clock = clock
        self._pool = pool
        self._server = server  # for the log
        self._threads: PostgresThreads | None = None
        self._batches = {kind: StatementBatches(pool, kind, clock) for kind in WorkKind}
        self._callers: dict[WorkKind, set[object]] = {kind: set() for kind in WorkKind}  # with a single statement
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
        state_folder: Path | None = None,  # where it is remembered which server has the store
        upgrade: Upgrade = Upgrade.ALONE,
    ) -> PostgresEngine:
        """Connect and bring the schema up to date."""
        clock = clock or ServerClock()
        with _connect_first(url, state_folder) as (pool, connection):
            migrate_database(connection, upgrade, allow_unfinished_copy=allow_unfinished_copy)
            clock.sync(connection)
        return cls(pool, _describe_server(url), clock)

    def run(self, work: Work[T]) -> T:
        kind = get_kind(work)
        try:
            if isinstance(work, Read) or work.single_statement is None:
                return self._run(work, kind)
            with self._count_caller(kind) as is_shared:
                if is_shared:
                    with suppress(*_CONFLICTS):
                        result = self._batches[kind].run(work.single_statement)
                        if result is not None:
                            return result
                return self._run(work, kind)
        except psycopg.Error as error:
            self._raise_translated(error)

    async def arun(self, work: Work[T]) -> T:
        kind = get_kind(work)
        key = None if kind is WorkKind.READ else write_key.get()
        run = partial(self._run, work, kind)
        try:
            if isinstance(work, Read) or work.single_statement is None:
                return await self._get_threads().run(run, kind, key)
            with self._count_caller(kind) as is_shared:
                if is_shared:
                    with suppress(*_CONFLICTS):
                        result = await self._batches[kind].arun(work.single_statement)
                        if result is not None:
                            return result
                return await self._get_threads().run(run, kind, key)
        except psycopg.Error as error:
            self._raise_translated(error)

    @contextmanager
    def _count_caller(self, kind: WorkKind) -> Iterator[bool]:
        """Count a caller with a single statement; yield whether there are more of them than connections."""
        callers, caller = self._callers[kind], object()
        callers.add(caller)
        try:
            yield len(callers) > MAX_CONNECTIONS[kind] and not self._pool.is_pooled
        finally:
            callers.discard(caller)

    def _raise_translated(self, error: psycopg.Error) -> NoReturn:
        if (translated := translate_error(error, self._server)) is None:
            raise error
        raise translated from error

    def _run(self, work: Work[T], kind: WorkKind) -> T:
        if self._closed:
            raise StoreClosed
        is_long = work.is_long
        if isinstance(work, Read):
            return self._read(work.run, kind, is_long=is_long)
        if work.read_first is not None:
            result = self._read(work.read_first, kind, is_long=is_long)
            if result is not None:
                return result
        write = partial(_write, work=work)
        try:
            return self._run_once(write, kind, is_long=is_long)
        except _ROLLED_BACK:
            return self._run_once(write, kind, is_long=is_long)

    def _read(self, run: Callable[[Transaction], T], kind: WorkKind, *, is_long: bool) -> T:
        """Read, and once more if the connection breaks."""
        read = partial(_read, run=run, is_long=is_long)
        try:
            return self._run_once(read, kind, is_long=is_long)
        except _ConnectionLost:
            return self._run_once(read, kind, is_long=is_long)

    def _run_once(self, run: Callable[[PooledConnection], T], kind: WorkKind, *, is_long: bool) -> T:
        with self._pool.borrow(kind, is_long=is_long) as connection:
            try:
                self.clock.sync(connection)
                return run(connection)
            except psycopg.Error as error:
                if isinstance(error, _ROLLED_BACK) or not (connection.closed or isinstance(error, _SHUTDOWNS)):
                    raise
                raise _ConnectionLost(*error.args) from error

    def watch(self, on_change: OnChange) -> Watch:
        watch = PostgresWatch(self._pool, on_change, self._watches)
        self._watches.append(watch)
        return watch

    def find_problems(self) -> Sequence[ReadinessProblem]:
        return ()

    def maintain(self) -> None:
        """Do nothing: the server takes care of itself."""

    def close(self) -> None:
        for watch in list(self._watches):
            watch.close()
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        give_up = threading.Timer(CLOSE_SECONDS, self._pool.abort)
        give_up.daemon = True
        give_up.start()
        if self._threads is not None:
            self._threads.close()
        for batches in self._batches.values():
            batches.close()
        while self._pool.is_lending and give_up.is_alive():  # to threads of others, which could wait forever
            time.sleep(CLOSE_POLL_SECONDS)
        give_up.cancel()
        self._pool.close()

    def _get_threads(self) -> PostgresThreads:
        with self._close_lock:
            if self._closed:
                raise StoreClosed
            if self._threads is None:
                self._threads = PostgresThreads(self._pool)
            return self._threads


class _ConnectionLost(psycopg.OperationalError):
    """The connection broke while it was used."""


@contextmanager
def _connect_first(url: str, state_folder: Path | None = None) -> Iterator[tuple[PostgresPool, PooledConnection]]:
    """Connect to a server; what goes wrong in the block is explained to the operator, with the server's address."""
    server = _describe_server(url)
    with ExitStack() as on_failure:
        pool = PostgresPool(url, state_folder)
        on_failure.callback(pool.close)
        try:
            with pool.borrow_first() as connection:
                yield pool, connection
        except WrongServer as error:
            raise StoreReadOnly(f"Palaver can't use PostgreSQL at {server}: {error}") from None
        except pg.InsufficientPrivilege as error:
            raise StoreReadOnly(f"PostgreSQL at {server} denied access: {get_first_line(error)}") from None
        except pg.LockNotAvailable:
            raise StoreBusy(
                f"Another process holds a lock on the tables of the database at {server}. It may be upgrading them:"
                " start again when it has finished."
            ) from None
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"Cannot connect to PostgreSQL at {server}: {get_first_line(error)}") from None
        except psycopg.Error as error:
            if (translated := translate_error(error, server)) is None:
                raise
            raise translated from error
        on_failure.pop_all()


def _read(connection: PooledConnection, run: Callable[[Transaction], T], *, is_long: bool) -> T:
    """Read from one consistent state. A single statement needs no transaction for that: it takes one round trip."""
    if not (is_long or connection.is_pooled):
        with suppress(_SecondStatementNeeded):
            return run(_SingleStatementTransaction(connection))
    with connection.begin(LONG_TIME_LIMITS if is_long else None, is_read=True) as tx:
        return run(tx)


class _SecondStatementNeeded(Exception):
    """A read needs more than one statement, and so a transaction."""


class _SingleStatementTransaction(PostgresTransaction):
    """Runs one statement without a transaction; raises `_SecondStatementNeeded` at the second."""

    def __init__(self, connection: PooledConnection) -> None:
        self._cursor = connection.tx._cursor
        execute = self._cursor.execute
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
            if work.single_statement is not None and not connection.is_pooled:
                result = work.single_statement(connection.tx)
                if result is not None:
                    return result
            with connection.begin(LONG_TIME_LIMITS if work.is_long else None) as tx:
                return work.run(tx)
        except _CONFLICTS as error:
            if attempt == MAX_ATTEMPTS:
                raise StoreBusy("Other processes keep changing the same conversation. Try again.") from error
            time.sleep(random.uniform(0, 0.002 * attempt))  # noqa: S311
    raise AssertionError("unreachable")


def describe_content(url: str) -> TargetContent | None:
    """Return what a database holds before it becomes the target of a copy; None if it has no rows."""
    with _connect_first(url) as (pool, connection), closing(pool):
        return find_content(connection.tx)


def read_server_state(url: str) -> tuple[int, dict[str, bool]]:
    """Return the version of a server, and which migrations its database has."""
    with _connect_first(url) as (pool, connection), closing(pool):
        return connection.info.server_version, read_applied(connection)


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
