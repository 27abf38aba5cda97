"""SQLite: one file, one writer, many readers.

WAL with `synchronous=FULL`: what was acknowledged survives a power cut. Writes go through `group_commit`; each read
borrows a connection and sees one consistent state. Checkpoints run on a thread beside the writer, because inside it
they would stall the caller that happens to commit the last page. Several processes may open the same file; SQLite's
lock makes their writers take turns.

Palaver uses the SQLite inside `apsw`, never the system's: the same version everywhere, without the bugs of old ones.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import re
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

import apsw

from palaver.core.clock import SystemClock
from palaver.core.engines import migrate
from palaver.core.engines.base import (
    Dialect,
    OnChange,
    Read,
    ReadinessProblem,
    Row,
    Transaction,
    Upgrade,
    Watch,
    Work,
    Write,
    fetch_value,
    run_on_thread,
)
from palaver.core.engines.group_commit import GroupWriter
from palaver.core.engines.integrity import check_before_use
from palaver.core.engines.migrate import MustBeAlone, list_applied, migrate_file, read_version
from palaver.core.engines.sqlite_file import (
    FolderLock,
    connect,
    create_file,
    is_file_in_use,
    make_busy_handler,
    refuse_unfinished_restore,
    translate_error,
)
from palaver.core.engines.sqlite_presence import DiskReserve, FilePresence, copy_content
from palaver.core.engines.sqlite_watch import SqliteWatch, record_changed_sessions
from palaver.core.errors import SchemaTooNew, StoreBusy, StoreClosed, StoreDamaged, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import ThreadPoolExecutor


T = TypeVar("T")

DIALECT = Dialect(
    "sqlite",
    {
        "SERIAL_KEY": "INTEGER PRIMARY KEY",
        "SERIAL_KEY_NEVER_REUSED": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "BYTE_ORDER": "",
        "CLUSTERED": "WITHOUT ROWID",
        "ROOM_FOR_UPDATES": "",
    },
)

CHECKPOINT_PAGES = 4000  # in the WAL before a checkpoint: the less often, the fewer pages are written twice
READER_CLOSE_SECONDS = 5.0  # how long closing waits for readers
BLOCKED_SECONDS = 0.05  # that the writer has waited for the lock, before another process is said to have it
LONG_LOCK_SECONDS = 5.0  # that another process holds the write lock, before it is a problem
OLDER_SERVER_WAIT_SECONDS = 3.0  # how long an upgrade waits for other processes to end
READER_THREADS = 4  # for awaiting callers; blocking callers read on their own thread

log = logging.getLogger(__name__)

_PARAMETER = re.compile(r"\$(\d+)")
_sqlite_statements: dict[str, str] = {}  # statement with `$1` → the same with `?1`, translated once each


class SqliteTransaction:
    name: Literal["sqlite"] = "sqlite"
    supports_data_ctes = False
    for_update = ""  # not needed: there is only one writer
    skip_locked = ""
    for_key_share = ""
    is_shared = False

    def __init__(self, db: apsw.Connection) -> None:
        self.connection = db
        self._execute = db.cursor().execute  # one cursor is enough: every statement fetches all its rows at once

    def begin_read(self) -> None:
        self._execute("BEGIN")

    def end_read(self) -> None:
        if self.connection.in_transaction:
            self._execute("COMMIT")

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        rows = self._execute(_sqlite_statements.get(sql) or _to_sqlite(sql), params).fetchall()
        return rows[0] if rows else None

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        return self._execute(_sqlite_statements.get(sql) or _to_sqlite(sql), params).fetchall()

    def execute(self, sql: str, *params: object) -> int:
        self._execute(_sqlite_statements.get(sql) or _to_sqlite(sql), params)
        return self.connection.changes()

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self.connection.executemany(_sqlite_statements.get(sql) or _to_sqlite(sql), rows)

    def lock_name(self, name: str) -> None:
        """Do nothing: there is only one writer."""

    def try_lock_name(self, name: str) -> bool:
        return True


class SqliteWriter:
    """The one connection that writes (`group_commit.WriterConnection`).

    Always true: it writes nothing after a newer version has upgraded the schema, unless that says that it may.
    """

    def __init__(self, db: apsw.Connection, schema_version: int) -> None:
        self.db = db
        self.tx = SqliteTransaction(db)
        self._execute = db.cursor().execute
        self.schema_version = schema_version  # that this program can write
        self.changed_sessions: set[int] = set()  # by the open transaction; only while commits are watched
        self.data_version = -1  # changes with every commit of others, and with none of this connection
        self._checked_data_version = -1  # the schema was checked after that commit

    def begin(self, max_wait_seconds: float | None = None) -> None:
        """Take the write lock, waiting for other processes. Raises `SchemaTooNew` after an upgrade."""
        if max_wait_seconds is None:
            self._begin()
            return
        self.db.set_busy_handler(make_busy_handler(max_wait_seconds))
        try:
            self._begin()
        finally:
            self.db.set_busy_handler(make_busy_handler())

    def _begin(self) -> None:
        try:
            self._execute("BEGIN IMMEDIATE")
        except apsw.SQLError:  # an interrupt (Ctrl-C) left a transaction open
            self.rollback()
            self._execute("BEGIN IMMEDIATE")
        try:
            self.read_data_version()
            if self.data_version != self._checked_data_version:  # only others change the schema
                version = read_version(self._execute)
                if version != self.schema_version:
                    migrate.check_still_usable(DIALECT, list_applied(self.tx))
                    self.schema_version = version
                self._checked_data_version = self.data_version
        except BaseException:
            self.rollback()
            raise

    def read_data_version(self) -> None:
        self.data_version = self._execute("PRAGMA data_version").get

    def commit(self) -> None:
        try:
            self._execute("COMMIT")
        except apsw.Error:
            self.rollback()
            raise

    def rollback(self) -> None:
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        self.changed_sessions.clear()

    def savepoint(self) -> None:
        self.db.execute("SAVEPOINT caller")

    def release(self) -> None:
        self.db.execute("RELEASE caller")

    def rollback_to_savepoint(self) -> bool:
        """Drop one caller's work; return False if SQLite has rolled back the whole transaction."""
        if not self.db.in_transaction:
            return False
        self.db.execute("ROLLBACK TO caller")
        self.db.execute("RELEASE caller")
        return True


