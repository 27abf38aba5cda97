"""Noticing changes to a SQLite file: our own at once, other processes' within a few milliseconds.

SQLite has no way to be told. `data_version` is one integer that changes whenever any other connection commits; asking
for it a hundred times a second costs next to nothing.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import apsw

from palaver.storage.engines.sqlite_file import connect

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.storage.engines.base import OnChange

INTERVAL = 0.01  # seconds between two looks


class SqliteWatch:
    """A thread that tells of every commit, by whichever process."""

    def __init__(self, path: Path, on_change: OnChange, among: list[SqliteWatch]) -> None:
        self._path = path
        self._on_change = on_change
        self._among = among
        self._woken = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="palaver-watch", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """This process has committed something: look at once."""
        self._woken.set()

    def close(self) -> None:
        """Stop telling."""
        self._closed = True
        self._woken.set()
        with contextlib.suppress(ValueError):  # closed before
            self._among.remove(self)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        with contextlib.closing(connect(self._path, reader=True)) as db:
            version = self._version(db)
            while not self._closed:
                self._woken.wait(INTERVAL)
                self._woken.clear()
                newer = self._version(db)
                if newer != version and not self._closed:
                    version = newer
                    self._on_change(None)

    def _version(self, db: apsw.Connection) -> int:
        try:
            return int(db.execute("PRAGMA data_version").get)
        except apsw.Error:  # the disk is in trouble: whoever reads next is told why
            return -1
