"""A program that receives answers over HTTP: a real server on a loopback port, which fails on demand."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRET = "a-secret-that-only-the-two-of-them-know"


def sign(message_id: str, timestamp: int, body: bytes, secret: str = SECRET) -> dict[str, str]:
    """Sign a request as the documentation describes it, independently of the adapter."""
    digest = hmac.new(secret.encode(), f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    headers = {"webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}
    return headers | ({"webhook-id": message_id} if message_id else {})


@dataclass
class Reply:
    """How the next request is answered."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    is_lost: bool = False  # the message is taken, and the connection is closed without an answer


@dataclass
class Receiver:
    """Takes each id once."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id
    request_count: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server | None = None

    def stop_listening(self) -> None:
        assert self.server is not None
        self.server.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                reply = self.replies.pop(0) if self.replies else Reply()
                await self.take(head, reader, reply)
                if reply.is_lost:
                    break
                lines = [f"HTTP/1.1 {reply.status} Whatever", "Content-Length: 0"]
                lines += [f"{name}: {value}" for name, value in reply.headers.items()]
                writer.write("\r\n".join([*lines, "", ""]).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def take(self, head: bytes, reader: asyncio.StreamReader, reply: Reply) -> None:
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        message_id = headers["webhook-id"]
        assert lines[0].startswith("POST /answers ")
        expected = sign(message_id, int(headers["webhook-timestamp"]), body)
        assert headers["webhook-signature"] == expected["webhook-signature"]
        self.request_count += 1
        if reply.is_lost or 200 <= reply.status < 300:
            self.taken.setdefault(message_id, json.loads(body))
        self.changed.set()

    async def wait_for_messages(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            while len(self.taken) < count:
                self.changed.clear()
                await self.changed.wait()
        return list(self.taken.values())


@asynccontextmanager
async def run_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(receiver.answer(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    receiver.server = server = await asyncio.start_server(accept, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/answers"
    try:
        yield receiver
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
