"""Settings of the C library's memory allocator for a process that runs for weeks."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

MAX_ARENAS: Final = 2
LARGE_BLOCK_BYTES: Final = 256 * 1024  # blocks of this size are returned to the system as soon as they are freed


def return_freed_memory() -> None:
    """Let freed memory go back to the system, where the C library is glibc.

    By default every thread gets a part of the heap of its own, and the parts keep what they once needed: a server whose
    threads take turns with large requests grows for hours. Two parts are enough, because Python runs one thread at a
    time. Must be called before threads start.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in (
            (_ARENA_MAX, MAX_ARENAS),
            (_MMAP_THRESHOLD, LARGE_BLOCK_BYTES),
            (_TRIM_THRESHOLD, LARGE_BLOCK_BYTES),
        ):
            mallopt(parameter, value)
