"""Reads what was written while nothing ran, finds out what has arrived of our messages, and lets messages grow.

Slack repeats an event three times in a few minutes, and then never again. The cursor is the `ts` of the newest message
that was accepted. Messages are read again from some minutes before it, because they do not arrive in order; what was
accepted already is recognized. One cursor for all channels is enough, and also finds a conversation that a person has
begun meanwhile. Everything is bounded: how old, how many channels, pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import LeaseLost, PlatformError, SendRejected, TargetUnreachable
from palaver.core.recent_entries import RecentEntries
from palaver.core.tasks import BackgroundTasks
from palaver.platforms.common.failures import RequestError
from palaver.platforms.slack.client import SlackClient, find_share
from palaver.platforms.slack.failures import ApiRefusal, make_platform_error
from palaver.platforms.slack.inbound import AppIdentity, is_own_message, is_ts
from palaver.platforms.slack.outbound import read_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from palaver.delivery.adapter import AccountLink, OutgoingMessage
    from palaver.sessions.delivery import Address

    JSON = Mapping[str, Any]

log = logging.getLogger(__name__)

OVERLAP_SECONDS: Final = 600.0  # before the cursor
MAX_AGE_SECONDS: Final = 24 * 3600.0  # older messages are not answered any more
THREAD_AGE_SECONDS: Final = 3 * 24 * 3600.0  # replies are found in threads that began within this time
MAX_CHANNEL_PAGES: Final = 5  # of 200 channels
MAX_PAGES: Final = 5  # of 200 messages in one channel or thread
MAX_THREADS: Final = 50  # of one channel

MAX_UNCONFIRMED: Final = 200
MAX_CLOCK_DIFFERENCE_SECONDS: Final = 120.0  # between Slack and this machine

STREAM_SECONDS: Final = 240.0  # then it is stopped; Slack ends it after 300
MAX_REMEMBERED: Final = 2000


async def read_missed_messages(client: SlackClient, cursor: str) -> AsyncIterator[JSON]:
    """Yield the messages after the cursor, as events, in the order of each channel."""
    if not is_ts(cursor):
        return
    since = max(float(cursor) - OVERLAP_SECONDS, time.time() - MAX_AGE_SECONDS)
    channels = await _ask(client.list_channels(MAX_CHANNEL_PAGES))
    count = 0
    for channel in channels:
        for message in await _ask(_list_messages(client, channel["id"], since), channel["id"]):
            yield {**message, "type": "message", "channel": channel["id"]}
            count += 1
    log.info("slack_caught_up", extra={"channels": len(channels), "messages": count})


async def _list_messages(client: SlackClient, channel_id: str, since: float) -> list[JSON]:
    """Return what was written in a channel and its threads since a time, oldest first."""
    history = await client.list_messages(channel_id, since - THREAD_AGE_SECONDS, MAX_PAGES)
    found = {each["ts"]: each for each in history if float(each["ts"]) > since}
    threads = [each for each in history if float(each.get("latest_reply") or 0) > since]
    for parent in threads[:MAX_THREADS]:
        replies = await client.list_messages(channel_id, since, MAX_PAGES, thread_ts=parent["ts"])
        found = {reply["ts"]: reply for reply in replies if float(reply["ts"]) > since} | found
    return [found[ts] for ts in sorted(found, key=float)]


async def _ask(request: Awaitable[list[JSON]], channel_id: str = "") -> list[JSON]:
    """Return what was asked for; nothing if a scope is missing or the channel is no longer ours."""
    try:
        return await request
    except RequestError as error:
        if not isinstance(error, ApiRefusal) or error.is_about_token or error.may_have_arrived:
            raise make_platform_error(error) from error
        extra = {"channel": channel_id, "reason": error.code, "scope": error.needed}
        log.info("slack_history_refused", extra=extra)
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconfirmedMessage:
    key: str
    address: Address
    is_stream: bool = False
    file_id: str | None = None
    sent_at: float = field(default_factory=time.time)  # by the clock of this machine


class Confirmations:
    """Finds out whether messages have arrived whose sending was not confirmed.

    Every message of ours carries its key as metadata on Slack, so reading the chat back proves that it has arrived. A
    stream cannot carry metadata; but what our app has sent in a thread without any can only be one. A file is found by
    its id. What is not found stays uncertain: it may still arrive, so it is never sent again.
    """

    def __init__(self, client: SlackClient, is_known_stream: Callable[[str], bool], delays: Sequence[float]) -> None:
        self._client = client
        self._is_known_stream = is_known_stream
        self._delays = delays
        self._waiting: asyncio.Queue[UnconfirmedMessage] = asyncio.Queue(MAX_UNCONFIRMED)

    def add(self, message: UnconfirmedMessage) -> None:
        if self._waiting.full():
            self._waiting.get_nowait()  # the oldest one stays uncertain
        self._waiting.put_nowait(message)

    async def run(self, link: AccountLink, app: AppIdentity) -> None:
        """Check every message some times, and report those that have arrived."""
        tasks = BackgroundTasks("palaver-slack-confirmation")
        try:
            while True:
                tasks.start(self._follow(link, app, await self._waiting.get()))
        finally:
            await tasks.end()

    async def _follow(self, link: AccountLink, app: AppIdentity, message: UnconfirmedMessage) -> None:
        if (message_id := await self.find(app, message, self._delays)) is not None:
            with contextlib.suppress(LeaseLost):  # the connection has ended; the next one reads the history
                await link.confirm(message.key, message_id)

    async def find(self, app: AppIdentity, message: UnconfirmedMessage, delays: Sequence[float]) -> str | None:
        """Look for a message after each delay; return its ts, or None if it is not there."""
        for delay in delays:
            await asyncio.sleep(delay)
            try:
                if (message_id := await self._find(app, message)) is not None:
                    return message_id
            except (PlatformError, RequestError) as error:
                log.info("slack_confirmation_failed", extra={"key": message.key, "reason": str(error)})
        return None

    async def _find(self, app: AppIdentity, message: UnconfirmedMessage) -> str | None:
        address = message.address
        if message.file_id is not None:
            return find_share(await self._client.find_file(message.file_id), address.chat_id)
        oldest = message.sent_at - MAX_CLOCK_DIFFERENCE_SECONDS
        found = await self._client.list_messages(address.chat_id, oldest, max_pages=3, thread_ts=address.thread_id)
        own = [each for each in found if is_own_message(each, app)]
        proofs = [each["ts"] for each in own if read_key(each) == message.key]
        if not proofs and message.is_stream:
            bare = [each["ts"] for each in own if not ({"metadata", "subtype"} & each.keys() or each.get("files"))]
            proofs = [ts for ts in bare if ts != address.thread_id and not self._is_known_stream(ts)]
        return str(proofs[0]) if len(proofs) == 1 else None  # of several streams, any could be the one


@dataclass(slots=True)
class _Stream:
    text: str
    started_at: float


class GrowingMessages:
    """The messages of one connection that grow: by Slack's own streams in threads, by edits elsewhere.

        startStream ──▶ appendStream … ──▶ stopStream ──▶ chat.update …
        postMessage ─────────────────────────────────────▶ chat.update …

    A stream can only be added to, and Slack ends it after about five minutes. So before that, and as soon as the text
    has changed otherwise than by growing, it is stopped and edited from then on; the message stays the same. The answer
    itself is always the last edit, which the outbox makes.
    """

    def __init__(self, client: SlackClient, get_time: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._get_time = get_time
        self._streams: RecentEntries[str, _Stream] = RecentEntries(MAX_REMEMBERED)  # by the ts of the message
        # Who wrote last in a thread, and their workspace.
        self._recipients: RecentEntries[Address, tuple[str, str]] = RecentEntries(MAX_REMEMBERED)
        self._refusing_chats: RecentEntries[str, None] = RecentEntries(MAX_REMEMBERED)  # Slack allows no streams there

    def remember_writer(self, address: Address, user_id: str, team_id: str) -> None:
        """Remember who has written in a thread: Slack wants to know for whom a stream is."""
        self._recipients.remember(address, (user_id, team_id))

    def has_stream(self, message_id: str) -> bool:
        return message_id in self._streams

    def can_stream(self, address: Address) -> bool:
        """Return whether a message there can be a stream; outside of direct messages its recipient has to be known."""
        is_direct = address.chat_id.startswith("D")
        is_known = is_direct or address in self._recipients
        return address.thread_id is not None and is_known and address.chat_id not in self._refusing_chats

    async def start(self, message: OutgoingMessage) -> str:
        """Send the message as a stream; where Slack refuses that, as an ordinary one. Return its ts."""
        address = message.address
        recipient = None if address.chat_id.startswith("D") else self._recipients.get(address)
        try:
            message_id = await self._client.start_stream(address, message.body, recipient)
        except TargetUnreachable:
            raise
        except SendRejected as error:
            log.info("slack_stream_refused", extra={"chat": address.chat_id, "reason": str(error)})
            self._refusing_chats.remember(address.chat_id, None)
            return await self._client.post_message(message)
        self._streams.remember(message_id, _Stream(message.body, self._get_time()))
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Show the newest text; the complete answer ends the stream."""
        stream = self._streams.get(message_id)
        if stream is not None and await self._append(message_id, stream, message):
            return
        await self._change(message.address, message_id, lambda: self._client.update_message(message_id, message))

    async def delete(self, address: Address, message_id: str) -> None:
        await self._change(address, message_id, lambda: self._client.delete_message(address, message_id))

    async def _change(self, address: Address, message_id: str, change: Callable[[], Awaitable[None]]) -> None:
        """Change a message that is no stream any more; what Slack refuses may be the stream of a process that died."""
        is_stream = message_id in self._streams
        if is_stream:
            await self._client.stop_stream(address, message_id)
            del self._streams[message_id]
        try:
            await change()
        except SendRejected as error:
            if is_stream or isinstance(error, TargetUnreachable):
                raise
            await self._client.stop_stream(address, message_id)
            await change()

    async def _append(self, message_id: str, stream: _Stream, message: OutgoingMessage) -> bool:
        """Add what is new to a stream; False if that is not possible."""
        is_old = self._get_time() - stream.started_at >= STREAM_SECONDS
        if not message.is_preview or is_old or not message.body.startswith(stream.text):
            return False
        if added := message.body[len(stream.text) :]:
            try:
                await self._client.append_stream(message.address, message_id, added)
            except TargetUnreachable:
                raise
            except SendRejected as error:
                log.info("slack_stream_ended", extra={"chat": message.address.chat_id, "reason": str(error)})
                return False
            stream.text = message.body
        return True
