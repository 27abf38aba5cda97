"""Saying and reading over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWeb, Web

ENGINES = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


async def read(client: httpx2.AsyncClient, session_id: str, **params: Any) -> dict[str, Any]:
    answer = await client.get(f"/api/sessions/{session_id}/messages", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def numbers(page: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in page["events"]]


# ---- saying ------------------------------------------------------------------------------------------------


@ENGINES
async def test_a_message_sent_twice_with_the_same_key_is_one_message(web: Web) -> None:
    owner = await web.client()
    session_id = await web.session(owner)
    place, body = f"/api/sessions/{session_id}/messages", {"content": "hello", "key": "the same"}
    sent = await asyncio.gather(*(owner.post(place, json=body | {"key": "the-same"}) for _ in range(5)))
    outcomes = sorted(answer.json()["outcome"] for answer in sent)
    assert [answer.status_code for answer in sent] == [202] * 5
    assert outcomes == ["accepted", *["duplicate"] * 4]
    assert len({answer.json()["turn_id"] for answer in sent}) == 1
    page = await read(owner, session_id)
    assert [event["message"]["content"] for event in page["events"] if event["message"]][:1] == ["hello"]


async def test_the_same_key_in_two_conversations_is_two_messages(web: Web) -> None:
    owner = await web.client()
    for _ in range(2):
        session_id = await web.session(owner)
        receipt = await web.say(owner, session_id, "hello", key="k")
        assert receipt["outcome"] == "accepted"


async def test_a_slash_command_is_carried_out_and_not_said(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    receipt = await web.say(owner, session_id, "/title Trip to Lisbon")
    assert (receipt["outcome"], receipt["facts"]["title"]) == ("command", "Trip to Lisbon")
    page = await read(owner, session_id)
    assert [event["message"]["content"] for event in page["events"] if event["message"]] == ["hello", "Done."]
    assert (await owner.get(f"/api/sessions/{session_id}")).json()["title"] == "Trip to Lisbon"


async def test_a_message_that_is_refused_says_why_and_is_not_stored(start_web: StartWeb) -> None:
    async def endless(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("…")
        await asyncio.sleep(60)

    web = await start_web(ScriptedAgent(endless))
    owner = await web.client()
    session_id = await web.session(owner)
    place = f"/api/sessions/{session_id}/messages"
    await owner.post(place, json={"content": "one", "key": "1"})
    refused = (await owner.post(place, json={"content": "two", "key": "2", "busy": "reject"})).json()
    assert (refused["outcome"], refused["seq"]) == ("refused", None)
    assert "still answering" in refused["reply"]
    queued = (await owner.post(place, json={"content": "three", "key": "3"})).json()
    assert (queued["outcome"], queued["ahead"]) == ("queued", 1)
    await owner.post(f"/api/sessions/{session_id}/stop", json={"queued": True})  # nobody has to wait for the end


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"key": "k"}, "body.content"),
        ({"content": "hello"}, "body.key"),
        ({"content": "hello", "key": ""}, "body.key"),
        ({"content": "hello", "key": "with space"}, "body.key"),
        ({"content": "hello", "key": "k", "busy": "perhaps"}, "body.busy"),
        ({"content": "hello", "key": "k", "more": 1}, "body.more"),
    ],
)
async def test_a_message_that_cannot_be_read_is_refused_with_its_place(
    web: Web, body: dict[str, Any], where: str
) -> None:
    owner = await web.client()
    session_id = await web.session(owner)
    refused = await owner.post(f"/api/sessions/{session_id}/messages", json=body)
    assert refused.status_code == 422
    error = refused.json()["error"]
    assert (error["code"], error["facts"]["where"]) == ("invalid_request", where)


@pytest.mark.parametrize("content", ["", "  \n ", []])
async def test_a_message_with_nothing_in_it_is_refused(web: Web, content: Any) -> None:
    owner = await web.client()
    session_id = await web.session(owner)
    refused = await owner.post(f"/api/sessions/{session_id}/messages", json={"content": content, "key": "k"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_message")


async def test_half_of_a_character_is_kept_and_given_back_as_a_mark(web: Web) -> None:
    owner = await web.client()
    session_id = await web.session(owner)
    body = b'{"content": [{"type": "text", "text": "a \\ud83d b"}], "key": "k"}'
    headers = {"Content-Type": "application/json"}
    said = await owner.post(f"/api/sessions/{session_id}/messages", content=body, headers=headers)
    assert said.status_code == 202
    page = await read(owner, session_id)
    assert page["events"][-1]["message"] is not None
    assert (await owner.get(f"/api/sessions/{session_id}/export")).status_code == 200


# ---- reading -----------------------------------------------------------------------------------------------


@ENGINES
async def test_a_conversation_is_read_in_parts_that_fit_together(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, *(f"message {number}" for number in range(5)))
    whole = await read(owner, session_id)
    assert (numbers(whole), whole["more_before"], whole["more_after"]) == (list(range(1, 12)), False, False)
    end = await read(owner, session_id, limit=4)
    assert (numbers(end), end["more_before"], end["more_after"]) == ([8, 9, 10, 11], True, False)
    before = await read(owner, session_id, before=8, limit=4)
    assert (numbers(before), before["more_before"], before["more_after"]) == ([4, 5, 6, 7], True, True)
    first = await read(owner, session_id, before=4, limit=4)
    assert (numbers(first), first["more_before"], first["more_after"]) == ([1, 2, 3], False, True)
    after = await read(owner, session_id, after=3, limit=4)
    assert (numbers(after), after["more_before"], after["more_after"]) == ([4, 5, 6, 7], True, True)
    last = await read(owner, session_id, after=9, limit=4)
    assert (numbers(last), last["more_before"], last["more_after"]) == ([10, 11], True, False)
    middle = await read(owner, session_id, around=6, limit=4)
    assert (numbers(middle), middle["more_before"], middle["more_after"]) == ([4, 5, 6, 7], True, True)
    start = await read(owner, session_id, around=1, limit=4)
    assert (numbers(start), start["more_before"]) == ([1, 2, 3, 4], False)


async def test_two_places_at_once_are_refused(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "hello")
    refused = await owner.get(f"/api/sessions/{session_id}/messages", params={"before": 5, "after": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")


@ENGINES
async def test_what_was_taken_back_is_only_in_the_whole_log(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two")
    await owner.post(f"/api/sessions/{session_id}/undo", json={})
    seen = await read(owner, session_id)
    assert [event["message"]["content"] for event in seen["events"] if event["message"]] == ["one", "Done."]
    assert seen["events"][-1]["kind"] == "undone"
    assert seen["events"][-1]["person"]["name"] == "owner"
    log = (await owner.get(f"/api/sessions/{session_id}/events", params={"limit": 500})).json()
    assert [event["message"]["content"] for event in log["events"] if event["hidden"]] == ["two", "Done."]
    assert numbers(log) == list(range(1, len(log["events"]) + 1))
    part = (await owner.get(f"/api/sessions/{session_id}/events", params={"after": 2, "limit": 2})).json()
    assert (numbers(part), part["more_before"], part["more_after"]) == ([3, 4], True, True)


async def test_a_message_carries_its_tools_and_thoughts(start_web: StartWeb) -> None:
    events: Sequence[AgentEvent] = [
        ReasoningDelta("let me see"),
        ToolCall("c1", "clock", '{"zone": "UTC"}'),
        ToolResult("c1", "clock", "noon", failed=True),
        TextDelta("It is noon."),
    ]
    web = await start_web(ScriptedAgent(lambda _request: events))
    owner = await web.client()
    session_id = await web.talk(owner, "what time is it?")
    said = [event["message"] for event in (await read(owner, session_id))["events"] if event["message"]]
    assert said[1]["reasoning"] == "let me see"
    assert said[1]["tool_calls"][0]["function"] == {"name": "clock", "arguments": '{"zone": "UTC"}'}
    assert (said[2]["role"], said[2]["tool_name"], said[2]["is_error"]) == ("tool", "clock", True)
    assert (said[3]["content"], said[3]["answers"]) == ("It is noon.", 2)
    assert all(isinstance(message["duration_ms"], int) for message in said[2:])
    assert said[1]["duration_ms"] is None


@ENGINES
async def test_how_far_somebody_has_read_is_remembered_and_never_goes_back(web: Web) -> None:
    owner = await web.client()
    session_id = await web.talk(owner, "one", "two")
    place = f"/api/sessions/{session_id}"

    async def mark(seq: int) -> Any:
        return (await owner.put(f"{place}/read", json={"seq": seq})).json()["read_seq"]

    assert (await owner.get(place)).json()["read_seq"] == 0
    assert await mark(3) == 3
    assert await mark(2) == 3
    assert await mark(10_000) == 5
    session = (await owner.get(place)).json()
    assert (session["read_seq"], session["last_seq"]) == (5, 5)


async def test_everybody_has_a_mark_of_their_own(web: Web) -> None:
    owner, ada = await web.client(), await web.client("ada")
    session_id = await web.talk(ada, "hello")
    await ada.put(f"/api/sessions/{session_id}/read", json={"seq": 2})
    seen = await owner.get(f"/api/sessions/{session_id}", params={"all": "true"})
    assert (seen.json()["read_seq"], seen.json()["owner"]) == (0, "ada")
