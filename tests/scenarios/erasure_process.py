"""Erases a person in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, the folder for attachments, the person, the crash point, and at which passing of it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from palaver import SessionStore
from palaver.media.attachments import Attachments
from palaver.operation.erasure import Erasures
from support.crashing import kill_at


def main(url: str, folder: str, person_id: str, point: str, passing: str) -> None:
    kill_at(point, int(passing))
    with SessionStore.open(url) as store:
        erasures = Erasures(store, Attachments(store, Path(folder)))
        asyncio.run(erasures.erase(store.get_owner().principal, person_id))


if __name__ == "__main__":
    main(*sys.argv[1:])
