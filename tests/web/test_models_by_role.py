"""Models that a role may choose: the same everywhere a model can be chosen, listed or used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.people.model import Role
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer

RULES = {"models_by_role": {Role.MEMBER: ("scripted-mini", "cheap:*")}}


@pytest.fixture
def agent() -> ScriptedAgent:
    return ScriptedAgent()


@pytest.fixture
async def limited_server(start_web: StartWebServer, agent: ScriptedAgent) -> WebServer:
    return await start_web(agent, rules=RULES)


async def list_names(client: httpx2.AsyncClient, **params: str) -> list[str]:
    return [model["name"] for model in (await client.get("/api/models", params=params)).json()["models"]]


async def test_a_person_sees_only_the_models_that_they_may_choose(limited_server: WebServer) -> None:
    ada, owner = await limited_server.sign_in("ada"), await limited_server.sign_in()
    assert await list_names(owner) == ["scripted", "scripted-large"]
    assert await list_names(ada) == ["scripted", "scripted-mini"]
    assert await list_names(ada, include="cheap:fast") == ["scripted", "scripted-mini", "cheap:fast"]
    assert await list_names(ada, include="scripted-large") == ["scripted", "scripted-mini"]
    client = await limited_server.open_token_client("chat", person="ada")
    models = (await client.get("/v1/models")).json()["data"]
    assert [model["id"] for model in models] == ["palaver", "scripted", "scripted-mini"]
    assert (await client.get("/v1/models/scripted-large")).status_code == 404
    body = {"text": "/model", "key": "1"}
    reply = (await ada.post("/api/commands", json=body)).json()
    assert reply["facts"]["models"] == ["scripted", "scripted-mini"]


@pytest.mark.parametrize(
    ("model", "is_allowed"),
    [
        ("scripted", True),
        ("scripted-mini", True),
        ("cheap:fast", True),
        ("scripted-large", False),
        ("scripted-mini2", False),
        ("cheapest:fast", False),
    ],
)
async def test_a_model_is_refused_in_the_same_way_everywhere(
    limited_server: WebServer, model: str, is_allowed: bool
) -> None:
    ada = await limited_server.sign_in("ada")
    session_id = await limited_server.create_conversation(ada, "hello")
    completions = await limited_server.open_token_client("chat", person="ada")
    question = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    responses = [
        await ada.post("/api/sessions", json={"model": model}),
        await ada.patch(f"/api/sessions/{session_id}", json={"model": model}),
        await completions.post("/v1/chat/completions", json=question),
    ]
    command = {"text": f"/model {model}", "session_id": session_id, "key": "1"}
    receipt = (await ada.post("/api/commands", json=command)).json()
    if is_allowed:
        assert [response.status_code for response in responses] == [201, 200, 200]
        assert receipt["outcome"] == "command"
        return
    advice = "Choose one of these: scripted, scripted-mini."
    assert [response.status_code for response in responses] == [403, 403, 403]
    assert all(advice in response.json()["error"]["message"] for response in responses)
    assert (receipt["outcome"], receipt["facts"]["error"]) == ("rejected", "not_allowed")
    assert advice in receipt["reply"]
    owner = await limited_server.sign_in()
    assert (await owner.post("/api/sessions", json={"model": model})).status_code == 201


async def test_the_default_answers_people_who_may_not_use_the_chosen_model(
    limited_server: WebServer, agent: ScriptedAgent
) -> None:
    ada, owner = await limited_server.sign_in("ada"), await limited_server.sign_in()
    session_id = ""
    for client in (owner, ada):
        person = (await client.get("/api/me")).json()["person"]
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person["id"])
        session_id = (await limited_server.gateway.store.aio.record_user_message(source, "hello all")).session_id
    response = await owner.patch(f"/api/sessions/{session_id}", json={"model": "scripted-large"})
    assert response.status_code == 200, response.text
    models = []
    for client in (owner, ada):
        body = {"content": "and now?", "key": "1"}
        receipt = (await client.post(f"/api/sessions/{session_id}/messages", json=body)).json()
        await wait_for_turn(limited_server.gateway, receipt["turn_id"])
        models.append(agent.requests[-1].model)
    assert models == ["scripted-large", None]
