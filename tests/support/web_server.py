"""An HTTP server on this machine that misbehaves on demand."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

ENDLESS = b"endless"  # instead of a body: one that never ends
SLOW = b"slow"  # instead of a body: one byte every 50 ms


class WebServer:
    """Answers each path with the raw response that was set for it, and keeps the requests."""

    def __init__(self) -> None:
        self.responses: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.port = 0

    def set(
        self, path: str, body: bytes, *headers: str, status: str = "200 OK", content_type: str = "text/html"
    ) -> str:
        """Set the response of a path; returns its URL."""
        lines = (f"HTTP/1.1 {status}", "Connection: close", f"Content-Type: {content_type}", *headers)
        self.responses[path] = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body
        return self.get_url(path)

    def get_url(self, path: str) -> str:
        return f"http://page.example:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next((line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")), "0")
            self.requests.append(head + (await reader.readexactly(int(length))).decode())
            path = head.split(" ")[1].partition("?")[0]
            start, separator, body = self.responses[path].partition(b"\r\n\r\n")
            writer.write(start + separator)
            if body == ENDLESS:
                while True:
                    writer.write(b"<p>more and more</p>" * 5000)
                    await writer.drain()
            elif body == SLOW:
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)
            writer.write(body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client had enough
        finally:
            writer.close()


@asynccontextmanager
async def run_web_server() -> AsyncIterator[WebServer]:
    web = WebServer()
    server = await asyncio.start_server(web.handle, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()


async def resolve_to_loopback(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]
