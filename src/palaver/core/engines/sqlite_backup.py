"""Copies a SQLite database while it is in use, and checks copies.

The copy reads one state of the database from beginning to end, in small steps: writers go on meanwhile, and never make
it start again. Until it has ended, SQLite's log keeps what is written.

Always true: a copy is written to the disk before it is checked, and checking it changes nothing.

Rewrites a SQLite file without what deleted rows have left in it.

SQLite keeps the bytes of deleted rows in pages that it uses again later. A rewritten file has none of them, and is as
small as its content. Writers wait meanwhile, so it is done only on request. SQLite makes a copy in the folder for
temporary files and writes it into the log beside the database: both need as much space as the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines import migrate
from palaver.core.engines.integrity import (
    check_before_use,
    describe_foreign_definitions,
    find_foreign_definitions,
    list_expected_names,
)
from palaver.core.engines.sqlite import DIALECT
from palaver.core.engines.sqlite_file import connect, make_busy_handler, open_immutable, translate_error
from palaver.core.errors import BackupDamaged, BackupStopped, StoreDamaged, StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PAGES_PER_STEP: Final = 256  # 1 MiB: a short time in which the disk is busy with the copy
PAUSE_SECONDS: Final = 0.002  # between two steps, so that messages are stored first
SYNC_PAGES: Final = 8 * PAGES_PER_STEP  # then the copy is flushed: one flush at the end would hold up every commit
READ_CHUNK_BYTES: Final = 1024 * 1024
MAX_PROBLEMS: Final = 5
CHECK_STEPS: Final = 100_000  # of SQLite's program between two questions whether to stop


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """The content of a complete copy."""

    migrations: tuple[str, ...]
    row_counts: dict[str, int]  # by table


def copy_database(
    source: Path,
    target: Path,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int, int], None] = lambda _copied, _total: None,
) -> None:
    """Copy a database into a new file that only its owner can read; it is on the disk when this returns.

    `on_progress` gets the pages that are copied and all pages. Raises `BackupStopped` if `should_stop` says so.
    """
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with (
            closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)) as db,
            closing(apsw.Connection(str(target))) as copy,
        ):
            db.set_busy_handler(make_busy_handler())
            db.execute("PRAGMA query_only = ON")
            # Other connections, and the log with what is new, exist or not: this one must not write it back.
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            db.execute("BEGIN")
            db.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()  # from now on, it sees this state
            _copy_pages(db, copy, descriptor, should_stop, on_progress)
        os.fsync(descriptor)
    except apsw.Error as error:
        raise translate_error(error, source) from error
    finally:
        os.close(descriptor)


def _copy_pages(
    db: apsw.Connection,
    copy: apsw.Connection,
    descriptor: int,
    should_stop: Callable[[], bool],
    on_progress: Callable[[int, int], None],
) -> None:
    with copy.backup("main", db, "main") as backup:
        unsynced = 0
        while not backup.step(PAGES_PER_STEP):
            crash_point("backup.step")
            if should_stop():
                raise BackupStopped
            on_progress(backup.page_count - backup.remaining, backup.page_count)
            unsynced += PAGES_PER_STEP
            if unsynced >= SYNC_PAGES:
                os.fdatasync(descriptor)
                unsynced = 0
            time.sleep(PAUSE_SECONDS)


def check_copy(path: Path, *, is_complete: bool, should_stop: Callable[[], bool] = lambda: False) -> CopyFacts:
    """Check a copy, completely or only its pages; raise `BackupDamaged` if anything is wrong with it."""
    try:
        with closing(open_immutable(path)) as db:
            db.set_progress_handler(should_stop, CHECK_STEPS)
            check = "integrity_check" if is_complete else "quick_check"
            problems = [str(text) for (text,) in db.execute(f"PRAGMA {check}({MAX_PROBLEMS})") if text != "ok"]
            if problems:
                raise BackupDamaged(f"{path} is damaged: {problems[0]}.", path=str(path), problems=problems)
            facts = _read_facts(db, path)
            if is_complete and (foreign := find_foreign_definitions(db, facts.migrations, DIALECT)):
                raise BackupDamaged(f"{path} was changed: {describe_foreign_definitions(foreign)}", path=str(path))
            return facts
    except apsw.InterruptError:
        raise BackupStopped from None
    except (apsw.CorruptError, apsw.NotADBError, apsw.CantOpenError) as error:
        raise BackupDamaged(f"{path} is not a readable database: {error}.", path=str(path)) from error


def _read_facts(db: apsw.Connection, path: Path) -> CopyFacts:
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if "migration" not in names:
        raise BackupDamaged(f"{path} is not a database of Palaver.", path=str(path))
    applied = migrate.parse_applied(db.execute(f"{migrate.READ_APPLIED} ORDER BY name"))
    migrate.refuse_preview(applied, names)
    migrate.list_pending(DIALECT, applied)  # refuses a copy from a newer version
    scripts = migrate.load_migrations(DIALECT)
    if missing := list_expected_names(scripts[name] for name in applied if name in scripts) - names:
        raise BackupDamaged(f"{path} is incomplete: it has no {min(missing)}.", path=str(path))
    row_counts = {table: int(db.execute(f'SELECT COUNT(*) FROM "{table}"').get) for table in _list_tables(db)}
    return CopyFacts(tuple(applied), row_counts)


def _list_tables(db: apsw.Connection) -> list[str]:
    """Return the ordinary tables, without those inside of the search index."""
    rows = db.execute("PRAGMA table_list").fetchall()
    names = [str(name) for schema, name, kind, *_ in rows if schema == "main" and kind == "table"]
    return sorted(name for name in names if not name.startswith("sqlite_"))


def iterate_file_hashes(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the hash of every attachment that a copy knows, and whether a conversation uses it."""
    with closing(open_immutable(path)) as db:
        sql = """SELECT a.sha256, MAX(EXISTS (SELECT 1 FROM attachment_use u WHERE u.attachment_no = a.no))
            FROM attachment a GROUP BY a.sha256 ORDER BY a.sha256"""
        yield from ((sha256, bool(is_used)) for sha256, is_used in db.execute(sql))


