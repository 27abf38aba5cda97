"""Kills this process at a crash point, as a power cut would."""

from __future__ import annotations

import os
import signal

from palaver.core.crash_points import set_crash_hook


def kill_at(point: str, passing: int = 1) -> None:
    """Kill this process when it passes the point for the given time."""
    passes_left = passing

    def pass_crash_point(name: str) -> None:
        nonlocal passes_left
        passes_left -= name == point
        if passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    set_crash_hook(pass_crash_point)
