"""Deletes a conversation in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, the conversation, the crash point, and at which passing of it.
"""

from __future__ import annotations

import os
import signal
import sys

from palaver import SessionStore
from palaver.domain.crash_points import set_crash_hook


def main(url: str, session_id: str, point: str, passing: str) -> None:
    passes_left = int(passing)

    def kill(name: str) -> None:
        nonlocal passes_left
        passes_left -= name == point
        if passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    set_crash_hook(kill)
    with SessionStore.open(url) as store:
        store.delete_session(session_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