def fold_log(path: Path) -> bool:
    """Write a database's log back into its file; False if the database is damaged, which is then not changed.

    Refuses the database of another program.
    """
    try:
        check_before_use(path, DIALECT)
        with closing(connect(path)) as db:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except StoreDamaged as error:
        if error.facts.get("is_foreign"):
            raise
        return False
    except (apsw.CorruptError, apsw.NotADBError):
        return False
    return not path.with_name(f"{path.name}-wal").exists()


def compute_sha256(path: Path, should_stop: Callable[[], bool] = lambda: False) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(READ_CHUNK_BYTES):
            digest.update(chunk)
            if should_stop():
                raise BackupStopped
    return digest.hexdigest()


FREE_BYTES: Final = 64 * 1024 * 1024  # that are left for the messages of others


def rewrite_file(path: Path) -> int:
    """Rewrite the file, with its WAL, and return how many bytes smaller it is; raises `StoreBusy` and the like."""
    before = measure_database(path)
    _check_space(path, before)
    try:
        with contextlib.closing(connect(path)) as db:
            db.execute("PRAGMA temp_store = FILE")  # in memory, the copy could take all of it
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error as error:
        raise translate_error(error, path) from error
    return before - measure_database(path)


def measure_database(path: Path) -> int:
    """Return how many bytes a database has, with its log."""
    wal = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)


def _check_space(path: Path, needed_bytes: int) -> None:
    for folder in (path.parent, Path(tempfile.gettempdir())):
        free = shutil.disk_usage(folder).free
        if free < needed_bytes + FREE_BYTES:
            raise StoreFull(
                f"Rewriting the database file needs {(needed_bytes + FREE_BYTES) // 1_000_000} MB in {folder}, but only"
                f" {free // 1_000_000} MB are free. Nothing was changed.",
                needed_bytes=needed_bytes + FREE_BYTES,
                free_bytes=free,
            )
