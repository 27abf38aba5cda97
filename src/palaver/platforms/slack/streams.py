"""Messages that grow while an answer is being written: by Slack's own streams in threads, by edits elsewhere.

    startStream ──▶ appendStream … ──▶ stopStream ──▶ chat.update …
    postMessage ─────────────────────────────────────▶ chat.update …

A stream can only be added to, and Slack ends it after about five minutes. So before that, and as soon as the text has
changed otherwise than by growing, it is stopped and edited from then on; the message stays the same. The answer itself
is always the last edit, which the outbox makes.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import SendRejected, TargetUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.adapter import OutgoingMessage
    from palaver.platforms.slack.client import SlackClient
    from palaver.sessions.delivery import Address

STREAM_SECONDS: Final = 240.0  # then it is stopped; Slack ends it after 300
MAX_REMEMBERED: Final = 2000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Stream:
    """A message that Slack shows as growing."""

    text: str
    started_at: float


class GrowingMessages:
    """The growing messages of one connection."""

    def __init__(
        self, client: SlackClient, own_team_id: Callable[[], str], get_time: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._own_team_id = own_team_id
        self._get_time = get_time
        self._streams: OrderedDict[str, _Stream] = OrderedDict()  # by the ts of the message
        self._recipients: OrderedDict[Address, tuple[str, str]] = OrderedDict()  # who wrote last in a thread
        self._refusing_chats: OrderedDict[str, None] = OrderedDict()  # where Slack allows no streams

    def note_writer(self, address: Address, user_id: str, team_id: str) -> None:
        """Remember who has written in a thread: Slack wants to know for whom a stream is."""
        self._recipients[address] = (user_id, team_id or self._own_team_id())
        self._recipients.move_to_end(address)
        if len(self._recipients) > MAX_REMEMBERED:
            self._recipients.popitem(last=False)

    def has_stream(self, message_id: str) -> bool:
        return message_id in self._streams

    def can_stream(self, address: Address) -> bool:
        """Whether a message there can be a stream; outside of direct messages its recipient has to be known."""
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
            self._refusing_chats[address.chat_id] = None
            if len(self._refusing_chats) > MAX_REMEMBERED:
                self._refusing_chats.popitem(last=False)
            return await self._client.post_message(message)
        self._streams[message_id] = _Stream(message.body, self._get_time())
        if len(self._streams) > MAX_REMEMBERED:
            self._streams.popitem(last=False)
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Show the newest text; the complete answer ends the stream."""
        stream = self._streams.get(message_id)
        if stream is not None and await self._append(message_id, stream, message):
            return
        if stream is not None:
            await self.stop(message.address, message_id)
        try:
            await self._client.update_message(message_id, message)
        except TargetUnreachable:
            raise
        except SendRejected:
            if stream is not None:
                raise
            # It may be a stream that a process has started which has died since.
            await self._client.stop_stream(message.address, message_id)
            await self._client.update_message(message_id, message)

    async def _append(self, message_id: str, stream: _Stream, message: OutgoingMessage) -> bool:
        """Add what is new to a stream; False if that is not possible."""
        is_old = self._get_time() - stream.started_at >= STREAM_SECONDS
        if not message.is_preview or is_old or not message.body.startswith(stream.text):
            return False
        added = message.body[len(stream.text) :]
        if added:
            try:
                await self._client.append_stream(message.address, message_id, added)
            except TargetUnreachable:
                raise
            except SendRejected as error:
                log.info("slack_stream_ended", extra={"chat": message.address.chat_id, "reason": str(error)})
                return False
            stream.text = message.body
        return True

    async def stop(self, address: Address, message_id: str) -> None:
        """End a stream, if the message is one."""
        if message_id in self._streams:
            await self._client.stop_stream(address, message_id)
            del self._streams[message_id]
