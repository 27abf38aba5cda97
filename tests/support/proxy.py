"""A reverse proxy in a test: a server stands below a path, and what either side sends is passed on as it comes.

Always true: a connection carries one request, so that passing on is all there is to do; whatever is asked for beside
the path is answered with 404 and kept in `strays`.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Coroutine

_OURS = (b"host", b"connection", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host")
_NOTHING = "Content-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """What stands before a server on this machine."""

    path: str  # below which the server stands
    strips: bool  # whether the server is asked without that path
    tls: ssl.SSLContext | None = None
    upstream: int = 0  # the port of the server
    port: int = 0
    strays: list[str] = field(default_factory=list)
    _passing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def scheme(self) -> str:
        """What browsers speak with it."""
        return "http" if self.tls is None else "https"

    @property
    def url(self) -> str:
        """Where people find the server."""
        return f"{self.scheme}://localhost:{self.port}{self.path}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen on a free port inside the block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._passing:
                task.cancel()
            await asyncio.gather(*self._passing, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            line, *headers = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
            method, target, version = line.decode().split(" ")
            if not f"{target}/".startswith(f"{self.path}/"):
                self.strays.append(target)
                writer.write(f"HTTP/1.1 404 Not Found\r\n{_NOTHING}".encode())
                return
            if self.strips and target == self.path:  # as nginx does for a location that ends with a slash
                writer.write(f"HTTP/1.1 301 Moved\r\nLocation: {self.path}/\r\n{_NOTHING}".encode())
                return
            asked = target.removeprefix(self.path) if self.strips else target
            ahead, behind = await asyncio.open_connection("127.0.0.1", self.upstream)
            with contextlib.closing(behind):
                kept = [each for each in headers if each.partition(b":")[0].lower() not in _OURS]
                head = [f"{method} {asked} {version}".encode(), *kept, *self._said_of_us()]
                behind.write(b"\r\n".join(head) + b"\r\n\r\n")
                await _first_to_end(_copied(reader, behind), _copied(ahead, writer))

    def _said_of_us(self) -> list[bytes]:
        said = {
            "Host": f"127.0.0.1:{self.upstream}",
            "Connection": "close",
            "X-Forwarded-For": "127.0.0.1",
            "X-Forwarded-Proto": self.scheme,
            "X-Forwarded-Host": f"localhost:{self.port}",
        }
        return [f"{name}: {value}".encode() for name, value in said.items()]


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while some := await reader.read(65536):
        writer.write(some)
        await writer.drain()


async def _first_to_end(*sides: Coroutine[Any, Any, None]) -> None:
    """When the server has said everything, or the browser has gone, it is over."""
    tasks = [asyncio.create_task(side) for side in sides]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
