"""The SQLite file: creates it, opens connections to it, and translates SQLite's errors into the store's own.

About a damaged file it says what is wrong, where the newest backup is, and what to do next.
"""

from __future__ import annotations

import errno
import fcntl
import inspect
import itertools
import os
import random
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

import apsw

from palaver.core.engines.sqlite_presence import list_rescued
from palaver.core.errors import (
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


FOLDER_NAME: Final = "backups"
DATABASE_NAME: Final = "palaver.db"  # inside of a backup, whatever the database is called
MANIFEST_NAME: Final = "backup.json"
_NAME = re.compile(r"palaver-\d{8}-\d{6}(?:-\d+)?")

# At most: only pages that were touched are cached. The system caches the whole file anyway, so larger caches save no
# measurable time; they only fill for many minutes, and the process grows with them.
WRITER_CACHE_KIB = 1024
READER_CACHE_KIB = 512
LOCK_TIMEOUT_SECONDS = 30.0  # how long to wait for another process's transaction
WAIT_SECONDS: Final = 5.0  # for a restore that has nearly ended
_RETRY_SECONDS: Final = 0.05

# SQLite's error → ours.
_STORE_ERRORS: Final[tuple[tuple[type[apsw.Error], type[StoreError]], ...]] = (
    (apsw.ConnectionClosedError, StoreClosed),
    (apsw.BusyError, StoreBusy),
    (apsw.LockedError, StoreBusy),
    (apsw.FullError, StoreFull),
    (apsw.ReadOnlyError, StoreReadOnly),
    (apsw.PermissionsError, StoreReadOnly),
    (apsw.AuthError, StoreReadOnly),
    (apsw.CorruptError, StoreDamaged),
    (apsw.NotADBError, StoreDamaged),
    (apsw.CantOpenError, StoreUnavailable),
    (apsw.IOError, StoreUnavailable),
)


def format_backup_name(moment: datetime) -> str:
    """Return the name of a backup made at this moment; `moment` is in UTC. Names sort by time."""
    return f"palaver-{moment:%Y%m%d-%H%M%S}"


def get_backup_folder(database: Path) -> Path:
    return database.resolve().parent / FOLDER_NAME  # also for a link: one folder for one database


def list_backup_paths(folder: Path) -> list[Path]:
    """Return the paths of complete backups with a name that `palaver backup` chose, the newest first."""
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name) and (path / MANIFEST_NAME).is_file()]
    except OSError:  # there is none
        return []
    return sorted(found, key=lambda path: path.name, reverse=True)


def make_damage_error(database: Path, problem: str) -> StoreDamaged:
    """Build the error for a damaged file. `problem` is a sentence such as "its table event is missing."."""
    backup = next(iter(list_backup_paths(get_backup_folder(database))), None)
    lines = [f"The database {database} is damaged: {problem}", "Palaver has not changed the file and does not use it."]
    if backup is not None:
        command = _format_home_command(database, f"restore {shlex.quote(str(backup))}")
        lines.append(f"Newest backup: {backup}. To go back to it, run: {command}")
        lines.append("The restore keeps the damaged file, too.")
    else:
        lines.append(
            f"There is no backup in {get_backup_folder(database)}. If you have one elsewhere, run:"
            f" {_format_home_command(database, 'restore BACKUP')}"
        )
    return StoreDamaged(
        "\n".join(lines), path=str(database), problem=problem, newest_backup=None if backup is None else str(backup)
    )


def _format_home_command(database: Path, arguments: str) -> str:
    """Return a command line that works on this database, also if its home folder is not the default one."""
    default = Path(os.environ.get("PALAVER_HOME") or "~/.palaver").expanduser().absolute()
    option = "" if database.parent == default else f"--home {shlex.quote(str(database.parent))} "
    return format_command(option + arguments)


