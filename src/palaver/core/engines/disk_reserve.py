"""Space on the disk that is kept for deleting: SQLite must write before it can delete.

A server keeps a file of a fixed size beside its database. When the disk is full, the first work that frees space gives
the file back. The log can then be written back into the database and begins again, in space that it already has. From
then on, what is left of that space is for work that frees more, until the disk has room for a new reserve.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from palaver.core.errors import StoreFull
from palaver.core.readiness import ReadinessProblem

if TYPE_CHECKING:
    from pathlib import Path

RESERVE_BYTES = 24 * 1024 * 1024  # a log just before its checkpoint, and some deletions
FULL_DISK_BYTES = 2 * 1024 * 1024  # a message with its answer may not fit
NEARLY_FULL_DISK_BYTES = 200_000_000


class DiskReserve:
    """The reserve of one database file; several processes share it."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-reserve")
        self._is_given_back = False

    def keep(self) -> None:
        """Make sure that there is a reserve, if the disk has much more than that left."""
        if self._path.exists() or self._get_free_bytes() < 4 * RESERVE_BYTES:
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:  # another process is making it, or the folder can't be written
            return
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:
            self._path.unlink(missing_ok=True)
        else:
            self._is_given_back = False
        finally:
            os.close(descriptor)

    def give_back(self) -> None:
        self._path.unlink(missing_ok=True)
        self._is_given_back = True

    def refuse_if_needed(self) -> None:
        """Raise `StoreFull` if the reserve was given back and what is left of it is for deleting."""
        if not self._is_given_back:
            return
        free = self._get_free_bytes()
        if free < RESERVE_BYTES // 2:
            raise StoreFull(free_bytes=free)
        if free > 4 * RESERVE_BYTES:
            self._is_given_back = False  # the next `keep` makes a new one

    def find_problem(self) -> ReadinessProblem | None:
        """Say whether the disk is full or nearly full."""
        free = self._get_free_bytes()
        if free < FULL_DISK_BYTES or (self._is_given_back and free < RESERVE_BYTES // 2):
            text = "The server's disk is full: messages can't be stored. Free some space."
            return ReadinessProblem("disk_full", text, is_blocking=True)
        if free < NEARLY_FULL_DISK_BYTES:
            text = f"The server's disk is nearly full: {free / 1e6:.0f} MB are free."
            return ReadinessProblem("disk_nearly_full", text, is_blocking=False)
        return None

    def _get_free_bytes(self) -> int:
        return shutil.disk_usage(self._path.parent).free
