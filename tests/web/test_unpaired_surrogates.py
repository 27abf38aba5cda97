"""Unpaired surrogates: JSON can contain them, and nothing that is stored, logged or sent may.

They are replaced where text enters, so that no entrance makes a request fail now or later.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.core.text import encode_json, make_json_storable, make_storable
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    import httpx2

    from palaver import SessionStore
    from palaver.agent.base import AgentEvent
    from support.web import StartWebServer, WebServer

BAD = "needle \ud800 and \x00"
CLEAN = "needle ? and  "


async def send_json(client: httpx2.AsyncClient, method: str, url: str, **body: Any) -> httpx2.Response:
    """Send a body with the escapes that JSON allows."""
    content = json.dumps(body).encode()
    return await client.request(method, url, content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "😀"),
        ("a\ud800b\udc00", "a?b?"),
        ("\ude00\ud83d", "??"),
        ("a\0b", "a b"),
        ("😀\ud800漢", "😀?漢"),
    ],
)
def test_what_cannot_be_stored_is_replaced(text: str, clean: str) -> None:
    assert make_storable(text) == clean
    assert make_json_storable({text: [text, {"inner": [text, 1, None]}]}) == {
        clean: [clean, {"inner": [clean, 1, None]}]
    }
    assert json.loads(encode_json(MappingProxyType({text: (text, [text])}))) == {clean: [clean, [clean]]}


def test_storable_data_stays_as_it_is() -> None:
    data = {"a": ["b", {"c": 1}], "d": None}
    assert make_json_storable(data) == data
    assert encode_json(data) == '{"a":["b",{"c":1}],"d":null}'


async def test_every_entrance_of_the_api_replaces_unpaired_surrogates(start_web: StartWebServer) -> None:
    web = await start_web()
    owner = await web.sign_in()
    session = await web.create_session(owner)
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", f"/api/sessions/{session}/messages", {"content": BAD, "key": "1"}),
        ("POST", f"/api/sessions/{session}/messages", {"content": [{"type": "text", "text": BAD}], "key": "2"}),
        ("PATCH", f"/api/sessions/{session}", {"title": BAD}),
        ("POST", "/api/sessions", {"title": BAD + "2"}),
        ("POST", "/api/projects", {"name": BAD}),
        ("POST", "/api/people", {"name": BAD, "role": "member"}),
        ("POST", "/api/memories", {"text": BAD}),
        ("POST", "/api/commands", {"text": f"/title {BAD}", "key": "3"}),
        ("POST", "/api/commands", {"text": f"/search {BAD}", "key": "4"}),
        ("POST", "/api/me/tokens", {"name": BAD, "scopes": ["read"]}),
        ("POST", f"/api/sessions/{session}/fork", {"title": BAD + "3"}),
        ("POST", "/v1/chat/completions", {"model": "palaver", "messages": [{"role": "user", "content": BAD}]}),
    ]
    for method, url, body in requests:
        response = await send_json(owner, method, url, **body)
        assert response.is_success, (url, response.text)
    for url in (
        "/api/search?query=needle",
        "/api/search?query=%ED%A0%80",
        "/api/search?query=a%00b",
        "/api/sessions",
        f"/api/sessions/{session}",
        f"/api/sessions/{session}/messages",
        f"/api/sessions/{session}/export",
        f"/api/sessions/{session}/export?format=markdown",
        "/api/projects",
        "/api/people",
        "/api/memories",
        "/api/me/tokens",
    ):
        response = await owner.get(url)
        assert response.status_code == 200, (url, response.text)
        assert b"\\ud8" not in response.content, url
    assert len((await owner.get("/api/search?query=needle")).json()["hits"]) >= 3


async def test_a_body_that_is_not_json_is_still_reported(web: WebServer) -> None:
    owner = await web.sign_in()
    for content in (b'{"name": "\\ud800', b'{"name": ' + b"[" * 5000 + b'"\\ud800"' + b"]" * 5000 + b"}"):
        response = await owner.post("/api/projects", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code in {400, 413, 422}, response.text


def test_the_store_replaces_unpaired_surrogates(store: SessionStore) -> None:
    source = SessionSource("telegram", "1", user_id="7", user_name=BAD, chat_name=BAD)
    recorded = store.record_user_message(source, {"role": "user", "content": BAD, "author": {"name": BAD}})
    calls = [{"id": "1", "function": {"name": "look", "arguments": BAD}}]
    store.append_to_transcript(
        recorded.session_id,
        [
            {"role": "assistant", "content": None, "tool_calls": calls, "reasoning": BAD, BAD: {BAD: [BAD]}},
            {"role": "tool", "content": [{"type": "text", "text": BAD}], "tool_call_id": "1"},
        ],
    )
    session = store.get_session(recorded.session_id)
    loaded = (store.load_transcript(recorded.session_id), session.origin.to_dict(), session.preview)
    assert json.dumps(loaded, ensure_ascii=False).encode()
    assert "\x00" not in str(loaded)
    assert store.load_transcript(recorded.session_id)[0]["content"] == CLEAN
    assert [hit.snippet.text for hit in store.search("needle")]


async def test_what_models_and_tools_return_is_replaced(start_web: StartWebServer) -> None:
    answer: list[AgentEvent] = [
        *(ReasoningDelta(BAD), TextDelta(BAD), ToolCall("c1", "look", BAD), ToolResult("c1", "look", BAD)),
        *(TextDelta("\ud83d"), TextDelta("\ude00")),
    ]
    web = await start_web(ScriptedAgent(lambda _request: answer))
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    response = await owner.get(f"/api/sessions/{session}/messages")
    assert response.status_code == 200
    assert "\ufffd" not in response.text
    assert response.json()["events"][-1]["message"]["content"] == "😀"
    assert (await owner.get("/api/search?query=needle")).json()["hits"]


async def test_what_platforms_deliver_is_replaced(web: WebServer) -> None:
    source = SessionSource("telegram", "1", user_id="7", user_name=BAD, chat_name=BAD, chat_topic=BAD)
    receipt = await web.gateway.inbox.accept(Inbound(source=source, content=BAD, message_id="m1"))
    owner = await web.sign_in()
    for url in (f"/api/sessions/{receipt.session_id}", f"/api/sessions/{receipt.session_id}/messages", "/api/people"):
        response = await owner.get(url if url == "/api/people" else f"{url}?all=true")
        assert response.status_code == 200, response.text
        assert CLEAN[:8] in response.text
