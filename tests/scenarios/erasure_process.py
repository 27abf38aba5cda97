"""Erases a person in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, the folder for attachments, the person, the crash point, and at which passing of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from palaver import SessionStore
from palaver.domain.crash_points import set_crash_hook
from palaver.services.attachments import Attachments
from palaver.services.erasure import Erasures


def main(url: str, folder: str, person_id: str, point: str, passing: str) -> None:
    passes_left = int(passing)

    def kill(name: str) -> None:
        nonlocal passes_left
        passes_left -= name == point
        if passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    set_crash_hook(kill)
    with SessionStore.open(url) as store:
        erasures = Erasures(store, Attachments(store, Path(folder)))
        asyncio.run(erasures.erase(store.get_owner().principal, person_id))


if __name__ == "__main__":
    main(*sys.argv[1:])
