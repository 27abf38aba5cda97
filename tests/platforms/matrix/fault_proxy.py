"""A proxy between the adapter and its homeserver, which lets requests fail on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from palaver.testing.contract_platform import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

ANSWERS = {
    Fault.RATE_LIMITED: (429, {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 1500}),
    Fault.SERVER_ERROR: (502, {}),
    Fault.REFUSED: (400, {"errcode": "M_BAD_JSON", "error": "Content is not valid"}),
}


class FaultProxy:
    """Forwards one request for each connection, and breaks the next message that is sent, or all waiting syncs."""

    def __init__(self, upstream: str) -> None:
        self._upstream_port = urlsplit(upstream).port
        self._server: asyncio.Server | None = None
        self._next_fault: Fault | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.url = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[FaultProxy]:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Listen no longer, and cut every connection."""
        if self._server is not None and self._server.is_serving():
            for listening in self._server.sockets:  # asyncio leaks a connection that is being accepted during `close`
                self._server.get_loop().remove_reader(listening.fileno())
            for _ in range(3):
                await asyncio.sleep(0)
            self._server.close()
        await self.cut_connections()

    async def cut_connections(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def break_next_message(self, fault: Fault) -> None:
        self._next_fault = fault

    @property
    def has_pending_fault(self) -> bool:
        """Whether a fault still waits for the next message."""
        return self._next_fault is not None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._handle(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextlib.contextmanager
    def _close_at_end(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._writers.add(writer)
        try:
            yield
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), self._close_at_end(writer):
            line, *headers = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
            fields = dict(each.lower().split(b": ", 1) for each in headers)
            body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
            fault = None
            if line.startswith(b"PUT ") and b"/send/" in line:
                fault, self._next_fault = self._next_fault, None
            if fault in ANSWERS:
                status, answer = ANSWERS[fault]
                content = json.dumps(answer).encode()
                writer.write(f"HTTP/1.1 {status} Fault\r\nContent-Length: {len(content)}\r\n".encode())
                writer.write(b"Connection: close\r\n\r\n" + content)
                return
            kept = [each for each in headers if not each.lower().startswith(b"connection:")]
            request = b"\r\n".join([line, *kept, b"Connection: close"]) + b"\r\n\r\n" + body
            forward = self._forward(request, None if fault is Fault.ANSWER_LOST else writer, writer)
            await self._run_until_client_leaves(forward, reader)

    @staticmethod
    async def _run_until_client_leaves(forward: Coroutine[Any, Any, None], reader: asyncio.StreamReader) -> None:
        """Forward a request. The server may answer a long poll only after a minute: the client may be gone by then."""
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(forward), asyncio.create_task(reader.read())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                await tasks[0]  # raises what has failed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _forward(
        self, request: bytes, answer_to: asyncio.StreamWriter | None, client: asyncio.StreamWriter
    ) -> None:
        reader, upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        with self._close_at_end(upstream):
            upstream.write(request)
            while not client.is_closing() and (chunk := await reader.read(65536)):
                if answer_to is not None:
                    answer_to.write(chunk)
                    await answer_to.drain()
