"""Rewrites a SQLite file without what deleted rows have left in it.

SQLite keeps the bytes of deleted rows in pages that it uses again later. A rewritten file has none of them, and is as
small as its content. Writers wait meanwhile, so it is done only on request. SQLite makes a copy in the folder for
temporary files and writes it into the log beside the database: both need as much space as the file.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Final

import apsw

from palaver.core.engines.sqlite_file import connect, translate_error
from palaver.core.errors import StoreFull

FREE_BYTES: Final = 64 * 1024 * 1024  # that are left for the messages of others


def rewrite_file(path: Path) -> int:
    """Rewrite the file, with its WAL, and return how many bytes smaller it is; raises `StoreBusy` and the like."""
    before = _measure(path)
    _check_space(path, before)
    try:
        with contextlib.closing(connect(path)) as db:
            db.execute("PRAGMA temp_store = FILE")  # in memory, the copy could take all of it
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error as error:
        raise translate_error(error, path) from error
    return before - _measure(path)


def _measure(path: Path) -> int:
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
