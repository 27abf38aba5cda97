"""SQLite: one file, one writer, many readers.

WAL with `synchronous=FULL`: what was acknowledged survives a power cut. Writes go through `group_commit`;
each read borrows a connection of its own and sees one consistent state. The checkpoint, which would
otherwise stall whoever happens to commit the thousandth page, runs beside the writer on an upkeep thread.
Several processes may open the same file; SQLite's lock makes their writers take turns.

The SQLite inside `apsw` is used, never the system's: the same version everywhere, and free of its faults.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import apsw

from palaver.domain.clock import SystemClock
from palaver.domain.errors import StoreClosed
from palaver.storage.engines import migrate
from palaver.storage.engines.base import Dialect, Read, Row, Work, on_thread
from palaver.storage.engines.group_commit import GroupWriter
from palaver.storage.engines.sqlite_file import connect, make_room, named, refuse_others
from palaver.storage.engines.sqlite_watch import SqliteWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from palaver.storage.engines.base import OnChange, Transaction, Watch

T = TypeVar("T")

DIALECT = Dialect(
    "sqlite",
    {
        "SERIAL": "INTEGER PRIMARY KEY",
        "SERIAL_FOREVER": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "CLUSTERED": "WITHOUT ROWID",
        "ROOMY": "",
    },
)

CHECKPOINT_PAGES = 4000  # of the WAL, before it is written back: the rarer, the less is written twice
READER_PATIENCE = 5.0  # seconds to wait for readers when closing
READER_THREADS = 4  # for awaiting callers; blocking ones read on their own thread

_parameter = re.compile(r"\$(\d+)")
_statements: dict[str, str] = {}  # `$1` → `?1`, once for each statement of the program


class SqliteTransaction:
    """Statements on one connection."""

    name: Literal["sqlite"] = "sqlite"
    bundles = False
    lock = ""  # the writer is alone

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._execute = db.cursor().execute  # one cursor for all: everything is fetched at once

    def one(self, sql: str, *params: object) -> Row | None:
        """The first row, or None."""
        rows = self._execute(_statements.get(sql) or _native(sql), params).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, *params: object) -> list[Row]:
        """Every row."""
        return self._execute(_statements.get(sql) or _native(sql), params).fetchall()

    def run(self, sql: str, *params: object) -> int:
        """Run a change; the number of rows it changed."""
        self._execute(_statements.get(sql) or _native(sql), params)
        return self._db.changes()

    def hold(self, name: str) -> None:
        """The writer is alone anyway."""

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one change for many rows of parameters."""
        self._db.executemany(_native(sql), rows)


class WriterConnection:
    """The one connection that writes, in the steps group commit needs."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.tx = SqliteTransaction(db)
        self._execute = db.cursor().execute

    def begin(self) -> None:
        """Take the write lock, waiting for other processes."""
        try:
            self._execute("BEGIN IMMEDIATE")
        except apsw.SQLError:  # an interrupt left a transaction behind
            self.rollback()
            self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make everything durable."""
        try:
            self._execute("COMMIT")
        except apsw.Error:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Forget everything since `begin`."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    def savepoint(self) -> None:
        """Mark where one caller's work begins."""
        self.db.execute("SAVEPOINT caller")

    def release(self) -> None:
        """Keep one caller's work."""
        self.db.execute("RELEASE caller")

    def undo(self) -> bool:
        """Forget one caller's work; False when SQLite has rolled back the whole transaction."""
        if not self.db.in_transaction:
            return False
        self.db.execute("ROLLBACK TO caller")
        self.db.execute("RELEASE caller")
        return True


