"""Keeps what was received from WhatsApp on disk until Palaver has stored it.

The library tells WhatsApp that a message has arrived before Palaver has stored it. So the child writes each event into
a file of its own, and only then hands it on; the file is deleted when Palaver has acknowledged it.

Always true: an event whose `append` has returned is read again after any crash, in the order of their numbers, until it
was removed. Only numbers are kept in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

MAX_EVENTS: Final = 20_000


class Spool:
    """The events of one account. It may be used by several threads; one process at a time holds the account's lock."""

    def __init__(self, folder: Path, *, max_events: int = MAX_EVENTS) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._max_events = max_events
        self._lock = threading.Lock()
        for path in folder.glob("*.new"):  # it was being written, and not handed on yet
            path.unlink()
        self._stored = {int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()}
        self._waiting = deque(sorted(self._stored))  # not taken yet
        self._last = max(self._stored, default=0)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def is_full(self) -> bool:
        """Whether no more should be received for now. What comes nevertheless is kept."""
        return len(self._stored) >= self._max_events

    @property
    def has_waiting(self) -> bool:
        """Whether an event was not taken yet."""
        return bool(self._waiting)

    def append(self, event: dict[str, Any]) -> int:
        """Store an event durably; return its number. Raises OSError if the disk is full."""
        data = json.dumps(event, separators=(",", ":")).encode("ascii")
        with self._lock:
            number = max(self._last + 1, time.time_ns())  # never one that was used before, also after a restart
            new, path = self._folder / f"{number}.new", self._get_path(number)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.rename(path)
            self._sync_folder()
            self._last = number
            self._stored.add(number)
            self._waiting.append(number)
        return number

    def take(self) -> tuple[int, dict[str, Any]] | None:
        """Return the oldest event that was not taken yet, and its number.

        What is no event is put aside. Raises OSError if the disk fails: the event stays, and is read again later.
        """
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                number = self._waiting.popleft()
            path = self._get_path(number)
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                with contextlib.suppress(ValueError):
                    event = json.loads(data)
                    if isinstance(event, dict):
                        return number, event
                path.rename(path.with_suffix(".unreadable"))
            with self._lock:
                self._stored.discard(number)

    def remove(self, number: int) -> None:
        """Delete an event that Palaver has stored; one that is gone is no error."""
        self._get_path(number).unlink(missing_ok=True)
        with self._lock:
            self._stored.discard(number)

    def _get_path(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _sync_folder(self) -> None:
        """Make the name of a new file durable, too."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
