"""Search, projects, memories, models, commands, policies and usage over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Role, SessionSource, TurnUsage
from palaver.agent.base import TextDelta, Used
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import ToolsetRule
from palaver.domain.turn import BusyPolicy
from palaver.testing import FakeClock, ScriptedAgent
from support.web import remembered_in_a_club

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

    from palaver.agent.base import AgentEvent
    from support.web import StartWeb, Web

ENGINES = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


# ---- search ------------------------------------------------------------------------------------------------


@ENGINES
async def test_a_hit_says_where_its_words_stand(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "the [night] train to Lisbon leaves at nine", title="Lisbon")
    [hit] = (await owner.get("/api/search", params={"text": "night nine"})).json()["hits"]
    assert (hit["session_id"], hit["title"], hit["role"]) == (session_id, "Lisbon", "user")
    assert [hit["snippet"][begin:end] for begin, end in hit["marks"]] == ["night", "nine"]
    place = f"/api/sessions/{session_id}/messages"
    around = (await owner.get(place, params={"around": hit["seq"]})).json()
    assert hit["seq"] in [event["seq"] for event in around["events"]]


async def test_a_search_goes_on_where_it_ended_and_stays_in_one_conversation(web: Web) -> None:
    owner = await web.client()
    first = await web.talk(owner, *(f"apple {number}" for number in range(3)))
    await web.talk(owner, "apple elsewhere")

    async def found(**params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = (await owner.get("/api/search", params={"text": "apple", **params})).json()
        return answer

    assert len((await found())["hits"]) == 4
    page = await found(within=first, limit=2)
    assert [hit["snippet"] for hit in page["hits"]] == ["apple 2", "apple 1"]
    rest = await found(within=first, limit=2, before=page["cursor"])
    assert ([hit["snippet"] for hit in rest["hits"]], rest["cursor"]) == (["apple 0"], None)


# ---- projects ----------------------------------------------------------------------------------------------


async def test_a_project_is_made_changed_filled_and_deleted(web: Web) -> None:
    owner = await web.client()
    made = await owner.post("/api/projects", json={"name": "Travel", "colour": "#3b82f6"})
    assert made.status_code == 201
    place = f"/api/projects/{made.json()['id']}"
    assert (await owner.patch(place, json={"name": "Journeys"})).json()["colour"] == "#3b82f6"
    session_id = await web.talk(owner, "hello")
    await owner.patch(f"/api/sessions/{session_id}", json={"project": "journeys"})
    [project] = (await owner.get("/api/projects")).json()["projects"]
    assert (project["name"], project["session_count"]) == ("Journeys", 1)
    inside = (await owner.get("/api/sessions", params={"project": project["id"]})).json()["sessions"]
    assert [session["id"] for session in inside] == [session_id]
    assert (await owner.delete(place)).status_code == 204
    assert (await owner.get(f"/api/sessions/{session_id}")).json()["project_id"] is None
    assert (await owner.delete(place)).status_code == 404


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "x", "colour": "red"}, {}, {"name": 7}])
async def test_a_project_that_cannot_be_is_refused(web: Web, body: dict[str, Any]) -> None:
    owner = await web.client()
    assert (await owner.post("/api/projects", json=body)).status_code == 422


# ---- memories ----------------------------------------------------------------------------------------------


@ENGINES
async def test_a_memory_is_made_found_changed_and_forgotten(web: Web) -> None:
    owner = await web.client()
    made = await owner.post("/api/memories", json={"text": " My cat is called Ada. "})
    assert made.status_code == 201
    memory = made.json()
    assert (memory["text"], memory["asked_by"], memory["asked_by_me"]) == ("My cat is called Ada.", "owner", True)
    assert (memory["shared"], memory["others"], memory["other_count"]) == (False, [], 0)
    assert (await owner.post("/api/memories", json={"text": "my cat is called ADA."})).json()["id"] == memory["id"]
    await owner.post("/api/memories", json={"text": "The bins go out on Tuesday."})
    page = (await owner.get("/api/memories", params={"limit": 1})).json()
    assert [each["text"] for each in page["memories"]] == ["The bins go out on Tuesday."]
    rest = (await owner.get("/api/memories", params={"limit": 1, "cursor": page["cursor"]})).json()
    assert [each["id"] for each in rest["memories"]] == [memory["id"]]
    assert [each["id"] for each in (await owner.get("/api/memories?query=cat ad")).json()["memories"]] == [memory["id"]]
    place = f"/api/memories/{memory['id']}"
    assert (await owner.patch(place, json={"text": "My cat is called Bo."})).json()["text"] == "My cat is called Bo."
    assert (await owner.delete(place)).status_code == 204
    assert (await owner.delete(place)).status_code == 404
    assert (await owner.patch(place, json={"text": "x"})).status_code == 404
    assert len((await owner.get("/api/memories")).json()["memories"]) == 1


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"text": "x" * 2001}, {"text": 7}, {"text": "x", "shared": True}])
async def test_what_cannot_be_remembered_is_refused(web: Web, body: dict[str, Any]) -> None:
    owner = await web.client()
    assert (await owner.post("/api/memories", json=body)).status_code == 422
    assert (await owner.get("/api/memories")).json()["memories"] == []


async def test_what_two_people_share_both_may_change_and_nobody_else(web: Web) -> None:
    ada, bob, eve = [await web.client(name) for name in ("ada", "bob", "eve")]
    memory_id = await remembered_in_a_club(web, ada, bob)
    place = f"/api/memories/{memory_id}"
    [memory] = (await bob.get("/api/memories")).json()["memories"]
    assert (memory["shared"], memory["asked_by"], memory["asked_by_me"]) == (True, "ada", False)
    assert (memory["others"], memory["other_count"]) == (["ada"], 1)
    assert (await eve.get("/api/memories")).json()["memories"] == []
    assert (await eve.patch(place, json={"text": "x"})).status_code == (await eve.delete(place)).status_code == 404
    assert (await bob.patch(place, json={"text": "The club meets on Friday."})).json()["asked_by"] == "bob"
    assert [each["text"] for each in (await ada.get("/api/memories")).json()["memories"]] == [
        "The club meets on Friday."
    ]
    assert (await ada.delete(place)).status_code == 204
    assert (await bob.get("/api/memories")).json()["memories"] == []


@pytest.mark.parametrize(
    ("toolsets", "told"),
    [
        ({"memory": ToolsetRule()}, (True, True, None)),
        ({}, (False, False, None)),
        ({"memory": ToolsetRule(roles=frozenset({Role.OWNER}))}, (True, False, None)),
        ({"memory": ToolsetRule(platforms=frozenset({Platform.TELEGRAM}))}, (True, True, ["telegram"])),
    ],
)
async def test_whether_the_agent_remembers_for_somebody_is_told(
    start_web: StartWeb, toolsets: dict[str, ToolsetRule], told: tuple[bool, bool, list[str] | None]
) -> None:
    web = await start_web(rules={"toolsets": toolsets})
    agent = (await (await web.client("ada")).get("/api/memories")).json()["agent"]
    assert (agent["enabled"], agent["allowed"], agent["platforms"]) == told


async def test_a_program_needs_the_scope_to_remember(web: Web) -> None:
    reader, writer = await web.token("read"), await web.token("write")
    assert (await reader.post("/api/memories", json={"text": "x"})).status_code == 403
    assert (await writer.post("/api/memories", json={"text": "x"})).status_code == 201
    assert (await reader.get("/api/memories")).status_code == 200


# ---- models and commands -----------------------------------------------------------------------------------


async def test_the_models_and_the_agent_are_told(start_web: StartWeb) -> None:
    web = await start_web(ScriptedAgent(window=32_000))
    owner = await web.client()
    models = (await owner.get("/api/models")).json()
    assert models["models"] == [
        {"name": "scripted", "context_window": 32_000},
        {"name": "scripted-large", "context_window": 32_000},
    ]
    more = (await owner.get("/api/models", params={"also": "scripted-old"})).json()
    assert [model["name"] for model in more["models"]] == ["scripted", "scripted-large", "scripted-old"]
    assert (models["default"], models["description"]) == ("scripted", "A scripted agent answers, for tests.")


async def test_every_command_is_listed_and_can_be_given(web: Web) -> None:
    owner = await web.client()
    commands = (await owner.get("/api/commands")).json()["commands"]
    assert {"/new", "/help", "/undo"} <= {command["name"] for command in commands}
    session_id = await web.talk(owner, "hello")
    told = await owner.post("/api/commands", json={"text": "/status", "key": "a", "session_id": session_id})
    assert (told.json()["outcome"], told.json()["session_id"]) == ("command", session_id)
    helped = (await owner.post("/api/commands", json={"text": "/help", "key": "b"})).json()
    assert "/undo" in helped["reply"]


async def test_a_command_that_cannot_be_done_is_answered_and_an_ordinary_text_is_refused(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    body = {"text": "/redo", "key": "a", "session_id": session_id}
    assert (await owner.post("/api/commands", json=body)).json()["outcome"] == "refused"
    refused = await owner.post("/api/commands", json={"text": "hello", "key": "b"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")


async def test_a_new_conversation_by_command_leaves_the_others_alone(web: Web) -> None:
    owner = await web.client()
    first = await web.talk(owner, "hello")
    moved = (await owner.post("/api/commands", json={"text": "/new", "key": "a", "session_id": first})).json()
    assert moved["session_id"] not in {None, first}
    await web.say(owner, first, "still here")
    assert (await owner.get(f"/api/sessions/{first}")).json()["message_count"] == 4


# ---- policies ----------------------------------------------------------------------------------------------


async def test_what_holds_for_conversations_is_told_for_each_platform(start_web: StartWeb) -> None:
    config = GatewayConfig(
        connected_platforms=(Platform.TELEGRAM,),
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=90)},
    )
    web = await start_web(config=config, rules={"busy_by_platform": {Platform.WEB: BusyPolicy.STEER}})
    told = (await (await web.client("ada")).get("/api/policies")).json()
    [afresh] = told["default"]["afresh"]
    assert (afresh["mode"], afresh["key"], afresh["is_default"]) == ("none", "session_reset", True)
    assert (told["default"]["busy"], told["default"]["busy_is_default"]) == ("queue", True)
    platforms = {each["platform"]: each for each in told["platforms"]}
    assert set(platforms) == {"api", "telegram", "web"}
    [afresh] = platforms["telegram"]["afresh"]
    assert (afresh["mode"], afresh["idle_minutes"], afresh["key"]) == ("idle", 90, "reset_by_platform.telegram")
    assert "idle_minutes: 90" in platforms["telegram"]["lines"]
    assert platforms["web"]["afresh"] == []
    assert (platforms["web"]["busy"], platforms["web"]["busy_key"]) == ("steer", "platforms.web.busy")


async def test_a_conversation_of_the_web_never_starts_afresh_by_itself(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(
        config=GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=1)), clock=clock
    )
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    clock.advance(hours=2)
    assert (await web.say(owner, session_id, "still here"))["session_id"] == session_id


async def test_a_platform_where_somebody_else_is_known_is_not_told(web: Web) -> None:
    await web.gateway.store.aio.record_user_message(SessionSource("matrix", "!room", user_id="@bob"), "hello")
    for person in ("owner", "ada"):
        told = (await (await web.client(person)).get("/api/policies")).json()
        assert "matrix" not in [each["platform"] for each in told["platforms"]]
    assert "local" in [
        each["platform"] for each in (await (await web.client()).get("/api/policies")).json()["platforms"]
    ]


# ---- usage -------------------------------------------------------------------------------------------------


def spending(model: str = "big", cost: str | None = "0.25") -> Sequence[AgentEvent]:
    return [TextDelta("ok"), Used(TurnUsage(model=model, input_tokens=100, output_tokens=10, cost=cost))]


async def report(client: httpx2.AsyncClient, **params: str) -> dict[str, Any]:
    answer = await client.get("/api/usage", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@ENGINES
async def test_what_was_used_is_told_by_every_grouping(start_web: StartWeb) -> None:
    kinds = iter([spending(), spending("small", None), spending()])
    web = await start_web(ScriptedAgent(lambda _request: next(kinds)))
    owner, ada = await web.client(), await web.client("ada")
    mine = await web.talk(owner, "one", "two", title="Mine")
    await web.talk(ada, "three")
    total = (await report(owner))["total"]
    assert (total["turns"], total["input_tokens"], total["cost_usd"], total["unpriced_turns"]) == (2, 200, "0.25", 1)
    today = datetime.now(UTC).date().isoformat()
    assert [(row["group"], row["turns"]) for row in (await report(owner, by="day"))["rows"]] == [(today, 2)]
    models = {row["group"]: row["cost_usd"] for row in (await report(owner, by="model"))["rows"]}
    assert models == {"big": "0.25", "small": None}
    assert [row["group"] for row in (await report(owner, by="platform"))["rows"]] == ["web"]
    assert [(row["group"], row["label"]) for row in (await report(owner, by="session"))["rows"]] == [(mine, "Mine")]
    people = (await report(owner, by="person", all="true"))["rows"]
    assert {row["label"]: row["turns"] for row in people} == {"owner": 2, "ada": 1}
    assert (await report(owner, all="true"))["total"]["cost_usd"] == "0.5"


@ENGINES
async def test_money_spent_stays_spent_when_a_conversation_is_deleted(start_web: StartWeb) -> None:
    web = await start_web(ScriptedAgent(lambda _request: spending()))
    owner = await web.client()
    session_id = await web.talk(owner, "one")
    await owner.delete(f"/api/sessions/{session_id}")
    [row] = (await report(owner, by="session"))["rows"]
    assert (row["group"], row["label"], row["cost_usd"]) == (None, "deleted", "0.25")
    assert [row["label"] for row in (await report(owner, by="person"))["rows"]] == ["owner"]
    assert [row["group"] for row in (await report(owner, by="platform"))["rows"]] == ["web"]


async def test_a_report_is_of_the_days_that_were_asked_for(start_web: StartWeb) -> None:
    web = await start_web(ScriptedAgent(lambda _request: spending()))
    owner = await web.client()
    await web.talk(owner, "one")
    today = datetime.now(UTC).date()
    yesterday = (today - timedelta(days=1)).isoformat()
    assert (await report(owner, **{"from": yesterday, "to": yesterday}))["total"]["turns"] == 0
    assert (await report(owner, **{"from": yesterday}))["total"]["turns"] == 1
    refused = await owner.get("/api/usage", params={"from": today.isoformat(), "to": yesterday})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")
