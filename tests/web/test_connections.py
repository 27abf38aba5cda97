"""Connections over real sockets: clients that never finish, never read, or open too many."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import Mock

from palaver.web.http_protocol import (
    MAX_CONNECTIONS,
    MIN_CONNECTIONS,
    ConnectionLimits,
    Connections,
    HttpProtocol,
    Timeouts,
    _ResponseTransport,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from support.web import StartWebServer, WebServer

PATIENCE_SECONDS = 60.0  # for what happens within milliseconds
NEVER = 1000.0
PATIENT = Timeouts(header_seconds=NEVER, body_seconds=NEVER, send_seconds=NEVER)
LIMITS = ConnectionLimits(total=12, per_address=4)


class RawClient:
    """A client that sends what no HTTP library would send."""

    def __init__(self, web: WebServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host = web.url.removeprefix("http://")
        self.reader = reader
        self.writer = writer

    def send_headers(self, first_line: str = "GET /healthz HTTP/1.1", *lines: str, complete: bool = True) -> None:
        text = "\r\n".join([first_line, f"Host: {self._host}", *lines])
        self.writer.write(f"{text}\r\n\r\n".encode() if complete else text.encode())

    async def read_all(self) -> bytes:
        """Read until the server closes the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def read_status(self) -> int:
        """Read one response and return its status."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            if "content-length:" in head:
                await self.reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
            return int(head.split()[1])

    async def get_health(self) -> int:
        self.send_headers()
        return await self.read_status()


@asynccontextmanager
async def connect(web: WebServer, address: str = "127.0.0.1") -> AsyncIterator[RawClient]:
    """Connect from one of this machine's addresses."""
    port = int(web.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield RawClient(web, reader, writer)
    finally:
        writer.close()


async def wait_for_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until the server has ended a connection."""
    is_lost, end = asyncio.Event(), HttpProtocol.connection_lost

    def note_end(protocol: HttpProtocol, error: Exception | None) -> None:
        end(protocol, error)
        is_lost.set()

    monkeypatch.setattr(HttpProtocol, "connection_lost", note_end)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await is_lost.wait()


# ---- deadlines -------------------------------------------------------------------------------------------


async def test_unfinished_headers_get_408(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(header_seconds=1))
    async with connect(web) as client:
        client.send_headers(complete=False)
        assert (await client.read_all()).startswith(b"HTTP/1.1 408 ")


async def test_headers_that_come_byte_by_byte_do_not_extend_the_deadline(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(header_seconds=0.3))
    async with connect(web) as client:
        client.send_headers(complete=False)

        async def send_bytes() -> None:
            while True:
                client.writer.write(b"x")
                await asyncio.sleep(0.01)

        sending = asyncio.create_task(send_bytes())
        assert (await client.read_all())[:13] in (b"HTTP/1.1 408 ", b"")  # reset, if a byte came after the close
        sending.cancel()


async def test_the_second_request_of_a_connection_has_the_same_deadline(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(header_seconds=1))
    async with connect(web) as client:
        assert await client.get_health() == 200
        client.send_headers(complete=False)
        assert (await client.read_all()).startswith(b"HTTP/1.1 408 ")


async def test_an_unused_connection_is_closed_without_a_response(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(header_seconds=0.2))
    async with connect(web) as client:
        assert await client.read_all() == b""


async def test_an_idle_connection_is_closed(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(keep_alive_seconds=1))
    async with connect(web) as client:
        assert await client.get_health() == 200
        assert await client.read_all() == b""


async def test_an_unfinished_body_gets_408(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(body_seconds=0.2))
    async with connect(web) as client:
        client.send_headers("POST /api/sign-in/password HTTP/1.1", "Content-Length: 1000", f"Origin: {web.url}")
        client.writer.write(b"{")
        assert (await client.read_all()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_keeps_coming_has_more_time(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(body_seconds=0.2))
    body = json.dumps({"name": "ada", "password": "wrong"}).encode().ljust(16 * 4096)
    async with connect(web) as client:
        client.send_headers(
            "POST /api/sign-in/password HTTP/1.1",
            f"Content-Length: {len(body)}",
            "Content-Type: application/json",
            f"Origin: {web.url}",
        )
        for start in range(0, len(body), 4096):
            client.writer.write(body[start : start + 4096])
            await asyncio.sleep(0.03)
        assert await client.read_status() == 401


async def test_a_body_that_no_route_reads_does_not_keep_the_connection(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=Timeouts(discard_seconds=0.2))
    async with connect(web) as client:
        client.send_headers("POST /api/sessions HTTP/1.1", "Content-Length: 1000")
        assert (await client.read_all()).startswith(b"HTTP/1.1 401 ")


async def test_a_client_that_does_not_read_its_response_is_disconnected(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = await start_web(timeouts=Timeouts(send_seconds=0.2))
    owner = await web.sign_in()
    upload = await owner.post("/api/attachments", files={"file": ("long.txt", b"x" * 15_000_000)})
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    async with connect(web) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send_headers(f"GET /api/attachments/{upload.json()['id']} HTTP/1.1", f"Cookie: {cookie}")
        await wait_for_lost_connection(monkeypatch)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await client.read_all()) < 15_000_000


# ---- limits ----------------------------------------------------------------------------------------------


async def test_half_requests_make_room_for_new_connections(start_web: StartWebServer) -> None:
    web = await start_web(limits=LIMITS, timeouts=PATIENT)
    async with connect(web) as oldest:
        oldest.send_headers(complete=False)
        async with connect(web) as second, connect(web) as third, connect(web) as fourth:
            for client in (second, third, fourth):
                client.send_headers(complete=False)
            async with connect(web) as newest, connect(web, "127.0.0.2") as other:
                assert await newest.get_health() == 200
                assert await oldest.read_all() == b""
                assert await other.get_health() == 200
                second.writer.write(b"\r\n\r\n")
                assert await second.read_status() == 200


async def test_all_addresses_together_are_limited(start_web: StartWebServer) -> None:
    web = await start_web(limits=LIMITS, timeouts=PATIENT)
    clients = []
    for number in range(LIMITS.total + 1):
        manager = connect(web, f"127.0.0.{number + 1}")
        client = await web.exit_stack.enter_async_context(manager)
        client.send_headers(complete=False)
        clients.append(client)
    assert await clients[0].read_all() == b""
    clients[-1].writer.write(b"\r\n\r\n")
    assert await clients[-1].read_status() == 200


async def test_a_request_in_progress_is_never_given_up(start_web: StartWebServer) -> None:
    web = await start_web(limits=ConnectionLimits(total=12, per_address=5), timeouts=PATIENT)
    owner = await web.sign_in()
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    streams = [await web.exit_stack.enter_async_context(connect(web, "127.0.0.2")) for _ in range(5)]
    for stream in streams:
        stream.send_headers("GET /api/live HTTP/1.1", f"Cookie: {cookie}")
        assert await stream.read_status() == 200
    async with connect(web, "127.0.0.2") as refused, connect(web, "127.0.0.3") as other:
        assert (await refused.read_all()).startswith(b"HTTP/1.1 503 ")
        assert await other.get_health() == 200
    for stream in streams:
        assert not stream.reader.at_eof()


async def test_a_trusted_proxy_may_open_more_than_one_client(start_web: StartWebServer) -> None:
    web = await start_web(limits=LIMITS, timeouts=PATIENT, trusted_proxies=("127.0.0.2",))
    clients = [await web.exit_stack.enter_async_context(connect(web, "127.0.0.2")) for _ in range(LIMITS.total)]
    for client in clients:
        client.send_headers(complete=False)
    for client in clients:
        client.writer.write(b"\r\n\r\n")
        assert await client.read_status() == 200


async def test_hundreds_of_half_requests_do_not_stop_health_checks(start_web: StartWebServer) -> None:
    web = await start_web(timeouts=PATIENT)
    for _ in range(260):
        client = await web.exit_stack.enter_async_context(connect(web))
        client.send_headers("POST /api/sessions HTTP/1.1", "Content-Length: 1000", "Cookie: a=b")
    async with connect(web) as healthy:
        assert await healthy.get_health() == 200


def test_the_limits_follow_the_number_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def derive(open_files: int) -> ConnectionLimits:
        monkeypatch.setattr("resource.getrlimit", lambda _: (open_files, open_files))
        return ConnectionLimits.from_open_files()

    assert derive(1024) == ConnectionLimits(total=512, per_address=128)
    assert derive(-1).total == derive(1_000_000).total == MAX_CONNECTIONS
    assert derive(8).total == MIN_CONNECTIONS


def test_a_closed_connection_leaves_nothing_behind() -> None:
    connections = Connections(LIMITS)
    for number in range(1000):
        connection = Mock(spec=HttpProtocol)
        connections.add(connection, f"address {number}")
        connections.mark_waiting(connection)
        connections.remove(connection)
        connections.mark_waiting(connection)
    assert [len(vars(connections)[name]) for name in vars(connections) if name not in {"_limits", "_refused_at"}] == [
        0
    ] * 4


# ---- out of files ----------------------------------------------------------------------------------------

_SERVER_WITHOUT_FILES = """
    import asyncio, logging, os, resource, sys
    from palaver.web.http_protocol import ConnectionLimits
    from palaver.web.server import run_server
    from palaver.web.sockets import open_socket

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        limits = ConnectionLimits(total=1000, per_address=1000)
        async with run_server(app, open_socket("127.0.0.1", 0), limits=limits) as port:
            await asyncio.to_thread(print, port, flush=True)
            files = []
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            try:
                while True:
                    files.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                os.close(files.pop())
            await asyncio.to_thread(print, "full", flush=True)
            await asyncio.to_thread(sys.stdin.readline)

    asyncio.run(main())
"""


async def test_a_process_without_free_files_neither_spins_nor_stops_serving() -> None:
    """One file is free: of many clients one is connected, and each new one takes the place of the one before."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(_SERVER_WITHOUT_FILES)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS * 3):
        port = int(await process.stdout.readline())
        assert await process.stdout.readline() == b"full\n"
        writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(20)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        for each in (*writers, writer):
            each.close()
        _, log = await process.communicate(b"\n")
    assert len(log.splitlines()) < 100, log.decode()[-2000:]


async def test_a_response_is_one_write_and_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    socket = Mock()
    transport = _ResponseTransport(socket, asyncio.get_running_loop())
    for pause, written in ((False, [b"head body"]), (True, [b"head ", b"body"])):
        transport.is_head_next = True
        transport.write(b"head ")
        if pause:
            await asyncio.sleep(0)
        transport.write(b"body")
        await asyncio.sleep(0)
        assert [call.args[0] for call in socket.write.mock_calls] == written
        socket.reset_mock()
    transport.is_head_next = True
    transport.write(b"head")
    transport.close()
    assert [(name, *args) for name, args, _ in socket.mock_calls] == [("write", b"head"), ("close",)]
