"""How long costly work of one person pauses, so that others are served in between.

Costly work shares the interpreter, the write lock or the disk with everyone. After each piece it pauses for twice the
time that the piece took, so it takes at most a third of the time.
"""

from __future__ import annotations

from typing import Final

PAUSE_RATIO: Final = 2.0
MAX_PAUSE_SECONDS: Final = 1.0  # also after work that had to wait for a slow disk or a lock
MIN_COPY_PAUSE_SECONDS: Final = 0.1  # after a copy of a conversation: it is soon made, but the disk has to write it


def compute_pause(work_seconds: float, min_seconds: float = 0) -> float:
    """Return how long to pause after a piece of work that took so long."""
    return max(min(work_seconds * PAUSE_RATIO, MAX_PAUSE_SECONDS), min_seconds)
