"""Conversations over HTTP: lists, changes, copies, and actions."""

from __future__ import annotations

import asyncio
import io
import zipfile
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from palaver import SessionSource
from palaver.agent.base import TextDelta, Tool
from palaver.core.engines.base import Transaction, Write
from palaver.sessions import settings_table as session_settings, table as sessions
from palaver.testing import ScriptedAgent
from palaver.web import api_route
from support.gateway import wait_for_turn, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer


async def list_names(client: httpx2.AsyncClient, **params: Any) -> list[str]:
    response = await client.get("/api/sessions", params=params)
    assert response.status_code == 200, response.text
    return [session["display_name"] for session in response.json()["sessions"]]


async def read_texts(client: httpx2.AsyncClient, session_id: str) -> list[str]:
    """List the texts of the visible messages."""
    events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    return [event["message"]["content"] for event in events if event["message"]]


# ---- conversations that have expired -------------------------------------------------------------------


@pytest.mark.both_engines
async def test_expired_conversations_are_listed_to_their_people_only(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    session_id = await web.create_conversation(ada, "hello", title="Old")
    await web.create_conversation(ada, "hello", title="New")
    end = "UPDATE session SET ended_at = 5, end_reason = 'idle' WHERE id = $1"
    await web.gateway.store.engine.arun(Write(lambda tx: tx.execute(end, session_id)))
    assert await list_names(ada, expired=True) == ["Old"]
    assert await list_names(bob, expired=True) == []
    assert await list_names(await web.sign_in(), expired=True, all=True) == ["Old"]
    session = (await ada.get(f"/api/sessions/{session_id}")).json()
    assert (session["ended_at"], session["end_reason"]) == ("1970-01-01T00:00:00.000005Z", "idle")
    await web.send_message(ada, session_id, "more")  # continues it
    assert await list_names(ada, expired=True) == []
    assert (await ada.get(f"/api/sessions/{session_id}")).json()["end_reason"] is None


# ---- creating and listing -------------------------------------------------------------------------------


async def test_a_conversation_is_listed_after_its_first_message(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner, title="Trip to Lisbon")
    assert await list_names(owner) == []
    await web.send_message(owner, session_id, "hello")
    [session] = (await owner.get("/api/sessions")).json()["sessions"]
    assert (session["id"], session["title"], session["platform"]) == (session_id, "Trip to Lisbon", "web")
    assert (session["preview"], session["message_count"], session["running"]) == ("Done.", 2, False)
    assert session["created_at"].endswith("Z")
    assert session["usage"]["cost_usd"] is None


async def test_a_new_conversation_is_created_with_all_its_settings_or_not_at_all(web: WebServer) -> None:
    owner = await web.sign_in()
    project = (await owner.post("/api/projects", json={"name": "Travel"})).json()["id"]
    created = await owner.post("/api/sessions", json={"title": "One", "project": "travel", "model": "scripted-large"})
    assert created.status_code == 201
    assert (created.json()["project_id"], created.json()["chosen_model"]) == (project, "scripted-large")
    rejected = await owner.post("/api/sessions", json={"title": "Two", "project": "nowhere"})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (404, "project_not_found")
    taken = await owner.post("/api/sessions", json={"title": "one"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (422, "title_taken")


async def test_creating_a_conversation_twice_with_one_key_creates_one(web: WebServer) -> None:
    owner, ben = await web.sign_in(), await web.sign_in("ben")
    body = {"title": "Trip", "key": "new-1"}
    created = [(await owner.post("/api/sessions", json=body)).json() for _ in range(2)]
    assert created[0] == created[1]
    taken = await owner.post("/api/sessions", json={"title": "Trip", "key": "new-2"})
    assert taken.status_code == 422
    other = await owner.post("/api/sessions", json={"title": "Trip again", "key": "new-2"})
    other_person = await ben.post("/api/sessions", json=body)
    assert len({each["id"] for each in (created[0], other.json(), other_person.json())}) == 3


async def test_several_conversations_continue_side_by_side(web: WebServer) -> None:
    owner = await web.sign_in()
    first, second = await web.create_conversation(owner, "one"), await web.create_conversation(owner, "two")
    await web.send_message(owner, first, "three")
    assert await read_texts(owner, first) == ["one", "Done.", "three", "Done."]
    assert await read_texts(owner, second) == ["two", "Done."]


async def test_pages_of_the_list_have_no_gaps(web: WebServer) -> None:
    owner = await web.sign_in()
    for number in range(7):
        await web.create_conversation(owner, "hello", title=f"Number {number}")
    titles: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await owner.get("/api/sessions", params=params)).json()
        titles += [session["title"] for session in page["sessions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert titles == [f"Number {number}" for number in reversed(range(7))]


async def test_every_request_for_a_list_has_its_own_parameters(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one request leaves out has its default value, whatever other requests contain."""
    monkeypatch.setattr(api_route, "_MAX_HANDLERS", 3)
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    for title in ("One", "Two"):
        await web.create_conversation(owner, "hello", title=title)
    await owner.patch(
        f"/api/sessions/{await web.create_conversation(owner, 'hello', title='Old')}", json={"archived": True}
    )
    for _ in range(2):
        assert await list_names(owner) == ["Two", "One"]
        assert await list_names(owner, limit=1) == ["Two"]
        assert await list_names(owner, state="archived") == ["Old"]
        assert await list_names(owner, title="one", state="active") == ["One"]
        assert await list_names(owner, platform="web", limit=1) == ["Two"]
        assert await list_names(owner, all=True, state="archived", limit=5) == ["Old"]
        assert await list_names(ada) == []
        for wrong in ("limit=0", "limit=many", "state=odd", "before=never&limit=3"):
            refused = await owner.get(f"/api/sessions?{wrong}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_request"), wrong
        assert (await ada.get("/api/sessions", params={"all": True})).status_code == 403


async def test_a_parameter_that_a_request_does_not_have_is_refused(web: WebServer) -> None:
    """A misspelled condition that is ignored would list what it was meant to leave out."""
    owner, stranger = await web.sign_in(), httpx2.AsyncClient(base_url=web.url)
    async with stranger:
        assert (await stranger.get("/api/sessions?plattform=web")).status_code == 401
    for url in ("/api/sessions?plattform=web", "/api/sessions?limit=1&plattform=web", "/api/me?plattform=web"):
        refused = await owner.get(url)
        assert refused.status_code == 422
        error = refused.json()["error"]
        assert (error["code"], error["facts"]["field"]) == ("invalid_request", "query.plattform")
    assert "It takes after, all, before, cursor" in (await owner.get("/api/sessions?x=1&limit=2")).text
    assert "It takes none." in (await owner.get("/api/me?x=1")).text
    many = await owner.get("/api/sessions", params={f"x{number}" * 50: "1" for number in range(30)})
    assert many.status_code == 422
    assert len(many.text) < 5_000


@pytest.mark.both_engines
async def test_a_list_can_be_filtered(web: WebServer) -> None:
    owner = await web.sign_in()
    store = web.gateway.store
    lisbon = await web.create_conversation(owner, "hello", title="Lisbon")
    await web.create_conversation(owner, "hello", title="Porto")
    cellar = await web.create_conversation(owner, "hello", title="Cellar")
    await store.aio.record_user_message(SessionSource.local_cli(), "from the terminal")
    await owner.patch(f"/api/sessions/{lisbon}", json={"pinned": True, "project": None})
    await owner.patch(f"/api/sessions/{cellar}", json={"archived": True})
    assert await list_names(owner, state="pinned") == ["Lisbon"]
    assert await list_names(owner, state="archived") == ["Cellar"]
    assert await list_names(owner, platform="local") == ["from the terminal"]
    assert await list_names(owner, query="lisB") == ["Lisbon"]
    assert await list_names(owner, query="lisbon done") == ["Lisbon"]
    assert await list_names(owner, query="nothing has this") == []
    assert await list_names(owner, platform="web", query="por") == ["Porto"]


@pytest.mark.both_engines
async def test_a_list_can_leave_out_sources_profiles_and_projects(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    await owner.post("/api/projects", json={"name": "Travel"})
    store = web.gateway.store
    for title in ("Lisbon", "Porto", "Madrid"):
        await web.create_conversation(owner, "hello", title=title)
    lisbon, porto = [each["id"] for each in (await owner.get("/api/sessions")).json()["sessions"]][:0:-1]
    await owner.patch(f"/api/sessions/{lisbon}", json={"project": "Travel"})

    def choose_profile(tx: Transaction) -> None:
        session_settings.change(tx, sessions.get_no(tx, porto), "profile", "work", 0)

    await store.engine.arun(Write(choose_profile))
    await store.aio.record_user_message(SessionSource.local_cli(), "from the terminal")
    assert await list_names(owner, project="none") == ["from the terminal", "Madrid", "Porto"]
    assert await list_names(owner, project="Travel") == ["Lisbon"]
    assert await list_names(owner, profile="Work") == ["Porto"]
    assert await list_names(owner, profile="default", without_platform="local") == ["Madrid", "Lisbon"]
    assert await list_names(owner, profile="work", project="none", query="lisbon") == []
    assert await list_names(owner, without_platform=["WEB ", "cron"]) == ["from the terminal"]
    assert await list_names(owner, without_platform=["web", "local"]) == []
    assert await list_names(owner, without_platform="cron", platform="local") == ["from the terminal"]
    assert await list_names(ada, profile="work", project="none", without_platform="cron") == []
    one = (await owner.get("/api/sessions", params={"without_platform": "local", "limit": 1})).json()
    assert await list_names(owner, without_platform="local", cursor=one["next_cursor"]) == ["Porto", "Lisbon"]
    refused = await owner.get("/api/sessions", params={"without_platform": [f"p{number}" for number in range(21)]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")


async def test_a_filtered_list_continues_at_its_cursor(web: WebServer) -> None:
    owner = await web.sign_in()
    for number in range(6):
        await web.create_conversation(owner, "hello", title=f"{'Even' if number % 2 == 0 else 'Odd'} {number}")
    first = (await owner.get("/api/sessions", params={"query": "even", "limit": 2})).json()
    assert [session["title"] for session in first["sessions"]] == ["Even 4", "Even 2"]
    assert await list_names(owner, query="even", limit=2, cursor=first["next_cursor"]) == ["Even 0"]


async def test_an_owner_can_list_one_persons_conversations(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    await web.create_conversation(ada, "hello", title="Hers")
    await web.create_conversation(owner, "hello", title="Mine")
    person = (await ada.get("/api/me")).json()["person"]["id"]
    assert await list_names(owner, person_id=person) == []
    assert await list_names(owner, person_id=person, all="true") == ["Hers"]


async def test_an_invalid_cursor_is_rejected(web: WebServer) -> None:
    owner = await web.sign_in()
    rejected = await owner.get("/api/sessions", params={"cursor": "somewhere"})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (422, "invalid_input")


# ---- changing ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_changes_are_made_together_or_not_at_all(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    url = f"/api/sessions/{session_id}"
    rejected = await owner.patch(url, json={"title": "New", "pinned": True, "project": "nowhere"})
    assert rejected.status_code == 404
    before = (await owner.get(url)).json()
    assert (before["title"], before["pinned"]) == (None, False)
    changed = (
        await owner.patch(url, json={"title": "New", "pinned": True, "busy_policy": "steer", "model": "x"})
    ).json()
    assert (changed["title"], changed["pinned"]) == ("New", True)
    assert (changed["busy_policy"], changed["chosen_model"]) == ("steer", "x")
    reset = (await owner.patch(url, json={"title": None, "busy_policy": None, "model": None})).json()
    assert (reset["title"], reset["pinned"], reset["busy_policy"], reset["chosen_model"]) == (None, True, None, None)


async def test_toolsets_can_be_listed_switched_and_inherited(start_web: StartWebServer) -> None:
    async def run(_arguments: object) -> str:
        return ""

    tool = Tool(name="files_read", description="Read a file.", parameters={}, run=run, toolset="mcp:files")
    web = await start_web(ScriptedAgent(tools=[tool]))
    owner = await web.sign_in()
    url = f"/api/sessions/{await web.create_conversation(owner, 'hello')}"

    async def get_switches() -> dict[str, bool]:
        toolsets = (await owner.get(f"{url}/toolsets")).json()["toolsets"]
        return {each["name"]: each["enabled"] for each in toolsets}

    toolsets = (await owner.get(f"{url}/toolsets")).json()["toolsets"]
    assert toolsets[-1] == {
        "name": "mcp:files",
        "description": "the tools of the server files",
        "enabled": True,
        "tools": [{"name": "files_read", "description": "Read a file.", "problem": None}],
    }
    assert await get_switches() == {
        "history": True,
        "memory": True,
        "schedule": True,
        "messaging": True,
        "web": True,
        "mcp:files": True,
    }
    changed = await owner.patch(url, json={"toolsets": {"memory": False, "mcp:files": False}})
    assert changed.json()["disabled_toolsets"] == ["mcp:files", "memory"]
    changed = await owner.patch(url, json={"toolsets": {"mcp:files": True}, "title": "Quiet"})
    assert changed.json()["disabled_toolsets"] == ["memory"]
    assert await get_switches() == {
        "history": True,
        "memory": False,
        "schedule": True,
        "messaging": True,
        "web": True,
        "mcp:files": True,
    }
    rejected = await owner.patch(url, json={"toolsets": {"kitchen": False}, "title": "Loud"})
    assert rejected.status_code == 422
    assert "Valid values: history, memory, schedule, messaging, web, mcp:files" in rejected.text
    copy = (await owner.post(f"{url}/fork", json={})).json()
    assert copy["disabled_toolsets"] == ["memory"]
    reset = (await owner.patch(url, json={"toolsets": None})).json()
    assert (reset["disabled_toolsets"], reset["title"]) == ([], "Quiet")
    events = (await owner.get(f"{url}/events")).json()["events"]
    changes = [event["facts"] for event in events if event["kind"] == "setting_changed"]
    assert changes[1] == {"setting": "toolsets", "value": ["memory"], "previous": ["mcp:files", "memory"]}


async def test_a_deleted_conversation_no_longer_exists(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    assert (await owner.delete(f"/api/sessions/{session_id}")).status_code == 204
    assert (await owner.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await owner.delete(f"/api/sessions/{session_id}")).status_code == 404
    assert await list_names(owner) == []


# ---- actions --------------------------------------------------------------------------------------------


async def test_turns_can_be_undone_and_redone(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    url = f"/api/sessions/{session_id}"
    undone = (await owner.post(f"{url}/undo", json={"turns": 1})).json()
    assert (undone["outcome"], undone["facts"]["prompt"]) == ("command", "two")
    assert await read_texts(owner, session_id) == ["one", "Done."]
    assert (await owner.post(f"{url}/redo", json={})).status_code == 200
    assert await read_texts(owner, session_id) == ["one", "Done.", "two", "Done."]
    rejected = await owner.post(f"{url}/redo", json={})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (409, "request_rejected")
    assert "nothing to redo" in rejected.json()["error"]["message"]


async def test_an_action_repeated_with_the_same_key_runs_once(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two", "three")
    for _ in range(2):
        response = await owner.post(f"/api/sessions/{session_id}/undo", json={"turns": 1, "key": "once"})
        assert response.status_code == 200
    assert await read_texts(owner, session_id) == ["one", "Done.", "two", "Done."]


async def test_the_last_answer_can_be_regenerated(start_web: StartWebServer) -> None:
    answers = iter(["first", "second"])
    web = await start_web(ScriptedAgent(lambda _request: next(answers)))
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "well?")
    receipt = (await owner.post(f"/api/sessions/{session_id}/retry", json={})).json()
    await wait_for_turn(web.gateway, receipt["turn_id"])
    assert await read_texts(owner, session_id) == ["well?", "second"]


async def test_a_stopped_answer_keeps_its_text(start_web: StartWebServer) -> None:
    async def answer_endlessly(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("so far")
        await asyncio.sleep(60)

    web = await start_web(ScriptedAgent(answer_endlessly))
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    url = f"/api/sessions/{session_id}"
    for number in range(2):
        await owner.post(f"{url}/messages", json={"content": "go", "key": f"k{number}"})
    await wait_until(lambda: web.gateway.turn_worker.running_count == 1)
    session = (await owner.get(url)).json()
    assert (session["running"], session["queued"]) == (True, 1)
    stopped = (await owner.post(f"{url}/stop", json={"clear_queue": True})).json()
    assert stopped["facts"]["cleared"] == 1
    await wait_until(lambda: web.gateway.turn_worker.running_count == 0)
    assert (await owner.get(url)).json()["running"] is False
    events = (await owner.get(f"{url}/messages")).json()["events"]
    answers = [event["message"] for event in events if event["message"] and event["message"]["role"] == "assistant"]
    assert [(message["content"], message["interrupted"]) for message in answers] == [("so far", True)]


async def test_a_compaction_can_be_undone(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent("A rather long answer about the matter at hand, with all that belongs to it."))
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, *[f"question number {number}" for number in range(6)])
    url = f"/api/sessions/{session_id}"
    receipt = (await owner.post(f"{url}/compact", json={"focus": "the matter"})).json()
    await wait_for_turn(web.gateway, receipt["turn_id"])
    kinds = [event["kind"] for event in (await owner.get(f"{url}/messages")).json()["events"]]
    assert "compacted" in kinds
    assert (await owner.post(f"{url}/restore", json={})).status_code == 200
    kinds = [event["kind"] for event in (await owner.get(f"{url}/messages")).json()["events"]]
    assert "compaction_undone" in kinds


async def test_a_short_conversation_is_not_compacted(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    rejected = await owner.post(f"/api/sessions/{session_id}/compact", json={})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (409, "request_rejected")


# ---- copies ------------------------------------------------------------------------------------------------


async def test_a_fork_continues_independently(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    first = next(event["seq"] for event in events if event["message"])
    fork = await owner.post(f"/api/sessions/{session_id}/fork", json={"up_to_seq": first, "title": "Another way"})
    assert fork.status_code == 201
    assert (fork.json()["parent_id"], fork.json()["title"]) == (session_id, "Another way")
    await web.send_message(owner, fork.json()["id"], "three")
    assert await read_texts(owner, fork.json()["id"]) == ["one", "Done.", "three", "Done."]
    assert await read_texts(owner, session_id) == ["one", "Done.", "two", "Done."]


@pytest.mark.parametrize(("index", "kept"), [(0, []), (1, ["one", "Done."])])
async def test_an_edited_message_is_sent_in_a_fork(web: WebServer, index: int, kept: list[str]) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    question_seqs = [event["seq"] for event in events if event["message"] and event["message"]["role"] == "user"]
    body = {"seq": question_seqs[index], "content": "instead", "key": "edit-1", "branch": True}
    edited = await owner.post(f"/api/sessions/{session_id}/edit", json=body)
    assert edited.status_code == 202
    copy = edited.json()["session"]["id"]
    await wait_for_turn(web.gateway, edited.json()["receipt"]["turn_id"])
    assert await read_texts(owner, copy) == [*kept, "instead", "Done."]
    assert await read_texts(owner, session_id) == ["one", "Done.", "two", "Done."]
    repeated = (await owner.post(f"/api/sessions/{session_id}/edit", json=body)).json()
    assert (repeated["session"]["id"], repeated["receipt"]["outcome"]) == (copy, "duplicate")


@pytest.mark.parametrize("index", [0, 1])
async def test_an_edit_and_a_fork_keep_the_title_and_make_nothing_unread(web: WebServer, index: int) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    url = f"/api/sessions/{session_id}"
    await owner.put(f"{url}/read", json={"seq": 10_000})
    events = (await owner.get(f"{url}/messages")).json()["events"]
    question_seqs = [event["seq"] for event in events if event["message"] and event["message"]["role"] == "user"]
    body = {"seq": question_seqs[index], "content": "instead", "key": "edit-1", "branch": True}
    edited = (await owner.post(f"{url}/edit", json=body)).json()
    await wait_for_turn(web.gateway, edited["receipt"]["turn_id"])
    copy = (await owner.get(f"/api/sessions/{edited['session']['id']}")).json()
    assert (copy["title"], copy["auto_title"]) == (None, "one #2")
    assert copy["last_seq"] - copy["read_seq"] == 2  # the new message and its answer
    fork = (await owner.post(f"{url}/fork", json={})).json()
    assert (fork["auto_title"], fork["read_seq"]) == ("one #3", fork["last_seq"])
    await owner.patch(url, json={"title": "Numbers", "pinned": True})
    original = (await owner.get(url)).json()
    assert original["read_seq"] == original["last_seq"]
    await web.send_message(owner, session_id, "three")
    original = (await owner.get(url)).json()
    assert original["last_seq"] - original["read_seq"] == 2


async def test_an_edited_message_keeps_its_files(web: WebServer) -> None:
    owner, ben = await web.sign_in(), await web.sign_in("ben")
    uploaded = await owner.post("/api/attachments", files={"file": ("notes.txt", b"milk")})
    file = uploaded.json()["id"]
    session_id = (await owner.post("/api/sessions", json={})).json()["id"]
    message = {"content": "read this", "key": "one", "attachment_ids": [file]}
    receipt = (await owner.post(f"/api/sessions/{session_id}/messages", json=message)).json()
    await wait_for_turn(web.gateway, receipt["turn_id"])
    body = {"seq": receipt["seq"], "content": "read it aloud", "key": "two", "attachment_ids": [file]}
    edited = (await owner.post(f"/api/sessions/{session_id}/edit", json=body)).json()
    events = (await owner.get(f"/api/sessions/{edited['session']['id']}/messages")).json()["events"]
    parts = next(event["message"]["content"] for event in events if event["message"])
    assert [part.get("id") or part.get("text") for part in parts] == ["read it aloud", file]
    ben_session = await web.create_conversation(ben, "hello")
    for branch, status in ((True, 404), (False, 409)):
        other = body | {"seq": 2, "branch": branch, "key": f"three-{branch}"}
        response = await ben.post(f"/api/sessions/{ben_session}/edit", json=other)
        assert response.status_code == status
    assert await read_texts(ben, ben_session) == ["hello", "Done."]


@pytest.mark.parametrize(("branch", "error"), [(True, (422, "invalid_input")), (False, (409, "request_rejected"))])
async def test_only_messages_of_people_can_be_edited(web: WebServer, branch: bool, error: tuple[int, str]) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    for seq in (events[0]["seq"], events[-1]["seq"], 999):
        body = {"seq": seq, "content": "x", "key": f"k{seq}", "branch": branch}
        rejected = await owner.post(f"/api/sessions/{session_id}/edit", json=body)
        assert (rejected.status_code, rejected.json()["error"]["code"]) == error


# ---- versions -------------------------------------------------------------------------------------------


async def test_a_message_is_edited_in_place_and_its_versions_can_be_chosen(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    url = f"/api/sessions/{session_id}"

    async def find_versions() -> dict[str, tuple[int, dict[str, Any] | None]]:
        events = (await owner.get(f"{url}/messages")).json()["events"]
        questions = [event for event in events if event["message"] and event["message"]["role"] == "user"]
        return {event["message"]["content"]: (event["seq"], event["version"]) for event in questions}

    first, version = (await find_versions())["one"]
    assert version is None
    body = {"seq": first, "content": "instead", "key": "edit-1"}
    edited = (await owner.post(f"{url}/edit", json=body)).json()
    assert edited["session"]["id"] == session_id
    await wait_for_turn(web.gateway, edited["receipt"]["turn_id"])
    assert (await owner.post(f"{url}/edit", json=body)).json()["receipt"]["outcome"] == "duplicate"
    assert await read_texts(owner, session_id) == ["instead", "Done."]
    second, version = (await find_versions())["instead"]
    assert version == {"number": 2, "count": 2, "has_edits": True}
    assert (await owner.get("/api/sessions")).json()["sessions"][0]["message_count"] == 2
    chosen = await owner.post(f"{url}/version", json={"seq": second, "version": 1, "key": "c1"})
    assert chosen.json()["facts"] == {"seq": first, "version": 1, "versions": 2}
    assert await read_texts(owner, session_id) == ["one", "Done.", "two", "Done."]
    assert (await find_versions())["one"][1] == {"number": 1, "count": 2, "has_edits": True}
    retried = (await owner.post(f"{url}/retry", json={"seq": first})).json()
    await wait_for_turn(web.gateway, retried["turn_id"])
    assert await read_texts(owner, session_id) == ["one", "Done."]
    refused = await owner.post(f"{url}/version", json={"seq": second, "version": 1})
    assert refused.status_code == 409  # that message is not shown now
    exported = (await owner.get(f"{url}/export", params={"format": "markdown"})).text
    assert "instead" not in exported
    assert "Version 3 of 3 of this message." in exported
    assert "instead" in (await owner.get(f"{url}/export")).text


async def test_a_retried_answer_is_unread_and_a_chosen_version_is_not(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    url = f"/api/sessions/{session_id}"

    async def count_unread() -> int:
        session = (await owner.get(url)).json()
        return int(session["last_seq"] - session["read_seq"])

    async def read_all() -> None:
        last_seq = (await owner.get(url)).json()["last_seq"]
        assert (await owner.put(f"{url}/read", json={"seq": last_seq})).is_success

    await read_all()
    retried = (await owner.post(f"{url}/retry", json={})).json()
    await wait_for_turn(web.gateway, retried["turn_id"])
    assert await count_unread() == 2  # the message of the new version and its answer
    await read_all()
    seq = retried["facts"]["seq"]
    chosen = (await owner.post(f"{url}/version", json={"seq": seq, "version": 1})).json()
    assert await count_unread() == 0
    await owner.post(f"{url}/version", json={"seq": chosen["facts"]["seq"], "version": 2})
    assert await count_unread() == 0


async def test_another_person_neither_makes_nor_chooses_nor_sees_versions(web: WebServer) -> None:
    owner, eve = await web.sign_in(), await web.sign_in("eve")
    session_id = await web.create_conversation(owner, "private question")
    url = f"/api/sessions/{session_id}"
    retried = (await owner.post(f"{url}/retry", json={})).json()
    await wait_for_turn(web.gateway, retried["turn_id"])
    seq = retried["facts"]["seq"]
    before = (await owner.get(f"{url}/export")).json()
    own_session = await web.create_conversation(eve, "mine")
    for method, path, body in (
        ("POST", "/version", {"seq": seq, "version": 1}),
        ("POST", "/retry", {"seq": seq}),
        ("POST", "/edit", {"seq": seq, "content": "x", "key": "k"}),
        ("GET", "/messages", None),
        ("GET", "/export", None),
    ):
        refused = await eve.request(method, url + path, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "session_not_found"), path
        assert "private" not in refused.text
    for text in ("/versions", "/version 1", "/why"):
        reply = await eve.post(f"/api/sessions/{own_session}/messages", json={"content": text, "key": text})
        assert "private" not in reply.text
    assert (await owner.get(f"{url}/export")).json() == before


# ---- export ---------------------------------------------------------------------------------------------


async def test_a_conversation_can_be_exported_as_json_and_markdown(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "what is up?", title="Chat")
    data = await owner.get(f"/api/sessions/{session_id}/export")
    assert data.json()["format"] == "palaver.session/1"
    assert f'filename="{session_id}.json"' in data.headers["content-disposition"]
    text = await owner.get(f"/api/sessions/{session_id}/export", params={"format": "markdown"})
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith("# Chat")
    assert "what is up?" in text.text


@pytest.mark.parametrize(
    ("export_format", "media_type", "start"),
    [("html", "text/html", "<!DOCTYPE html>"), ("jsonl", "application/jsonl", '{"type":"header"')],
)
async def test_a_conversation_can_be_exported_as_a_streamed_document(
    web: WebServer, export_format: str, media_type: str, start: str
) -> None:
    owner, grace = await web.sign_in(), await web.sign_in("grace")
    session_id = await web.create_conversation(owner, "what is <b>up</b>?", title="Chat")
    path = f"/api/sessions/{session_id}/export"
    response = await owner.get(path, params={"format": export_format})
    assert response.headers["content-type"].startswith(media_type)
    assert response.headers["content-disposition"] == f'attachment; filename="{session_id}.{export_format}"'
    assert response.text.startswith(start)
    assert (await grace.get(path, params={"format": export_format})).status_code == 404


async def test_everybody_downloads_their_own_data_and_only_that(web: WebServer) -> None:
    owner, grace = await web.sign_in(), await web.sign_in("grace")
    await web.create_conversation(owner, "the owner's zebra")
    await web.create_conversation(grace, "grace's giraffe")
    response = await grace.get("/api/me/export")
    assert response.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert "grace's giraffe" in content or "grace&#x27;s giraffe" in content
    assert "zebra" not in content
    for _ in range(4):
        assert (await grace.get("/api/me/export")).status_code == 200
    refused = await grace.get("/api/me/export")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 3000
