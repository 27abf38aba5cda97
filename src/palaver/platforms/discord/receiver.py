"""Receives: events of the gateway → accepted in order, each with the cursor of its channel.

Discord's gateway has no acknowledgment, and forgets what a bot missed after about a minute. What makes messages durable
is their history: every channel has a cursor, the id of its last message that was accepted. After a new session (a
start, or a gap that could not be resumed) the history of each channel is read from its cursor on, before anything new
from that channel is accepted.

Always true: a cursor moves only when everything before it in its channel is stored. A channel without a cursor of its
own is read from the account's cursor on, which moves when all channels are up to date. Direct chats are not listed by
Discord: their ids are stored before the first message from there is accepted. A live message waits for the history of
its own channel, and at most for that of one other, which is just being read. If Discord does not return a history, it
is read later: until then nothing from that channel is accepted, and other channels go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from palaver.domain.errors import ConnectionLost, InvalidInput
from palaver.domain.inbound import Inbound
from palaver.domain.platform_updates import Cursor
from palaver.platforms.discord.directory import DIRECT, Channel, ChannelDirectory
from palaver.platforms.discord.failures import RequestFailed, RequestRefused, make_platform_error
from palaver.platforms.discord.inbound import (
    IS_REMOVED,
    make_snowflake,
    parse_deletion,
    parse_edit,
    parse_interaction,
    parse_message,
    parse_reaction,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from palaver.domain.platform_updates import AnyUpdate, ButtonPressed
    from palaver.platforms.discord.client import DiscordClient
    from palaver.services.platforms.adapter import AccountLink
    from palaver.services.platforms.intake import Intake

log = logging.getLogger(__name__)

JSON = dict[str, Any]
T = TypeVar("T")

MAX_WAITING_EVENTS: Final = 1_000  # received, but not accepted yet; then nothing more is received
MAX_GAP_MESSAGES: Final = 1_000  # that are fetched of one channel; older ones of a longer gap are left out
PAGE_MESSAGES: Final = 100
MAX_DIRECT_CHATS: Final = 2_000  # that are remembered, the newest ones
MAX_THREADS: Final = 200
FIRST_LOOKBACK: Final = timedelta(minutes=10)  # at the very first start: what people wrote while it was set up
SAFETY_MARGIN: Final = 60_000 << 22  # 60 seconds, in ids: channels are not reported at exactly the same moment
MAX_FETCH_ATTEMPTS: Final = 4
RETRY_SECONDS: Final = 0.25  # before the second attempt; each further one waits twice as long
MAX_WAIT_SECONDS: Final = 10.0  # then there is no further attempt for now: live messages wait meanwhile
POSTPONE_SECONDS: Final = 30.0  # before a history is read again that Discord did not return
UNKNOWN_GUILD: Final = "0"
DIRECT_CHATS: Final = "direct chats"  # the name of the cursor that lists them
THREADS: Final = "threads"


class _Unavailable(ConnectionLost):
    """Discord does not answer what we ask about a channel. It may after so many seconds."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


@dataclass(slots=True)
class _Gap:
    """A channel whose history is to be read."""

    since: int  # the message from which on, if the channel has no cursor
    not_before: float = 0.0  # by the monotonic clock

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.not_before


