"""A Slack on loopback: Web API, Socket Mode, HTTP events and files. It checks everything, and fails on demand.

Requests are checked against the published parameters of their method, events before they are sent. What does not match
is refused and listed in `problems`; the fixture fails the test for it. Beyond the types it behaves like Slack where
adapters get it wrong: an event is sent again until it is acknowledged, each time under another event id; events are
spread over all open sockets; a mention arrives as two events; a stream can't be edited, and expires; a thread is read
apart from its channel; files are handed out to those who have the token, and others get a page to sign in.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from .slack_types import list_event_problems, list_request_problems
from .slack_workspace import (
    ADA,
    APP_TOKEN,
    BEN,
    BEN_DM,
    BOT_ID,
    BOT_USER,
    CHANNEL,
    DM,
    JSON,
    SCOPES,
    SIGNING_SECRET,
    TEAM,
    TOKEN,
    Refused,
    SlackWorkspace,
    get_shown_text,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    SendHttp = Callable[[dict[str, str], bytes], Awaitable[int]]  # headers and body → status

__all__ = [
    "ADA",
    "APP_TOKEN",
    "BAD_GATEWAY",
    "BEN",
    "BEN_DM",
    "BOT_ID",
    "BOT_USER",
    "CHANNEL",
    "CUT_LINE",
    "DM",
    "INTERNAL_ERROR",
    "LOSE_ANSWER",
    "SCOPES",
    "SIGNING_SECRET",
    "TEAM",
    "TOKEN",
    "Fault",
    "SlackServer",
    "get_shown_text",
    "limit_rate",
    "sign_request",
]
_NUMBERS = frozenset({"limit", "length"})
_SWITCHES = frozenset({"include_locale", "include_all_metadata", "exclude_archived", "inclusive", "full"})


@dataclass(frozen=True)
class Fault:
    """How the next request to a method fails."""

    status: int = 200
    error: str = ""
    retry_after: int | None = None
    needed: str = ""
    acts_first: bool = False  # the message is there, but its answer is lost
    cuts: bool = False  # the connection breaks instead of an answer


LOSE_ANSWER = Fault(acts_first=True, cuts=True)
CUT_LINE = Fault(cuts=True)
BAD_GATEWAY = Fault(502)
INTERNAL_ERROR = Fault(500, "internal_error")


def limit_rate(seconds: int) -> Fault:
    return Fault(429, "ratelimited", retry_after=seconds)


@dataclass(frozen=True)
class ApiRequest:
    """A request that has arrived."""

    method: str
    parameters: JSON


class SlackServer(SlackWorkspace):
    """The server; use it as a context manager, or call `start` and `stop`."""

    def __init__(self, *, sends_echoes: bool = True) -> None:
        super().__init__(sends_echoes=sends_echoes)
        self.requests: list[ApiRequest] = []
        self.problems: list[str] = []
        self.scopes = SCOPES
        self.is_revoked = False
        self.is_silent = False  # sockets stay open, but nothing answers
        self.command_answers: list[list[str]] = []  # to each slash command: what only its sender sees
        self.unacknowledged: dict[str, JSON] = {}  # envelopes by their id
        self.sent_envelopes: list[JSON] = []
        self.http: SendHttp | None = None  # where events go instead of a socket
        self.sends_files = asyncio.Event()  # while it is not set, downloads wait
        self.sends_files.set()
        self.socket_count = 0  # that were ever open
        self._faults: defaultdict[str, list[Fault | None]] = defaultdict(list)
        self._sockets: list[web.WebSocketResponse] = []
        self._holders: dict[str, web.WebSocketResponse] = {}  # envelope → the socket that it was sent through
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        from aiohttp import web  # slow to import, and every worker imports this file

        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._handle)
        app.router.add_get("/socket", self._open_socket)
        app.router.add_post("/upload/{id}", self._upload)
        app.router.add_post("/commands/{id}", self._answer_command)
        app.router.add_get("/files/{id}", self._download)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._pump = asyncio.create_task(self._send_envelopes())

    async def stop(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        await self.cut_sockets()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def api_url(self) -> str:
        return f"{self.url}/api"

    @property
    def open_sockets(self) -> int:
        return len(self._sockets)

    # ---- what people do --------------------------------------------------------------------------------------

    def say(
        self,
        text: str,
        *,
        user: str = ADA,
        channel: str = DM,
        thread_ts: str | None = None,
        file: tuple[str, bytes] | None = None,
        sends_event: bool = True,
        **fields: Any,
    ) -> str:
        """Write a message as a person; return its ts."""
        ts = self.make_ts()
        message: JSON = {"type": "message", "user": user, "text": text, "ts": ts, **fields}
        if thread_ts is not None:
            message["thread_ts"] = thread_ts
            parent = self.messages.get((channel, thread_ts))
            if parent is not None:
                message["parent_user_id"] = parent["user"]
        if file is not None:
            message |= {"subtype": "file_share", "files": [self.add_file(*file)]}
        self.messages[channel, ts] = message
        if sends_event:
            self.push_message(channel, ts)
        return ts

    def push_message(self, channel: str, ts: str) -> None:
        """Send the event of a message; one that mentions the app in a channel is sent as two."""
        message = self.messages[channel, ts]
        kind = "im" if channel.startswith("D") else "channel"
        event = {**message, "channel": channel, "channel_type": kind, "event_ts": ts}
        self.push(event)
        if f"<@{BOT_USER}>" in message["text"] and kind == "channel":
            fields = ("user", "text", "ts", "thread_ts")
            mention = {name: message[name] for name in fields if name in message}
            self.push({"type": "app_mention", "channel": channel, "event_ts": ts, **mention})

    def edit(self, channel: str, ts: str, text: str) -> None:
        kind = "im" if channel.startswith("D") else "channel"
        common = {"channel": channel, "channel_type": kind, "event_ts": self.make_ts()}
        before = self.messages[channel, ts]
        after = {**before, "text": text, "edited": {"user": before["user"], "ts": ts}}
        self.messages[channel, ts] = after
        event = {"type": "message", "subtype": "message_changed", "hidden": True, "ts": self.make_ts(), **common}
        self.push({**event, "message": {**after, **common}, "previous_message": {**before, **common}})

    def delete(self, channel: str, ts: str) -> None:
        kind = "im" if channel.startswith("D") else "channel"
        common = {"channel": channel, "channel_type": kind, "event_ts": self.make_ts()}
        before = self.messages.pop((channel, ts))
        event = {"type": "message", "subtype": "message_deleted", "hidden": True, "ts": self.make_ts(), **common}
        self.push({**event, "deleted_ts": ts, "previous_message": {**before, **common}})

    def react(self, channel: str, ts: str, name: str, *, user: str = ADA, kind: str = "reaction_added") -> None:
        item = {"type": "message", "channel": channel, "ts": ts}
        event = {"type": kind, "user": user, "reaction": name, "item_user": BOT_USER, "item": item}
        self.push({**event, "event_ts": self.make_ts()})

    def press(self, channel: str, ts: str, label: str, *, user: str = ADA) -> None:
        """Press a button under a message of ours."""
        message = self.messages[channel, ts]
        buttons = [each for block in message["blocks"] if block["type"] == "actions" for each in block["elements"]]
        [button] = [each for each in buttons if each["text"]["text"] == label]
        action = {**button, "action_ts": self.make_ts(), "block_id": "b1"}
        payload = {
            "type": "block_actions",
            "user": {"id": user, "name": self.users[user].lower(), "username": self.users[user].lower()},
            "channel": {"id": channel, "name": "somewhere"},
            "message": {name: each for name, each in message.items() if name != "metadata"},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel},
            "actions": [action],
            "trigger_id": f"press-{next(self._ids)}",
        }
        self._queue("interactive", payload)

    def send_command(self, command: str, text: str = "", *, user: str = ADA, channel: str = DM) -> None:
        self.command_answers.append([])
        payload = {
            "command": command,
            "text": text,
            "user_id": user,
            "user_name": self.users[user].lower(),
            "channel_id": channel,
            "channel_name": "somewhere",
            "team_id": TEAM,
            "trigger_id": f"13345224609.738474920.{next(self._ids)}",
            "response_url": f"{self.url}/commands/{len(self.command_answers) - 1}",
        }
        self._queue("slash_commands", payload)

    def push(self, event: JSON) -> JSON:
        """Send an event, after checking it; return its envelope."""
        self.problems += list_event_problems(event)
        number = next(self._ids)
        payload = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": "A0PALAVER",
            "event": event,
            "event_id": f"Ev{number}",
            "event_time": int(time.time()),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        return self._queue("events_api", payload)

    def repeat(self, event: JSON) -> None:
        """Send an event once more, under another event id."""
        self.push(event)

    def _queue(self, kind: str, payload: JSON) -> JSON:
        envelope: JSON = {"envelope_id": f"e{next(self._ids)}", "type": kind, "payload": payload, "retry_attempt": 0}
        self.unacknowledged[envelope["envelope_id"]] = envelope
        self._changed.set()
        return envelope

    # ---- faults ----------------------------------------------------------------------------------------------

    def fail(self, method: str, *faults: Fault | None) -> None:
        """Let the next requests to a method fail; None lets one pass."""
        self._faults[method] += faults

    def has_pending_fault(self, method: str) -> bool:
        """Whether a fault still waits for the next request to a method."""
        return bool(self._faults[method])

    async def cut_sockets(self) -> None:
        for socket in list(self._sockets):
            self._forget_socket(socket)
            transport = socket._req.transport if socket._req is not None else None
            if transport is not None:
                transport.abort()

    async def ask_to_reconnect(self, reason: str = "refresh_requested") -> None:
        for socket in list(self._sockets):
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})

    def list_requests(self, *methods: str) -> list[ApiRequest]:
        return [request for request in self.requests if request.method in methods]

    # ---- Socket Mode and HTTP --------------------------------------------------------------------------------

    async def _open_socket(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import WSMsgType, web

        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self._sockets.append(socket)
        self.socket_count += 1
        hello = {"type": "hello", "num_connections": len(self._sockets), "connection_info": {"app_id": "A0PALAVER"}}
        await socket.send_json(hello)
        self._changed.set()
        try:
            async for frame in socket:
                if self.is_silent:
                    continue
                if frame.type is WSMsgType.PING:
                    await socket.pong(frame.data)
                elif frame.type is WSMsgType.TEXT:
                    envelope_id = json.loads(frame.data)["envelope_id"]
                    self.unacknowledged.pop(envelope_id, None)
                    self._holders.pop(envelope_id, None)
                    self._changed.set()
        finally:
            self._forget_socket(socket)
        return socket

    def _forget_socket(self, socket: web.WebSocketResponse) -> None:
        if socket in self._sockets:
            self._sockets.remove(socket)
        for envelope_id, holder in list(self._holders.items()):
            if holder is socket:  # it is sent again, under another id
                del self._holders[envelope_id]
                envelope = self.unacknowledged.get(envelope_id)
                if envelope is not None and "event_id" in envelope["payload"]:
                    envelope["payload"]["event_id"] = f"Ev{next(self._ids)}"
                    envelope["retry_attempt"] += 1
        self._changed.set()

    async def _send_envelopes(self) -> None:
        """Send what was not sent yet: to the one that is called, or spread over the open sockets."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            for envelope in [each for key, each in self.unacknowledged.items() if key not in self._holders]:
                if self.http is not None:
                    await self._call(self.http, envelope)
                elif self._sockets and not self.is_silent:
                    socket = self._sockets[next(self._ids) % len(self._sockets)]
                    self._holders[envelope["envelope_id"]] = socket
                    self.sent_envelopes.append(envelope)
                    with contextlib.suppress(OSError):
                        await socket.send_json({**envelope, "accepts_response_payload": False})

    async def _call(self, send: SendHttp, envelope: JSON) -> None:
        """Send an envelope by HTTP; unless that is a success, it is sent again."""
        headers, body = sign_request(envelope["type"], envelope["payload"])
        self.sent_envelopes.append(envelope)
        try:
            status = await send(headers, body)
        except Exception:  # noqa: BLE001  (no answer)
            status = 0
        if status == 200:
            self.unacknowledged.pop(envelope["envelope_id"], None)
            return
        await asyncio.sleep(0.01)
        if "event_id" in envelope["payload"]:
            envelope["payload"]["event_id"] = f"Ev{next(self._ids)}"
        self._changed.set()

    # ---- Web API ---------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        parameters = await _read_parameters(request)
        needed = APP_TOKEN if method == "apps.connections.open" else TOKEN
        if self.is_revoked or request.headers.get("Authorization") != f"Bearer {needed}":
            return self._answer({"ok": False, "error": "token_revoked" if self.is_revoked else "invalid_auth"})
        problems = list_request_problems(method, parameters)
        if problems:
            self.problems += problems
            return self._answer({"ok": False, "error": "invalid_arguments"}, status=400)
        self.requests.append(ApiRequest(method, parameters))
        fault = self._faults[method].pop(0) if self._faults[method] else None
        if fault is not None and not fault.acts_first:
            return self._fail(request, fault)
        try:
            result = self.act(method, parameters)
        except Refused as refused:
            result = {"ok": False, "error": str(refused)}
        return self._fail(request, fault) if fault else self._answer({"ok": True, **result})

    def _answer(self, fields: JSON, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
        from aiohttp import web

        return web.json_response(fields, status=status, headers={"x-oauth-scopes": self.scopes, **(headers or {})})

    def _fail(self, request: web.Request, fault: Fault) -> web.Response:
        from aiohttp import web

        if fault.cuts:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if not fault.error:
            return web.Response(status=fault.status, text="<html>Bad Gateway</html>", content_type="text/html")
        headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
        return self._answer(
            {"ok": False, "error": fault.error, "needed": fault.needed}, status=fault.status, headers=headers
        )

    async def _upload(self, request: web.Request) -> web.Response:
        from aiohttp import web

        file_id = request.match_info["id"]
        fault = self._faults["upload"].pop(0) if self._faults["upload"] else None
        if fault is not None:
            return self._fail(request, fault)
        self.contents[file_id] = await request.read()
        if len(self.contents[file_id]) != self.files[file_id]["size"]:
            self.problems.append(f"The file {file_id} has another size than was announced.")
        return web.Response(text=f"OK - {len(self.contents[file_id])}")

    async def _answer_command(self, request: web.Request) -> web.Response:
        from aiohttp import web

        fault = self._faults["response_url"].pop(0) if self._faults["response_url"] else None
        if fault is not None:
            return self._fail(request, fault)
        answers, body = self.command_answers[int(request.match_info["id"])], await request.json()
        fields = {name: each for name, each in body.items() if name not in {"response_type", "replace_original"}}
        self.problems += list_request_problems("chat.postMessage", {"channel": CHANNEL, **fields})
        if body["response_type"] != "ephemeral" or "Authorization" in request.headers:
            self.problems.append("The answer to a command is seen by others, or has the token.")
        if len(answers) == 5:
            return web.Response(status=404, text="used_url")
        answers.append(get_shown_text(body))
        return web.Response(text="ok")

    async def _download(self, request: web.Request) -> web.Response:
        from aiohttp import web

        await self.sends_files.wait()
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")
        content = self.contents.get(request.match_info["id"])
        return web.Response(body=content) if content is not None else web.Response(status=404)


def sign_request(kind: str, payload: JSON, secret: str = SIGNING_SECRET) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body with which Slack calls a webhook."""
    if kind == "events_api":
        body, content_type = json.dumps(payload), "application/json"
    else:
        fields = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
        body, content_type = urlencode(fields), "application/x-www-form-urlencoded"
    timestamp = str(int(time.time()))
    signature = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    headers = {
        "content-type": content_type,
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": f"v0={signature}",
    }
    return headers, body.encode()


async def _read_parameters(request: web.Request) -> JSON:
    if request.content_type == "application/json" and request.can_read_body:
        parameters: JSON = await request.json()
        return parameters
    parameters = {**request.query, **(await request.post())}
    for name, value in parameters.items():
        if name in _NUMBERS:
            parameters[name] = int(value)
        elif name in _SWITCHES:
            parameters[name] = value in {"1", "true"}
        elif name == "files":
            parameters[name] = json.loads(value)
    return parameters
