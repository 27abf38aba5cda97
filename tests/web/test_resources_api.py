"""Search, projects, memories, models, commands, policies and usage over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Role, SessionSource, TurnUsage
from palaver.agent.base import TextDelta, UsageReport
from palaver.config.agent_rules import ToolsetRule
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.turn import BusyPolicy
from palaver.testing import FakeClock, ScriptedAgent
from support.web import create_shared_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

    from palaver.agent.base import AgentEvent
    from support.web import StartWebServer, WebServer


# ---- search ------------------------------------------------------------------------------------------------


async def test_a_search_hit_marks_the_matching_words(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "the [night] train to Lisbon leaves at nine", title="Lisbon")
    [hit] = (await owner.get("/api/search", params={"query": "night nine"})).json()["hits"]
    assert (hit["session_id"], hit["title"], hit["role"]) == (session_id, "Lisbon", "user")
    assert [hit["snippet"][start:end] for start, end in hit["highlights"]] == ["night", "nine"]
    url = f"/api/sessions/{session_id}/messages"
    around = (await owner.get(url, params={"around": hit["seq"]})).json()
    assert hit["seq"] in [event["seq"] for event in around["events"]]


async def test_a_search_continues_at_its_cursor_and_stays_in_one_conversation(web: WebServer) -> None:
    owner = await web.sign_in()
    first = await web.create_conversation(owner, *(f"apple {number}" for number in range(3)))
    await web.create_conversation(owner, "apple elsewhere")

    async def search(**params: Any) -> dict[str, Any]:
        response: dict[str, Any] = (await owner.get("/api/search", params={"query": "apple", **params})).json()
        return response

    assert len((await search())["hits"]) == 4
    page = await search(session_id=first, limit=2)
    assert [hit["snippet"] for hit in page["hits"]] == ["apple 2", "apple 1"]
    rest = await search(session_id=first, limit=2, cursor=page["next_cursor"])
    assert ([hit["snippet"] for hit in rest["hits"]], rest["next_cursor"]) == (["apple 0"], None)


# ---- projects ----------------------------------------------------------------------------------------------


async def test_a_project_can_be_created_changed_filled_and_deleted(web: WebServer) -> None:
    owner = await web.sign_in()
    created = await owner.post("/api/projects", json={"name": "Travel", "color": "#3b82f6"})
    assert created.status_code == 201
    url = f"/api/projects/{created.json()['id']}"
    assert (await owner.patch(url, json={"name": "Journeys"})).json()["color"] == "#3b82f6"
    session_id = await web.create_conversation(owner, "hello")
    await owner.patch(f"/api/sessions/{session_id}", json={"project": "journeys"})
    [project] = (await owner.get("/api/projects")).json()["projects"]
    assert (project["name"], project["session_count"]) == ("Journeys", 1)
    inside = (await owner.get("/api/sessions", params={"project": project["id"]})).json()["sessions"]
    assert [session["id"] for session in inside] == [session_id]
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.get(f"/api/sessions/{session_id}")).json()["project_id"] is None
    assert (await owner.delete(url)).status_code == 404


@pytest.mark.parametrize("body", [{"name": ""}, {"name": "x", "color": "red"}, {}, {"name": 7}])
async def test_an_invalid_project_is_rejected(web: WebServer, body: dict[str, Any]) -> None:
    owner = await web.sign_in()
    assert (await owner.post("/api/projects", json=body)).status_code == 422


# ---- memories ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_memory_can_be_created_found_changed_and_deleted(web: WebServer) -> None:
    owner = await web.sign_in()
    created = await owner.post("/api/memories", json={"text": " My cat is called Ada. "})
    assert created.status_code == 201
    memory = created.json()
    assert (memory["text"], memory["author_name"], memory["is_author"]) == ("My cat is called Ada.", "owner", True)
    assert (memory["shared"], memory["other_names"], memory["other_count"]) == (False, [], 0)
    assert (memory["origin"], memory["session_id"]) == ("person", None)
    assert (await owner.post("/api/memories", json={"text": "my cat is called ADA."})).json()["id"] == memory["id"]
    await owner.post("/api/memories", json={"text": "The bins go out on Tuesday."})
    page = (await owner.get("/api/memories", params={"limit": 1})).json()
    assert [each["text"] for each in page["memories"]] == ["The bins go out on Tuesday."]
    rest = (await owner.get("/api/memories", params={"limit": 1, "cursor": page["next_cursor"]})).json()
    assert [each["id"] for each in rest["memories"]] == [memory["id"]]
    assert [each["id"] for each in (await owner.get("/api/memories?query=cat ad")).json()["memories"]] == [memory["id"]]
    url = f"/api/memories/{memory['id']}"
    assert (await owner.patch(url, json={"text": "My cat is called Bo."})).json()["text"] == "My cat is called Bo."
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.delete(url)).status_code == 404
    assert (await owner.patch(url, json={"text": "x"})).status_code == 404
    assert len((await owner.get("/api/memories")).json()["memories"]) == 1


@pytest.mark.parametrize("body", [{}, {"text": " "}, {"text": "x" * 2001}, {"text": 7}, {"text": "x", "shared": True}])
async def test_an_invalid_memory_is_rejected(web: WebServer, body: dict[str, Any]) -> None:
    owner = await web.sign_in()
    assert (await owner.post("/api/memories", json=body)).status_code == 422
    assert (await owner.get("/api/memories")).json()["memories"] == []


async def test_a_shared_memory_can_be_changed_only_by_those_who_share_it(web: WebServer) -> None:
    ada, bob, eve = [await web.sign_in(name) for name in ("ada", "bob", "eve")]
    memory_id = await create_shared_memory(web, ada, bob)
    url = f"/api/memories/{memory_id}"
    [memory] = (await bob.get("/api/memories")).json()["memories"]
    assert (memory["shared"], memory["author_name"], memory["is_author"]) == (True, "ada", False)
    assert (memory["other_names"], memory["other_count"]) == (["ada"], 1)
    assert memory["origin"] == "agent"
    session_url = f"/api/sessions/{memory['session_id']}"
    assert [(await each.get(session_url)).status_code for each in (ada, bob, eve)] == [200, 200, 404]
    pages = [(await bob.get(f"/api/memories?origin={origin}")).json() for origin in ("person", "agent", "learned")]
    assert [len(page["memories"]) for page in pages] == [0, 1, 0]
    assert (await eve.get("/api/memories")).json()["memories"] == []
    assert (await eve.patch(url, json={"text": "x"})).status_code == (await eve.delete(url)).status_code == 404
    assert (await bob.patch(url, json={"text": "The club meets on Friday."})).json()["author_name"] == "bob"
    assert [each["text"] for each in (await ada.get("/api/memories")).json()["memories"]] == [
        "The club meets on Friday."
    ]
    assert (await ada.delete(url)).status_code == 204
    assert (await bob.get("/api/memories")).json()["memories"] == []


@pytest.mark.parametrize(
    ("toolsets", "expected"),
    [
        ({"memory": ToolsetRule()}, (True, True, None)),
        ({}, (False, False, None)),
        ({"memory": ToolsetRule(roles=frozenset({Role.OWNER}))}, (True, False, None)),
        ({"memory": ToolsetRule(platforms=frozenset({Platform.TELEGRAM}))}, (True, True, ["telegram"])),
    ],
)
async def test_memories_say_whether_the_agent_can_use_them_for_you(
    start_web: StartWebServer, toolsets: dict[str, ToolsetRule], expected: tuple[bool, bool, list[str] | None]
) -> None:
    web = await start_web(rules={"toolsets": toolsets})
    agent = (await (await web.sign_in("ada")).get("/api/memories")).json()["agent"]
    assert (agent["enabled"], agent["allowed"], agent["platforms"]) == expected


async def test_saving_a_memory_needs_the_scope_write(web: WebServer) -> None:
    reader, writer = await web.open_token_client("read"), await web.open_token_client("write")
    assert (await reader.post("/api/memories", json={"text": "x"})).status_code == 403
    assert (await writer.post("/api/memories", json={"text": "x"})).status_code == 201
    assert (await reader.get("/api/memories")).status_code == 200


# ---- models and commands -----------------------------------------------------------------------------------


async def test_models_are_listed_with_the_agents_description(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(context_window=32_000))
    owner = await web.sign_in()
    models = (await owner.get("/api/models")).json()
    assert models["models"] == [
        {"name": "scripted", "context_window": 32_000},
        {"name": "scripted-large", "context_window": 32_000},
    ]
    more = (await owner.get("/api/models", params={"include": "scripted-old"})).json()
    assert [model["name"] for model in more["models"]] == ["scripted", "scripted-large", "scripted-old"]
    assert (models["default"], models["description"]) == ("scripted", "Scripted agent for tests")


async def test_commands_are_listed_and_can_be_run(web: WebServer) -> None:
    owner = await web.sign_in()
    commands = (await owner.get("/api/commands")).json()["commands"]
    assert {"/new", "/help", "/undo"} <= {command["name"] for command in commands}
    session_id = await web.create_conversation(owner, "hello")
    status = await owner.post("/api/commands", json={"text": "/status", "key": "a", "session_id": session_id})
    assert (status.json()["outcome"], status.json()["session_id"]) == ("command", session_id)
    help_receipt = (await owner.post("/api/commands", json={"text": "/help", "key": "b"})).json()
    assert "/undo" in help_receipt["reply"]


async def test_an_impossible_command_is_rejected_in_its_receipt_and_plain_text_is_an_error(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    body = {"text": "/redo", "key": "a", "session_id": session_id}
    assert (await owner.post("/api/commands", json=body)).json()["outcome"] == "rejected"
    rejected = await owner.post("/api/commands", json={"text": "hello", "key": "b"})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (422, "invalid_input")


async def test_starting_a_conversation_by_command_does_not_change_the_others(web: WebServer) -> None:
    owner = await web.sign_in()
    first = await web.create_conversation(owner, "hello")
    receipt = (await owner.post("/api/commands", json={"text": "/new", "key": "a", "session_id": first})).json()
    assert receipt["session_id"] not in {None, first}
    await web.send_message(owner, first, "hello again")
    assert (await owner.get(f"/api/sessions/{first}")).json()["message_count"] == 4


# ---- policies ----------------------------------------------------------------------------------------------


async def test_policies_are_listed_for_each_platform(start_web: StartWebServer) -> None:
    config = GatewayConfig(
        connected_platforms=(Platform.TELEGRAM,),
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=90)},
    )
    web = await start_web(config=config, rules={"busy_policy_by_platform": {Platform.WEB: BusyPolicy.STEER}})
    policies = (await (await web.sign_in("ada")).get("/api/policies")).json()
    [rule] = policies["default"]["reset_rules"]
    assert (rule["mode"], rule["setting_key"], rule["is_default"]) == ("none", "session_reset", True)
    assert (policies["default"]["busy_policy"], policies["default"]["is_busy_default"]) == ("queue", True)
    platforms = {each["platform"]: each for each in policies["platforms"]}
    assert set(platforms) == {"api", "telegram", "web"}
    [rule] = platforms["telegram"]["reset_rules"]
    assert (rule["mode"], rule["idle_minutes"], rule["setting_key"]) == ("idle", 90, "reset_by_platform.telegram")
    assert platforms["web"]["reset_rules"] == []
    assert (platforms["web"]["busy_policy"], platforms["web"]["busy_setting_key"]) == (
        "steer",
        "platforms.web.busy_policy",
    )


async def test_web_conversations_never_restart_automatically(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(
        config=GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=1)), clock=clock
    )
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    clock.advance(hours=2)
    assert (await web.send_message(owner, session_id, "hello again"))["session_id"] == session_id


async def test_platforms_that_only_others_use_are_not_listed(web: WebServer) -> None:
    await web.gateway.store.aio.record_user_message(SessionSource("matrix", "!room", user_id="@bob"), "hello")
    for person in ("owner", "ada"):
        policies = (await (await web.sign_in(person)).get("/api/policies")).json()
        assert "matrix" not in [each["platform"] for each in policies["platforms"]]
    assert "local" in [
        each["platform"] for each in (await (await web.sign_in()).get("/api/policies")).json()["platforms"]
    ]


# ---- usage -------------------------------------------------------------------------------------------------


def make_usage_events(model: str = "big", cost: str | None = "0.25") -> Sequence[AgentEvent]:
    return [TextDelta("ok"), UsageReport(TurnUsage(model=model, input_tokens=100, output_tokens=10, cost=cost))]


async def get_report(client: httpx2.AsyncClient, **params: str) -> dict[str, Any]:
    response = await client.get("/api/usage", params=params)
    assert response.status_code == 200, response.text
    report: dict[str, Any] = response.json()
    return report


@pytest.mark.both_engines
async def test_usage_is_reported_by_every_grouping(start_web: StartWebServer) -> None:
    answers = iter([make_usage_events(), make_usage_events("small", None), make_usage_events()])
    web = await start_web(ScriptedAgent(lambda _request: next(answers)), clock=FakeClock())
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    mine = await web.create_conversation(owner, "one", "two", title="Mine")
    await web.create_conversation(ada, "three")
    total = (await get_report(owner))["total"]
    assert (total["turns"], total["input_tokens"], total["cost_usd"], total["unpriced_turns"]) == (2, 200, "0.25", 1)
    today = FakeClock().now().date().isoformat()
    assert [(row["group"], row["turns"]) for row in (await get_report(owner, group_by="day"))["rows"]] == [(today, 2)]
    models = {row["group"]: row["cost_usd"] for row in (await get_report(owner, group_by="model"))["rows"]}
    assert models == {"big": "0.25", "small": None}
    assert [row["group"] for row in (await get_report(owner, group_by="platform"))["rows"]] == ["web"]
    assert [(row["group"], row["label"]) for row in (await get_report(owner, group_by="session"))["rows"]] == [
        (mine, "Mine")
    ]
    people = (await get_report(owner, group_by="person", all="true"))["rows"]
    assert {row["label"]: row["turns"] for row in people} == {"owner": 2, "ada": 1}
    assert (await get_report(owner, all="true"))["total"]["cost_usd"] == "0.5"


@pytest.mark.both_engines
async def test_the_cost_of_a_deleted_conversation_stays_in_reports(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(lambda _request: make_usage_events()))
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one")
    await owner.delete(f"/api/sessions/{session_id}")
    [row] = (await get_report(owner, group_by="session"))["rows"]
    assert (row["group"], row["label"], row["cost_usd"]) == (None, "deleted", "0.25")
    assert [row["label"] for row in (await get_report(owner, group_by="person"))["rows"]] == ["owner"]
    assert [row["group"] for row in (await get_report(owner, group_by="platform"))["rows"]] == ["web"]


async def test_a_report_covers_the_requested_days(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(lambda _request: make_usage_events()), clock=FakeClock())
    owner = await web.sign_in()
    await web.create_conversation(owner, "one")
    today = FakeClock().now().date()
    yesterday = (today - timedelta(days=1)).isoformat()
    assert (await get_report(owner, **{"from": yesterday, "to": yesterday}))["total"]["turns"] == 0
    assert (await get_report(owner, **{"from": yesterday}))["total"]["turns"] == 1
    rejected = await owner.get("/api/usage", params={"from": today.isoformat(), "to": yesterday})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (422, "invalid_input")
