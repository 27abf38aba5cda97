"""One connection of Socket Mode: Slack sends envelopes through it, and waits for an acknowledgment of each.

Slack spreads the events of an app over all its open connections, so there must be one only: a forgotten one would
swallow messages. Before Slack ends a connection it says so, and a new one is opened first.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qsl

import aiohttp

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.core.tasks import cancel_tasks
from palaver.platforms.common.inbound import parse_json_object
from palaver.platforms.slack.failures import SOCKET_MODE_OFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver.delivery.adapter import WebhookRequest
    from palaver.platforms.slack.client import SlackClient

log = logging.getLogger(__name__)

HELLO_SECONDS: Final = 15.0
CLOSE_SECONDS: Final = 2.0
MAX_WAITING_MESSAGES: Final = 1000  # that were read and not handled yet
MAX_FORM_FIELDS: Final = 50
MAX_SIGNATURE_SECONDS: Final = 300  # older requests may have been recorded and sent again


@dataclass(frozen=True, slots=True)
class Envelope:
    """Something that Slack has sent, until it is acknowledged."""

    id: str
    kind: str  # `events_api`, `slash_commands` or `interactive`
    payload: dict[str, Any]
    websocket: aiohttp.ClientWebSocketResponse = field(repr=False)

    async def acknowledge(self) -> None:
        """Tell Slack that it was stored. If that fails, Slack sends it again, and it is recognized."""
        with contextlib.suppress(aiohttp.ClientError, OSError):  # the connection has ended
            await self.websocket.send_str(json.dumps({"envelope_id": self.id}))


class SlackSocket:
    def __init__(
        self, websocket: aiohttp.ClientWebSocketResponse, on_progress: Callable[[], None], ping_seconds: float
    ) -> None:
        self._websocket = websocket
        self._on_progress = on_progress
        self._received: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue(MAX_WAITING_MESSAGES)
        self._tasks = [
            asyncio.create_task(self._keep_reading(), name="palaver-slack-socket"),
            asyncio.create_task(self._keep_pinging(ping_seconds), name="palaver-slack-ping"),
        ]

    @classmethod
    async def open(
        cls,
        client: SlackClient,
        url: str,
        on_progress: Callable[[], None],
        *,
        ping_seconds: float,
        known_connections: int,
    ) -> Self:
        """Connect, and wait for Slack's greeting. `known_connections` are those of ours, with this one."""
        socket = cls(await client.connect_socket(url), on_progress, ping_seconds)
        async with contextlib.AsyncExitStack() as stack:  # a forgotten connection would swallow messages
            stack.push_async_callback(socket.close)
            connections = await socket._receive_greeting()
            stack.pop_all()
        if connections > known_connections:
            log.warning("slack_other_connections", extra={"connections": connections, "own": known_connections})
        on_progress()
        return socket

    async def _receive_greeting(self) -> int:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = await self._get_message()
        except TimeoutError:
            raise ConnectionLost.say("slack.no_greeting", "Slack did not greet the new connection.") from None
        if hello.get("type") == "hello":
            return int(hello.get("num_connections") or 1)
        if hello.get("reason") == "link_disabled":
            raise AccountRefused(SOCKET_MODE_OFF)
        raise ConnectionLost.say(
            "slack.connection_ended",
            "Slack ended the new connection at once: {reason}.",
            reason=hello.get("reason", "no reason given"),
        )

    async def receive(self) -> Envelope | None:
        """Return the next envelope; None if Slack asks for a new connection. Raises when the connection has ended."""
        while True:
            message = await self._get_message()
            if message.get("type") == "disconnect":
                reason = message.get("reason")
                if reason == "link_disabled":
                    raise AccountRefused(SOCKET_MODE_OFF)
                log.info("slack_connection_refresh", extra={"reason": reason})
                return None
            if envelope := self._make_envelope(message):
                return envelope

    def take_waiting(self) -> Iterator[Envelope]:
        """Yield what has arrived through this connection and was not handled yet, before it is closed."""
        for _ in range(self._received.qsize()):
            message = self._received.get_nowait()
            if not isinstance(message, Exception) and (envelope := self._make_envelope(message)):
                yield envelope

    def _make_envelope(self, message: dict[str, Any]) -> Envelope | None:
        envelope_id = message.get("envelope_id")
        if not envelope_id:
            return None
        return Envelope(str(envelope_id), str(message.get("type")), message.get("payload") or {}, self._websocket)

    async def close(self) -> None:
        await cancel_tasks(self._tasks)
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._websocket.close()

    async def _get_message(self) -> dict[str, Any]:
        message = await self._received.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def _keep_reading(self) -> None:
        """Read all the time, so that a slow database is not taken for a silent connection."""
        try:
            while True:
                await self._received.put(await self._read_message())
        except Exception as error:  # noqa: BLE001  (whatever it is, `receive` raises it where the adapter waits)
            await self._received.put(error)

    async def _read_message(self) -> dict[str, Any]:
        while True:
            frame = await self._websocket.receive()
            if frame.type is aiohttp.WSMsgType.PING:
                await self._websocket.pong(frame.data)
                self._on_progress()
            elif frame.type is aiohttp.WSMsgType.PONG:
                self._on_progress()
            elif frame.type is aiohttp.WSMsgType.TEXT:
                if (message := parse_json_object(frame.data)) is not None:
                    return message
                log.warning("slack_frame_unreadable", extra={"characters": len(frame.data)})
            elif frame.type is not aiohttp.WSMsgType.BINARY:
                raise ConnectionLost.say("slack.slack_closed_connection", "Slack has closed the connection.")

    async def _keep_pinging(self, seconds: float) -> None:
        """Ask for a sign of life; the answer is the progress that is reported, so a silent connection is noticed."""
        with contextlib.suppress(aiohttp.ClientError, OSError):  # the reader notices it
            while True:
                await asyncio.sleep(seconds)
                await self._websocket.ping()


def is_signed(request: WebhookRequest, signing_secret: str) -> bool:
    """Return whether Slack has signed this body within the last five minutes."""
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 16 and signature.isascii()):
        return False
    signed = f"v0:{timestamp}:".encode() + request.body
    expected = f"v0={hmac.new(signing_secret.encode(), signed, hashlib.sha256).hexdigest()}"
    return abs(time.time() - int(timestamp)) <= MAX_SIGNATURE_SECONDS and hmac.compare_digest(expected, signature)


def read_request(request: WebhookRequest) -> tuple[str, dict[str, Any]] | None:
    """Return what a request that was verified contains, under the names of Socket Mode; None if it can't be read."""
    try:
        if "json" in request.headers.get("content-type", ""):
            kind, payload = "events_api", parse_json_object(request.body)
        else:
            fields = dict(parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
            if "payload" in fields:
                kind, payload = "interactive", parse_json_object(fields["payload"])
            elif "ssl_check" in fields:  # Slack looks at the certificate from time to time
                kind, payload = "ssl_check", {}
            else:
                kind, payload = "slash_commands", fields if "command" in fields else None
    except ValueError:
        return None
    return None if payload is None else (kind, payload)
