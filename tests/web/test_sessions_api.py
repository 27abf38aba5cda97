"""Conversations over HTTP: listing, arranging, copying, and what commands do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import TextDelta, Tool
from palaver.testing import ScriptedAgent
from support.gateway import ended, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWeb, Web

ENGINES = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


async def listed(client: httpx2.AsyncClient, **params: Any) -> list[str]:
    answer = await client.get("/api/sessions", params=params)
    assert answer.status_code == 200, answer.text
    return [session["name"] for session in answer.json()["sessions"]]


async def lines(client: httpx2.AsyncClient, session_id: str) -> list[str]:
    """What is said in a conversation, as people read it."""
    events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    return [event["message"]["content"] for event in events if event["message"]]


# ---- beginning and listing ---------------------------------------------------------------------------------


@ENGINES
async def test_a_conversation_is_listed_once_something_is_said_in_it(web: Web) -> None:
    owner = await web.client()
    session_id = await web.session(owner, title="Trip to Lisbon")
    assert await listed(owner) == []
    await web.say(owner, session_id, "hello")
    [session] = (await owner.get("/api/sessions")).json()["sessions"]
    assert (session["id"], session["title"], session["platform"]) == (session_id, "Trip to Lisbon", "web")
    assert (session["preview"], session["message_count"], session["running"]) == ("Done.", 2, False)
    assert session["created_at"].endswith("Z")
    assert session["usage"]["cost_usd"] is None


async def test_a_new_conversation_takes_its_title_project_and_model_or_none_of_them(web: Web) -> None:
    owner = await web.client()
    project = (await owner.post("/api/projects", json={"name": "Travel"})).json()["id"]
    made = await owner.post("/api/sessions", json={"title": "One", "project": "travel", "model": "scripted-large"})
    assert made.status_code == 201
    assert (made.json()["project_id"], made.json()["chosen_model"]) == (project, "scripted-large")
    refused = await owner.post("/api/sessions", json={"title": "Two", "project": "nowhere"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "no_such_project")
    taken = await owner.post("/api/sessions", json={"title": "one"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (422, "title_taken")


@ENGINES
async def test_a_conversation_that_is_begun_twice_with_one_key_is_one(web: Web) -> None:
    owner, ben = await web.client(), await web.client("ben")
    body = {"title": "Trip", "key": "begin-1"}
    made = [(await owner.post("/api/sessions", json=body)).json() for _ in range(2)]
    assert made[0] == made[1]
    taken = await owner.post("/api/sessions", json={"title": "Trip", "key": "begin-2"})
    assert taken.status_code == 422
    other = await owner.post("/api/sessions", json={"title": "Trip again", "key": "begin-2"})
    theirs = await ben.post("/api/sessions", json=body)
    assert len({each["id"] for each in (made[0], other.json(), theirs.json())}) == 3


async def test_several_conversations_go_on_side_by_side(web: Web) -> None:
    owner = await web.client()
    first, second = await web.talk(owner, "one"), await web.talk(owner, "two")
    await web.say(owner, first, "three")
    assert await lines(owner, first) == ["one", "Done.", "three", "Done."]
    assert await lines(owner, second) == ["two", "Done."]


@ENGINES
async def test_pages_follow_each_other_without_a_gap(web: Web) -> None:
    owner = await web.client()
    for number in range(7):
        await web.talk(owner, "hello", title=f"Number {number}")
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await owner.get("/api/sessions", params=params)).json()
        seen += [session["title"] for session in page["sessions"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [f"Number {number}" for number in reversed(range(7))]


@ENGINES
async def test_a_list_holds_only_what_was_asked_for(web: Web) -> None:
    owner = await web.client()
    store = web.gateway.store
    lisbon = await web.talk(owner, "hello", title="Lisbon")
    await web.talk(owner, "hello", title="Porto")
    cellar = await web.talk(owner, "hello", title="Cellar")
    await store.aio.record_user_message(SessionSource.local_cli(), "from the terminal")
    await owner.patch(f"/api/sessions/{lisbon}", json={"pinned": True, "project": None})
    await owner.patch(f"/api/sessions/{cellar}", json={"archived": True})
    assert await listed(owner, shelf="pinned") == ["Lisbon"]
    assert await listed(owner, shelf="archived") == ["Cellar"]
    assert await listed(owner, platform="local") == ["CLI terminal"]
    assert await listed(owner, text="lisB") == ["Lisbon"]
    assert await listed(owner, text="lisbon done") == ["Lisbon"]
    assert await listed(owner, text="nothing has this") == []
    assert await listed(owner, platform="web", text="por") == ["Porto"]


async def test_a_filtered_list_goes_on_where_it_stopped(web: Web) -> None:
    owner = await web.client()
    for number in range(6):
        await web.talk(owner, "hello", title=f"{'Even' if number % 2 == 0 else 'Odd'} {number}")
    first = (await owner.get("/api/sessions", params={"text": "even", "limit": 2})).json()
    assert [session["title"] for session in first["sessions"]] == ["Even 4", "Even 2"]
    assert await listed(owner, text="even", limit=2, cursor=first["cursor"]) == ["Even 0"]


async def test_an_owner_can_list_what_one_person_takes_part_in(web: Web) -> None:
    owner, ada = await web.client(), await web.client("ada")
    await web.talk(ada, "hello", title="Hers")
    await web.talk(owner, "hello", title="Mine")
    person = (await ada.get("/api/me")).json()["person"]["id"]
    assert await listed(owner, person=person) == []
    assert await listed(owner, person=person, all="true") == ["Hers"]


async def test_a_made_up_cursor_is_refused_by_name(web: Web) -> None:
    owner = await web.client()
    refused = await owner.get("/api/sessions", params={"cursor": "somewhere"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")


# ---- changing ----------------------------------------------------------------------------------------------


@ENGINES
async def test_what_is_changed_together_is_changed_whole_or_not_at_all(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    place = f"/api/sessions/{session_id}"
    refused = await owner.patch(place, json={"title": "New", "pinned": True, "project": "nowhere"})
    assert refused.status_code == 404
    before = (await owner.get(place)).json()
    assert (before["title"], before["pinned"]) == (None, False)
    changed = (await owner.patch(place, json={"title": "New", "pinned": True, "busy": "steer", "model": "x"})).json()
    assert (changed["title"], changed["pinned"]) == ("New", True)
    assert (changed["busy_policy"], changed["chosen_model"]) == ("steer", "x")
    back = (await owner.patch(place, json={"title": None, "busy": None, "model": None})).json()
    assert (back["title"], back["pinned"], back["busy_policy"], back["chosen_model"]) == (None, True, None, None)


@ENGINES
async def test_toolsets_are_listed_switched_and_inherited(start_web: StartWeb) -> None:
    async def run(_arguments: object) -> str:
        return ""

    tool = Tool(name="files_read", description="Read a file.", parameters={}, run=run, toolset="mcp:files")
    web = await start_web(ScriptedAgent(tools=[tool]))
    owner = await web.client()
    place = f"/api/sessions/{await web.talk(owner, 'hello')}"

    async def switches() -> dict[str, bool]:
        listed = (await owner.get(f"{place}/toolsets")).json()["toolsets"]
        return {each["name"]: each["on"] for each in listed}

    listed = (await owner.get(f"{place}/toolsets")).json()["toolsets"]
    assert listed[-1] == {
        "name": "mcp:files",
        "description": "the tools of the server files",
        "on": True,
        "tools": [{"name": "files_read", "description": "Read a file."}],
    }
    assert await switches() == {"history": True, "memory": True, "mcp:files": True}
    changed = await owner.patch(place, json={"toolsets": {"memory": False, "mcp:files": False}})
    assert changed.json()["toolsets_off"] == ["mcp:files", "memory"]
    changed = await owner.patch(place, json={"toolsets": {"mcp:files": True}, "title": "Quiet"})
    assert changed.json()["toolsets_off"] == ["memory"]
    assert await switches() == {"history": True, "memory": False, "mcp:files": True}
    refused = await owner.patch(place, json={"toolsets": {"kitchen": False}, "title": "Loud"})
    assert refused.status_code == 422
    assert "there are: history, memory, mcp:files" in refused.text
    copy = (await owner.post(f"{place}/fork", json={})).json()
    assert copy["toolsets_off"] == ["memory"]
    back = (await owner.patch(place, json={"toolsets": None})).json()
    assert (back["toolsets_off"], back["title"]) == ([], "Quiet")
    events = (await owner.get(f"{place}/events")).json()["events"]
    told = [event["facts"] for event in events if event["kind"] == "changed"]
    assert told[1] == {"setting": "toolsets", "value": ["memory"], "was": ["mcp:files", "memory"]}


async def test_a_deleted_conversation_is_gone_for_good(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    assert (await owner.delete(f"/api/sessions/{session_id}")).status_code == 204
    assert (await owner.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await owner.delete(f"/api/sessions/{session_id}")).status_code == 404
    assert await listed(owner) == []


# ---- taking back -------------------------------------------------------------------------------------------


async def test_turns_are_taken_back_and_brought_back(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two")
    place = f"/api/sessions/{session_id}"
    undone = (await owner.post(f"{place}/undo", json={"turns": 1})).json()
    assert (undone["outcome"], undone["facts"]["prompt"]) == ("command", "two")
    assert await lines(owner, session_id) == ["one", "Done."]
    assert (await owner.post(f"{place}/redo", json={})).status_code == 200
    assert await lines(owner, session_id) == ["one", "Done.", "two", "Done."]
    refused = await owner.post(f"{place}/redo", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused")
    assert "nothing to redo" in refused.json()["error"]["message"]


async def test_a_command_sent_twice_with_the_same_key_is_done_once(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two", "three")
    for _ in range(2):
        answer = await owner.post(f"/api/sessions/{session_id}/undo", json={"turns": 1, "key": "once"})
        assert answer.status_code == 200
    assert await lines(owner, session_id) == ["one", "Done.", "two", "Done."]


async def test_the_last_message_is_asked_again(start_web: StartWeb) -> None:
    answers = iter(["first", "second"])
    web = await start_web(ScriptedAgent(lambda _request: next(answers)))
    owner = await web.client()
    session_id = await web.talk(owner, "well?")
    receipt = (await owner.post(f"/api/sessions/{session_id}/retry", json={})).json()
    await ended(web.gateway, receipt["turn_id"])
    assert await lines(owner, session_id) == ["well?", "second"]


async def test_an_answer_is_stopped_and_what_was_said_is_kept(start_web: StartWeb) -> None:
    async def endless(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("so far")
        await asyncio.sleep(60)

    web = await start_web(ScriptedAgent(endless))
    owner = await web.client()
    session_id = await web.session(owner)
    place = f"/api/sessions/{session_id}"
    for number in range(2):
        await owner.post(f"{place}/messages", json={"content": "go", "key": f"k{number}"})
    await until(lambda: web.gateway.turns.running == 1)
    session = (await owner.get(place)).json()
    assert (session["running"], session["queued"]) == (True, 1)
    stopped = (await owner.post(f"{place}/stop", json={"queued": True})).json()
    assert stopped["facts"]["dropped"] == 1
    await until(lambda: web.gateway.turns.running == 0)
    assert (await owner.get(place)).json()["running"] is False
    events = (await owner.get(f"{place}/messages")).json()["events"]
    said = [event["message"] for event in events if event["message"] and event["message"]["role"] == "assistant"]
    assert [(message["content"], message["interrupted"]) for message in said] == [("so far", True)]


async def test_a_summary_is_made_and_taken_back(start_web: StartWeb) -> None:
    web = await start_web(ScriptedAgent("A rather long answer about the matter at hand, with all that belongs to it."))
    owner = await web.client()
    session_id = await web.talk(owner, *[f"question number {number}" for number in range(6)])
    place = f"/api/sessions/{session_id}"
    receipt = (await owner.post(f"{place}/compress", json={"focus": "the matter"})).json()
    await ended(web.gateway, receipt["turn_id"])
    kinds = [event["kind"] for event in (await owner.get(f"{place}/messages")).json()["events"]]
    assert "compacted" in kinds
    assert (await owner.post(f"{place}/restore", json={})).status_code == 200
    kinds = [event["kind"] for event in (await owner.get(f"{place}/messages")).json()["events"]]
    assert "expanded" in kinds


async def test_too_little_is_not_compressed(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    refused = await owner.post(f"/api/sessions/{session_id}/compress", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused")


# ---- copies ------------------------------------------------------------------------------------------------


@ENGINES
async def test_a_fork_goes_on_by_itself(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    first = next(event["seq"] for event in events if event["message"])
    fork = await owner.post(f"/api/sessions/{session_id}/fork", json={"at": first, "title": "Another way"})
    assert fork.status_code == 201
    assert (fork.json()["parent_id"], fork.json()["title"]) == (session_id, "Another way")
    await web.say(owner, fork.json()["id"], "three")
    assert await lines(owner, fork.json()["id"]) == ["one", "Done.", "three", "Done."]
    assert await lines(owner, session_id) == ["one", "Done.", "two", "Done."]


@ENGINES
@pytest.mark.parametrize(("number", "kept"), [(0, []), (1, ["one", "Done."])])
async def test_an_edited_message_is_said_in_a_copy_of_what_came_before_it(
    web: Web, number: int, kept: list[str]
) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    asked = [event["seq"] for event in events if event["message"] and event["message"]["role"] == "user"]
    body = {"at": asked[number], "content": "instead", "key": "edit-1"}
    edited = await owner.post(f"/api/sessions/{session_id}/edit", json=body)
    assert edited.status_code == 202
    copy = edited.json()["session"]["id"]
    await ended(web.gateway, edited.json()["receipt"]["turn_id"])
    assert await lines(owner, copy) == [*kept, "instead", "Done."]
    assert await lines(owner, session_id) == ["one", "Done.", "two", "Done."]
    again = (await owner.post(f"/api/sessions/{session_id}/edit", json=body)).json()
    assert (again["session"]["id"], again["receipt"]["outcome"]) == (copy, "duplicate")


async def test_the_files_of_a_message_go_along_when_it_is_edited(web: Web) -> None:
    owner, ben = await web.client(), await web.client("ben")
    sent = await owner.post("/api/attachments", files={"file": ("notes.txt", b"milk")})
    file = sent.json()["id"]
    session_id = (await owner.post("/api/sessions", json={})).json()["id"]
    said = {"content": "read this", "key": "one", "attachments": [file]}
    receipt = (await owner.post(f"/api/sessions/{session_id}/messages", json=said)).json()
    await ended(web.gateway, receipt["turn_id"])
    body = {"at": receipt["seq"], "content": "read it aloud", "key": "two", "attachments": [file]}
    edited = (await owner.post(f"/api/sessions/{session_id}/edit", json=body)).json()
    events = (await owner.get(f"/api/sessions/{edited['session']['id']}/messages")).json()["events"]
    parts = next(event["message"]["content"] for event in events if event["message"])
    assert [part.get("id") or part.get("text") for part in parts] == ["read it aloud", file]
    theirs = await web.talk(ben, "hello")
    stolen = await ben.post(f"/api/sessions/{theirs}/edit", json=body | {"at": 2})
    assert stolen.status_code == 404


async def test_only_what_a_person_said_can_be_edited(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one")
    events = (await owner.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    for seq in (events[0]["seq"], events[-1]["seq"], 999):
        refused = await owner.post(f"/api/sessions/{session_id}/edit", json={"at": seq, "content": "x", "key": "k"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")


# ---- taking it away ----------------------------------------------------------------------------------------


async def test_a_conversation_is_exported_as_data_and_as_text(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "what is up?", title="Chat")
    data = await owner.get(f"/api/sessions/{session_id}/export")
    assert data.json()["format"] == "palaver.session/1"
    assert f'filename="{session_id}.json"' in data.headers["content-disposition"]
    text = await owner.get(f"/api/sessions/{session_id}/export", params={"format": "markdown"})
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith("# Chat")
    assert "what is up?" in text.text