class SqliteEngine:
    """One database file."""

    name: Literal["sqlite"] = "sqlite"

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self.path = path
        self.clock = SystemClock()  # a file is used on one machine
        self._writing = WriterConnection(writer)
        self._writer = GroupWriter(self._writing, "palaver-writer")
        self._idle_readers: list[apsw.Connection] = []
        self._readers_open = 0
        self._threads: ThreadPoolExecutor | None = None
        self._closing = threading.Lock()
        self._closed = False
        self._upkeep = _Checkpointer(path, self._writer)
        self._watches: list[SqliteWatch] = []
        writer.set_wal_hook(self._after_commit)

    @classmethod
    def open(cls, path: str | Path) -> SqliteEngine:
        """Open or create the file and bring its schema up to date."""
        path = make_room(Path(path))
        try:
            refuse_others(path)
            db = connect(path)
            try:
                _migrate(db)
            except BaseException:
                db.close()
                raise
        except apsw.Error as error:
            raise named(error, path) from error
        return cls(path, db)

    def run(self, work: Work[T]) -> T:
        """Do the work now and return its result."""
        try:
            if isinstance(work, Read):
                return self._read(work.run)
            if work.look is not None and (found := self._read(work.look)) is not None:
                return found
            return self._writer.call(work.run)
        except apsw.Error as error:
            raise named(error, self.path) from error

    async def arun(self, work: Work[T]) -> T:
        """Do the work without blocking the event loop."""
        from asyncio import get_running_loop  # a blocking program does without it

        try:
            if isinstance(work, Read):
                if work.quick:
                    return self._read(work.run)
                return await on_thread(self._reader_threads(), self._read, work.run)
            if work.look is not None:
                if work.quick:
                    found = self._read(work.look)
                else:
                    found = await on_thread(self._reader_threads(), self._read, work.look)
                if found is not None:
                    return found
            return await self._writer.acall(work.run, get_running_loop())
        except apsw.Error as error:
            raise named(error, self.path) from error

    def watch(self, on_change: OnChange) -> Watch:
        """Be told of every commit, by whichever process."""
        watch = SqliteWatch(self.path, on_change, self._watches)
        self._watches.append(watch)
        return watch

    def close(self) -> None:
        """Finish what is under way and close every connection."""
        for watch in list(self._watches):
            watch.close()
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._upkeep.close()
        self._writer.close(self._let_go)
        if self._threads is not None:
            self._threads.shutdown()
        self._close_readers()

    def _after_commit(self, db: apsw.Connection, schema: str, pages: int) -> int:
        for watch in self._watches:
            watch.wake()
        return self._upkeep.after_commit(db, schema, pages)

    def _let_go(self) -> None:
        self._writing.db.set_wal_hook(None)
        self._writing.db.close()

    def _close_readers(self) -> None:
        """Close them as they come back; one that does not is left to its reader."""
        until = time.monotonic() + READER_PATIENCE
        while self._readers_open and time.monotonic() < until:
            try:
                self._idle_readers.pop().close()
                self._readers_open -= 1
            except IndexError:
                time.sleep(0.001)

    def _read(self, run: Callable[[Transaction], T]) -> T:
        if self._closed:
            raise StoreClosed
        try:
            db = self._idle_readers.pop()
        except IndexError:
            db = self._new_reader()
        try:
            db.execute("BEGIN")
            return run(SqliteTransaction(db))
        finally:
            self._give_back(db)

    def _give_back(self, db: apsw.Connection) -> None:
        try:
            if db.in_transaction:
                db.execute("COMMIT")
        except apsw.Error:  # whoever read has been told why; the next reader gets a new connection
            db.close()
            self._readers_open -= 1
        else:
            self._idle_readers.append(db)

    def _new_reader(self) -> apsw.Connection:
        with self._closing:
            if self._closed:
                raise StoreClosed
            db = connect(self.path, reader=True)
            self._readers_open += 1
            return db

    def _reader_threads(self) -> ThreadPoolExecutor:
        with self._closing:
            if self._closed:
                raise StoreClosed
            if self._threads is None:
                from concurrent.futures import ThreadPoolExecutor

                self._threads = ThreadPoolExecutor(READER_THREADS, "palaver-reader")
            return self._threads


class _Checkpointer:
    """Writes the WAL back into the database, so that it is used again from its start.

    Nearly all of it happens beside the writer. The few pages written meanwhile are taken between two writers,
    because SQLite starts the WAL over only when nothing is left in it; a growing WAL makes every commit slower.
    """

    def __init__(self, path: Path, writer: GroupWriter) -> None:
        self._path = path
        self._writer = writer
        self._due_at = CHECKPOINT_PAGES
        self._due = threading.Event()
        self._stop = False
        self._thread: threading.Thread | None = None

    def after_commit(self, _db: apsw.Connection, _schema: str, pages: int) -> int:
        """Note how far the WAL has grown; called by SQLite on the writing thread."""
        if pages >= self._due_at and not self._stop:
            self._due_at = pages + CHECKPOINT_PAGES  # while a reader or another process holds it back, do not insist
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="palaver-checkpoint", daemon=True)
                self._thread.start()
            self._due.set()
        elif pages < CHECKPOINT_PAGES:
            self._due_at = CHECKPOINT_PAGES
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Stop the thread."""
        self._stop = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._stop:
                return
            # Another process is doing it, or the disk is full: the WAL holds everything, and when it has grown by
            # as much again this is tried again.
            with contextlib.suppress(apsw.Error), contextlib.closing(connect(self._path)) as db:
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                self._writer.exclusively(lambda: db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))


def _migrate(db: apsw.Connection) -> None:
    tx = SqliteTransaction(db)
    applied = _applied(tx)
    if applied and not migrate.missing(DIALECT, applied):
        return
    db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once: the second finds it done
    try:
        tx.run(migrate.REGISTER)
        db.execute("COMMIT")
        while True:
            db.execute("BEGIN IMMEDIATE")
            todo = migrate.missing(DIALECT, _applied(tx))
            if not todo:
                break
            name, script = todo[0]
            migrate.apply(tx, name, time.time_ns() // 1000, partial(_script, db, script))
            db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _applied(tx: SqliteTransaction) -> list[str]:
    if tx.one("SELECT 1 FROM sqlite_master WHERE name = 'migration'") is None:
        return []
    return [name for (name,) in tx.all("SELECT name FROM migration")]


def _script(db: apsw.Connection, script: str) -> None:
    for _ in db.execute(script):
        pass


def _native(sql: str) -> str:
    return _statements.setdefault(sql, _parameter.sub(r"?\1", sql))
