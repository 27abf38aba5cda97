"""Shares: immutable copies of conversations for anyone with the secret, without private data."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.core.engines.base import Write
from palaver.core.errors import NothingToDo
from palaver.core.ids import PersonId
from palaver.sessions import shares
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Author, Message
from palaver.sessions.share import Sharer, build_shared_copy
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_for_turn

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
        "title": "Trip with Ada",
        "shared_at": created["created_at"],
        "messages": [
            {
                "role": "user",
                "name": "Ada",
                "text": "Find it for Ada, (email removed), (phone number removed)",
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


@pytest.mark.parametrize(("limit", "value"), [("MAX_SHARED_EVENTS", 3), ("MAX_SHARED_BYTES", 50)])
async def test_a_conversation_that_is_too_long_for_a_page_is_not_shared(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "x" * 100)
    await web.send_message(owner, session_id, "and more")
    monkeypatch.setattr(shares, limit, value)
    response = await owner.post(f"/api/sessions/{session_id}/shares", json={})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "conversation_too_long")
    assert (await owner.get("/api/shares")).json()["shares"] == []


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
    listed = (await owner.get("/api/shares")).json()["shares"]
    assert [(each["id"], each["session_id"], each["message_count"]) for each in listed] == [(created["id"], session, 2)]
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
    assert (await ben.get("/api/shares")).json() == {"shares": [], "next_cursor": None, "default_days": None}
    assert (await ben.get("/api/shares?all=true")).status_code == 403
    assert (await ben.get(f"/api/shares?cursor={created['id']}")).status_code == 422
    assert (await ben.delete(f"/api/shares/{created['id']}")).status_code == 404
    assert (await ben.delete(f"/api/shares/{created['id']}?all=true")).status_code == 403
    assert (await ada.get(f"/api/shared/{created['secret']}")).status_code == 200
    for url in ("/api/shares", f"/api/shared/{created['id']}"):
        assert (await (await web.open_anonymous_client()).get(url)).status_code in {401, 404}


async def test_the_link_can_be_copied_again_by_those_who_may_end_the_share(web: WebServer) -> None:
    owner, ada, ben = await web.sign_in(), await web.sign_in("Ada"), await web.sign_in("Ben")
    created = await create_share(ada, await web.create_conversation(ada, "hello"))
    assert created["path"] == f"/shared#{created['secret']}"
    [listed] = (await ada.get("/api/shares")).json()["shares"]
    assert listed == created
    assert (await owner.get("/api/shares?all=true")).json()["shares"] == [created]
    for client in (owner, ben):
        assert created["secret"] not in (await client.get("/api/shares")).text


async def test_only_the_person_who_shares_is_named(web: WebServer) -> None:
    """The others did not agree to it: an owner shares what Ada and Ben wrote."""
    owner = await web.sign_in()
    group = await create_group_conversation(web, "Ada", "Ben")
    by_owner = (await owner.post(f"/api/sessions/{group}/shares?all=true")).json()
    copy = (await owner.get(f"/api/shared/{by_owner['secret']}")).json()
    assert [(message["name"], message["text"]) for message in copy["messages"]] == [
        ("Person 1", "(name removed) speaks"),
        ("Person 2", "(name removed) speaks"),
    ]


async def test_an_empty_conversation_cannot_be_shared(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    assert (await owner.post(f"/api/sessions/{session}/shares")).status_code == 409


# ---- whose content it is, and who can end it ------------------------------------------------------------


async def create_group_conversation(web: WebServer, *people: str) -> str:
    """Create a thread in which all of them have written."""
    session_id = ""
    for name in people:
        client = await web.sign_in(name)
        person = (await client.get("/api/me")).json()["person"]
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person["id"])
        session_id = (await web.gateway.store.aio.record_user_message(source, f"{name} speaks")).session_id
    return session_id


async def fork(client: httpx2.AsyncClient, session_id: str) -> str:
    response = await client.post(f"/api/sessions/{session_id}/fork", json={})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def edit_last_message(web: WebServer, client: httpx2.AsyncClient, session_id: str) -> str:
    events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    seq = [event["seq"] for event in events if (event["message"] or {}).get("role") == "user"][-1]
    body = {"seq": seq, "content": "something else", "key": f"edit-{session_id}", "branch": True}
    response = await client.post(f"/api/sessions/{session_id}/edit", json=body)
    assert response.is_success, response.text
    await wait_for_turn(web.gateway, response.json()["receipt"]["turn_id"])
    return str(response.json()["session"]["id"])


@pytest.mark.both_engines
async def test_a_member_cannot_share_a_copy_of_a_group_conversation(start_web: StartWebServer) -> None:
    web = await start_web()
    ada = await web.sign_in("Ada")
    group = await create_group_conversation(web, "Ada", "Ben")
    copy = await fork(ada, group)
    copy_of_copy = await fork(ada, copy)
    edited_copy = await edit_last_message(web, ada, copy)
    last_copy = await fork(ada, copy_of_copy)
    for session_id in (copy_of_copy, copy):  # the copy remembers where its content is from when these are gone
        assert (await ada.delete(f"/api/sessions/{session_id}")).is_success
    for session_id in (group, edited_copy, last_copy):
        refused = await ada.post(f"/api/sessions/{session_id}/shares")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "owner_required"), session_id
    owner = await web.sign_in()
    shared = await owner.post(f"/api/sessions/{last_copy}/shares?all=true")
    assert shared.status_code == 201


async def test_a_member_cannot_share_a_copy_made_with_a_command(web: WebServer) -> None:
    ada = await web.sign_in("Ada")
    group = await create_group_conversation(web, "Ada", "Ben")
    body = {"text": "/branch Mine", "key": "branch", "session_id": group}
    response = await ada.post("/api/commands", json=body)
    assert response.is_success, response.text
    refused = await ada.post(f"/api/sessions/{response.json()['session_id']}/shares")
    assert refused.status_code == 403


async def test_a_member_cannot_share_what_others_wrote_in_their_own_conversation(web: WebServer) -> None:
    """A person can continue their own conversation in a group; then others write in it too."""
    ada, ben = await web.sign_in("Ada"), await web.sign_in("Ben")
    session = await web.create_conversation(ada, "mine", "not mine")
    ben_id = (await ben.get("/api/me")).json()["person"]["id"]
    statement = "UPDATE event SET person_id = $1 WHERE content = 'not mine'"
    await web.gateway.store.engine.arun(Write(lambda tx: tx.execute(statement, ben_id)))
    assert (await ada.post(f"/api/sessions/{session}/shares")).status_code == 403


async def test_a_copy_of_ones_own_conversation_can_be_shared(web: WebServer) -> None:
    ada = await web.sign_in("Ada")
    session = await web.create_conversation(ada, "mine alone")
    await create_share(ada, await fork(ada, session))


@pytest.mark.both_engines
async def test_an_owner_lists_and_ends_the_shares_of_everybody(start_web: StartWebServer) -> None:
    web = await start_web()
    owner, ada, ben = await web.sign_in(), await web.sign_in("Ada"), await web.sign_in("Ben")
    by_ada = await create_share(ada, await web.create_conversation(ada, "of Ada", title="Plans"))
    by_ben = await create_share(ben, await web.create_conversation(ben, "of Ben", title="Trip"))
    assert (await owner.get("/api/shares")).json()["shares"] == []

    everybodys = (await owner.get("/api/shares?all=true")).json()
    assert [(each["id"], each["person"]["name"], each["title"]) for each in everybodys["shares"]] == [
        (by_ben["id"], "Ben", "Trip"),
        (by_ada["id"], "Ada", "Plans"),
    ]
    first = (await owner.get("/api/shares?all=true&limit=1")).json()
    second = (await owner.get(f"/api/shares?all=true&limit=1&cursor={first['next_cursor']}")).json()
    assert [page["shares"][0]["id"] for page in (first, second)] == [by_ben["id"], by_ada["id"]]

    assert (await owner.delete(f"/api/shares/{by_ada['id']}")).status_code == 404
    assert (await owner.delete(f"/api/shares/{by_ada['id']}?all=true")).status_code == 204
    assert (await ada.get(f"/api/shared/{by_ada['secret']}")).status_code == 404


@pytest.mark.parametrize("change", ["remove", "make guest"])
async def test_the_shares_of_a_removed_person_end(web: WebServer, change: str) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("Ada")
    created = await create_share(ada, await web.create_conversation(ada, "hello"))
    url = f"/api/people/{created['person']['id']}"
    removed = await (owner.delete(url) if change == "remove" else owner.patch(url, json={"role": "guest"}))
    assert removed.is_success, removed.text
    anonymous = await web.open_anonymous_client()
    assert (await anonymous.get(f"/api/shared/{created['secret']}")).status_code == 404
    assert (await owner.get("/api/shares?all=true")).json()["shares"] == []


async def test_a_copy_is_made_outside_of_the_write_transaction(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a copy of a long conversation is being made, others can write."""
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")

    def build_slowly(*args: Any) -> dict[str, Any]:
        source = SessionSource("web", "elsewhere", user_id="eve")
        web.gateway.store.record_user_message(source, "written meanwhile")  # blocks for ever if a write is open
        return build_shared_copy(*args)

    monkeypatch.setattr("palaver.sessions.shares.build_shared_copy", build_slowly)
    await create_share(owner, session)


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
        ("-eyJhbGciOiJIUzI1.eyJzdWIiOiIx.abc", "-(key removed)"),
        ("https://ada:pw@host and .git://x:y@z", "https://(removed)@host and .git://(removed)@z"),
        ("a@b.cd+e@f.gh, x@y", "(email removed), x@y"),
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


