"""Temporary conversations over HTTP: answers as a stream, errors before it, and its end when the client leaves."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ReasoningDelta, TextDelta, UsageReport
from palaver.core.errors import AgentUnavailable
from palaver.people.model import Role
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from support.agents import EndlessAgent
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.metered_work import read_recorded

if TYPE_CHECKING:
    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

URL = "/api/temporary/answers"


def make_body(*texts: str, **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts)]
    return {"messages": messages, **fields}


def parse_events(text: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.split("\n") for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


async def ask(client: httpx2.AsyncClient, *texts: str, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    response = await client.post(URL, json=make_body(*texts, **fields))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    return parse_events(response.text)


async def test_an_answer_arrives_as_a_stream_of_events(start_web: StartWebServer) -> None:
    used = TurnUsage(model="large", provider="one", input_tokens=10, output_tokens=3, cost="0.02")
    script: list[AgentEvent] = [ReasoningDelta("Hm."), TextDelta("Hello, "), TextDelta("Ada."), UsageReport(used)]
    web = await start_web(ScriptedAgent(lambda _request: script))
    events = await ask(await web.sign_in("ada"), "I am Ada", "Hello", "Say it again")
    assert events == [
        ("reasoning", {"text": "Hm."}),
        ("text", {"text": "Hello, "}),
        ("text", {"text": "Ada."}),
        (
            "end",
            {
                "state": "done",
                "error": None,
                "facts": {},
                "usage": {"model": "large", "input_tokens": 10, "output_tokens": 3, "cost_usd": "0.02"},
            },
        ),
    ]


async def test_no_list_search_or_export_knows_of_it(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    await ask(ada, "where is my xylophone?")
    for path in ("/api/sessions", "/api/search?query=xylophone", "/api/memories", "/api/usage"):
        response = await ada.get(path)
        assert response.status_code == 200
        assert "xylophone" not in response.text
    assert (await ada.get("/api/sessions")).json()["sessions"] == []


async def test_a_failure_of_the_agent_is_the_end_of_the_stream(start_web: StartWebServer) -> None:
    def fail(_request: AgentRequest) -> str:
        raise AgentUnavailable("The provider is down.", code="provider_unavailable", status=503)

    web = await start_web(ScriptedAgent(fail))
    [(name, end)] = await ask(await web.sign_in("ada"), "hello")
    assert name == "end"
    assert (end["state"], end["error"]) == ("failed", "The provider is down.")
    assert end["facts"] == {"code": "provider_unavailable", "status": 503}


async def test_bad_questions_are_refused_before_the_stream(start_web: StartWebServer) -> None:
    web = await start_web(
        rules={"models_by_role": {Role.MEMBER: ("scripted",)}, "messages_per_minute": {Role.MEMBER: 1}}
    )
    ada = await web.sign_in("ada")
    for body, status, code in (
        ({"messages": []}, 422, "invalid_request"),
        (make_body("a", "b"), 422, "invalid_input"),
        (make_body(*["a"] * 1001), 422, "invalid_request"),
        ({"messages": [{"role": "system", "content": "obey"}]}, 422, "invalid_request"),
        (make_body("hello", attachment_ids=["att_1"]), 422, "invalid_request"),
        (make_body("/new"), 422, "command_unavailable"),
        (make_body("hello", model="scripted-large"), 403, "not_allowed"),
    ):
        response = await ada.post(URL, json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    await ask(ada, "hello")
    response = await ada.post(URL, json=make_body("hello"))
    assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_attempts")
    assert int(response.headers["retry-after"]) > 0


async def test_a_token_needs_the_scope_write(web: WebServer) -> None:
    reader = await web.open_token_client("read", person="ada")
    assert (await reader.post(URL, json=make_body("hello"))).status_code == 403
    writer = await web.open_token_client("write", person="ada")
    assert (await writer.post(URL, json=make_body("hello"))).status_code == 200


async def test_a_client_that_disconnects_stops_the_answer(start_web: StartWebServer) -> None:
    endless = EndlessAgent()
    web = await start_web(endless.agent)
    ada = await web.sign_in("ada")
    async with ada.stream("POST", URL, json=make_body("hello")) as response:
        assert response.status_code == 200
        await endless.started.wait()
    await wait_until(lambda: read_recorded(web.gateway.store))
    assert read_recorded(web.gateway.store) == [(1010, 10_000_000)]


async def test_signing_out_ends_the_stream(start_web: StartWebServer) -> None:
    endless = EndlessAgent()
    web = await start_web(endless.agent)
    ada = await web.sign_in("ada")
    async with ada.stream("POST", URL, json=make_body("hello")) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "event: text"
        assert (await ada.post("/api/sign-out")).is_success
        async with asyncio.timeout(TIMEOUT_SECONDS):
            rest = [line async for line in lines]
    assert not any(line.startswith("event:") for line in rest)


async def test_a_server_that_stops_says_so(start_web: StartWebServer) -> None:
    endless = EndlessAgent()
    web = await start_web(endless.agent)
    ada = await web.sign_in("ada")
    async with ada.stream("POST", URL, json=make_body("hello")) as response:
        lines = response.aiter_lines()
        first = [await anext(lines) for _ in range(3)]
        stopping = asyncio.create_task(web.state.close_streams())
        rest = [line async for line in lines]
        await stopping
    assert first[0] == "event: text"
    [(name, end)] = parse_events("\n".join(rest).strip())
    assert name == "end"
    assert (end["state"], end["facts"]) == ("interrupted", {"reason": "server_stopped"})
