"""Notices commits to a SQLite file: our own at once, those of other processes within a few milliseconds.

SQLite cannot notify other processes. `data_version` is an integer that changes whenever any other connection commits,
so it only has to be read at the right moment. Every commit writes to the WAL first, which is an event of the file
system; the commit becomes visible a moment later, when the WAL is on the disk. So after an event `data_version` is read
a few times, first often and then less and less. Without file events it is read at a steady interval.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

import apsw

from palaver.core.engines.file_events import FileEvents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver.core.engines.base import OnChange

POLL_SECONDS = 0.04  # between two reads where the system has no file events
MIN_WAIT_SECONDS = 0.01  # between two reads right after an event
MAX_WAIT_SECONDS = 1.0  # between two reads when there are no events: finds out whether events are reliable
WAIT_GROWTH = 0.2  # each wait is this fraction of the time since the last event

log = logging.getLogger(__name__)


class SqliteWatch:
    """A thread that calls `on_change` after every commit by any process.

    It removes itself from `watches`, the engine's list, when it is closed.
    """

    def __init__(
        self,
        path: Path,
        open_reader: Callable[..., apsw.Connection],
        on_change: OnChange,
        watches: list[SqliteWatch],
        check_files: Callable[[], None],
    ) -> None:
        self._path = path
        self._open_reader = open_reader
        self._check_files = check_files  # called once a second
        self._on_change = on_change
        self._watches = watches
        real_path = path.resolve()  # SQLite puts the WAL beside the file that a link points to
        self._events = FileEvents(real_path.with_name(f"{real_path.name}-wal"))
        self._has_own_commit = False
        self._closed = False
        self._has_started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="palaver-watch", daemon=True)
        self._thread.start()
        self._has_started.wait()  # every commit from now on is noticed

    def wake(self) -> None:
        """Check at once, because this process has committed something."""
        if not self._has_own_commit:
            self._has_own_commit = True
            self._events.wake()

    def close(self) -> None:
        with contextlib.suppress(ValueError):  # closed before
            self._watches.remove(self)
        if not self._closed:
            self._closed = True
            self._events.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self._has_started.set()  # also if the file can't be opened

    def _watch(self) -> None:
        with contextlib.closing(self._events), contextlib.closing(self._open_reader(reader=True)) as db:
            version = self._read_version(db)
            self._has_started.set()
            is_reliable = self._events.is_supported
            last_event = last_check = 0.0
            while not self._closed:
                since_event = time.monotonic() - last_event
                wait = min(MAX_WAIT_SECONDS, max(MIN_WAIT_SECONDS, since_event * WAIT_GROWTH))
                has_event = self._events.wait(wait if is_reliable else POLL_SECONDS)
                is_expected, self._has_own_commit = has_event or self._has_own_commit, False
                if has_event:
                    last_event = time.monotonic()
                if time.monotonic() - last_check >= MAX_WAIT_SECONDS:
                    last_check = time.monotonic()
                    self._check_files()
                new_version = self._read_version(db)
                if new_version == version or self._closed:
                    continue
                version = new_version
                if is_reliable and wait >= MAX_WAIT_SECONDS and not (is_expected or self._events.wait(0)):
                    is_reliable = False  # a network file system, for example
                    log.info("file_events_missing", extra={"path": str(self._path)})
                self._on_change(None)

    def _read_version(self, db: apsw.Connection) -> int:
        try:
            return int(db.execute("PRAGMA data_version").get)
        except apsw.Error:  # a disk problem: the next read by a caller reports it
            return -1
