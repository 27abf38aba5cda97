"""Rewrites a SQLite file without what deleted rows have left in it.

SQLite keeps the bytes of deleted rows in pages that it uses again later. A rewritten file has none of them, and is as
small as its content. Writers wait meanwhile, so it is done only on request.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import apsw

from palaver.storage.engines.sqlite_file import connect, translate_error

if TYPE_CHECKING:
    from pathlib import Path


def rewrite_file(path: Path) -> int:
    """Rewrite the file, with its WAL, and return how many bytes smaller it is; raises `StoreBusy` and the like."""
    before = path.stat().st_size
    try:
        with contextlib.closing(connect(path)) as db:
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.Error as error:
        raise translate_error(error, path) from error
    return before - path.stat().st_size