class Receiver:
    """Accepts the events of one account, in order, each once."""

    def __init__(self, client: DiscordClient, directory: ChannelDirectory, link: AccountLink, intake: Intake) -> None:
        self._client = client
        self._directory = directory
        self._link = link
        self._intake = intake
        self._events: deque[tuple[str, Any]] = deque()
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._baseline = 0  # of channels without a cursor of their own: everything up to it was accepted
        self._newest = 0  # the newest message that Discord has named in this session
        self._gaps: dict[str, _Gap] = {}  # by the ids of channels
        self._awaited_guilds: set[str] = set()  # that Discord has not reported yet in this session
        self._is_swept = True
        self._positions: dict[str, int] = {}  # the last message of each channel that was accepted
        self._remembered: dict[str, list[str]] = {DIRECT_CHATS: [], THREADS: []}
        self._handlers: dict[str, Callable[[JSON], Awaitable[None]]] = {
            "READY": self._start_session,
            "GUILD_CREATE": self._add_guild,
            "GUILD_DELETE": self._remove_guild,
            "GUILD_MEMBER_UPDATE": self._note_member,
            "CHANNEL_CREATE": self._add_channel,
            "CHANNEL_UPDATE": self._add_channel,
            "CHANNEL_DELETE": self._remove_channel,
            "THREAD_CREATE": self._add_channel,
            "THREAD_UPDATE": self._add_channel,
            "THREAD_DELETE": self._remove_channel,
            "THREAD_LIST_SYNC": self._add_threads,
            "MESSAGE_CREATE": self._receive_message,
            "MESSAGE_UPDATE": self._receive_edit,
            "MESSAGE_DELETE": self._receive_deletion,
            "MESSAGE_DELETE_BULK": self._receive_deletions,
            "MESSAGE_REACTION_ADD": self._receive_reaction,
            "MESSAGE_REACTION_REMOVE": self._receive_removed_reaction,
            "INTERACTION_CREATE": self._receive_interaction,
        }

    # ---- the queue of events ---------------------------------------------------------------------------------

    def put(self, name: str, data: Any) -> None:
        """Take an event of the gateway; it is handled in order."""
        if name not in self._handlers:
            return
        self._events.append((name, data))
        self._changed.set()
        if len(self._events) >= MAX_WAITING_EVENTS:
            self._has_room.clear()

    async def wait_for_room(self) -> None:
        await self._has_room.wait()

    async def run(self) -> None:
        """Handle events until canceled; while there are none, read the history of channels."""
        while True:
            if self._events:
                name, data = self._events.popleft()
                if len(self._events) < MAX_WAITING_EVENTS:
                    self._has_room.set()
                await self._handlers[name](data)
            elif (due := next((each for each, gap in self._gaps.items() if gap.is_due), None)) is not None:
                await self._close_gap(due)
            elif not self._is_swept and not self._awaited_guilds and not self._gaps:
                await self._finish_sweep()
            else:
                await self._wait_for_event()

    async def _wait_for_event(self) -> None:
        """Wait for the next event, or until a history is to be read again."""
        self._changed.clear()
        wait = min((gap.not_before - time.monotonic() for gap in self._gaps.values()), default=None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._changed.wait()

    # ---- sessions and gaps -----------------------------------------------------------------------------------

    async def _start_session(self, ready: JSON) -> None:
        """Begin a new session: from now on there may be a gap in every channel."""
        stored = await self._link.load_cursor()
        self._baseline = int(stored) if stored else make_snowflake(datetime.now(UTC) - FIRST_LOOKBACK)
        if stored is None:
            await self._link.save_cursor(Cursor(str(self._baseline)))
        self._awaited_guilds = {guild["id"] for guild in ready["guilds"]}
        self._newest, self._is_swept = 0, False
        for name in self._remembered:
            self._remembered[name] = json.loads(await self._link.load_cursor(name) or "[]")
        unlisted = (*reversed(self._remembered[DIRECT_CHATS]), *reversed(self._remembered[THREADS]))
        self._gaps = {channel_id: _Gap(self._baseline) for channel_id in unlisted}

    async def _add_guild(self, fields: JSON) -> None:
        if fields.get("unavailable"):
            return  # Discord has an outage, and reports it again
        self._awaited_guilds.discard(fields["id"])
        guild = self._directory.add_guild(fields)
        joined = make_snowflake(datetime.fromisoformat(guild.joined_at)) if guild.joined_at else 0
        for channel in self._directory.list_channels(guild):
            self._newest = max(self._newest, channel.last_message_id)
            if channel.last_message_id > max(self._baseline, joined, self._positions.get(channel.id, 0)):
                self._gaps[channel.id] = _Gap(max(self._baseline, joined))
            else:
                self._gaps.pop(channel.id, None)

    async def _remove_guild(self, fields: JSON) -> None:
        if not fields.get("unavailable"):
            self._awaited_guilds.discard(fields["id"])
            self._directory.remove_guild(fields["id"])

    async def _finish_sweep(self) -> None:
        """Note that all channels are up to date, as soon as everything that was found is stored."""
        self._is_swept = True
        self._baseline = max(self._baseline, self._newest - SAFETY_MARGIN)
        await self._intake.save_cursor(Cursor(str(self._baseline)))

    async def _close_gap(self, channel_id: str) -> bool:
        """Accept what was written in a channel since its cursor, the oldest first. False: it will be read later."""
        gap = self._gaps.setdefault(channel_id, _Gap(self._baseline))
        if not gap.is_due:
            return False
        stored = await self._link.load_cursor(channel_id)
        position = self._positions[channel_id] = max(
            int(stored) if stored else gap.since, self._positions.get(channel_id, 0)
        )
        try:
            messages = await self._fetch_since(channel_id, position)
            channel = await self._find_listed_channel(channel_id) if messages else None
        except _Unavailable as error:
            gap.not_before = time.monotonic() + error.seconds
            log.warning("discord_history_postponed", extra={"channel": channel_id, "reason": str(error)})
            return False
        if channel is not None:
            await self._accept_history(messages, channel)
        self._gaps.pop(channel_id, None)
        return True

    async def _accept_history(self, messages: list[JSON], channel: Channel) -> None:
        log.info("discord_gap", extra={"channel": channel.id, "messages": len(messages)})
        for message in messages:
            await self._accept_message(message, channel)
        newest = self._positions[channel.id] = int(messages[-1]["id"])
        await self._intake.save_cursor(Cursor(str(newest), channel.id))

    async def _fetch_since(self, channel_id: str, position: int) -> list[JSON]:
        """Fetch the messages of a channel after a position, the oldest first; if there are too many, the newest."""
        found: list[JSON] = []
        while len(found) < MAX_GAP_MESSAGES:
            before = found[-1]["id"] if found else None
            page = await self._fetch_page(channel_id, before)
            newer = [message for message in page if int(message["id"]) > position]
            found += newer
            if len(newer) < PAGE_MESSAGES:
                return found[::-1]
        log.warning("discord_gap_too_long", extra={"channel": channel_id, "messages": len(found)})
        return found[::-1]

    async def _fetch_page(self, channel_id: str, before: str | None) -> list[JSON]:
        """Fetch a page, the newest first. A channel that the bot can't read has none."""
        try:
            return await _ask(lambda: self._client.list_messages(channel_id, before=before, limit=PAGE_MESSAGES))
        except RequestRefused as error:
            if error.status == 404:
                await self._forget(channel_id)
            if error.status in {400, 403, 404}:
                return []
            raise make_platform_error(error) from None

    # ---- channels --------------------------------------------------------------------------------------------

    async def _note_member(self, fields: JSON) -> None:
        self._directory.note_member(fields["guild_id"], fields)

    async def _add_channel(self, fields: JSON) -> None:
        self._directory.add(Channel.from_json(fields))

    async def _remove_channel(self, fields: JSON) -> None:
        self._directory.remove(fields["id"])
        self._gaps.pop(fields["id"], None)

    async def _add_threads(self, fields: JSON) -> None:
        for thread in fields["threads"]:
            self._directory.add(Channel.from_json(thread, fields["guild_id"]))

    async def _find_channel(self, fields: JSON) -> Channel:
        """Return the channel of an event. Events of direct chats are those without a server."""
        channel_id, guild_id = fields["channel_id"], fields.get("guild_id")
        if guild_id is None:
            return Channel(id=channel_id, kind=DIRECT)
        return self._directory.find(channel_id) or await self._fetch_channel(channel_id, guild_id)

    async def _find_listed_channel(self, channel_id: str) -> Channel:
        if channel_id in self._remembered[DIRECT_CHATS]:
            return Channel(id=channel_id, kind=DIRECT)
        return self._directory.find(channel_id) or await self._fetch_channel(channel_id, None)

    async def _fetch_channel(self, channel_id: str, guild_id: str | None) -> Channel:
        """Ask Discord for a channel that it has not reported, such as a thread that was archived."""
        try:
            channel = Channel.from_json(await _ask(lambda: self._client.get_channel(channel_id)), guild_id)
        except RequestRefused as error:
            if error.status not in {403, 404}:
                raise make_platform_error(error) from None
            return Channel(id=channel_id, guild_id=guild_id or UNKNOWN_GUILD)
        self._directory.add(channel)
        return channel

    async def _remember(self, channel: Channel, message_id: int) -> None:
        """Store the id of a direct chat or a thread, which Discord may not list, before its first message."""
        if channel.guild_id is not None and not channel.is_thread:
            return
        name, limit = (THREADS, MAX_THREADS) if channel.is_thread else (DIRECT_CHATS, MAX_DIRECT_CHATS)
        remembered = self._remembered[name]
        if channel.id in remembered:
            return
        if not channel.is_thread:
            if await self._link.load_cursor(channel.id) is None:
                await self._link.save_cursor(Cursor(str(message_id - 1), channel.id))
            else:
                self._gaps[channel.id] = _Gap(self._baseline)
        self._remembered[name] = [*remembered, channel.id][-limit:]
        await self._link.save_cursor(Cursor(json.dumps(self._remembered[name]), name))

    async def _forget(self, channel_id: str) -> None:
        """Do not ask again for a direct chat or a thread that was deleted."""
        for name, remembered in self._remembered.items():
            if channel_id in remembered:
                remembered.remove(channel_id)
                await self._link.save_cursor(Cursor(json.dumps(remembered), name))

    # ---- messages --------------------------------------------------------------------------------------------

    async def _receive_message(self, message: JSON) -> None:
        if message["author"]["id"] == self._directory.own_id:
            await self._confirm(message)
            return
        channel = await self._find_channel(message)
        await self._remember(channel, int(message["id"]))
        has_gap = channel.id in self._gaps or channel.guild_id in self._awaited_guilds
        if has_gap and not await self._close_gap(channel.id):
            return  # it is read with the rest of the history
        await self._accept_message(message, channel)

    async def _confirm(self, message: JSON) -> None:
        """Report the echo of a message that we have sent."""
        if key := message.get("nonce"):
            await self._link.confirm(str(key), message["id"])

    async def _accept_message(self, message: JSON, channel: Channel) -> None:
        inbound = _read(parse_message, message, channel, self._directory, self._client.download)
        if inbound is None:
            return
        number, position = int(message["id"]), self._positions.get(channel.id, 0)
        self._positions[channel.id] = max(number, position)
        await self._intake.accept(inbound, cursor=Cursor(message["id"], channel.id) if number > position else None)

    async def _receive_edit(self, message: JSON) -> None:
        if "author" in message:
            await self._accept(_read(parse_edit, message, await self._find_channel(message), self._directory))

    async def _receive_deletion(self, fields: JSON) -> None:
        await self._accept(parse_deletion(fields["id"], await self._find_channel(fields), self._directory))

    async def _receive_deletions(self, fields: JSON) -> None:
        channel = await self._find_channel(fields)
        for message_id in fields["ids"]:
            await self._accept(parse_deletion(message_id, channel, self._directory))

    async def _receive_reaction(self, fields: JSON) -> None:
        await self._accept(_read(parse_reaction, fields, await self._find_channel(fields), self._directory))

    async def _receive_removed_reaction(self, fields: JSON) -> None:
        await self._receive_reaction({**fields, IS_REMOVED: True})

    async def _receive_interaction(self, fields: JSON) -> None:
        place = fields.get("channel") or {"id": fields["channel_id"], "type": 0 if fields.get("guild_id") else DIRECT}
        channel = self._directory.find(place["id"]) or Channel.from_json(place, fields.get("guild_id"))
        update: Inbound | ButtonPressed | None = _read(parse_interaction, fields, channel, self._directory)
        if isinstance(update, Inbound):
            await self._remember(channel, int(fields["id"]))
        await self._accept(update)

    async def _accept(self, update: AnyUpdate | None) -> None:
        if update is not None:
            await self._intake.accept(update)


async def _ask(request: Callable[[], Awaitable[T]]) -> T:
    """Ask Discord about a channel, several times if it fails. Raises RequestRefused if its API says no."""
    failure: RequestRefused | RequestFailed
    started = time.monotonic()
    for attempt in range(MAX_FETCH_ATTEMPTS):
        wait = RETRY_SECONDS * 2**attempt
        try:
            return await request()
        except RequestRefused as error:
            if error.is_from_api and error.status != 429 and error.status < 500:
                raise
            failure, wait = error, error.retry_after or wait
        except RequestFailed as error:
            failure = error
        if max(wait, time.monotonic() - started) > MAX_WAIT_SECONDS:
            break
        await asyncio.sleep(wait)
    raise _Unavailable(str(make_platform_error(failure)), max(wait, POSTPONE_SECONDS))


def _read(parse: Callable[..., Any], *arguments: Any) -> Any:
    """Parse what Discord has sent. What cannot be read is left out, so that it does not stop the rest."""
    try:
        return parse(*arguments)
    except (AttributeError, KeyError, TypeError, ValueError, InvalidInput) as error:
        log.warning("discord_event_unreadable", extra={"parser": parse.__name__, "reason": repr(error)})
        return None
