"""An HTTP server that records everything that arrives, and answers all of it in the same way."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Recorder:
    """A server on a loopback port."""

    url: str
    received: str = ""  # all bytes of all requests
    redirect_to: str | None = None  # answer with a redirect that keeps method and body

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = next(
                (
                    int(line.partition(":")[2])
                    for line in head.lower().splitlines()
                    if line.startswith("content-length:")
                ),
                0,
            )
            self.received += head + (await reader.readexactly(length)).decode("latin-1")
            path = head.split(" ")[1]
            if self.redirect_to is not None:
                answer = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {self.redirect_to}{path}\r\n"
            else:
                answer = "HTTP/1.1 401 Unauthorized\r\n"
            writer.write(
                f"{answer}Content-Length: 2\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{{}}".encode()
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def run_recorder(redirect_to: str | None = None) -> AsyncIterator[Recorder]:
    recorder = Recorder("", redirect_to=redirect_to)
    server = await asyncio.start_server(recorder.handle, "127.0.0.1", 0)
    recorder.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield recorder
    finally:
        server.close()
