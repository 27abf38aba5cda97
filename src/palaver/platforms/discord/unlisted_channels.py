"""Direct chats and threads: Discord lists the former never, and the latter only until they are archived.

Always true: the id of such a channel is stored before anything from there is accepted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from palaver.sessions.platform_updates import Cursor

if TYPE_CHECKING:
    from palaver.delivery.adapter import AccountLink
    from palaver.platforms.discord.directory import Channel

MAX_DIRECT_CHATS: Final = 2_000  # that are remembered, the newest ones
MAX_THREADS: Final = 200

# Names of cursors.
DIRECT_CHATS: Final = "direct chats"
THREADS: Final = "threads"


class UnlistedChannels:
    """The ids of the channels of one account that Discord does not list."""

    def __init__(self, link: AccountLink) -> None:
        self._link = link
        self._ids: dict[str, list[str]] = {DIRECT_CHATS: [], THREADS: []}  # the newest last

    @property
    def direct_chats(self) -> list[str]:
        return self._ids[DIRECT_CHATS]

    @property
    def threads(self) -> list[str]:
        return self._ids[THREADS]

    async def load(self) -> None:
        for name in self._ids:
            self._ids[name] = json.loads(await self._link.load_cursor(name) or "[]")

    async def remember(self, channel: Channel) -> bool:
        """Store the id of a direct chat or a thread. False: it is known, or the channel is listed."""
        if channel.guild_id is not None and not channel.is_thread:
            return False
        name, limit = (THREADS, MAX_THREADS) if channel.is_thread else (DIRECT_CHATS, MAX_DIRECT_CHATS)
        if channel.id in self._ids[name]:
            return False
        self._ids[name] = [*self._ids[name], channel.id][-limit:]
        await self._store(name)
        return True

    async def forget(self, channel_id: str) -> None:
        """Do not ask again for a channel that was deleted."""
        for name, ids in self._ids.items():
            if channel_id in ids:
                ids.remove(channel_id)
                await self._store(name)

    async def _store(self, name: str) -> None:
        await self._link.save_cursor(Cursor(json.dumps(self._ids[name]), name))
