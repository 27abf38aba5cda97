"""Notices commits to a SQLite file: our own at once, those of other processes within a few milliseconds.

SQLite cannot notify other processes. `data_version` is an integer that changes whenever any other connection commits;
reading it a hundred times a second costs next to nothing.
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

POLL_INTERVAL_SECONDS = 0.01


class SqliteWatch:
    """A thread that calls `on_change` after every commit by any process.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(self, path: Path, on_change: OnChange, watches: list[SqliteWatch]) -> None:
        self._path = path
        self._on_change = on_change
        self._watches = watches
        self._wake_up = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="palaver-watch", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Check at once, because this process has committed something."""
        self._wake_up.set()

    def close(self) -> None:
        self._closed = True
        self._wake_up.set()
        with contextlib.suppress(ValueError):  # closed before
            self._watches.remove(self)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(connect(self._path, reader=True)) as db:
            version = self._read_version(db)
            while not self._closed:
                self._wake_up.wait(POLL_INTERVAL_SECONDS)
                self._wake_up.clear()
                new_version = self._read_version(db)
                if new_version != version and not self._closed:
                    version = new_version
                    self._on_change(None)

    def _read_version(self, db: apsw.Connection) -> int:
        try:
            return int(db.execute("PRAGMA data_version").get)
        except apsw.Error:  # a disk problem: the next read by a caller reports it
            return -1
