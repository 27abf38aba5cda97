"""Webhooks of platforms: reached by anyone, read up to the limit of the account, answered by its adapter."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import httpx2
import pytest

from palaver.core.errors import AccountRefused, LeaseLost
from palaver.delivery.adapter import AccountInfo, WebhookRequest, WebhookResponse
from palaver.platforms.loopback import LoopbackAdapter
from palaver.web import body_limit as webhook_bodies
from palaver.web.body_limit import WebhookBodies
from support.gateway import TIMEOUT_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.delivery.adapter import AccountLink
    from support.web import StartWebServer, WebServer

MAX_BYTES = 100_000


class HookAdapter(LoopbackAdapter):
    """Has a webhook that repeats what it gets."""

    max_webhook_bytes = MAX_BYTES

    def __init__(self, account: str = "") -> None:
        super().__init__(account=account)
        self.requests: list[WebhookRequest] = []

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        self.requests.append(request)
        link.report_connected()
        if request.body == b"fail":
            raise RuntimeError("bug")
        if request.body == b"lost":
            raise LeaseLost
        return WebhookResponse(status=202, body=b"got " + request.body[:10], media_type="text/x-pigeon")


class SilentAdapter(HookAdapter):
    """Never gets as far as running."""

    async def probe(self) -> AccountInfo:
        raise AccountRefused("no")


async def start(start_web: StartWebServer, *adapters: LoopbackAdapter) -> tuple[WebServer, httpx2.AsyncClient]:
    web = await start_web(adapters=list(adapters))
    await wait_until(lambda: len(web.gateway.accounts.list_live_adapters()) == len(adapters))
    client = httpx2.AsyncClient(base_url=web.url, timeout=TIMEOUT_SECONDS)  # a platform: without origin and cookie
    return web, await web.exit_stack.enter_async_context(client)


async def test_a_request_reaches_the_adapter_of_its_account_as_it_was_sent(start_web: StartWebServer) -> None:
    adapters = HookAdapter(), HookAdapter("work")
    _, client = await start(start_web, *adapters)
    answer = await client.post("/hooks/loopback?a=1", content=b"\x00\xff{", headers={"X-Signature": "s"})
    assert (answer.status_code, answer.content) == (202, b"got \x00\xff{")
    assert answer.headers["content-type"].startswith("text/x-pigeon")
    assert answer.headers["x-content-type-options"] == "nosniff"
    [request] = adapters[0].requests
    assert (request.method, request.body, request.query) == ("POST", b"\x00\xff{", {"a": "1"})
    assert request.headers["x-signature"] == "s"
    assert (await client.get("/hooks/loopback/work?challenge=7")).status_code == 202
    assert [request.query for request in adapters[1].requests] == [{"challenge": "7"}]


async def test_the_origin_of_a_webhook_does_not_matter(start_web: StartWebServer) -> None:
    adapter = HookAdapter()
    _, client = await start(start_web, adapter)
    headers = {"Origin": "https://platform.example", "Cookie": "palaver=1"}
    assert (await client.post("/hooks/loopback", content=b"hi", headers=headers)).status_code == 202
    assert (await client.post("/api/sign-in/link", json={"token": "x"}, headers=headers)).status_code == 403
    strange = await client.post("/hooks/loopback", content=b"hi", headers={"Host": "evil.example"})
    assert (strange.status_code, len(adapter.requests)) == (400, 1)


async def test_a_body_is_read_up_to_the_limit_of_the_account(start_web: StartWebServer) -> None:
    adapter = HookAdapter()
    _, client = await start(start_web, adapter)
    assert (await client.post("/hooks/loopback", content=b"x" * MAX_BYTES)).status_code == 202
    too_large = await client.post("/hooks/loopback", content=b"x" * (MAX_BYTES + 1))
    assert (too_large.status_code, too_large.json()["error"]["code"]) == (413, "too_large")

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000
            await asyncio.sleep(0)

    with contextlib.suppress(httpx2.TransportError):  # the server does not wait for the rest
        answer = await client.post("/hooks/loopback", content=stream())
        assert answer.status_code == 413
    assert len(adapter.requests) == 1


async def test_a_path_without_a_webhook_looks_like_any_unknown_path(start_web: StartWebServer) -> None:
    _, client = await start(start_web, HookAdapter(), LoopbackAdapter(account="plain"))
    unknown = await client.get("/api/no-such-path")
    for path in ("/hooks/loopback/plain", "/hooks/loopback/unknown", "/hooks/nothing", "/hooks/LOOPBACK", "/hooks/%00"):
        for method in ("GET", "POST"):
            answer = await client.request(method, path, content=b"x" * 10)
            assert (answer.status_code, answer.content) == (404, unknown.content), path
    assert (await client.put("/hooks/loopback")).status_code == 405


@pytest.mark.parametrize("body", [b"lost", b"fail"])
async def test_what_could_not_be_stored_is_not_acknowledged(start_web: StartWebServer, body: bytes) -> None:
    _, client = await start(start_web, HookAdapter())
    answer = await client.post("/hooks/loopback", content=body)
    assert answer.status_code == {b"lost": 503, b"fail": 500}[body]
    assert ("retry-after" in answer.headers) is (body == b"lost")
    assert "bug" not in answer.text
    assert (await client.post("/hooks/loopback", content=b"hi")).status_code == 202


async def test_an_account_that_is_not_connected_asks_to_try_again_later(start_web: StartWebServer) -> None:
    web = await start_web(adapters=[SilentAdapter()])
    client = await web.open_anonymous_client()
    answer = await client.post("/hooks/loopback", content=b"x" * 2_000_000)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    assert answer.json()["error"]["code"] == "account_not_connected"


# ---- strangers -------------------------------------------------------------------------------------------


class _Stranger:
    """Connections that begin a request without a signature and never end it."""

    def __init__(self, web: WebServer) -> None:
        self._host, self._port = web.url.removeprefix("http://").split(":")
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def begin(self, path: str, count: int, first_bytes: bytes = b"x") -> None:
        """Begin chunked requests, with the beginning of a body."""
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"%x\r\n%b\r\n" % (len(first_bytes), first_bytes)
        for _ in range(count):
            reader, writer = await asyncio.open_connection(self._host, int(self._port))
            writer.write(head.encode() + chunk)
            await writer.drain()
            self._streams.append((reader, writer))

    async def read_status_lines(self) -> list[bytes]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return [await reader.readline() for reader, _ in self._streams]

    def close(self) -> None:
        for _, writer in self._streams:
            writer.close()


async def test_bodies_that_do_not_arrive_keep_no_webhook_waiting(start_web: StartWebServer) -> None:
    web, client = await start(start_web, HookAdapter())
    stranger = _Stranger(web)
    try:
        await stranger.begin("/hooks/loopback", 60)
        bodies: WebhookBodies = web.app.state.webhook_bodies
        await wait_until(lambda: bodies.unfinished == 60)

        async def stream() -> AsyncIterator[bytes]:
            yield b"signed"

        for content in (b"signed", stream(), b"s" * MAX_BYTES):
            assert (await client.post("/hooks/loopback", content=content)).status_code == 202
        assert bodies.unfinished == 60
    finally:
        stranger.close()
    await wait_until(lambda: bodies.unfinished == 0)


async def test_a_body_that_comes_too_slowly_ends(start_web: StartWebServer) -> None:
    adapter = HookAdapter()
    web, _ = await start(start_web, adapter)
    web.app.state.webhook_bodies = WebhookBodies(body_seconds=0.2)
    stranger = _Stranger(web)
    try:
        await stranger.begin("/hooks/loopback", 3)
        assert {line[:12] for line in await stranger.read_status_lines()} == {b"HTTP/1.1 408"}
    finally:
        stranger.close()
    assert adapter.requests == []


async def test_the_memory_for_large_bodies_of_one_address_is_bounded(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_bodies, "MAX_BYTES_PER_ADDRESS", 3 * 20_000)
    web, client = await start(start_web, HookAdapter())
    bodies: WebhookBodies = web.app.state.webhook_bodies
    large = b"x" * (webhook_bodies.SMALL_BODY_BYTES + 20_000)
    stranger, late = _Stranger(web), _Stranger(web)
    try:
        await stranger.begin("/hooks/loopback", 3, large)
        await wait_until(lambda: bodies.held_bytes == 3 * 20_000)
        await late.begin("/hooks/loopback", 2, large)
        lines = await late.read_status_lines()
        assert {line[:12] for line in lines} == {b"HTTP/1.1 429"}
        assert (await client.post("/hooks/loopback", content=b"signed and small")).status_code == 202
        other = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
        async with httpx2.AsyncClient(base_url=web.url, transport=other, timeout=TIMEOUT_SECONDS) as second:
            assert (await second.post("/hooks/loopback", content=large)).status_code == 202
        assert bodies.held_bytes == 3 * 20_000
    finally:
        stranger.close()
        late.close()
    await wait_until(lambda: bodies.held_bytes == 0)
    assert (await client.post("/hooks/loopback", content=large)).status_code == 202
