"""Profiles, personalities, workspaces and filters over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.config.agent_rules import AgentProfile, Profile
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer

CHOICES = AgentProfile(
    profiles={"work": Profile(description="For the office", model="scripted-large", toolsets=("history",))},
    personalities={"pirate": "Talk like a pirate."},
)


async def start(client: httpx2.AsyncClient, text: str = "hello", **fields: Any) -> dict[str, Any]:
    session = (await client.post("/api/sessions", json=fields)).json()
    sent = await client.post(f"/api/sessions/{session['id']}/messages", json={"content": text, "key": "1"})
    assert sent.status_code == 202
    return dict(session)


async def test_the_profiles_and_personalities_are_listed(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(), profile=CHOICES)
    ada = await web.sign_in("Ada")
    listed = (await ada.get("/api/profiles")).json()
    assert listed == {
        "profiles": [
            {
                "name": "work",
                "title": "",
                "picture": None,
                "description": "For the office",
                "model": "scripted-large",
                "toolsets": ["history"],
                "session_reset": None,
            }
        ],
        "personalities": [{"name": "pirate", "instructions": "Talk like a pirate."}],
    }


async def test_choices_are_made_at_the_start_changed_and_reset(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(), profile=CHOICES)
    ada = await web.sign_in("Ada")
    session = await start(ada, profile="Work", personality="pirate", workspace=" /srv/site ")
    assert (session["profile"], session["personality"], session["workspace"]) == ("work", "pirate", "/srv/site")
    path = f"/api/sessions/{session['id']}"
    toolsets = (await ada.get(f"{path}/toolsets")).json()["toolsets"]
    assert [toolset["name"] for toolset in toolsets] == ["history"]
    copy = (await ada.post(f"{path}/fork", json={})).json()
    assert (copy["profile"], copy["personality"], copy["workspace"]) == ("work", "pirate", "/srv/site")
    changes = {"profile": None, "personality": None, "workspace": None}
    reset = (await ada.patch(path, json=changes)).json()
    assert (reset["profile"], reset["personality"], reset["workspace"]) == (None, None, None)


@pytest.mark.parametrize("field", ["profile", "personality", "workspace"])
async def test_an_impossible_choice_is_refused(start_web: StartWebServer, field: str) -> None:
    web = await start_web(ScriptedAgent(), profile=CHOICES)
    ada = await web.sign_in("Ada")
    session = await start(ada)
    for value in ("no such\nthing", "", "x" * 300):
        response = await ada.patch(f"/api/sessions/{session['id']}", json={field: value, "title": "Changed"})
        assert response.status_code == 422, response.text
        assert (await ada.post("/api/sessions", json={field: value})).status_code == 422
    assert (await ada.get(f"/api/sessions/{session['id']}")).json()["title"] is None


async def test_a_session_has_its_tool_calls_and_the_provider_of_its_model(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent())
    ada = await web.sign_in("Ada")
    session = await start(ada)
    shown = (await ada.get(f"/api/sessions/{session['id']}")).json()
    assert (shown["tool_call_count"], shown["model_provider"]) == (0, None)


async def test_filters_of_searches_and_lists_find_nothing_of_others(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent("the train leaves"))
    ada, bob = await web.sign_in("Ada"), await web.sign_in("Bob")
    mine = await start(ada, "train to lisbon")
    await start(bob, "train of bob")
    project = (await ada.post("/api/projects", json={"name": "Trips"})).json()["id"]
    await ada.patch(f"/api/sessions/{mine['id']}", json={"project": project})

    async def search(client: httpx2.AsyncClient, **params: str) -> list[str]:
        response = await client.get("/api/search", params={"query": "train", **params})
        assert response.status_code == 200, response.text
        return [hit["session_id"] for hit in response.json()["hits"]]

    async def list_ids(client: httpx2.AsyncClient, **params: str) -> list[str]:
        response = await client.get("/api/sessions", params=params)
        assert response.status_code == 200, response.text
        return [session["id"] for session in response.json()["sessions"]]

    for found in (
        {"platform": "web"},
        {"role": "user"},
        {"after": "2020-01-01"},
        {"after": "2020-01-01T00:00:00+02:00"},
        {"before": "2999-01-01"},
        {"without": "porto"},
    ):
        assert set(await search(ada, **found)) == {mine["id"]}
        assert mine["id"] not in await search(bob, **found)
    assert set(await search(ada, project="Trips")) == {mine["id"]}
    assert (await bob.get("/api/search", params={"query": "train", "project": project})).status_code == 404
    for nothing in ({"platform": "slack"}, {"role": "tool"}, {"before": "2020-01-01"}, {"without": "train"}):
        assert await search(ada, **nothing) == []
    ada_id = (await ada.get("/api/me")).json()["person"]["id"]
    for person in ("ada", ada_id):
        assert await search(ada, person=person) == [mine["id"]]  # the question, not the answer
        refused = await bob.get("/api/search", params={"query": "train", "person": person})
        assert refused.status_code == 404
        assert "lisbon" not in refused.text
    people = {
        name: (await client.get("/api/search/people")).json()["people"] for name, client in (("a", ada), ("b", bob))
    }
    assert [[each["name"] for each in found] for found in people.values()] == [["Ada"], ["Bob"]]
    assert await search(ada, archived="only") == []
    await ada.patch(f"/api/sessions/{mine['id']}", json={"archived": True})
    assert set(await search(ada, archived="only")) == set(await search(ada)) == {mine["id"]}
    assert await search(ada, archived="without") == await search(bob, archived="only") == []
    assert mine["id"] not in await search(bob, archived="both")
    await ada.patch(f"/api/sessions/{mine['id']}", json={"archived": False})
    for listed in ({"platform": "web"}, {"after": "2020-01-01"}, {"before": "2999-01-01"}, {"query": "-porto"}):
        assert await list_ids(ada, **listed) == [mine["id"]]
        assert mine["id"] not in await list_ids(bob, **listed)
    assert await list_ids(ada, platform="slack") == await list_ids(ada, after="2999-01-01") == []
    for wrong in ({"role": "boss"}, {"after": "yesterday"}, {"archived": "maybe"}, {"person": "x" * 201}):
        assert (await ada.get("/api/search", params={"query": "train", **wrong})).status_code == 422
