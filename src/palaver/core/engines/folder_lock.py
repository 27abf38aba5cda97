"""A lock on the folder of a database: every process that uses a database there shares it, a restore needs it alone.

SQLite's own locks guard a file, and a restore puts another file in its place. A process that had opened the old file
just before would go on with it, and write its log beside the new one. So all processes lock the folder first.

The system releases the lock when the process ends, however it ends. A file system that cannot lock a folder is used
without: SQLite's locks still guard the file itself.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Final, Self

from palaver.core.errors import StoreBusy

if TYPE_CHECKING:
    from pathlib import Path

WAIT_SECONDS: Final = 5.0  # for a restore that has nearly ended
_RETRY_SECONDS: Final = 0.05


class FolderLock:
    """A held lock; `close` releases it."""

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
