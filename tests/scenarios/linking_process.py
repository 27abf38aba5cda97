"""Sends one message from a chat in a process of its own, and is killed at a crash point.

Arguments: the URL of the database, the user and platform, the text, the id of the message, the crash point, and at
which passing of it.
"""

from __future__ import annotations

import asyncio
import sys

from palaver import SessionStore
from palaver.sessions.inbound import Inbound
from support.crashing import kill_at
from support.inbox import make_inbox
from support.people import chat


def main(url: str, user: str, platform: str, text: str, message_id: str, point: str, passing: str) -> None:
    kill_at(point, int(passing))
    with SessionStore.open(url) as store:
        inbound = Inbound(source=chat(user, platform), content=text, message_id=message_id)
        asyncio.run(make_inbox(store).accept(inbound))


if __name__ == "__main__":
    main(*sys.argv[1:])
