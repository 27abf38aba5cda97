"""Shares: immutable copies of conversations for anyone with the secret, without private data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.domain.errors import NothingToDo
from palaver.domain.events import Event, EventKind
from palaver.domain.message import Author, Message
from palaver.domain.share import build_shared_copy
from palaver.testing import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    import httpx2

    from palaver.agent.base import AgentEvent
    from support.web import StartWebServer, WebServer

ANSWER_WITH_TOOLS: list[AgentEvent] = [
    ReasoningDelta("secret thoughts"),
    TextDelta("I look it up."),
    ToolCall("c1", "search", '{"text": "secret arguments"}'),
    ToolResult("c1", "search", "secret result"),
    TextDelta("Here it is."),
]


async def create_share(client: httpx2.AsyncClient, session: str) -> dict[str, Any]:
    created = await client.post(f"/api/sessions/{session}/shares")
    assert created.status_code == 201, created.text
    body: dict[str, Any] = created.json()
    return body


@pytest.mark.parametrize("web_store_url", ["sqlite", "postgres"], indirect=True)
async def test_a_share_shows_only_messages(start_web: StartWebServer) -> None:
    web = await start_web(ScriptedAgent(lambda _request: ANSWER_WITH_TOOLS))
    ada = await web.sign_in("Ada")
    session = await web.create_session(ada, title="Trip with Ada")
    await web.send_message(ada, session, "Find it for Ada, ada@example.org, +44 20 7946 0958")
    created = await create_share(ada, session)

    anonymous = await web.open_anonymous_client()
    response = await anonymous.get(f"/api/shared/{created['secret']}")
    assert response.status_code == 200
    body = response.json()
    assert body == {
        "title": "Trip with (name removed)",
        "shared_at": created["created_at"],
        "messages": [
            {
                "role": "user",
                "name": "Person",
                "text": "Find it for (name removed), (email removed), (phone number removed)",
            },
            {"role": "assistant", "name": None, "text": "I look it up."},
            {"role": "assistant", "name": None, "text": "Here it is."},
        ],
    }
    assert "secret" not in response.text
    assert session not in response.text
    assert not re.search(r"\b[pta]_[0-9a-f]{8,}", response.text)
    assert response.headers["x-robots-tag"] == "noindex"
    assert created["path"] == f"/shared#{created['secret']}"


async def test_a_share_never_changes(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    await web.send_message(owner, session, "first")
    created = await create_share(owner, session)
    before = (await owner.get(f"/api/shared/{created['secret']}")).content

    await web.send_message(owner, session, "second")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Another title"})
    await owner.post(f"/api/sessions/{session}/undo", json={"turns": 2})
    assert (await owner.get(f"/api/shared/{created['secret']}")).content == before


async def test_undone_messages_are_not_shared(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    await web.send_message(owner, session, "kept")
    await web.send_message(owner, session, "regretted")
    await owner.post(f"/api/sessions/{session}/undo", json={"turns": 1})
    created = await create_share(owner, session)
    response = await owner.get(f"/api/shared/{created['secret']}")
    assert "kept" in response.text
    assert "regretted" not in response.text


async def test_a_deleted_share_stops_working_immediately(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    await web.send_message(owner, session, "hello")
    created = await create_share(owner, session)
    shares = (await owner.get("/api/shares")).json()["shares"]
    assert [(each["id"], each["session_id"], each["message_count"]) for each in shares] == [(created["id"], session, 2)]
    assert "secret" not in shares[0]

    assert (await owner.delete(f"/api/shares/{created['id']}")).status_code == 204
    anonymous = await web.open_anonymous_client()
    deleted = await anonymous.get(f"/api/shared/{created['secret']}")
    not_found = await anonymous.get("/api/shared/" + "x" * 43)
    assert (deleted.status_code, deleted.content) == (404, not_found.content)
    assert (await owner.delete(f"/api/shares/{created['id']}")).status_code == 404


async def test_deleting_a_conversation_deletes_its_shares(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    await web.send_message(owner, session, "hello")
    created = await create_share(owner, session)
    await owner.delete(f"/api/sessions/{session}")
    assert (await owner.get(f"/api/shared/{created['secret']}")).status_code == 404


async def test_other_people_cannot_create_list_or_delete_a_share(web: WebServer) -> None:
    ada, ben = await web.sign_in("Ada"), await web.sign_in("Ben")
    session = await web.create_session(ada)
    await web.send_message(ada, session, "mine")
    created = await create_share(ada, session)

    missing = await ben.post("/api/sessions/20200101_000000_00000000/shares")
    hidden = await ben.post(f"/api/sessions/{session}/shares")
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace(session, "") == missing.text.replace("20200101_000000_00000000", "")
    assert (await ben.get("/api/shares")).json() == {"shares": []}
    assert (await ben.delete(f"/api/shares/{created['id']}")).status_code == 404
    assert (await ben.delete(f"/api/shares/{created['id']}?all=true")).status_code == 403
    assert (await ada.get(f"/api/shared/{created['secret']}")).status_code == 200
    for url in ("/api/shares", f"/api/shared/{created['id']}"):
        assert (await (await web.open_anonymous_client()).get(url)).status_code in {401, 404}


async def test_an_empty_conversation_cannot_be_shared(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    assert (await owner.post(f"/api/sessions/{session}/shares")).status_code == 409


# ---- private data ---------------------------------------------------------------------------------------


def make_event(seq: int, content: Any, role: str = "user", **fields: Any) -> Event:
    author = fields.pop("author", None)
    message = Message(role, content, author)
    return Event(seq=seq, kind=EventKind.MESSAGE, at=FakeClock().now(), message=message, **fields)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("my key is sk-abcdefghijklmnop1234", "my key is (key removed)"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "(key removed)"),
        ("bot 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "bot (key removed)"),
        ("password: hunter2!", "password: (removed)"),
        ("api_key: sk-abcdefghijklmnop1234", "api_key: (key removed)"),
        ("postgresql://ada:pw@db/x", "postgresql://(removed)@db/x"),
        ("write to ada.l+x@mail.example.co.uk", "write to (email removed)"),
        ("call +49 170 1234567 or 0171/2345678", "call (phone number removed) or (phone number removed)"),
        ("see 20261115_081200_1a2b3c4d and p_0123456789ab", "see (id removed) and (id removed)"),
        ("in 2026-11-15 12:30:00 it was 3.14159265358979", "in 2026-11-15 12:30:00 it was 3.14159265358979"),
        ("SKU 12345678901 costs 1000000", "SKU 12345678901 costs 1000000"),
    ],
)
def test_private_data_is_replaced_in_shares(text: str, shared: str) -> None:
    [message] = build_shared_copy(None, [make_event(1, text)])["messages"]
    assert message["text"] == shared


def test_people_in_a_share_are_numbered_without_names() -> None:
    log = [
        make_event(1, "I am Ada", author=Author("Ada", "1")),
        make_event(2, "and I am Ben", author=Author("Ben", "2")),
        make_event(3, "Ada and Ben, then", role="assistant"),
        make_event(4, "yes", author=Author("Ada", "1")),
    ]
    messages = build_shared_copy("Ada & Ben", log, ["Ada", "Ben"])["messages"]
    assert [message["name"] for message in messages] == ["Person 1", "Person 2", None, "Person 1"]
    assert not any("Ada" in message["text"] or "Ben" in message["text"] for message in messages)


def test_files_and_tool_results_are_left_out_of_a_share() -> None:
    log = [
        make_event(1, [{"type": "text", "text": "look"}, {"type": "attachment", "id": "a_1", "name": "private.pdf"}]),
        make_event(2, "result", role="tool"),
        make_event(3, "instructions", role="system"),
    ]
    assert build_shared_copy(None, log)["messages"] == [{"role": "user", "name": "Person", "text": "look\n\n(file)"}]
    with pytest.raises(NothingToDo):
        build_shared_copy(None, log[1:])
