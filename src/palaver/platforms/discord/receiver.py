"""Receives: events of the gateway → accepted in order, each with the cursor of its channel.

Discord's gateway has no acknowledgment, and forgets what a bot missed after about a minute. What makes messages durable
is their history: every channel has a cursor, the id of its last message that was accepted. After a new session (a
start, or a gap that could not be resumed) the history of each channel is read from its cursor on, before anything new
from that channel is accepted.

Always true: a cursor moves only when everything before it in its channel is stored. A channel without a cursor of its
own is read from the account's cursor on, which moves when all channels are up to date. A live message waits for the
history of its own channel, and at most for that of one other, which is just being read. If Discord does not return a
history, it is read later: until then nothing from that channel is accepted, and other channels go on.

Direct chats are not listed by Discord: their ids are stored before the first message from there is accepted. If the
process dies before that, or does not run, the next one asks Discord for what the last session has missed, which Discord
keeps for about a minute, and stores the ids of the direct chats in it. After that, an unknown direct chat is found when
the person writes again: then it is read from the first start of the account on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConnectionLost
from palaver.core.tasks import wait_for_event
from palaver.platforms.common.failures import RequestError, RequestFailed
from palaver.platforms.common.inbound import UNREADABLE_ERRORS
from palaver.platforms.discord.directory import (
    DIRECT,
    DIRECT_CHATS,
    THREADS,
    Channel,
    ChannelDirectory,
    UnlistedChannels,
)
from palaver.platforms.discord.failures import RequestRefused, make_platform_error
from palaver.platforms.discord.gateway import GatewaySession
from palaver.platforms.discord.inbound import (
    make_snowflake,
    parse_deletion,
    parse_edit,
    parse_interaction,
    parse_message,
    parse_reaction,
)
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Cursor, Inbound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from palaver.delivery.adapter import AccountLink
    from palaver.gateway.intake import Intake
    from palaver.platforms.discord.client import DiscordClient

log = logging.getLogger(__name__)

JSON = dict[str, Any]
T = TypeVar("T")

MAX_GAP_MESSAGES: Final = 1_000  # that are fetched of one channel; older ones of a longer gap are left out
PAGE_MESSAGES: Final = 100
MAX_ATTEMPTS: Final = 4
RETRY_SECONDS: Final = 0.25  # before the second attempt; each further one waits twice as long
MAX_WAIT_SECONDS: Final = 10.0  # then there is no further attempt for now: live messages wait meanwhile
POSTPONE_SECONDS: Final = 30.0  # before Discord is asked again for what it did not return

MAX_WAITING_EVENTS: Final = 1_000  # received, but not accepted yet; then nothing more is received
FIRST_LOOKBACK: Final = timedelta(minutes=10)  # at the very first start: what people wrote while it was set up
SAFETY_MARGIN: Final = 60_000 << 22  # 60 seconds, in ids: channels are not reported at exactly the same moment
SAVE_SESSION_SECONDS: Final = 15.0  # how old the stored position in the session may be; what follows is sent again
UNKNOWN_GUILD: Final = "0"

# Names of cursors.
FIRST_START: Final = "first start"  # of the account; nothing older is read
SESSION: Final = "session"  # at the gateway


class HistoryUnavailable(ConnectionLost):
    """Discord does not answer what we ask about a channel. It may after so many seconds."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


async def fetch_messages(client: DiscordClient, channel_id: str, since: int) -> list[JSON] | None:
    """Fetch the messages of a channel after a position, the oldest first; if there are too many, the newest.

    A channel that the bot can't read has none; None: there is no such channel. Raises HistoryUnavailable.
    """
    found: list[JSON] = []
    while len(found) < MAX_GAP_MESSAGES:
        before = found[-1]["id"] if found else None
        try:
            page = await ask(lambda: client.list_messages(channel_id, before=before, limit=PAGE_MESSAGES))  # noqa: B023
        except RequestRefused as error:
            if error.status == 404 and not found:
                return None
            if error.status not in {400, 403, 404}:
                raise make_platform_error(error) from None
            page = []
        newer = [message for message in page if int(message["id"]) > since]
        found += newer
        if len(newer) < PAGE_MESSAGES:
            return found[::-1]
    log.warning("discord_gap_too_long", extra={"channel": channel_id, "messages": len(found)})
    return found[::-1]


async def ask(request: Callable[[], Awaitable[T]]) -> T:
    """Ask Discord about a channel, several times if it fails. Raises RequestRefused if its API says no."""
    failure: RequestError
    started = time.monotonic()
    for attempt in range(MAX_ATTEMPTS):
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
    raise HistoryUnavailable(str(make_platform_error(failure)), max(wait, POSTPONE_SECONDS))


