"""Shared conversations: an immutable copy for whoever has the secret, without anything that is not theirs to know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.domain.errors import NothingToDo
from palaver.domain.events import Event, EventKind
from palaver.domain.message import Author, Message
from palaver.domain.share import copied
from palaver.testing import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    import httpx2

    from palaver.agent.base import AgentEvent
    from support.web import StartWeb, Web

SAYS: list[AgentEvent] = [
    ReasoningDelta("secret thoughts"),
    TextDelta("I look it up."),
    ToolCall("c1", "search", '{"text": "secret arguments"}'),
    ToolResult("c1", "search", "secret result"),
    TextDelta("Here it is."),
]


async def share(client: httpx2.AsyncClient, session: str) -> dict[str, Any]:
    made = await client.post(f"/api/sessions/{session}/shares")
    assert made.status_code == 201, made.text
    body: dict[str, Any] = made.json()
    return body


@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
async def test_a_copy_shows_what_was_said_and_nothing_else(start_web: StartWeb) -> None:
    web = await start_web(ScriptedAgent(lambda _request: SAYS))
    ada = await web.client("Ada")
    session = await web.session(ada, title="Trip with Ada")
    await web.say(ada, session, "Find it for Ada, ada@example.org, +44 20 7946 0958")
    made = await share(ada, session)

    stranger = await web.stranger()
    answer = await stranger.get(f"/api/shared/{made['secret']}")
    assert answer.status_code == 200
    body = answer.json()
    assert body == {
        "title": "Trip with (somebody)",
        "shared_at": made["created_at"],
        "messages": [
            {"role": "user", "name": "Person", "text": "Find it for (somebody), (an address), (a number)"},
            {"role": "assistant", "name": None, "text": "I look it up."},
            {"role": "assistant", "name": None, "text": "Here it is."},
        ],
    }
    assert "secret" not in answer.text
    assert session not in answer.text
    assert not re.search(r"\b[pta]_[0-9a-f]{8,}", answer.text)
    assert answer.headers["x-robots-tag"] == "noindex"
    assert made["path"] == f"/shared#{made['secret']}"


async def test_a_copy_never_changes(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    await web.say(owner, session, "first")
    made = await share(owner, session)
    before = (await owner.get(f"/api/shared/{made['secret']}")).content

    await web.say(owner, session, "second")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Another title"})
    await owner.post(f"/api/sessions/{session}/undo", json={"turns": 2})
    assert (await owner.get(f"/api/shared/{made['secret']}")).content == before


async def test_what_was_taken_back_is_not_in_a_copy(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    await web.say(owner, session, "kept")
    await web.say(owner, session, "regretted")
    await owner.post(f"/api/sessions/{session}/undo", json={"turns": 1})
    made = await share(owner, session)
    answer = await owner.get(f"/api/shared/{made['secret']}")
    assert "kept" in answer.text
    assert "regretted" not in answer.text


async def test_a_copy_that_is_taken_back_is_gone_at_once(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    await web.say(owner, session, "hello")
    made = await share(owner, session)
    listed = (await owner.get("/api/shares")).json()["shares"]
    assert [(each["id"], each["session_id"], each["message_count"]) for each in listed] == [(made["id"], session, 2)]
    assert "secret" not in listed[0]

    assert (await owner.delete(f"/api/shares/{made['id']}")).status_code == 204
    stranger = await web.stranger()
    gone = await stranger.get(f"/api/shared/{made['secret']}")
    never = await stranger.get("/api/shared/" + "x" * 43)
    assert (gone.status_code, gone.content) == (404, never.content)
    assert (await owner.delete(f"/api/shares/{made['id']}")).status_code == 404


async def test_a_copy_goes_with_its_conversation(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    await web.say(owner, session, "hello")
    made = await share(owner, session)
    await owner.delete(f"/api/sessions/{session}")
    assert (await owner.get(f"/api/shared/{made['secret']}")).status_code == 404


async def test_nobody_shares_sees_or_revokes_what_is_somebody_elses(web: Web) -> None:
    ada, ben = await web.client("Ada"), await web.client("Ben")
    session = await web.session(ada)
    await web.say(ada, session, "mine")
    made = await share(ada, session)

    missing = await ben.post("/api/sessions/20200101_000000_00000000/shares")
    hidden = await ben.post(f"/api/sessions/{session}/shares")
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace(session, "") == missing.text.replace("20200101_000000_00000000", "")
    assert (await ben.get("/api/shares")).json() == {"shares": []}
    assert (await ben.delete(f"/api/shares/{made['id']}")).status_code == 404
    assert (await ben.delete(f"/api/shares/{made['id']}?all=true")).status_code == 403
    assert (await ada.get(f"/api/shared/{made['secret']}")).status_code == 200
    for way in ("/api/shares", f"/api/shared/{made['id']}"):
        assert (await (await web.stranger()).get(way)).status_code in {401, 404}


async def test_an_empty_conversation_cannot_be_shared(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    assert (await owner.post(f"/api/sessions/{session}/shares")).status_code == 409


# ---- what is left out --------------------------------------------------------------------------------------


def event(number: int, content: Any, role: str = "user", **fields: Any) -> Event:
    author = fields.pop("author", None)
    message = Message(role, content, author)
    return Event(seq=number, kind=EventKind.MESSAGE, at=FakeClock().now(), message=message, **fields)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("my key is sk-abcdefghijklmnop1234", "my key is (a key)"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "(a key)"),
        ("bot 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "bot (a key)"),
        ("password: hunter2!", "password: (hidden)"),
        ("postgresql://ada:pw@db/x", "postgresql://(hidden)@db/x"),
        ("write to ada.l+x@mail.example.co.uk", "write to (an address)"),
        ("call +49 170 1234567 or 0171/2345678", "call (a number) or (a number)"),
        ("see 20261115_081200_1a2b3c4d and p_0123456789ab", "see (an id) and (an id)"),
        ("in 2026-11-15 12:30:00 it was 3.14159265358979", "in 2026-11-15 12:30:00 it was 3.14159265358979"),
        ("SKU 12345678901 costs 1000000", "SKU 12345678901 costs 1000000"),
    ],
)
def test_what_strangers_must_not_know_is_replaced(said: str, shown: str) -> None:
    [message] = copied(None, [event(1, said)])["messages"]
    assert message["text"] == shown


def test_several_people_are_numbered_and_their_names_are_not_told() -> None:
    log = [
        event(1, "I am Ada", author=Author("Ada", "1")),
        event(2, "and I am Ben", author=Author("Ben", "2")),
        event(3, "Ada and Ben, then", role="assistant"),
        event(4, "yes", author=Author("Ada", "1")),
    ]
    messages = copied("Ada & Ben", log, ["Ada", "Ben"])["messages"]
    assert [message["name"] for message in messages] == ["Person 1", "Person 2", None, "Person 1"]
    assert not any("Ada" in message["text"] or "Ben" in message["text"] for message in messages)


def test_files_and_tools_are_left_out_of_a_copy() -> None:
    log = [
        event(1, [{"type": "text", "text": "look"}, {"type": "attachment", "id": "a_1", "name": "private.pdf"}]),
        event(2, "result", role="tool"),
        event(3, "instructions", role="system"),
    ]
    assert copied(None, log)["messages"] == [{"role": "user", "name": "Person", "text": "look\n\n(a file)"}]
    with pytest.raises(NothingToDo):
        copied(None, log[1:])