def test_the_person_who_shares_is_named_and_the_others_are_numbered() -> None:
    log = [
        make_event(1, "I am Ada", author=Author("Ada of Slack", "1"), person_id="p_ada"),
        make_event(2, "I am Ben, not Ada of Slack", person_id="p_ben"),
        make_event(3, "I am Cem", person_id="p_cem"),
    ]
    names = ["Ada", "Ada of Slack", "Ben", "Cem"]
    sharer = Sharer(PersonId("p_ada"), "Ada")
    assert [(each["name"], each["text"]) for each in build_shared_copy(None, log, names, sharer)["messages"]] == [
        ("Ada", "I am Ada"),
        ("Person 1", "I am (name removed), not (name removed)"),
        ("Person 2", "I am (name removed)"),
    ]
    two = build_shared_copy(None, log[:2], names, sharer)["messages"]
    assert [each["name"] for each in two] == ["Ada", "Person"]
    nameless = build_shared_copy(None, log[:1], [], Sharer(PersonId("p_ada"), " "))["messages"]
    assert [each["name"] for each in nameless] == ["Person"]


def test_names_are_removed_in_any_letter_case_and_only_as_whole_words() -> None:
    names = ["Ada", "Ada Straße", "(Fox)", "N" * 500, "Al"]
    text = f"ADA, ada straße! Adam (fox) [Straße] Al {'n' * 500}"
    [message] = build_shared_copy(None, [make_event(1, text)], names)["messages"]
    removed = "(name removed)"
    assert message["text"] == f"{removed}, {removed}! Adam {removed} [Straße] Al {removed}{'n' * 372}"


