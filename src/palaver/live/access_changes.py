"""Tells waiting tasks that a person may have lost access, in this process or in another one on the same store."""

from __future__ import annotations

import asyncio


class AccessChanges:
    """Changes of what people may see: sign-outs, revoked tokens, other roles, ended memberships."""

    def __init__(self) -> None:
        self._next_change = asyncio.Event()

    def get_next(self) -> asyncio.Event:
        """Return an event that is set at the next change. Get it before you read what the change could affect."""
        return self._next_change

    def notify(self) -> None:
        change, self._next_change = self._next_change, asyncio.Event()
        change.set()
