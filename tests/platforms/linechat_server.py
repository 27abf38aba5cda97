"""LineChat, the chat server of the guide to adapters: JSON lines over TCP, on a loopback port."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from palaver.testing import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKEN = "4f0c9d1e-the-token-of-the-bot"
ROOM = "ada"
ERRORS: dict[Fault, dict[str, Any]] = {
    Fault.RATE_LIMITED: {"error": "too fast", "seconds": 3},
    Fault.REFUSED: {"error": "no swearing"},
    Fault.CHAT_GONE: {"error": "no such room"},
}


class LineChatServer:
    """Keeps what people write for ever, and sends it after the number that a client names."""

    def __init__(self) -> None:
        self.port = 0
        self.written: list[dict[str, Any]] = []  # by people
        self.shown: dict[str, dict[str, Any]] = {}  # by the bot: key → fields
        self.fault: Fault | None = None
        self.tokens = {TOKEN}
        self.clients: set[asyncio.StreamWriter] = set()
        self._count = 0

    def write_as_person(self, text: str, user: str = ROOM) -> str:
        self._count += 1
        message = {"id": self._count, "room": user, "user": user, "text": text}
        self.written.append(message)
        self.send_to_clients(message)
        return str(self._count)

    def send_to_clients(self, fields: dict[str, Any]) -> None:
        for writer in self.clients:
            write_line(writer, fields)

    def cut_connections(self) -> None:
        for writer in self.clients:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = json.loads(await reader.readline() or "{}")
            if hello.get("token") not in self.tokens:
                write_line(writer, {"error": "wrong token"})
                return
            write_line(writer, {"welcome": "palaver"})
            if hello.get("is_probe"):
                return
            write_line(writer, {"ping": 1})
            for message in self.written:
                if message["id"] > hello["since"]:
                    write_line(writer, message)
            self.clients.add(writer)
            while line := await reader.readline():
                self.take(json.loads(line), writer)
        except ConnectionError:
            pass
        finally:
            self.clients.discard(writer)
            writer.close()

    def take(self, fields: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        assert set(fields) == {"key", "room", "text"}
        assert len(fields["text"]) <= 2000
        fault, self.fault = self.fault, None
        if fault in ERRORS:
            write_line(writer, {"key": fields["key"], **ERRORS[fault]})
            return
        if fields["key"] not in self.shown:
            self._count += 1
            self.shown[fields["key"]] = {**fields, "id": self._count}
        if fault is Fault.ANSWER_LOST:
            writer.transport.abort()
        else:
            write_line(writer, {"key": fields["key"], "id": self.shown[fields["key"]]["id"]})


def write_line(writer: asyncio.StreamWriter, fields: dict[str, Any]) -> None:
    if not writer.is_closing():
        writer.write(json.dumps(fields).encode() + b"\n")


@asynccontextmanager
async def run_linechat_server() -> AsyncIterator[LineChatServer]:
    linechat = LineChatServer()
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(linechat.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    linechat.port = server.sockets[0].getsockname()[1]
    try:
        yield linechat
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
