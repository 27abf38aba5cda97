"""Crash points: named places in the code where tests kill the process.

The code calls `crash_point("turn.ended")` wherever it matters what happens if nothing after that line runs. In
production the call does nothing; a test installs a hook that kills the process at a given name. The calls are the list
of all names: the kill tests read them from the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Call the hook, if a test has set one."""
    if _hook is not None:
        _hook(name)


def set_crash_hook(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every crash point that this process passes; None removes the hook."""
    global _hook  # noqa: PLW0603  (one process, one hook)
    _hook = hook