def connect(path: Path, *, reader: bool = False) -> apsw.Connection:
    """Open a connection with the settings that the store needs; a file that does not exist is not created."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=200)
    # Without this, SQLite compiles a statement that uses a partial index again for every new parameter.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.set_busy_handler(make_busy_handler())
    if reader:
        db.execute("PRAGMA query_only = ON")
    else:
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")  # zeros over what is deleted; no further page of a turn is written
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute(f"PRAGMA cache_size = {-READER_CACHE_KIB if reader else -WRITER_CACHE_KIB}")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


def _use_wal(db: apsw.Connection) -> None:
    """Switch to WAL, retrying while the file is busy.

    Processes that open a new file together all do this, and SQLite answers "busy" to all but one without calling the
    busy handler.
    """
    wait = make_busy_handler()
    for attempt in itertools.count():
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if not wait(attempt):
                raise
        else:
            return


def make_busy_handler(max_seconds: float | None = None) -> Callable[[int], bool]:
    """Return a handler that waits for another process in short, random steps: fair, and fast for short transactions."""
    started_at = 0.0

    def wait(attempt: int) -> bool:
        nonlocal started_at
        if attempt == 0:
            started_at = time.monotonic()
        elif time.monotonic() - started_at > (LOCK_TIMEOUT_SECONDS if max_seconds is None else max_seconds):
            return False
        time.sleep(random.uniform(0.0002, 0.001 if attempt < 20 else 0.005))  # noqa: S311
        return True

    return wait


def open_immutable(path: Path) -> apsw.Connection:
    """Open a file that no process writes, without any lock and without making a file beside it."""
    uri = f"file:{quote(str(path))}?immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def get_restore_marker(path: Path) -> Path:
    """Return the file that exists while a restore replaces a damaged database together with its log."""
    return path.with_name(f"{path.name}-restoring")


def refuse_unfinished_restore(path: Path) -> None:
    """Raise `StoreUnavailable` if a restore of this file was interrupted between its two last steps."""
    if get_restore_marker(path).exists():
        raise StoreUnavailable(
            f"A restore of {path} was interrupted. Run the same `{format_command('restore')}` again to finish it.",
            path=str(path),
        )


def create_file(path: Path) -> Path:
    """Create the folder and the file if needed, readable by the owner only, and return the absolute path.

    A file is not created if another one was lost there: where its log is, or the copy of a lost database.
    """
    try:
        absolute = path.expanduser().absolute()
        absolute.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        refuse_lost_file(absolute)
        if not absolute.is_file() or not os.access(absolute, os.R_OK | os.W_OK):
            # Only then: closing a file drops every lock that SQLite holds on it in this process.
            os.close(os.open(absolute, os.O_RDWR | os.O_CREAT, 0o600))
    except (PermissionError, IsADirectoryError) as error:
        raise StoreReadOnly(f"Cannot write to {path}: {error.strerror}", path=str(path)) from error
    except OSError as error:
        kind = StoreReadOnly if error.errno == errno.EROFS else StoreUnavailable
        raise kind(f"Cannot use {path}: {error.strerror}", path=str(path)) from error
    except ValueError:  # a NUL, or half of a surrogate pair
        raise StoreUnavailable("The database path contains characters that a file name cannot have.") from None
    except RuntimeError as error:
        raise StoreUnavailable(f"Cannot use {path}: {error}", path=str(path)) from None
    return absolute


def refuse_lost_file(path: Path) -> None:
    """Raise an error if something is there that belongs to a file which was lost while Palaver used it."""
    copies = list_rescued(path)
    leftovers = [each for each in (f"{path.name}-wal", f"{path.name}-shm") if path.with_name(each).exists()]
    is_there = os.path.lexists(path)  # after the others: a new file comes before its log
    if copies:
        use = f"mv {shlex.quote(str(copies[-1]))} {shlex.quote(str(path))}"
        other = "keep the present database" if is_there else "begin with an empty database"
        raise StoreUnavailable(
            f"The database {path} was removed or replaced while Palaver used it. Palaver has saved everything in"
            f" {copies[-1]}. To go on with that, stop the server, and run: {use}\n"
            f"To {other} instead, move the copy to another folder.",
            path=str(path),
            saved_as=str(copies[-1]),
        )
    if leftovers and not is_there:
        names = " and ".join(leftovers)
        raise make_damage_error(path, f"the file is missing, but {names}, which belongs to it, is still there.")


def translate_error(error: apsw.Error, path: Path) -> Exception:
    """Return the store's error for an error of SQLite; a programming mistake of ours stays as it is."""
    for sqlite_error, store_error in _STORE_ERRORS:
        if isinstance(error, sqlite_error):
            if store_error is StoreDamaged:
                return make_damage_error(path, f"{error}.")
            return store_error(f"{inspect.getdoc(store_error)} ({path})", path=str(path), cause=str(error))
    return error


def is_file_in_use(path: Path) -> bool:
    """Whether another program has a connection to a database: each holds a shared lock on its file."""
    try:
        file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except apsw.CantOpenError:
        return False
    try:
        for level in (apsw.SQLITE_LOCK_SHARED, apsw.SQLITE_LOCK_RESERVED, apsw.SQLITE_LOCK_EXCLUSIVE):
            file.xLock(level)
    except apsw.BusyError:
        return True
    finally:
        file.xUnlock(apsw.SQLITE_LOCK_NONE)
        file.xClose()
    return False


class FolderLock:
    """A held lock on the folder of a database: all processes that use one there share it, a restore needs it alone.

    SQLite's own locks guard a file, and a restore puts another file in its place. A process that had opened the old
    file just before would go on with it, and write its log beside the new one. So all processes lock the folder first.

    The system releases the lock when the process ends, however it ends. A file system that cannot lock a folder is used
    without: SQLite's locks still guard the file itself.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @classmethod
    def share(cls, folder: Path) -> Self:
        """Lock the folder together with other processes; raise `StoreBusy` while one has it alone."""
        descriptor = _open_folder(folder)
        deadline = time.monotonic() + WAIT_SECONDS
        while descriptor is not None and not _try_lock(descriptor, fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise StoreBusy(
                    f"The database in {folder} is being restored, moved or upgraded by another process."
                    " Try again when that is done.",
                    folder=str(folder),
                )
            time.sleep(_RETRY_SECONDS)
        return cls(descriptor)

    @classmethod
    def take(cls, folder: Path) -> Self | None:
        """Lock the folder for this process alone; None if another process uses a database there."""
        descriptor = _open_folder(folder)
        if descriptor is not None and not _try_lock(descriptor, fcntl.LOCK_EX):
            os.close(descriptor)
            return None
        return cls(descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_folder(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it may be written but not listed
        return None


def _try_lock(descriptor: int, kind: int) -> bool:
    """Try to lock; False if another process prevents it, True if it is locked or cannot be locked at all."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a network file system without locks of folders
        return True
    return True
