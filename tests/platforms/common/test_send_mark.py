"""A message is marked when a connection is there, before its request is written: with each HTTP client that we use."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest

from palaver.core.errors import LeaseLost
from palaver.platforms.common.send_mark import make_aiohttp_request_class, mark_before_request, trace_httpx_request
from support.process import find_free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Post = Callable[[Any, list[int]], Awaitable[None]]

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class HttpServer:
    """Answers each request, and remembers what has arrived."""

    def __init__(self) -> None:
        self.received = b""
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[HttpServer]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()
        if self._tasks:
            await asyncio.wait(self._tasks)  # the client has closed its connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.received += data
            if data.endswith(b"hello"):
                writer.write(ANSWER)
        writer.close()
        await writer.wait_closed()


async def post_with_httpx(module: Any, ports: list[int]) -> None:
    async with module.AsyncClient(event_hooks={"request": [trace_httpx_request]}, trust_env=False) as client:
        for port in ports:
            await client.post(f"http://127.0.0.1:{port}/", content=b"hello")


async def post_with_aiohttp(_module: Any, ports: list[int]) -> None:
    async with aiohttp.ClientSession(request_class=make_aiohttp_request_class()) as session:
        for port in ports:
            async with session.post(f"http://127.0.0.1:{port}/", data=b"hello") as response:
                await response.read()


CLIENTS = [
    pytest.param(post_with_httpx, httpx, id="httpx"),
    pytest.param(post_with_httpx, httpx2, id="httpx2"),
    pytest.param(post_with_aiohttp, None, id="aiohttp"),
]


@pytest.mark.parametrize(("post", "module"), CLIENTS)
async def test_each_request_is_marked_before_it_is_written(post: Post, module: Any) -> None:
    async with HttpServer().run() as server:
        received_at_mark: list[int] = []

        async def mark() -> None:
            await asyncio.sleep(0)
            received_at_mark.append(server.received.count(b"hello"))

        with mark_before_request(mark):
            await post(module, [server.port] * 2)  # the second one on the same connection
        await post(module, [server.port])  # sends no message
    assert received_at_mark == [0, 1]


@pytest.mark.parametrize(("post", "module"), CLIENTS)
async def test_nothing_is_written_after_a_failed_mark(post: Post, module: Any) -> None:
    async def mark() -> None:
        raise LeaseLost

    async with HttpServer().run() as server:
        with pytest.raises(LeaseLost), mark_before_request(mark):
            await post(module, [server.port])
        assert server.received == b""


@pytest.mark.parametrize(("post", "module"), CLIENTS)
async def test_without_a_connection_nothing_is_marked(post: Post, module: Any) -> None:
    async def mark() -> None:
        pytest.fail("it was marked")

    refused = (httpx.ConnectError, httpx2.ConnectError, aiohttp.ClientConnectorError)
    with pytest.raises(refused), mark_before_request(mark):
        await post(module, [find_free_port()])
