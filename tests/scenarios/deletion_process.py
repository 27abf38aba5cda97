"""Deletes a conversation in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, the conversation, the crash point, and at which passing of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from palaver import SessionStore
from support.crashing import kill_at


def main(url: str, session_id: str, point: str, passing: str) -> None:
    kill_at(point, int(passing))
    with SessionStore.open(url) as store:
        store.delete_session(session_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
