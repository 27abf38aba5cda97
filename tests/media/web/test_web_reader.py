"""Reading pages: what is refused, what servers do wrong, and what comes out as text."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import zlib
from typing import TYPE_CHECKING

import pytest

from palaver.config.agent_rules import WebFetchRules, WebSearchRules, WebToolRules
from palaver.config.validators import SearchProvider
from palaver.core.errors import ConnectionLost, InvalidInput
from palaver.media.web.reader import MAX_REQUESTS, MAX_REQUESTS_PER_PERSON, WebReader
from palaver.media.web.requests import resolve_host
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.web_server import ENDLESS, SLOW, WebServer, resolve_to_loopback, run_web_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

pytestmark = pytest.mark.slow  # starts real child processes

ALLOWED = WebToolRules(fetch=WebFetchRules(private_hosts=("page.example",)))


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with run_web_server() as web:
        yield web


@pytest.fixture
def reader() -> WebReader:
    return WebReader(ALLOWED, resolve=resolve_to_loopback)


async def test_a_page_becomes_text_with_absolute_links(server: WebServer, reader: WebReader) -> None:
    url = server.set("/a", b"<title>Tea</title><h1>Tea</h1><p>See <a href='/b'>more</a>.<script>no()</script>")
    page = await reader.fetch_page(url)
    assert (page.title, page.url, page.is_cut) == ("Tea", url, False)
    assert page.text == f"# Tea\n\nSee [more]({server.get_url('/b')})."
    assert "accept-encoding: identity" in server.requests[0].lower()


async def test_redirects_are_followed_and_named(server: WebServer, reader: WebReader) -> None:
    server.set("/new", b"<p>here")
    url = server.set("/old", b"", "Location: /new", status="302 Found")
    page = await reader.fetch_page(url)
    assert (page.url, page.text) == (server.get_url("/new"), "here")


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fec0::1]/",
        "http://[::127.0.0.1]/",
        "http://100.100.100.200/",
        "http://0x7f000001/",
        "http://2130706433/",
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(server: WebServer, target: str) -> None:
    url = server.set("/", b"", f"Location: {target}", status="301 Moved Permanently")
    with pytest.raises(InvalidInput, match="private network"):
        await WebReader(ALLOWED, resolve=resolve_page_only).fetch_page(url)
    assert len(server.requests) == 1


async def resolve_page_only(host: str, port: int) -> Sequence[str]:
    from palaver.media.web.requests import resolve_host

    return ["127.0.0.1"] if host == "page.example" else await resolve_host(host, port)


async def test_a_name_that_resolves_differently_the_second_time_is_refused(server: WebServer) -> None:
    """DNS rebinding: each request resolves once and connects to what was checked."""
    answers = iter([["93.184.216.34", "127.0.0.1"], ["127.0.0.1"]])

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return next(answers)

    reader = WebReader(WebToolRules(), resolve=resolve)
    url = server.set("/", b"secret")
    for _ in range(2):
        with pytest.raises(InvalidInput, match="private network"):
            await reader.fetch_page(url)
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://page.example/", "gopher://x", "//x", "http://", "http://a:b@page.example/",
            "http://[::1", "http://page.example:99999/", "http://page.example/\n", "http://page.example/" + "a" * 5000]
)  # fmt: skip
async def test_other_addresses_are_refused(reader: WebReader, url: str) -> None:
    with pytest.raises(InvalidInput, match="not valid"):
        await reader.fetch_page(url)


async def test_an_endless_body_ends_at_the_limit(server: WebServer, reader: WebReader) -> None:
    with pytest.raises(InvalidInput, match="too large"):
        await reader.fetch_page(server.set("/", ENDLESS))


async def test_a_slow_body_ends_in_time(server: WebServer) -> None:
    reader = WebReader(ALLOWED, resolve=resolve_to_loopback, fetch_seconds=0.3)
    with pytest.raises(ConnectionLost, match="took longer"):
        await reader.fetch_page(server.set("/", SLOW))


async def test_a_body_that_is_shorter_than_announced_is_an_error(server: WebServer, reader: WebReader) -> None:
    with pytest.raises(ConnectionLost, match="broke off"):
        await reader.fetch_page(server.set("/", b"<p>half", "Content-Length: 500"))


async def test_a_huge_header_is_an_error(server: WebServer, reader: WebReader) -> None:
    with pytest.raises(ConnectionLost, match="failed"):
        await reader.fetch_page(server.set("/", b"x", "X-Long: " + "a" * 1_000_000))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_compressed_bomb_is_not_unpacked(server: WebServer, reader: WebReader, encoding: str) -> None:
    bomb = b"<p>" + b"a" * 200_000_000
    body = gzip.compress(bomb) if encoding == "gzip" else zlib.compress(bomb)
    with pytest.raises(InvalidInput, match="too large"):
        await reader.fetch_page(server.set("/", body, f"Content-Encoding: {encoding}"))


async def test_a_compressed_page_is_read_although_none_was_asked_for(server: WebServer, reader: WebReader) -> None:
    url = server.set("/", gzip.compress(b"<p>small"), "Content-Encoding: gzip")
    assert (await reader.fetch_page(url)).text == "small"
    with pytest.raises(ConnectionLost, match="damaged"):
        await reader.fetch_page(server.set("/", b"no gzip at all", "Content-Encoding: gzip"))
    with pytest.raises(InvalidInput, match="compressed in an unknown way"):
        await reader.fetch_page(server.set("/", b"?", "Content-Encoding: br"))


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("größer".encode(), "text/html; charset=utf-8"),
        ("größer".encode("latin-1"), "text/html; charset=utf-8"),  # a lie
        ("größer".encode("latin-1"), "text/html; charset=iso-8859-1"),
        ("größer".encode(), "text/html; charset=no-such-thing"),
        ("größer".encode(), "text/html; charset=rot13"),
        ('<meta charset="windows-1252">größer'.encode("latin-1"), "text/html"),
        (b"\xef\xbb\xbf" + "größer".encode(), "text/html; charset=latin-1"),
        (b"\xff\xfe" + "größer".encode("utf-16-le"), "text/html"),
        ("größer".encode(), "text/plain"),
    ],
)
async def test_charsets_that_are_wrong_do_no_harm(
    server: WebServer, reader: WebReader, body: bytes, content_type: str
) -> None:
    assert (await reader.fetch_page(server.set("/", body, content_type=content_type))).text == "größer"


async def test_what_has_no_text_is_named(server: WebServer, reader: WebReader) -> None:
    with pytest.raises(InvalidInput, match="type image/png, which has no text"):
        await reader.fetch_page(server.set("/", b"\x89PNG", content_type="image/png"))
    with pytest.raises(InvalidInput, match="contains no text"):
        await reader.fetch_page(server.set("/", b"<script>x</script>"))
    with pytest.raises(ConnectionLost, match="answered 404"):
        await reader.fetch_page(server.set("/", b"x", status="404 Not Found"))


# -- search ----------------------------------------------------------------------------------------------------


def make_search(server: WebServer, provider: SearchProvider, key: str | None = "k-1") -> WebReader:
    rules = WebToolRules(search=WebSearchRules(provider=provider, url=server.get_url("/search"), api_key=key))
    return WebReader(rules, resolve=resolve_to_loopback)


RESULT = b'{"url": "https://a.example/", "title": "A  title", "content": "words", "description": "words"}'


@pytest.mark.parametrize(
    ("provider", "body", "sent"),
    [
        (SearchProvider.SEARXNG, b'{"results": [%s]}', "GET /search?q=green+tea&format=json "),
        (SearchProvider.BRAVE, b'{"web": {"results": [%s]}}', "x-subscription-token: k-1"),
        (SearchProvider.TAVILY, b'{"results": [%s]}', "authorization: bearer k-1"),
    ],
)
async def test_each_provider_is_asked_in_its_own_way(
    server: WebServer, provider: SearchProvider, body: bytes, sent: str
) -> None:
    bad = b'7, {"url": "javascript:x", "title": "no"}, {"title": "no address"}'
    server.set("/search", body % (bad + b", " + RESULT), content_type="application/json")
    [result] = await make_search(server, provider).search("green tea", 5)
    assert (result.url, result.title, result.snippet) == ("https://a.example/", "A title", "words")
    assert sent.lower() in server.requests[0].lower()


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b"{}", "401 Unauthorized", "answered 401; check web.search.api_key"),
        (b"{}", "429 Too Many Requests", "its limit of requests is reached"),
        (b"", "302 Found", "answered 302"),
        (b"<html>", "200 OK", "answer of the search provider brave can't be read"),
        (b"[" * 100_000, "200 OK", "can't be read"),
        (b'{"web": 3}', "200 OK", "can't be read"),
        (ENDLESS, "200 OK", "too large"),
    ],
)
async def test_a_provider_that_fails_is_explained(server: WebServer, body: bytes, status: str, expected: str) -> None:
    server.set("/search", body, "Location: http://169.254.169.254/", status=status, content_type="application/json")
    with pytest.raises(ConnectionLost) as caught:
        await make_search(server, SearchProvider.BRAVE).search("x", 5)
    assert expected in str(caught.value)
    assert "k-1" not in str(caught.value)


async def test_incomplete_settings_are_named(server: WebServer) -> None:
    with pytest.raises(InvalidInput, match=r"web\.search\.api_key is missing"):
        await make_search(server, SearchProvider.TAVILY, key=None).search("x", 5)
    with pytest.raises(InvalidInput, match=r"web\.search\.url"):
        await WebReader(WebToolRules(search=WebSearchRules(provider=SearchProvider.SEARXNG))).search("x", 5)
    assert not WebReader(WebToolRules()).can_search


async def test_slow_pages_of_one_person_leave_places_to_others(server: WebServer) -> None:
    reader = WebReader(ALLOWED, resolve=resolve_to_loopback, fetch_seconds=300)
    slow, quick = server.set("/slow", SLOW), server.set("/quick", b"<p>tea")
    tasks = [asyncio.create_task(reader.fetch_page(slow, person="mallory")) for _ in range(MAX_REQUESTS + 2)]
    try:
        await wait_until(lambda: len(server.requests) == MAX_REQUESTS_PER_PERSON)
        assert (await reader.fetch_page(quick, person="ada")).text == "tea"
        assert not any(task.done() for task in tasks)
        assert len(server.requests) == MAX_REQUESTS_PER_PERSON + 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_names_that_are_not_resolved_keep_no_other_work_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    end, started = threading.Event(), []

    def hang(*arguments: object, **_: object) -> list[object]:
        started.append(arguments)
        end.wait(TIMEOUT_SECONDS)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    tasks = [asyncio.create_task(resolve_host(f"{number}.example", 443)) for number in range(40)]
    try:
        await wait_until(lambda: len(started) == 40)
        assert await asyncio.to_thread(lambda: "done") == "done"
    finally:
        end.set()
        await asyncio.gather(*tasks)
