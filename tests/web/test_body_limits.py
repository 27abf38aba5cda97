"""Request bodies: nothing is read before the sender is known, and what is read is limited."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from palaver.web.body_limit import LARGE_BODY_BYTES, MAX_BODY_BYTES, MAX_JSON_VALUES, MAX_LARGE_REQUESTS_PER_PERSON
from support.gateway import TIMEOUT_SECONDS
from support.web import build_api_document
from web.test_attachments import make_png

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.web import StartWebServer, WebServer

DOCUMENT = build_api_document()
SIGNED_IN_ROUTES = [
    (method.upper(), re.sub(r"\{[^}]+\}", "x", path))
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if "security" in operation
]
JSON_HEADERS = {"Content-Type": "application/json"}


async def send_headers_only(web: WebServer, first_line: str, *lines: str) -> bytes:
    """Announce a body, send nothing of it, and return the first line of the response."""
    host = web.url.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    text = "\r\n".join([f"{first_line} HTTP/1.1", f"Host: {host}", f"Origin: {web.url}", *lines, "", ""])
    writer.write(text.encode())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        line = await reader.readline()
    writer.close()
    return line


def test_most_routes_are_for_signed_in_people() -> None:
    assert len(SIGNED_IN_ROUTES) > 50


@pytest.mark.parametrize("credentials", ["Cookie: palaver-80=a", "Authorization: Bearer pal_invented", "X-Nothing: 1"])
async def test_strangers_are_rejected_on_every_route_before_their_body_is_read(
    web: WebServer, credentials: str
) -> None:
    for method, path in SIGNED_IN_ROUTES:
        headers = (credentials, "Content-Type: application/json", f"Content-Length: {MAX_BODY_BYTES}")
        line = await send_headers_only(web, f"{method} {path}", *headers)
        assert line.startswith(b"HTTP/1.1 401 "), (method, path, line)


async def test_a_request_is_authenticated_once(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await web.sign_in()
    program = await web.open_token_client("read", "write", "chat", "admin")
    calls = []
    for name in ("find_by_cookie", "find_by_token"):
        find = getattr(web.state.accounts, name)

        def count_call(secret: str, find: Any = find) -> Any:
            calls.append(secret)
            return find(secret)

        monkeypatch.setattr(web.state.accounts, name, count_call)
    for client in (owner, program):
        for path in ("/api/sessions?all=true", "/metrics", "/v1/models", "/api/me"):
            calls.clear()
            assert (await client.get(path)).is_success
            assert len(calls) == 1, path


async def test_a_signed_in_persons_body_is_limited(web: WebServer) -> None:
    owner = await web.sign_in()
    too_long = b'{"title": "' + b"x" * MAX_BODY_BYTES + b'"}'

    async def stream_body() -> AsyncIterator[bytes]:
        for start in range(0, len(too_long), 65536):
            yield too_long[start : start + 65536]

    for content in (too_long, stream_body()):
        response = await owner.post("/api/sessions", content=content, headers=JSON_HEADERS)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")


async def test_the_longest_message_fits_however_it_is_encoded(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    content = json.dumps({"content": "\U0001f600" * 200_000, "key": "1"})
    assert len(content) > 2_400_000
    response = await owner.post(f"/api/sessions/{session}/messages", content=content, headers=JSON_HEADERS)
    assert response.status_code == 202


@pytest.mark.parametrize("path", ["/api/sessions", "/v1/chat/completions"])
async def test_json_with_too_many_values_is_rejected(web: WebServer, path: str) -> None:
    owner = await web.sign_in()
    for value in (b"[]", b"{}", b'"",0', b"[[["):
        content = b'{"title": [' + b",".join([value] * (MAX_JSON_VALUES + 1)) + b"]}"
        response = await owner.post(path, content=content, headers=JSON_HEADERS)
        assert response.status_code == 413, value


async def test_separators_inside_strings_are_not_values(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    text = '[{,"\\' * 30_000
    response = await owner.post(f"/api/sessions/{session}/messages", json={"content": text, "key": "1"})
    assert response.status_code == 202


async def test_the_openai_api_takes_larger_bodies(start_web: StartWebServer) -> None:
    web = await start_web()
    program = await web.open_token_client("chat")
    picture = base64.b64encode(make_png() + bytes(5_000_000)).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    body = {"model": "palaver", "messages": [{"role": "user", "content": [image]}]}
    response = await program.post("/v1/chat/completions", json=body)
    assert response.status_code == 200
    image["image_url"] = {"url": f"data:image/png;base64,{picture * 3}"}
    assert (await program.post("/v1/chat/completions", json=body)).status_code == 413


async def test_a_person_has_only_a_few_large_requests_in_memory_at_once(web: WebServer) -> None:
    """A client that waits for `100 Continue` gets it when the server starts to read the body."""
    owner = await web.sign_in()
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    host = web.url.removeprefix("http://")
    head = (
        f"POST /api/sessions HTTP/1.1\r\nHost: {host}\r\nOrigin: {web.url}\r\nCookie: {cookie}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {LARGE_BODY_BYTES + 1}\r\nExpect: 100-continue\r\n\r\n"
    )
    connections = [await asyncio.open_connection(*host.split(":")) for _ in range(MAX_LARGE_REQUESTS_PER_PERSON + 1)]
    for _, writer in connections:
        writer.write(head.encode())
    waiting = {asyncio.create_task(reader.readline()): writer for reader, writer in connections}
    while len(waiting) > 1:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=TIMEOUT_SECONDS)
        assert done
        for task in done:
            assert b" 100 " in task.result()
            first = waiting.pop(task)
    assert (await owner.get("/api/me")).status_code == 200
    [last] = waiting
    assert not last.done()
    first.write(b"{}".ljust(LARGE_BODY_BYTES + 1))
    assert b" 100 " in await asyncio.wait_for(last, TIMEOUT_SECONDS)
    for _, writer in connections:
        writer.close()
