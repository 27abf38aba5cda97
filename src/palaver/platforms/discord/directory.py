"""The servers and channels that the bot knows, as Discord reports them: most events name a channel by its id only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.sessions.inbound import Cursor

if TYPE_CHECKING:
    from palaver.delivery.adapter import AccountLink

JSON = Mapping[str, Any]

DIRECT: Final = 1
THREAD_TYPES: Final = frozenset({10, 11, 12})
_TYPES_WITHOUT_MESSAGES: Final = frozenset({4, 14, 15, 16})  # categories, directories; forums have only threads

MAX_DIRECT_CHATS: Final = 2_000  # that are remembered, the newest ones
MAX_THREADS: Final = 200
DIRECT_CHATS: Final = "direct chats"  # the name of a cursor, as the next one
THREADS: Final = "threads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel, a thread (also the post of a forum), or a direct chat."""

    id: str
    kind: int = 0
    name: str | None = None
    topic: str | None = None
    guild_id: str | None = None  # None: a direct chat
    parent_id: str | None = None  # of a thread: the channel that it is in
    last_message_id: int = 0

    @property
    def is_thread(self) -> bool:
        return self.kind in THREAD_TYPES

    @classmethod
    def from_json(cls, fields: JSON, guild_id: str | None = None) -> Channel:
        return cls(
            id=fields["id"],
            kind=fields["type"],
            name=fields.get("name"),
            topic=fields.get("topic"),
            guild_id=fields.get("guild_id") or guild_id,
            parent_id=fields.get("parent_id"),
            last_message_id=int(fields.get("last_message_id") or 0),
        )


@dataclass(slots=True)
class Guild:
    """A server that the bot is in; Discord calls it a guild."""

    id: str
    name: str | None
    joined_at: str | None = None  # when the bot was added
    own_role_ids: frozenset[str] = frozenset()
    role_names: dict[str, str] = field(default_factory=dict)
    channel_ids: set[str] = field(default_factory=set)


class ChannelDirectory:
    """The servers and channels that are known; events keep them up to date."""

    def __init__(self, own_id: str) -> None:
        self.own_id = own_id
        self._guilds: dict[str, Guild] = {}
        self._channels: dict[str, Channel] = {}

    def find(self, channel_id: str) -> Channel | None:
        return self._channels.get(channel_id)

    def find_guild(self, guild_id: str | None) -> Guild | None:
        return self._guilds.get(guild_id) if guild_id else None

    def add_guild(self, fields: JSON) -> Guild:
        self.remove_guild(fields["id"])
        guild = self._guilds[fields["id"]] = Guild(fields["id"], fields.get("name"), fields.get("joined_at"))
        guild.role_names = {role["id"]: role["name"] for role in fields.get("roles", ())}
        for member in fields.get("members", ()):
            self.update_member(guild.id, member)
        for channel in (*fields.get("channels", ()), *fields.get("threads", ())):
            self.add(Channel.from_json(channel, guild.id))
        return guild

    def remove_guild(self, guild_id: str) -> None:
        guild = self._guilds.pop(guild_id, None)
        for channel_id in guild.channel_ids if guild else ():
            self._channels.pop(channel_id, None)

    def update_member(self, guild_id: str, member: JSON) -> None:
        """Learn which roles our bot has: a mention of one of them is a mention of it."""
        guild = self._guilds.get(guild_id)
        if guild is not None and member.get("user", {}).get("id") == self.own_id:
            # The role that every member has carries the id of the server. Who mentions it, mentions everybody.
            guild.own_role_ids = frozenset(member["roles"]) - {guild_id}

    def add(self, channel: Channel) -> None:
        self._channels[channel.id] = channel
        if channel.guild_id and (guild := self._guilds.get(channel.guild_id)):
            guild.channel_ids.add(channel.id)

    def remove(self, channel_id: str) -> None:
        channel = self._channels.pop(channel_id, None)
        if channel is not None and (guild := self.find_guild(channel.guild_id)):
            guild.channel_ids.discard(channel_id)

    def list_channels(self, guild: Guild) -> list[Channel]:
        """Return the channels and threads of a server in which messages can be."""
        channels = [self._channels[channel_id] for channel_id in guild.channel_ids]
        return [channel for channel in channels if channel.kind not in _TYPES_WITHOUT_MESSAGES]


class UnlistedChannels:
    """The ids of the direct chats, which Discord never lists, and of threads, which it lists until they are archived.

    Always true: the id of such a channel is stored before anything from there is accepted.
    """

    def __init__(self, link: AccountLink) -> None:
        self._link = link
        self.ids: dict[str, list[str]] = {DIRECT_CHATS: [], THREADS: []}  # the newest last

    async def load(self) -> None:
        for name in self.ids:
            self.ids[name] = json.loads(await self._link.load_cursor(name) or "[]")

    async def remember(self, channel: Channel) -> bool:
        """Store the id of a direct chat or a thread. False: it is known, or the channel is listed."""
        if channel.guild_id is not None and not channel.is_thread:
            return False
        name, limit = (THREADS, MAX_THREADS) if channel.is_thread else (DIRECT_CHATS, MAX_DIRECT_CHATS)
        if channel.id in self.ids[name]:
            return False
        await self._store(name, [*self.ids[name], channel.id][-limit:])
        return True

    async def forget(self, channel_id: str) -> None:
        """Do not ask again for a channel that was deleted."""
        for name, ids in self.ids.items():
            if channel_id in ids:
                await self._store(name, [each for each in ids if each != channel_id])

    async def _store(self, name: str, ids: list[str]) -> None:
        self.ids[name] = ids
        await self._link.save_cursor(Cursor(json.dumps(ids), name))
