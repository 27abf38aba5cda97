"""A reverse proxy for tests: it serves a server below a path and forwards what either side sends.

Always true: each connection carries one request, so forwarding the bytes is enough. A request outside the path is
answered with 404 and recorded in `unmatched_targets`.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Coroutine

_REPLACED_HEADERS = (b"host", b"connection", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host")
_EMPTY_RESPONSE = "Content-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """A reverse proxy in front of a server on this machine."""

    path: str  # where the proxy serves the server
    strips_path: bool  # whether it removes the path from forwarded requests
    tls: ssl.SSLContext | None = None
    upstream: int = 0  # the server's port
    port: int = 0
    unmatched_targets: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}{self.path}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen on a free port inside the block."""
        server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            line, *headers = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
            method, target, version = line.decode().split(" ")
            if not f"{target}/".startswith(f"{self.path}/"):
                self.unmatched_targets.append(target)
                writer.write(f"HTTP/1.1 404 Not Found\r\n{_EMPTY_RESPONSE}".encode())
                return
            if self.strips_path and target == self.path:  # as nginx does for a location that ends with a slash
                writer.write(f"HTTP/1.1 301 Moved\r\nLocation: {self.path}/\r\n{_EMPTY_RESPONSE}".encode())
                return
            upstream_target = target.removeprefix(self.path) if self.strips_path else target
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
            with contextlib.closing(upstream_writer):
                kept_headers = [each for each in headers if each.partition(b":")[0].lower() not in _REPLACED_HEADERS]
                head = [
                    f"{method} {upstream_target} {version}".encode(),
                    *kept_headers,
                    *self._build_forwarded_headers(),
                ]
                upstream_writer.write(b"\r\n".join(head) + b"\r\n\r\n")
                await _run_until_first_ends(
                    _copy_stream(reader, upstream_writer), _copy_stream(upstream_reader, writer)
                )

    def _build_forwarded_headers(self) -> list[bytes]:
        headers = {
            "Host": f"127.0.0.1:{self.upstream}",
            "Connection": "close",
            "X-Forwarded-For": "127.0.0.1",
            "X-Forwarded-Proto": self.scheme,
            "X-Forwarded-Host": f"localhost:{self.port}",
        }
        return [f"{name}: {value}".encode() for name, value in headers.items()]


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


async def _run_until_first_ends(*directions: Coroutine[Any, Any, None]) -> None:
    """Run both directions until the server has sent everything or the browser has disconnected."""
    tasks = [asyncio.create_task(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