class SqliteEngine:
    """One database file.

    Always true: once damage was met, nothing is written to the file any more. What can be read is still read. Once a
    newer version has upgraded the file, it is neither written nor read: what may be read, and by whom, is for the newer
    version to say. Nothing is acknowledged that was written to a file which is no longer in its place, and no
    connection creates a file.
    """

    name: Literal["sqlite"] = "sqlite"

    def __init__(self, path: Path, writer: apsw.Connection, lock: FolderLock, schema_version: int) -> None:
        self.path = path
        self._lock = lock
        self._damage: StoreDamaged | None = None
        self._upgrade: SchemaTooNew | None = None
        self._reserve = DiskReserve(path)
        self._presence = FilePresence(path, self._copy_content, self._write_log_back)
        self.clock = SystemClock()  # all processes that use a file are on one machine
        self._writer_connection = SqliteWriter(writer, schema_version)
        self._writer = GroupWriter(self._writer_connection, "palaver-writer", self._presence.check_quickly)
        self._idle_readers: list[SqliteTransaction] = []
        self._open_reader_count = 0
        self._threads: ThreadPoolExecutor | None = None
        self._close_lock = threading.Lock()
        self._closed = False
        self._checkpointer = _Checkpointer(self._connect, self._writer)
        self._watches: list[SqliteWatch] = []
        writer.set_wal_hook(self._handle_commit)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        allow_unfinished_copy: bool = False,
        is_exclusive: bool = False,
        upgrade: Upgrade = Upgrade.ALONE,
    ) -> SqliteEngine:
        """Open or create the file and bring its schema up to date; a damaged file is refused and not changed.

        With `is_exclusive`, no other process may use a database in the same folder. An upgrade after which older
        versions must not write needs that, too: servers of the first versions would not notice it.
        """
        path = create_file(Path(path))
        folder = path.resolve().parent  # the same one for every link to the file
        open_locked = partial(cls._open, path, allow_unfinished_copy=allow_unfinished_copy, upgrade=upgrade)
        if is_exclusive:
            if (lock := FolderLock.take(folder)) is None:
                raise StoreBusy(f"Another process uses the database {path}. Stop it first.", path=str(path))
            return open_locked(lock, is_alone=True)
        deadline = time.monotonic() + OLDER_SERVER_WAIT_SECONDS
        while True:
            with contextlib.suppress(MustBeAlone):
                return open_locked(FolderLock.share(folder), is_alone=False)
            if (lock := _take_unused(path, folder)) is not None:
                open_locked(lock, is_alone=True).close()
            elif time.monotonic() > deadline:
                raise StoreBusy(
                    f"The database {path} has to be upgraded, but another Palaver process still uses it, such as a"
                    " server of an older version. Stop that first, then try again. Nothing was changed.",
                    path=str(path),
                )
            else:
                time.sleep(random.uniform(0.01, 0.05))  # noqa: S311

    @classmethod
    def _open(
        cls, path: Path, lock: FolderLock, *, allow_unfinished_copy: bool, upgrade: Upgrade, is_alone: bool
    ) -> SqliteEngine:
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(lock.close)
            try:
                refuse_unfinished_restore(path.resolve())
                check_before_use(path, DIALECT)
                db = connect(path)
                on_failure.callback(db.close)
                list_pending = partial(migrate.list_pending, DIALECT, allow_unfinished_copy=allow_unfinished_copy)
                version = migrate_file(db, SqliteTransaction(db), list_pending, upgrade, is_alone=is_alone)
            except apsw.Error as error:
                raise translate_error(error, path) from error
            on_failure.pop_all()
        return cls(path, db, lock, version)

    def run(self, work: Work[T]) -> T:
        try:
            if isinstance(work, Read):
                return self._read(work.run)
            if work.read_first is not None and (result := self._read(work.read_first)) is not None:
                return result
            self._refuse_if_unusable(work)
            try:
                result = self._writer.call(work.run, work.max_wait_seconds)
            except apsw.FullError:
                if not work.frees_space:
                    raise
                self._make_room()
                result = self._writer.call(work.run, work.max_wait_seconds)
            if work.frees_space and self._reserve.is_freed:
                self._shorten_log()
            return result
        except (apsw.Error, SchemaTooNew) as error:
            self._raise_explained(error)

    async def arun(self, work: Work[T]) -> T:
        import asyncio  # here, because a blocking program does not need it; a name from it would be looked up each time

        try:
            if isinstance(work, Read):
                return await self._aread(work)
            if work.read_first is not None:
                if work.is_quick:
                    result = self._read(work.read_first)
                else:
                    result = await run_on_thread(self._get_reader_threads(), self._read, work.read_first)
                if result is not None:
                    return result
            self._refuse_if_unusable(work)
            try:
                result = await self._writer.acall(work.run, asyncio.get_running_loop(), work.max_wait_seconds)
            except apsw.FullError:
                if not work.frees_space:
                    raise
                await run_on_thread(self._get_reader_threads(), self._make_room)
                result = await self._writer.acall(work.run, asyncio.get_running_loop(), work.max_wait_seconds)
            if work.frees_space and self._reserve.is_freed:
                await run_on_thread(self._get_reader_threads(), self._shorten_log)
            return result
        except (apsw.Error, SchemaTooNew) as error:
            self._raise_explained(error)

    async def _aread(self, work: Read[T]) -> T:
        if work.is_quick:
            return self._read(work.run)
        if work.is_quick_if is not None and (results := self._read(partial(_read_if_quick, work))):
            return results[0]
        return await run_on_thread(self._get_reader_threads(), self._read, work.run)

    def watch(self, on_change: OnChange) -> Watch:
        self._writer.run_exclusively(self._record_changes)
        watch = SqliteWatch(
            self.path, self._connect, on_change, self._watches, self._presence.notice, self._read_other_commits
        )
        self._watches.append(watch)
        return watch

    def _record_changes(self) -> None:
        record_changed_sessions(self._writer_connection.db, self._writer_connection.changed_sessions)

    def _read_other_commits(self, *, is_writing: bool) -> int | None:
        """Return a number that changes with every commit of others; None while one keeps our writer waiting.

        With `is_writing` it is the number that the writer has read last: it must not wait for this thread.
        """
        connection = self._writer_connection
        is_current = not is_writing and self._writer.try_exclusively(connection.read_data_version)
        blocked_since = self._writer.blocked_since  # each write sets it for a moment
        is_blocked = blocked_since is not None and time.monotonic() - blocked_since >= BLOCKED_SECONDS
        return None if is_blocked and not is_current else connection.data_version

    def close(self) -> None:
        for watch in list(self._watches):
            watch.close()
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        self._checkpointer.close()
        if self._damage is None:
            self._presence.save_before_close()
        self._writer.close(self._close_writer)
        self._presence.close()
        if self._threads is not None:
            self._threads.shutdown()
        self._close_readers()
        self._lock.close()

    def _raise_explained(self, error: apsw.Error | SchemaTooNew) -> NoReturn:
        """Raise the store's error; at the first sign of damage or of an upgrade, stop all writing."""
        explained = error if isinstance(error, SchemaTooNew) else translate_error(error, self.path)
        if isinstance(explained, StoreDamaged) and self._damage is None:
            self._damage = explained
            self._checkpointer.stop()
            log.error("store_damaged", extra={"error": str(explained)})
        elif isinstance(explained, SchemaTooNew) and self._upgrade is None:
            self._upgrade = explained
            self._checkpointer.stop()
            log.error("store_upgraded", extra={"error": str(explained)})
        raise explained from (None if explained is error else error)

    def find_problems(self) -> Sequence[ReadinessProblem]:
        if self._closed:
            raise StoreClosed
        if self._damage is not None:
            raise StoreDamaged(str(self._damage), **self._damage.facts)
        self._presence.check()
        self._check_schema()
        problems = [problem] if (problem := self._reserve.find_problem()) is not None else []
        since = self._writer.blocked_since
        if since is not None and time.monotonic() - since >= LONG_LOCK_SECONDS:
            text = "Another process holds the write lock of the database: messages can't be stored until it ends."
            problems.append(ReadinessProblem("database_locked", text, is_blocking=True))
        return problems

    def _check_schema(self) -> None:
        """Raise `SchemaTooNew` if a newer version has upgraded the file since; the next write would find out, too."""

        def check(tx: Transaction) -> None:
            if fetch_value(tx, "PRAGMA user_version") != self._writer_connection.schema_version:
                migrate.check_still_usable(DIALECT, list_applied(tx))

        self.run(Read(check))

    def maintain(self) -> None:
        self._reserve.keep()

    def _make_room(self) -> None:
        """On a full disk, let SQLite begin its log again; an error means that the next write fails as well."""
        self._reserve.free()
        log.warning("disk_full_reserve_used", extra={"path": str(self.path)})
        self._shorten_log()

    def _shorten_log(self) -> None:
        """Let SQLite begin its log again with the next write, so that the reserve lasts for many deletions.

        While anything reads, SQLite goes on at the end of the log, and needs more space for each of them.
        """
        try:
            self._checkpointer.write_back()
        except apsw.Error as error:
            log.warning("disk_full_log_not_written_back", extra={"error": repr(error)})

    def _refuse_if_unusable(self, work: Write[T]) -> None:
        if not work.frees_space:
            self._reserve.refuse_if_needed()
        if self._damage is not None:
            raise StoreDamaged(str(self._damage), **self._damage.facts)
        if self._presence.is_lost:
            self._presence.check()

    def _copy_content(self, target: Path) -> None:
        self._writer.run_exclusively(lambda: copy_content(self._writer_connection.db, target))

    def _write_log_back(self) -> bool:
        db = self._writer_connection.db
        pages, written = self._writer.run_exclusively(lambda: db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))
        return pages == written

    def _connect(self, *, reader: bool = False) -> apsw.Connection:
        """Open another connection to the same file, and to no other."""
        self._presence.check()
        with contextlib.ExitStack() as on_failure:
            db = connect(self.path, reader=reader)
            on_failure.callback(db.close)
            on_failure.callback(db.config, apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # before it is closed
            self._presence.check()
            on_failure.pop_all()
        return db

    def _handle_commit(self, _db: apsw.Connection, _schema: str, pages: int) -> int:
        if self._watches:
            changed = frozenset(self._writer_connection.changed_sessions)
            self._writer_connection.changed_sessions.clear()
            for watch in self._watches:
                watch.report_commit(changed)
        return self._checkpointer.handle_commit(pages)

    def _close_writer(self) -> None:
        self._writer_connection.db.set_wal_hook(None)
        self._close_connection(self._writer_connection.db)

    def _close_connection(self, db: apsw.Connection) -> None:
        # The last one to close must not write the log into a damaged file, nor delete the log of another one.
        if self._damage is not None or self._presence.is_lost:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.close()

    def _close_readers(self) -> None:
        """Close readers as they are returned; give up on those that are still in use after a while."""
        deadline = time.monotonic() + READER_CLOSE_SECONDS
        while self._open_reader_count and time.monotonic() < deadline:
            try:
                self._close_connection(self._idle_readers.pop().connection)
                self._open_reader_count -= 1
            except IndexError:
                time.sleep(0.001)

    def _read(self, run: Callable[[Transaction], T]) -> T:
        if self._closed:
            raise StoreClosed
        if self._presence.is_lost:
            self._presence.check()
        if self._upgrade is not None:
            raise SchemaTooNew(str(self._upgrade), **self._upgrade.facts)
        try:
            tx = self._idle_readers.pop()
        except IndexError:
            tx = self._open_reader()
        try:
            tx.begin_read()
            return run(tx)
        finally:
            self._return_reader(tx)

    def _return_reader(self, tx: SqliteTransaction) -> None:
        try:
            tx.end_read()
        except apsw.Error:  # the caller already has the error; the next read opens a new connection
            tx.connection.close()
            self._open_reader_count -= 1
        else:
            self._idle_readers.append(tx)

    def _open_reader(self) -> SqliteTransaction:
        with self._close_lock:
            if self._closed:
                raise StoreClosed
            db = self._connect(reader=True)
            self._open_reader_count += 1
            return SqliteTransaction(db)

    def _get_reader_threads(self) -> ThreadPoolExecutor:
        with self._close_lock:
            if self._closed:
                raise StoreClosed
            if self._threads is None:
                from concurrent.futures import ThreadPoolExecutor

                self._threads = ThreadPoolExecutor(READER_THREADS, "palaver-reader")
            return self._threads


class _Checkpointer:
    """Writes the WAL back into the database, so that SQLite reuses it from its start.

    Most pages are written back beside the writer. The few pages that were committed meanwhile are written back while
    no transaction runs, because SQLite restarts the WAL only if nothing is left in it, and a growing WAL makes every
    commit slower. A checkpoint that is still not done when the next one is due is done by the writer itself: the
    reserve on the disk has space for no more (`RESERVE_BYTES`).
    """

    def __init__(self, open_connection: Callable[[], apsw.Connection], writer: GroupWriter) -> None:
        self._open_connection = open_connection
        self._writer = writer
        self._due_at_pages = CHECKPOINT_PAGES
        self._due = threading.Event()
        self._lock = threading.Lock()  # held during a checkpoint beside the writer: SQLite refuses a second one
        self._is_done = True
        self._stop = False
        self._thread: threading.Thread | None = None

    def handle_commit(self, pages: int) -> int:
        """Start a checkpoint if the WAL has grown enough; called by SQLite on the writing thread."""
        if pages >= self._due_at_pages and not self._stop:
            # Not sooner, even if a reader or another process prevents this checkpoint.
            self._due_at_pages = pages + CHECKPOINT_PAGES
            if not self._is_done:
                with contextlib.suppress(apsw.Error, StoreError):
                    self._write_beside_writer()
                return apsw.SQLITE_OK
            self._is_done = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="palaver-checkpoint", daemon=True)
                self._thread.start()
            self._due.set()
        elif pages < CHECKPOINT_PAGES:
            self._due_at_pages = CHECKPOINT_PAGES
        return apsw.SQLITE_OK

    def stop(self) -> None:
        """Start no checkpoint any more."""
        self._stop = True
        self._due.set()

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._stop:
                return
            # An error means that another process is at it, that the disk is full, or that the file is lost. The WAL
            # holds everything, and the next checkpoint is tried when it has grown by as much again.
            with contextlib.suppress(apsw.Error, StoreError):
                self._run_once()
            self._is_done = True

    def write_back(self) -> None:
        """Write everything back now, after a checkpoint that is running, here or in another process."""
        wait = make_busy_handler()  # SQLite does not wait for another checkpoint by itself
        for attempt in itertools.count():
            try:
                self._run_once()
            except apsw.BusyError:
                if not wait(attempt):
                    raise
            else:
                return

    def _run_once(self) -> None:
        self._write_beside_writer()
        with contextlib.closing(self._open_connection()) as db:
            self._writer.run_exclusively(lambda: db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))

    def _write_beside_writer(self) -> None:
        with self._lock, contextlib.closing(self._open_connection()) as db:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def _read_if_quick(work: Read[T], tx: SqliteTransaction) -> tuple[T] | None:
    assert work.is_quick_if is not None  # noqa: S101
    return (work.run(tx),) if work.is_quick_if(tx) else None


def _take_unused(path: Path, folder: Path) -> FolderLock | None:
    """Lock the folder of a file for this process alone; None if another process uses the file, locked or not."""
    lock = FolderLock.take(folder)
    if lock is not None and is_file_in_use(path):  # by a version that locks no folders, or where none can be locked
        lock.close()
        return None
    return lock


def _to_sqlite(sql: str) -> str:
    return _sqlite_statements.setdefault(sql, _PARAMETER.sub(r"?\1", sql))