@dataclass(slots=True)
class _Gap:
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
        self._events: deque[tuple[str, Any, GatewaySession]] = deque()
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._stored_session: GatewaySession | None = None
        self._store_session_at = 0.0  # by the monotonic clock
        self._first_start = 0
        self._baseline = 0  # of channels without a cursor of their own: everything up to it was accepted
        self._newest = 0  # the newest message that Discord has named in this session
        self._gaps: dict[str, _Gap] = {}  # by the ids of channels
        self._awaited_guilds: set[str] = set()  # that Discord has not reported yet in this session
        self._is_swept = True
        self._positions: dict[str, int] = {}  # the last message of each channel that was accepted
        self._unlisted = UnlistedChannels(link)
        self._handlers: dict[str, Callable[[JSON], Awaitable[None]]] = {
            "READY": self._start_session,
            "GUILD_CREATE": self._add_guild,
            "GUILD_DELETE": self._remove_guild,
            "GUILD_MEMBER_UPDATE": self._update_member,
            **dict.fromkeys(("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"), self._add_channel),
            **dict.fromkeys(("CHANNEL_DELETE", "THREAD_DELETE"), self._remove_channel),
            "THREAD_LIST_SYNC": self._add_threads,
            "MESSAGE_CREATE": self._receive_message,
            "MESSAGE_UPDATE": self._receive_edit,
            **dict.fromkeys(("MESSAGE_DELETE", "MESSAGE_DELETE_BULK"), self._receive_deletions),
            "MESSAGE_REACTION_ADD": partial(self._receive_reaction, is_removed=False),
            "MESSAGE_REACTION_REMOVE": partial(self._receive_reaction, is_removed=True),
            "INTERACTION_CREATE": self._receive_interaction,
        }

    # ---- the queue of events ---------------------------------------------------------------------------------

    def put(self, name: str, data: Any, session: GatewaySession) -> None:
        """Take an event of the gateway; it is handled in order."""
        if name not in self._handlers:
            return
        self._events.append((name, data, session))
        self._changed.set()
        if len(self._events) >= MAX_WAITING_EVENTS:
            self._has_room.clear()

    async def wait_for_room(self) -> None:
        await self._has_room.wait()

    async def run(self) -> None:
        """Handle events until canceled; while there are none, read the history of channels."""
        while True:
            if self._events:
                name, data, session = self._events.popleft()
                if len(self._events) < MAX_WAITING_EVENTS:
                    self._has_room.set()
                await self._handlers[name](data)
                await self._save_session(session)
            elif (due := next((each for each, gap in self._gaps.items() if gap.is_due), None)) is not None:
                await self._close_gap(due)
            elif not self._is_swept and not self._awaited_guilds and not self._gaps:
                self._is_swept = True  # all channels are up to date, as soon as everything that was found is stored
                self._baseline = max(self._baseline, self._newest - SAFETY_MARGIN)
                await self._intake.save_cursor(Cursor(str(self._baseline)))
            else:
                self._changed.clear()
                next_gap = min((gap.not_before - time.monotonic() for gap in self._gaps.values()), default=None)
                await wait_for_event(self._changed, next_gap)

    # ---- what an earlier process has missed --------------------------------------------------------------------

    async def load_session(self) -> GatewaySession | None:
        """Return the last session of the account, of which Discord may still keep what was missed."""
        stored = await self._link.load_cursor(SESSION)
        return GatewaySession(**json.loads(stored)) if stored else None

    async def remember_direct_chats(self, channel_ids: Iterable[str]) -> None:
        """Store ids of direct chats, so that their history is read when the session starts."""
        await self._load_position()
        for channel_id in channel_ids:
            await self._remember(Channel(id=channel_id, kind=DIRECT))

    async def _save_session(self, session: GatewaySession) -> None:
        """Store how far the session was handled, now and then: a later process asks for what came after that."""
        is_new = self._stored_session is None or self._stored_session.id != session.id
        if is_new or time.monotonic() >= self._store_session_at:
            await self._link.save_cursor(Cursor(json.dumps(asdict(session)), SESSION))
            self._stored_session = session
            self._store_session_at = time.monotonic() + SAVE_SESSION_SECONDS
            if is_new:
                self._link.report_connected()

    def report_connected(self) -> None:
        """Report that Discord answers, as soon as another process could ask for what this one misses."""
        if self._stored_session is not None:
            self._link.report_connected()

    # ---- sessions and gaps -----------------------------------------------------------------------------------

    async def _start_session(self, ready: JSON) -> None:
        """Begin a new session: from now on there may be a gap in every channel."""
        await self._load_position()
        self._awaited_guilds = {guild["id"] for guild in ready["guilds"]}
        self._newest, self._is_swept = 0, False
        unlisted = self._unlisted
        self._gaps = {chat_id: _Gap(self._first_start) for chat_id in reversed(unlisted.ids[DIRECT_CHATS])}
        self._gaps |= {thread_id: _Gap(self._baseline) for thread_id in reversed(unlisted.ids[THREADS])}

    async def _load_position(self) -> None:
        """Load when the account started, up to where all was accepted, and the channels that Discord does not list."""
        self._baseline = await self._load_or_store("", make_snowflake(datetime.now(UTC) - FIRST_LOOKBACK))
        self._first_start = await self._load_or_store(FIRST_START, self._baseline)
        await self._unlisted.load()

    async def _load_or_store(self, name: str, number: int) -> int:
        stored = await self._link.load_cursor(name)
        if stored is None:
            await self._link.save_cursor(Cursor(str(number), name))
        return int(stored or number)

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
            messages = await fetch_messages(self._client, channel_id, position)
            is_direct = channel_id in self._unlisted.ids[DIRECT_CHATS]
            channel = await self._find_by_id(channel_id, None, is_direct=is_direct) if messages else None
        except HistoryUnavailable as error:
            gap.not_before = time.monotonic() + error.seconds
            log.warning("discord_history_postponed", extra={"channel": channel_id, "reason": str(error)})
            return False
        if messages is None:
            await self._unlisted.forget(channel_id)
        elif channel is not None:
            log.info("discord_gap", extra={"channel": channel.id, "messages": len(messages)})
            for message in messages:
                await self._accept_message(message, channel)
            newest = self._positions[channel.id] = int(messages[-1]["id"])
            await self._intake.save_cursor(Cursor(str(newest), channel.id))
        self._gaps.pop(channel_id, None)
        return True

    # ---- channels --------------------------------------------------------------------------------------------

    async def _update_member(self, fields: JSON) -> None:
        self._directory.update_member(fields["guild_id"], fields)

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
        return await self._find_by_id(channel_id, guild_id, is_direct=guild_id is None)

    async def _find_by_id(self, channel_id: str, guild_id: str | None, *, is_direct: bool) -> Channel:
        """Return a channel; ask Discord for one that it has not reported, such as a thread that was archived."""
        if is_direct:
            return Channel(id=channel_id, kind=DIRECT)
        if (known := self._directory.find(channel_id)) is not None:
            return known
        try:
            channel = Channel.from_json(await ask(lambda: self._client.fetch_channel(channel_id)), guild_id)
        except RequestRefused as error:
            if error.status not in {403, 404}:
                raise make_platform_error(error) from None
            return Channel(id=channel_id, guild_id=guild_id or UNKNOWN_GUILD)
        self._directory.add(channel)
        return channel

    async def _remember(self, channel: Channel) -> None:
        """Store the id of a channel that Discord may not list, before its first message."""
        if await self._unlisted.remember(channel) and not channel.is_thread:
            self._gaps[channel.id] = _Gap(self._first_start)

    # ---- messages --------------------------------------------------------------------------------------------

    async def _receive_message(self, message: JSON) -> None:
        if message["author"]["id"] == self._directory.own_id:
            if key := message.get("nonce"):  # the echo of a message that we have sent
                await self._link.confirm(str(key), message["id"])
            return
        channel = await self._find_channel(message)
        await self._remember(channel)
        has_gap = channel.id in self._gaps or channel.guild_id in self._awaited_guilds
        if has_gap and not await self._close_gap(channel.id):
            return  # it is read with the rest of the history
        await self._accept_message(message, channel)

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

    async def _receive_deletions(self, fields: JSON) -> None:
        channel = await self._find_channel(fields)
        for message_id in fields.get("ids") or [fields["id"]]:
            await self._accept(parse_deletion(message_id, channel, self._directory))

    async def _receive_reaction(self, fields: JSON, *, is_removed: bool) -> None:
        channel = await self._find_channel(fields)
        await self._accept(_read(parse_reaction, fields, channel, self._directory, is_removed))

    async def _receive_interaction(self, fields: JSON) -> None:
        place = fields.get("channel") or {"id": fields["channel_id"], "type": 0 if fields.get("guild_id") else DIRECT}
        channel = self._directory.find(place["id"]) or Channel.from_json(place, fields.get("guild_id"))
        update: Inbound | ButtonPressed | None = _read(parse_interaction, fields, channel, self._directory)
        if isinstance(update, Inbound):
            await self._remember(channel)
        await self._accept(update)

    async def _accept(self, update: AnyUpdate | None) -> None:
        if update is not None:
            await self._intake.accept(update)


def _read(parse: Callable[..., Any], *arguments: Any) -> Any:
    """Parse what Discord has sent. What cannot be read is left out, so that it does not stop the rest."""
    try:
        return parse(*arguments)
    except UNREADABLE_ERRORS as error:
        log.warning("discord_event_unreadable", extra={"parser": parse.__name__, "reason": repr(error)})
        return None
