"""Sending and reading messages over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.core.engines.base import Write
from palaver.sessions import table as sessions
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from support.web import StartWebServer, WebServer


async def read_page(client: httpx2.AsyncClient, session_id: str, **params: Any) -> dict[str, Any]:
    response = await client.get(f"/api/sessions/{session_id}/messages", params=params)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def get_seqs(page: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in page["events"]]


# ---- sending --------------------------------------------------------------------------------------------


async def test_a_message_sent_twice_with_the_same_key_is_one_message(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    url, body = f"/api/sessions/{session_id}/messages", {"content": "hello", "key": "the-same"}
    responses = await asyncio.gather(*(owner.post(url, json=body) for _ in range(5)))
    outcomes = sorted(response.json()["outcome"] for response in responses)
    assert [response.status_code for response in responses] == [202] * 5
    assert outcomes == ["accepted", *["duplicate"] * 4]
    assert len({response.json()["turn_id"] for response in responses}) == 1
    page = await read_page(owner, session_id)
    assert [event["message"]["content"] for event in page["events"] if event["message"]][:1] == ["hello"]


async def test_the_same_key_in_two_conversations_is_two_messages(web: WebServer) -> None:
    owner = await web.sign_in()
    for _ in range(2):
        session_id = await web.create_session(owner)
        receipt = await web.send_message(owner, session_id, "hello", key="k")
        assert receipt["outcome"] == "accepted"


async def test_messages_of_programs_may_use_any_keys(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    odd: dict[str, Any] = {"context": [1, {"text": 2}], "replied_message": "x", "edited": "no", "sent_at": "yesterday"}
    web.gateway.store.append_to_transcript(session_id, {"role": "user", "content": "odd", **odd})
    good = {"context": [{"author": "Bob", "text": "lunch?"}], "sent_at": "2026-11-16T12:00:00.000000+00:00"}
    web.gateway.store.append_to_transcript(session_id, {"role": "user", "content": "good", **good})
    *_, first, second = [event["message"] for event in (await read_page(owner, session_id))["events"]]
    assert [first[key] for key in odd] == [None, None, False, None]
    assert second["context"] == good["context"]
    assert second["sent_at"] == "2026-11-16T12:00:00Z"


async def test_a_slash_command_runs_and_is_not_stored_as_a_message(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    receipt = await web.send_message(owner, session_id, "/title Trip to Lisbon")
    assert (receipt["outcome"], receipt["facts"]["title"]) == ("command", "Trip to Lisbon")
    page = await read_page(owner, session_id)
    assert [event["message"]["content"] for event in page["events"] if event["message"]] == ["hello", "Done."]
    assert (await owner.get(f"/api/sessions/{session_id}")).json()["title"] == "Trip to Lisbon"


async def test_a_rejected_message_says_why_and_is_not_stored(start_web: StartWebServer) -> None:
    async def answer_endlessly(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("…")
        await asyncio.sleep(60)

    web = await start_web(ScriptedAgent(answer_endlessly))
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    url = f"/api/sessions/{session_id}/messages"
    await owner.post(url, json={"content": "one", "key": "1"})
    rejected = (await owner.post(url, json={"content": "two", "key": "2", "busy_policy": "reject"})).json()
    assert (rejected["outcome"], rejected["seq"]) == ("rejected", None)
    assert "still responding" in rejected["reply"]
    queued = (await owner.post(url, json={"content": "three", "key": "3"})).json()
    assert (queued["outcome"], queued["turns_ahead"]) == ("queued", 1)
    await owner.post(
        f"/api/sessions/{session_id}/stop", json={"clear_queue": True}
    )  # so that the test need not wait for the end


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": "k"}, "body.content"),
        ({"content": "hello"}, "body.key"),
        ({"content": "hello", "key": ""}, "body.key"),
        ({"content": "hello", "key": "with space"}, "body.key"),
        ({"content": "hello", "key": "k", "busy_policy": "perhaps"}, "body.busy_policy"),
        ({"content": "hello", "key": "k", "more": 1}, "body.more"),
    ],
)
async def test_an_invalid_message_is_rejected_with_the_field_name(
    web: WebServer, body: dict[str, Any], field: str
) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    rejected = await owner.post(f"/api/sessions/{session_id}/messages", json=body)
    assert rejected.status_code == 422
    error = rejected.json()["error"]
    assert (error["code"], error["facts"]["field"]) == ("invalid_request", field)


@pytest.mark.parametrize("content", ["", "  \n ", []])
async def test_an_empty_message_is_rejected(web: WebServer, content: Any) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    rejected = await owner.post(f"/api/sessions/{session_id}/messages", json={"content": content, "key": "k"})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (422, "invalid_message")


async def test_a_lone_surrogate_is_returned_as_a_question_mark(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    body = b'{"content": [{"type": "text", "text": "a \\ud83d b"}], "key": "k"}'
    headers = {"Content-Type": "application/json"}
    sent = await owner.post(f"/api/sessions/{session_id}/messages", content=body, headers=headers)
    assert sent.status_code == 202
    page = await read_page(owner, session_id)
    [message] = [event["message"] for event in page["events"] if event["seq"] == sent.json()["seq"]]
    assert message["content"] == [{"type": "text", "text": "a ? b"}]
    assert (await owner.get(f"/api/sessions/{session_id}/export")).status_code == 200


# ---- reading -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_pages_of_a_conversation_fit_together(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, *(f"message {number}" for number in range(5)))
    everything = await read_page(owner, session_id)
    assert (get_seqs(everything), everything["has_more_before"], everything["has_more_after"]) == (
        list(range(1, 12)),
        False,
        False,
    )
    end = await read_page(owner, session_id, limit=4)
    assert (get_seqs(end), end["has_more_before"], end["has_more_after"]) == ([8, 9, 10, 11], True, False)
    before = await read_page(owner, session_id, before=8, limit=4)
    assert (get_seqs(before), before["has_more_before"], before["has_more_after"]) == ([4, 5, 6, 7], True, True)
    first = await read_page(owner, session_id, before=4, limit=4)
    assert (get_seqs(first), first["has_more_before"], first["has_more_after"]) == ([1, 2, 3], False, True)
    after = await read_page(owner, session_id, after=3, limit=4)
    assert (get_seqs(after), after["has_more_before"], after["has_more_after"]) == ([4, 5, 6, 7], True, True)
    last = await read_page(owner, session_id, after=9, limit=4)
    assert (get_seqs(last), last["has_more_before"], last["has_more_after"]) == ([10, 11], True, False)
    middle = await read_page(owner, session_id, around=6, limit=4)
    assert (get_seqs(middle), middle["has_more_before"], middle["has_more_after"]) == ([4, 5, 6, 7], True, True)
    start = await read_page(owner, session_id, around=1, limit=4)
    assert (get_seqs(start), start["has_more_before"]) == ([1, 2, 3, 4], False)


async def test_two_positions_at_once_are_rejected(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    rejected = await owner.get(f"/api/sessions/{session_id}/messages", params={"before": 5, "after": 1})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (422, "invalid_input")


@pytest.mark.both_engines
async def test_undone_messages_are_only_in_the_complete_log(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    await owner.post(f"/api/sessions/{session_id}/undo", json={})
    page = await read_page(owner, session_id)
    assert [event["message"]["content"] for event in page["events"] if event["message"]] == ["one", "Done."]
    assert page["events"][-1]["kind"] == "undone"
    assert page["events"][-1]["person"]["name"] == "owner"
    log = (await owner.get(f"/api/sessions/{session_id}/events", params={"limit": 500})).json()
    assert [event["message"]["content"] for event in log["events"] if event["hidden"]] == ["two", "Done."]
    assert get_seqs(log) == list(range(1, len(log["events"]) + 1))
    log_page = (await owner.get(f"/api/sessions/{session_id}/events", params={"after": 2, "limit": 2})).json()
    assert (get_seqs(log_page), log_page["has_more_before"], log_page["has_more_after"]) == ([3, 4], True, True)


async def test_a_message_contains_its_tool_calls_and_reasoning(start_web: StartWebServer) -> None:
    events: Sequence[AgentEvent] = [
        ReasoningDelta("let me see"),
        ToolCall("c1", "clock", '{"zone": "UTC"}'),
        ToolResult("c1", "clock", "noon", failed=True),
        TextDelta("It is noon."),
    ]
    web = await start_web(ScriptedAgent(lambda _request: events))
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "what time is it?")
    messages = [event["message"] for event in (await read_page(owner, session_id))["events"] if event["message"]]
    assert messages[1]["reasoning"] == "let me see"
    assert messages[1]["tool_calls"][0]["function"] == {"name": "clock", "arguments": '{"zone": "UTC"}'}
    assert (messages[2]["role"], messages[2]["tool_name"], messages[2]["is_error"]) == ("tool", "clock", True)
    assert (messages[3]["content"], messages[3]["answers_seq"]) == ("It is noon.", 2)
    assert all(isinstance(message["duration_ms"], int) for message in messages[2:])
    assert messages[1]["duration_ms"] is None


@pytest.mark.both_engines
async def test_the_read_position_is_stored_and_never_goes_back(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two")
    url = f"/api/sessions/{session_id}"

    async def mark_read(seq: int) -> Any:
        return (await owner.put(f"{url}/read", json={"seq": seq})).json()["read_seq"]

    assert (await owner.get(url)).json()["read_seq"] == 0
    assert await mark_read(3) == 3
    assert await mark_read(2) == 3
    assert await mark_read(10_000) == 5
    session = (await owner.get(url)).json()
    assert (session["read_seq"], session["last_seq"]) == (5, 5)


async def test_each_person_has_their_own_read_position(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    session_id = await web.create_conversation(ada, "hello")
    await ada.put(f"/api/sessions/{session_id}/read", json={"seq": 2})
    session = await owner.get(f"/api/sessions/{session_id}", params={"all": "true"})
    assert (session.json()["read_seq"], session.json()["owner_name"]) == (0, "ada")


# ---- what enters the log ----------------------------------------------------------------------------------


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"type": "text", "text": "x", "more": nest(300)}], "content[0].more: unknown key."),
        ([{"type": "text", "text": "x", "more": "x" * 3_000_000}], "content[0].more: unknown key."),
        (["x", {"type": "text", "text": nest(300)}], "content[1].text: list is not allowed here."),
        (["x"] * 101, "content: the message has 101 parts"),
    ],
)
async def test_a_part_that_is_more_than_text_or_a_file_is_refused(
    web: WebServer, content: list[Any], message: str
) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    for url, fields in (("messages", {}), ("edit", {"seq": 2})):
        body = {"content": content, "key": "k", **fields}
        response = await owner.post(f"/api/sessions/{session_id}/{url}", json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_message")
        assert response.json()["error"]["message"].startswith(message)
    assert len((await owner.get("/api/sessions")).json()["sessions"]) == 1


@pytest.mark.parametrize("url", ["/api/sessions/{}/messages", "/v1/chat/completions", "/api/sessions"])
async def test_a_body_that_is_nested_too_deeply_is_refused(web: WebServer, url: str) -> None:
    owner = await web.sign_in()
    session_id = await web.create_session(owner)
    body = '{"key": "k", "messages": [{"role": "user", "content": "x", "tool_calls": ' + "[" * 5000 + "]" * 5000 + "}]}"
    response = await owner.post(url.format(session_id), content=body, headers={"Content-Type": "application/json"})
    assert 400 <= response.status_code < 500, response.text


async def test_a_damaged_entry_is_shown_as_unreadable_everywhere(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "a lantern", "another lantern")
    damaged_seq = get_seqs(await read_page(owner, session_id))[1]
    deep = '{"x": ' + "[" * 300 + "]" * 300 + "}"

    def damage(tx: Transaction) -> None:
        no = sessions.get_no(tx, session_id)
        tx.execute("UPDATE event SET body = $3 WHERE session_no = $1 AND seq = $2", no, damaged_seq, deep)

    await web.gateway.store.engine.arun(Write(damage))
    for url in ("messages", "events"):
        events = (await owner.get(f"/api/sessions/{session_id}/{url}")).json()["events"]
        event = next(event for event in events if event["seq"] == damaged_seq)
        assert (event["kind"], event["message"]) == ("unreadable", None)
        assert event["facts"] == {"stored_kind": "message", "reason": "too_deep"}
        assert "another lantern" in [each["message"]["content"] for each in events if each["message"]]
    export = await owner.get(f"/api/sessions/{session_id}/export")
    assert [event["kind"] for event in export.json()["events"]].count("unreadable") == 1
    assert "can't be read" in (await owner.get(f"/api/sessions/{session_id}/export?format=markdown")).text
    found = await owner.get("/api/search", params={"query": "lantern"})
    assert {hit["seq"] for hit in found.json()["hits"]} >= {damaged_seq}
    receipt = await web.send_message(owner, session_id, "still there?")
    assert receipt["outcome"] == "accepted"
    page = await read_page(owner, session_id)
    assert page["events"][-1]["message"]["role"] == "assistant"
