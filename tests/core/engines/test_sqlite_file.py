"""Connections to a SQLite file."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from palaver.core.engines.sqlite_file import connect, create_file

if TYPE_CHECKING:
    from pathlib import Path

MAX_CACHED_BYTES = 1536 * 1024  # a little more than the largest cache: SQLite adds a header to every page


@pytest.mark.parametrize("reader", [False, True], ids=["writer", "reader"])
def test_a_connection_keeps_little_of_a_large_file_in_memory(tmp_path: Path, reader: bool) -> None:
    path = create_file(tmp_path / "palaver.db")
    with closing(connect(path)) as writer:
        writer.execute("CREATE TABLE note (text)")
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO note VALUES (?)", [("x" * 3000,)] * 4000)
        writer.execute("COMMIT")
        with closing(connect(path, reader=True)) as other:
            db = other if reader else writer
            assert db.execute("SELECT COUNT(text || '') FROM note").get == 4000
            cached_bytes, _ = db.status(apsw.SQLITE_DBSTATUS_CACHE_USED)
    assert cached_bytes < MAX_CACHED_BYTES
