"""The gateway of the local Discord server: sessions, heartbeats, resuming, and its failures."""

from __future__ import annotations

import asyncio
import json
import secrets
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .discord_data import APPLICATION_ID, BOT, BOT_ID, JSON, TOKEN
from .discord_schemas import list_problems

if TYPE_CHECKING:
    from aiohttp import web

    from .discord_server import DiscordServer

MESSAGE_CONTENT = 1 << 15


class Socket:
    """One connection of a bot."""

    def __init__(self, response: web.WebSocketResponse, request: web.Request, *, is_compressed: bool) -> None:
        self.response = response
        self.request = request
        self.session: Session | None = None
        self._compressor = zlib.compressobj() if is_compressed else None
        self._queue: asyncio.Queue[JSON] = asyncio.Queue()

    def put(self, payload: JSON) -> None:
        self._queue.put_nowait(payload)

    async def send_all(self) -> None:
        while True:
            text = json.dumps(await self._queue.get())
            if self._compressor is None:
                await self.response.send_str(text)
            else:
                data = self._compressor.compress(text.encode()) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
                await self.response.send_bytes(data)

    def abort(self) -> None:
        if self.request.transport is not None:
            self.request.transport.abort()


@dataclass(eq=False)
class Session:
    """What Discord knows of a bot's connection, also while it is broken."""

    intents: int
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    events: list[JSON] = field(default_factory=list)  # every one, with its number
    socket: Socket | None = None


class GatewaySide:
    """Answers identify, resume and heartbeats, and sends events to the sessions that are open."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server
        self.url = ""
        self.heartbeat_ms = 41_250
        self.answers_heartbeats = True
        self.sends_dispatches = True  # False: events are lost, as if the session had ended
        self.has_outage = False  # True: it does not report servers when a session starts
        self.identify_close_code: int | None = None
        self.closes_resumes = 0  # so many attempts to resume are closed at once
        self.sessions: dict[str, Session] = {}
        self.sockets: list[Socket] = []
        self.identify_count = 0
        self.resume_count = 0
        self.received: list[JSON] = []
        self.close_codes: list[int | None] = []  # with which bots have ended their connections

    # ---- for tests -------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return any(socket.session is not None for socket in self.sockets)

    def cut(self) -> None:
        """Break all connections; their sessions can be resumed."""
        for socket in list(self.sockets):
            self._detach(socket)
            socket.abort()

    def forget_sessions(self) -> None:
        """Let nothing be resumed any more, as after a minute without a connection."""
        self.sessions.clear()

    def send_to_all(self, name: str, payload: JSON) -> None:
        """Send a payload that is no event, such as the wish that bots connect again."""
        # The published types say that payloads without data have no `d`. Discord sends null.
        self._server.problems += list_problems(name, {key: each for key, each in payload.items() if key != "d" or each})
        for socket in self.sockets:
            socket.put(payload)

    def dispatch(self, name: str, data: JSON) -> None:
        """Send an event to every session; one that is broken gets it when it is resumed."""
        checked = False
        for session in self.sessions.values():
            shown = _hide_content(name, data, session.intents)
            payload = {"op": 0, "t": name, "s": len(session.events) + 1, "d": shown}
            if not checked:
                self._server.problems += list_problems(name, payload)
                checked = True
            if self.sends_dispatches:
                session.events.append(payload)
                if session.socket is not None:
                    session.socket.put(payload)

    # ---- a connection ----------------------------------------------------------------------------------------

    async def serve(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import WSMsgType, web

        response = web.WebSocketResponse(timeout=0.1)
        await response.prepare(request)
        compression = request.query.get("compress")
        if request.query.get("v") != "10" or compression not in {None, "zlib-stream"}:
            self._server.problems.append(f"gateway: {dict(request.query)}")
        socket = Socket(response, request, is_compressed=compression is not None)
        self.sockets.append(socket)
        sending = asyncio.create_task(socket.send_all())
        hello = {"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}}
        self._server.problems += list_problems("HELLO", hello | {"t": None, "s": None})
        socket.put(hello | {"t": None, "s": None})
        try:
            async for message in response:
                if message.type is WSMsgType.TEXT:
                    await self._receive(socket, json.loads(message.data))
        finally:
            sending.cancel()
            self._detach(socket)
            self.close_codes.append(response.close_code)
        return response

    def _detach(self, socket: Socket) -> None:
        if socket in self.sockets:
            self.sockets.remove(socket)
        if socket.session is not None and socket.session.socket is socket:
            socket.session.socket = None

    async def _receive(self, socket: Socket, payload: JSON) -> None:
        self.received.append(payload)
        match payload["op"]:
            case 1:
                self._server.problems += list_problems("Heartbeat", payload)
                if self.answers_heartbeats:
                    socket.put({"op": 11})
            case 2:
                self._server.problems += list_problems("Identify", payload)
                await self._identify(socket, payload["d"])
            case 6:
                self._server.problems += list_problems("Resume", payload)
                await self._resume(socket, payload["d"])
            case _:
                self._server.problems.append(f"gateway: unexpected {payload}")

    async def _identify(self, socket: Socket, fields: JSON) -> None:
        self.identify_count += 1
        code = 4004 if self._server.is_revoked or fields["token"] != TOKEN else self.identify_close_code
        if code is not None:
            await socket.response.close(code=code)
            return
        session = Session(fields["intents"], socket=socket)
        self.sessions[session.id] = socket.session = session
        guilds = self._server.list_guilds()
        self._send(
            session,
            "READY",
            {
                "v": 10,
                "user": {**BOT, "verified": True, "mfa_enabled": False, "flags": 0, "email": None},
                "guilds": [{"id": guild["id"], "unavailable": True} for guild in guilds],
                "session_id": session.id,
                "resume_gateway_url": self.url,
                "application": {
                    "id": APPLICATION_ID,
                    "flags": self._server.application["flags"],
                    "flags_new": self._server.application["flags_new"],
                },
            },
        )
        for guild in [] if self.has_outage else guilds:
            self._send(session, "GUILD_CREATE", guild)

    async def _resume(self, socket: Socket, fields: JSON) -> None:
        self.resume_count += 1
        if self.closes_resumes:
            self.closes_resumes -= 1
            socket.abort()
            return
        session = self.sessions.get(fields["session_id"])
        if session is None:
            socket.put({"op": 9, "d": False, "t": None, "s": None})
            return
        session.socket, socket.session = socket, session
        for payload in [each for each in session.events if each["s"] > fields["seq"]]:
            socket.put(payload)
        self._send(session, "RESUMED", {})

    def _send(self, session: Session, name: str, data: JSON) -> None:
        payload: JSON = {"op": 0, "t": name, "s": len(session.events) + 1, "d": data}
        # The published types say that RESUMED has no data. Discord sends an object, and discord.py needs one.
        checked = {key: value for key, value in payload.items() if key != "d"} if name == "RESUMED" else payload
        self._server.problems += list_problems(name, checked)
        session.events.append(payload)
        if session.socket is not None:
            session.socket.put(payload)


def _hide_content(name: str, data: JSON, intents: int) -> JSON:
    """Without the intent, the bot sees what is in a message only if it is mentioned or written to."""
    if name not in {"MESSAGE_CREATE", "MESSAGE_UPDATE"} or intents & MESSAGE_CONTENT or "guild_id" not in data:
        return data
    if data["author"]["id"] == BOT_ID or any(user["id"] == BOT_ID for user in data["mentions"]):
        return data
    return data | {"content": "", "attachments": [], "embeds": []}