def test_files_and_tool_results_are_left_out_of_a_share() -> None:
    log = [
        make_event(1, [{"type": "text", "text": "look"}, {"type": "attachment", "id": "a_1", "name": "private.pdf"}]),
        make_event(2, "result", role="tool"),
        make_event(3, "instructions", role="system"),
    ]
    assert build_shared_copy(None, log)["messages"] == [{"role": "user", "name": "Person", "text": "look\n\n(file)"}]
    with pytest.raises(NothingToDo):
        build_shared_copy(None, log[1:])


# ---- expiry ------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_an_expired_link_says_so_and_nothing_else(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    ada = await web.sign_in("Ada")
    session = await web.create_conversation(ada, "a private trip", title="Lisbon")
    expires_at = clock.now() + timedelta(days=1)
    response = await ada.post(f"/api/sessions/{session}/shares", json={"expires_at": expires_at.isoformat()})
    assert response.status_code == 201, response.text
    created = response.json()
    assert datetime.fromisoformat(created["expires_at"]) == expires_at

    anonymous = await web.open_anonymous_client()
    url = f"/api/shared/{created['secret']}"
    clock.advance(seconds=86_399)
    assert (await anonymous.get(url)).status_code == 200
    clock.advance(seconds=1)
    expired = await anonymous.get(url)
    assert expired.status_code == 410
    assert expired.json() == {"error": {"code": "share_expired", "message": "This link has expired.", "facts": {}}}

    later = (clock.now() + timedelta(days=30)).isoformat()
    changed = await ada.patch(f"/api/shares/{created['id']}", json={"expires_at": later})
    assert changed.status_code == 200, changed.text
    assert (await anonymous.get(url)).status_code == 200
    assert (await ada.patch(f"/api/shares/{created['id']}", json={"expires_at": None})).json()["expires_at"] is None


async def test_only_the_creator_and_the_owners_change_when_a_link_expires(web: WebServer) -> None:
    owner, ada, ben = await web.sign_in(), await web.sign_in("Ada"), await web.sign_in("Ben")
    created = await create_share(ada, await web.create_conversation(ada, "hello"))
    later = {"expires_at": (web.state.gateway.store.clock.now() + timedelta(days=3)).isoformat()}
    hidden = await ben.patch(f"/api/shares/{created['id']}", json=later)
    missing = await ben.patch("/api/shares/sh_0123456789abcdef", json=later)
    assert (hidden.status_code, hidden.text) == (404, missing.text)
    assert (await ben.patch(f"/api/shares/{created['id']}?all=true", json=later)).status_code == 403
    [unchanged] = (await ada.get("/api/shares")).json()["shares"]
    assert unchanged["expires_at"] is None
    assert (await owner.patch(f"/api/shares/{created['id']}?all=true", json=later)).status_code == 200


@pytest.mark.parametrize("expires_at", ["2020-01-01T00:00:00Z", "2400-01-01T00:00:00Z", "soon"])
async def test_a_link_expires_in_the_future(web: WebServer, expires_at: str) -> None:
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    refused = await owner.post(f"/api/sessions/{session}/shares", json={"expires_at": expires_at})
    assert refused.status_code == 422
    assert "expires_at" in refused.text
    assert (await owner.get("/api/shares")).json()["shares"] == []


async def test_new_links_expire_as_the_settings_say(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    assert (await create_share(owner, session))["expires_at"] is None
    changed = await owner.patch("/api/settings", json={"set": {"web.shared_link_days": 7}})
    assert changed.status_code == 200, changed.text
    assert (await owner.get("/api/shares")).json()["default_days"] == 7
    created = await create_share(owner, session)
    lifetime = datetime.fromisoformat(created["expires_at"]) - datetime.fromisoformat(created["created_at"])
    assert timedelta(days=7) - lifetime < timedelta(minutes=1)
    never = await owner.post(f"/api/sessions/{session}/shares", json={"expires_at": None})
    assert never.json()["expires_at"] is None
