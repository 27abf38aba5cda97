"""Changes of files, with inotify on Linux: waiting for one costs nothing, and asking for one a microsecond.

Folders are watched, not files, so that a file may be deleted and created again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_IN_MODIFY: Final = 0x0002
_IN_CREATE: Final = 0x0100
_NAME_CHANGES: Final = 0x0FC0  # of what is in a folder, or of the folder: created, deleted, moved
_IN_Q_OVERFLOW: Final = 0x4000  # there were more events than the system could keep
_HEADER: Final = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER_BYTES: Final = 65536


class WakeUp:
    """Wakes a thread that waits for file descriptors: `fd` becomes readable."""

    def __init__(self) -> None:
        self.fd, self._writer = os.pipe()
        for fd in (self.fd, self._writer):
            os.set_blocking(fd, False)
        self._lock = threading.Lock()  # nothing is written after the descriptors are closed
        self._closed = False

    def send(self) -> None:
        """Wake the thread; may be called from any thread."""
        with self._lock, contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups
            if not self._closed:
                os.write(self._writer, b"\0")

    def clear(self) -> None:
        os.read(self.fd, _BUFFER_BYTES)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self.fd)
            os.close(self._writer)


class FileEvents:
    """Says when a file was written to, by any process of this machine, or when `wake` was called."""

    def __init__(self, path: Path) -> None:
        """Start to watch. Without inotify, `wait` returns only after its timeout or a `wake`."""
        self._name = os.fsencode(path.name)
        self._events = _open_inotify([path.parent], _IN_MODIFY | _IN_CREATE)
        self._wake_up = WakeUp()
        self._poll = select.poll()
        self._poll.register(self._wake_up.fd, select.POLLIN)
        if self._events is not None:
            self._poll.register(self._events, select.POLLIN)

    @property
    def is_supported(self) -> bool:
        return self._events is not None

    def wake(self) -> None:
        """Let `wait` return now; may be called from any thread."""
        self._wake_up.send()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the file is written to, until `wake` or until the timeout; return whether it was written to."""
        ready = {fd for fd, _ in self._poll.poll(timeout_seconds * 1000)}
        if self._wake_up.fd in ready:
            self._wake_up.clear()
        if self._events is None or self._events not in ready:
            return False
        return self._has_event(os.read(self._events, _BUFFER_BYTES))

    def close(self) -> None:
        self._wake_up.close()
        if self._events is not None:
            os.close(self._events)

    def _has_event(self, data: bytes) -> bool:
        position = 0
        while position < len(data):
            _, mask, _, length = _HEADER.unpack_from(data, position)
            position += _HEADER.size + length
            name = data[position - length : position].rstrip(b"\0")
            if name == self._name or mask & _IN_Q_OVERFLOW:
                return True
        return False


class NameChanges:
    """Says whether a file in some folders was created, deleted or renamed, or one of the folders, since the last call.

    The system queues an event before the change is finished, so none that came earlier is missed.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._events = _open_inotify(folders, _NAME_CHANGES)
        self._poll = select.poll()
        if self._events is not None:
            self._poll.register(self._events, select.POLLIN)

    def has_any(self) -> bool:
        """Return whether there was a change; always True if this system does not say."""
        if self._events is None:
            return True
        if not self._poll.poll(0):
            return False
        os.read(self._events, _BUFFER_BYTES)
        return True

    def close(self) -> None:
        if self._events is not None:
            os.close(self._events)
            self._events = None


def _open_inotify(folders: Iterable[Path], mask: int) -> int | None:
    """Return a file descriptor with events of some folders; None if this system does not offer that."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    if any(libc.inotify_add_watch(fd, os.fsencode(folder), mask) < 0 for folder in folders):
        os.close(fd)
        return None
    return fd
