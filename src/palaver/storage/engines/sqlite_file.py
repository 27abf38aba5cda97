"""The file behind a SQLite store: making it, opening connections to it, and what SQLite says about it in our words."""

from __future__ import annotations

import errno
import inspect
import os
import random
import time
from typing import TYPE_CHECKING, Final

import apsw

from palaver.domain.errors import (
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITER_CACHE = 65536  # KiB of pages at most, of those it has touched
READER_CACHE = 8192
LOCK_PATIENCE = 30.0  # seconds to wait for another process's transaction

# What SQLite may answer, and what it means to whoever asked.
_MEANING: Final[tuple[tuple[type[apsw.Error], type[StoreError]], ...]] = (
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


def connect(path: Path, *, reader: bool = False) -> apsw.Connection:
    """A connection set up as this store needs it."""
    db = apsw.Connection(str(path), statementcachesize=200)
    # Without this, a statement that meets a partial index is compiled again for every new parameter.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.set_busy_handler(_patience())
    if reader:
        db.execute("PRAGMA query_only = ON")
    else:
        _use_wal(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute(f"PRAGMA cache_size = {-READER_CACHE if reader else -WRITER_CACHE}")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


def _use_wal(db: apsw.Connection) -> None:
    """Processes that open a new file together all try this, and SQLite tells all but one at once that it is busy."""
    wait = _patience()
    attempt = 0
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if not wait(attempt):
                raise
            attempt += 1
        else:
            return


def _patience() -> Callable[[int], bool]:
    """Wait for another process in short, uneven steps: fair, and quick when its transaction is short."""
    since = 0.0

    def wait(attempt: int) -> bool:
        nonlocal since
        if attempt == 0:
            since = time.monotonic()
        elif time.monotonic() - since > LOCK_PATIENCE:
            return False
        time.sleep(random.uniform(0.0002, 0.001 if attempt < 20 else 0.005))  # noqa: S311
        return True

    return wait


def refuse_others(path: Path) -> None:
    """Leave another program's database as it is, to the byte."""
    db = apsw.Connection(str(path))
    try:
        db.set_busy_handler(_patience())
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        db.close()
    if tables - {"migration"} and "route_change" not in tables:
        raise StoreDamaged(f"{path} is another program's database; give Palaver a file of its own")


def make_room(given: Path) -> Path:
    """The folder and the file, for nobody else to read; its absolute path."""
    try:
        path = given.expanduser().absolute()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except (PermissionError, IsADirectoryError) as error:
        raise StoreReadOnly(f"{given} cannot be written: {error.strerror}", path=str(given)) from error
    except OSError as error:
        kind = StoreReadOnly if error.errno == errno.EROFS else StoreUnavailable
        raise kind(f"{given} cannot be used: {error.strerror}", path=str(given)) from error
    except ValueError:  # a NUL, or half of a surrogate pair
        raise StoreUnavailable("the path of the database holds characters that no file name can have") from None
    except RuntimeError as error:
        raise StoreUnavailable(f"{given} cannot be used: {error}", path=str(given)) from None
    return path


def named(error: apsw.Error, path: Path) -> Exception:
    """What SQLite says, as what it means to whoever asked; a mistake of ours stays what it is."""
    for theirs, ours in _MEANING:
        if isinstance(error, theirs):
            return ours(f"{inspect.getdoc(ours)} ({path})", path=str(path), cause=str(error))
    return error
