"""Kills this process at a crash point, as a power cut would; lists the crash points of the code."""

from __future__ import annotations

import os
import re
import signal
from functools import cache
from pathlib import Path

import palaver
from palaver.core.crash_points import set_crash_hook

_CALL = re.compile(r"\bcrash_point\(\s*([^)\s]+)\s*\)")


@cache
def _read_crash_points() -> frozenset[str]:
    files = Path(palaver.__file__).parent.rglob("*.py")
    names = {name for file in files for name in _CALL.findall(file.read_text(encoding="utf-8"))}
    assert all(name[0] == name[-1] == '"' for name in names), "a crash point has no literal name"
    return frozenset(name.strip('"') for name in names)


def list_crash_points(*areas: str) -> set[str]:
    """Return the names of all crash points that begin like one of these."""
    return {name for name in _read_crash_points() if name.startswith(areas)}


def kill_at(point: str, passing: int = 1) -> None:
    """Kill this process when it passes the point for the given time."""
    passes_left = passing

    def pass_crash_point(name: str) -> None:
        nonlocal passes_left
        passes_left -= name == point
        if passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    set_crash_hook(pass_crash_point)
