"""The guarded fetcher: what it refuses to connect to, how much it reads, and who gets its headers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.media.web.requests import is_public_address
from palaver.platforms.common.http import FileFetcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


class FileServer:
    """An HTTP server on this machine that answers every request with the same bytes, and keeps what it was sent."""

    def __init__(self, response: bytes) -> None:
        self.response = response
        self.requests: list[str] = []
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(self.response)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def serve(response: bytes) -> AsyncIterator[FileServer]:
    files = FileServer(response)
    server = await asyncio.start_server(files.handle, "127.0.0.1", 0)
    files.port = server.sockets[0].getsockname()[1]
    async with server:
        yield files


def build_response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", "Connection: close", *headers))
    return head.encode() + b"\r\n" + body


async def fetch(fetcher: FileFetcher, url: str, **headers: str) -> bytes:
    return b"".join([chunk async for chunk in fetcher.fetch(url, headers)])


async def resolve_to_loopback(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def test_a_file_of_the_platforms_own_host() -> None:
    async with serve(build_response(b"hello")) as server:
        fetcher = FileFetcher(["Files.Example"], resolve=resolve_to_loopback)
        assert await fetch(fetcher, f"http://files.example:{server.port}/f?x=1", authorization="t") == b"hello"
        (request,) = server.requests
    assert request.startswith("GET /f?x=1 HTTP/1.1\r\n")
    assert f"host: files.example:{server.port}\r\n" in request.lower()
    assert "authorization: t" in request.lower()


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fe80::1%eth0"]
)
async def test_private_addresses_are_refused_whatever_their_name(address: str) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["93.184.215.14", address]

    with pytest.raises(InvalidInput, match="private network"):
        await fetch(FileFetcher(resolve=resolve), "http://innocent.example/")


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0", "192.168.1.1", "100.64.0.1", "224.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fc00::1", "nonsense"],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public_address(address)


async def test_a_name_is_resolved_once() -> None:
    """A name server that answers with another address the second time changes nothing."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return next(answers)

    async with serve(build_response(b"hello")) as server:
        fetcher = FileFetcher(["files.example"], resolve=resolve)
        assert await fetch(fetcher, f"http://files.example:{server.port}/") == b"hello"
    assert next(answers) == ["10.0.0.1"]


async def test_a_redirect_to_a_private_address_is_refused() -> None:
    async def resolve(host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "files.example" else ["10.0.0.1"]

    async with serve(build_response(b"", "302 Found", "Location: http://inside.example/")) as server:
        with pytest.raises(InvalidInput, match="private network"):
            await fetch(FileFetcher(["files.example"], resolve=resolve), f"http://files.example:{server.port}/")


async def test_a_redirect_to_another_host_gets_no_headers() -> None:
    async with serve(build_response(b"hello")) as target:
        location = f"Location: http://cdn.example:{target.port}/file"
        async with serve(build_response(b"", "302 Found", location)) as server:
            fetcher = FileFetcher(["files.example", "cdn.example"], resolve=resolve_to_loopback)
            url = f"http://files.example:{server.port}/"
            assert await fetch(fetcher, url, authorization="secret") == b"hello"
    assert "secret" in server.requests[0]
    assert "secret" not in target.requests[0]


async def test_redirects_end() -> None:
    async with serve(build_response(b"", "302 Found", "Location: /again")) as server:
        fetcher = FileFetcher(["files.example"], resolve=resolve_to_loopback)
        with pytest.raises(InvalidInput, match="redirects"):
            await fetch(fetcher, f"http://files.example:{server.port}/")
    assert len(server.requests) == 6


@pytest.mark.parametrize("headers", [(), ("Content-Length: 200",)], ids=["unknown", "announced"])
async def test_a_file_that_is_too_large(headers: tuple[str, ...]) -> None:
    async with serve(build_response(b"x" * 200, "200 OK", *headers)) as server:
        fetcher = FileFetcher(["files.example"], max_bytes=100, resolve=resolve_to_loopback)
        with pytest.raises(InvalidInput, match="too large"):
            await fetch(fetcher, f"http://files.example:{server.port}/")


@pytest.mark.parametrize(
    "response",
    [build_response(b"", "404 Not Found"), build_response(b"x", "200 OK", "Content-Length: 50"), b"not http\r\n\r\n"],
    ids=["status", "cut", "nonsense"],
)
async def test_a_download_that_fails(response: bytes) -> None:
    async with serve(response) as server:
        fetcher = FileFetcher(["files.example"], resolve=resolve_to_loopback)
        with pytest.raises(ConnectionLost):
            await fetch(fetcher, f"http://files.example:{server.port}/")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://files.example/", "http:///x", "http://u:p@files.example/", "http://h:999999/"]
)
async def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        await fetch(FileFetcher(["files.example"], resolve=resolve_to_loopback), url)
