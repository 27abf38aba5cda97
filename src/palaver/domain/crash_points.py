"""Places where a process may die, by name.

The code says `faults.point("turn.finished")` wherever it matters what happens if nothing after that line ever
runs. Nothing happens there, unless a test has put a hook in place that kills the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """A named moment."""
    if _hook is not None:
        _hook(name)


def on_point(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of every moment that passes, in this process; None takes it away."""
    global _hook  # noqa: PLW0603  (one process, one hook)
    _hook = hook
