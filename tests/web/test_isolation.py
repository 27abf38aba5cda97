"""Two people on one server: for each of them, the other's resources do not exist, on every route.

The routes come from the OpenAPI document, so that new ones are tested automatically.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from conftest import create_sqlite_database
from palaver import SessionSource
from palaver.sessions.inbound import Inbound
from support.web import WebServer, build_api_document, run_web_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx2

DOCUMENT = build_api_document()
OPERATIONS = [
    (operation["operationId"], method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
SECRET = "xylophone"

# A valid request body for each of these operations.
BODIES: dict[str, Any] = {
    "update_session": {"title": "mine now"},
    "send_message": {"content": "let me in", "key": "k1"},
    "mark_read": {"seq": 1},
    "undo_turns": {"turns": 1},
    "edit_message": {"seq": 2, "content": "let me in", "key": "k2"},
    "retry_turn": {"seq": 2},
    "choose_version": {"seq": 2, "version": 1},
    "update_project": {"name": "mine now"},
    "update_memory": {"text": "what I say"},
    "update_saved_prompt": {"text": "what I say"},
    "change_share": {"expires_at": None},
    "update_person": {"name": "someone else"},
    "approve_pairing_request": {"grant": "me"},
    "unlink_account": {"platform": "telegram", "account": "1"},
}
# For each path parameter, an id that does not exist.
MISSING = {
    "session_id": "20200101_000000_00000000",
    "project_id": "proj_00000000",
    "memory_id": "m_00000000",
    "prompt_id": "sp_000000000000",
    "seq": "2",
    "job_id": "j_00000000",
    "person_id": "p_000000000000",
    "request_id": "pr_000000000000",
    "attachment_id": "att_000000000000",
    "share_id": "shr_000000000000",
    "import_id": "imp_0000000000000000",
    "delivery_id": "d_0000000000000000",
    "passkey_id": "pk_000000000000",
    "device_id": "dev_000000000000",
    "token_id": "tok_000000000000",
    "secret": "0" * 43,
    "model": "no-such-model",
    "platform": "no-such-platform",
    "scope": "person",
    "subject": "p_000000000000",
    "period": "day",
}
STREAMS = {"open_live_stream"}  # tested in `test_live.py`
PUBLIC = {  # need no sign-in
    "list_sign_in_methods",
    "sign_in_by_link",
    "sign_in_by_password",
    "get_passkey_sign_in_options",
    "sign_in_by_passkey",
    "check_health",
    "check_readiness",
    "get_shared_conversation",
}


@dataclass
class TwoPeople:
    """Ada, who has resources, Bob, who tries to reach them, and the ids of the resources."""

    web: WebServer
    ada: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    ids: dict[str, str]


# One server for all these tests, since none of their requests may change anything.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TwoPeople]:
    folder = tmp_path_factory.mktemp("two")
    async with run_web_server(create_sqlite_database(folder), folder) as web:
        yield await create_resources(web)


@pytest_asyncio.fixture(loop_scope="module")
async def new_two(tmp_path: Path) -> AsyncIterator[TwoPeople]:
    """Two people on a server of their own, for a test in which they share something."""
    async with run_web_server(create_sqlite_database(tmp_path), tmp_path) as web:
        yield await create_resources(web)


async def create_resources(web: WebServer) -> TwoPeople:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    session_id = await web.create_conversation(ada, f"my {SECRET} is in the cellar", title=f"{SECRET} lessons")
    await web.create_conversation(bob, "hello")
    project = await ada.post("/api/projects", json={"name": f"{SECRET} project"})
    memory = await ada.post("/api/memories", json={"text": f"the {SECRET} is out of tune"})
    prompt = await ada.post("/api/prompts", json={"name": SECRET, "text": f"about my {SECRET}"})
    job = await ada.post("/api/jobs", json={"prompt": f"tune the {SECRET}", "schedule": "every 2h"})
    uploaded = await ada.post("/api/attachments", files={"file": ("notes.txt", SECRET.encode(), "text/plain")})
    shared = await ada.post(f"/api/sessions/{session_id}/shares", json={})
    imported = await ada.post("/api/imports", params={"name": f"{SECRET}.zip"}, content=SECRET.encode())
    token = await ada.post("/api/me/tokens", json={"name": SECRET, "scopes": ["read"]})
    devices = (await ada.get("/api/me/devices")).json()
    ids = {
        "session_id": session_id,
        "project_id": project.json()["id"],
        "memory_id": memory.json()["id"],
        "prompt_id": prompt.json()["id"],
        "job_id": job.json()["id"],
        "attachment_id": uploaded.json()["id"],
        "share_id": shared.json()["id"],
        "import_id": imported.json()["id"],
        "token_id": token.json()["token"]["id"],
        "device_id": next(iter(devices.values()))[0]["id"],
        "request_id": await add_pairing_request(web),
        "person_id": (person_id := (await ada.get("/api/me")).json()["person"]["id"]),
        "subject": person_id,
    }
    return TwoPeople(web, ada, bob, ids)


async def add_pairing_request(web: WebServer) -> str:
    """Let a stranger ask for access; return the id of the request."""
    source = SessionSource("matrix", "1", user_id="1", user_name=f"{SECRET} player")
    await web.gateway.inbox.accept(Inbound(source=source, content="hello"))
    owner = await web.sign_in()
    return str((await owner.get("/api/people/requests")).json()["requests"][0]["id"])


def fill_path(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda name: ids[name[1]], path)


async def send_request(client: httpx2.AsyncClient, name: str, method: str, path: str, **params: Any) -> httpx2.Response:
    body = {"json": BODIES.get(name, {})} if method in {"POST", "PUT", "PATCH"} else {}
    return await client.request(method, path, params=params, **body)


async def test_the_tables_name_existing_operations() -> None:
    names = {name for name, _, _ in OPERATIONS}
    assert set(BODIES) | STREAMS | PUBLIC <= names
    assert {parameter for _, _, path in OPERATIONS for parameter in re.findall(r"{(\w+)", path)} <= set(MISSING)


@pytest.mark.parametrize(("name", "method", "path"), [each for each in OPERATIONS if "{" in each[2]], ids=str)
async def test_someone_elses_resources_look_like_missing_ones(
    two: TwoPeople, name: str, method: str, path: str
) -> None:
    ids = MISSING | two.ids
    hidden = await send_request(two.bob, name, method, fill_path(path, ids))
    missing = await send_request(two.bob, name, method, fill_path(path, MISSING))
    parameters = re.findall(r"{(\w+)}", path)
    expected = missing.text
    for each in parameters:
        expected = expected.replace(MISSING[each], ids[each])
    assert (hidden.status_code, hidden.text) == (missing.status_code, expected)
    assert dict(hidden.headers) | _VARYING_HEADERS == dict(missing.headers) | _VARYING_HEADERS
    if parameters != ["secret"]:
        assert hidden.status_code in {403, 404}
    assert SECRET not in hidden.text


_VARYING_HEADERS = {"date": "", "content-length": ""}


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [each for each in OPERATIONS if each[1] == "GET" and re.search(r"{(session|attachment|job)_id}", each[2])],
    ids=str,
)
async def test_the_person_it_belongs_to_gets_it_with_the_same_id(
    two: TwoPeople, name: str, method: str, path: str
) -> None:
    assert (await send_request(two.ada, name, method, fill_path(path, MISSING | two.ids))).status_code == 200


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [each for each in OPERATIONS if each[1] == "GET" and "{" not in each[2] and each[0] not in STREAMS],
    ids=str,
)
async def test_no_list_contains_someone_elses_resources(two: TwoPeople, name: str, method: str, path: str) -> None:
    params = {"query": SECRET} if name == "search_messages" else {}
    response = await send_request(two.bob, name, method, path, **params)
    assert response.status_code in {200, 403}
    if response.status_code == 200:
        assert SECRET not in response.text
        assert not [each for each in two.ids.values() if each in response.text]


@pytest.mark.parametrize(("name", "method", "path"), OPERATIONS, ids=str)
async def test_every_route_needs_a_sign_in_unless_listed_as_public(
    two: TwoPeople, name: str, method: str, path: str
) -> None:
    anonymous = await two.web.open_anonymous_client()
    response = await send_request(anonymous, name, method, fill_path(path, MISSING))
    if name in PUBLIC:
        assert SECRET not in response.text
    else:
        assert response.status_code == 401, response.text


@pytest.mark.parametrize(
    "path",
    ["/api/sessions", "/api/search", "/api/usage", "/api/sessions/{session_id}", "/api/jobs", "/api/jobs/{job_id}"],
)
async def test_only_an_owner_can_view_everyones(two: TwoPeople, path: str) -> None:
    params = {"all": "true"} | ({"query": SECRET} if path == "/api/search" else {})
    path = fill_path(path, two.ids)
    assert (await two.bob.get(path, params=params)).status_code == 403
    owner = await two.web.sign_in()
    assert SECRET in (await owner.get(path, params=params)).text or path == "/api/usage"


async def test_an_owner_sees_other_peoples_conversations_only_with_all(two: TwoPeople) -> None:
    owner = await two.web.sign_in()
    own = (await owner.get("/api/sessions")).json()["sessions"]
    everyones = (await owner.get("/api/sessions", params={"all": "true"})).json()["sessions"]
    assert own == []
    assert {each["owner_name"] for each in everyones} == {"ada", "bob"}
    assert (await owner.get(f"/api/sessions/{two.ids['session_id']}")).status_code == 404


async def test_an_owner_cannot_write_in_other_peoples_conversations(two: TwoPeople) -> None:
    owner = await two.web.sign_in()
    url = f"/api/sessions/{two.ids['session_id']}/messages"
    message = {"content": "hello", "key": "k"}
    assert (await owner.post(url, json=message)).status_code == 404
    refused = await owner.post(url, params={"all": "true"}, json=message)
    assert (refused.status_code, refused.json()["error"]["facts"]["field"]) == (422, "query.all")


async def test_commands_do_not_reach_other_peoples_conversations(two: TwoPeople) -> None:
    job_id = two.ids["job_id"]
    job_commands = [
        f"/jobs {verb} {job_id}" for verb in ("show", "pause", "run", "remove", "history", "confirm", "reject")
    ]
    for text in (
        *(f"/resume {two.ids['session_id']}", f"/resume {SECRET} lessons", f"/search {SECRET}"),
        *("/jobs", "/jobs list everything", *job_commands),
    ):
        response = await two.bob.post("/api/commands", json={"text": text, "key": text})
        assert "cellar" not in response.text
        assert two.ids["session_id"] not in response.text.replace(text, "")
        assert "tune the" not in response.text


async def test_a_shared_conversation_is_visible_only_to_its_participants(new_two: TwoPeople) -> None:
    eve = await new_two.web.sign_in("eve")
    session_id = await create_shared_session(new_two)
    for client in (new_two.ada, new_two.bob):
        assert (await client.get(f"/api/sessions/{session_id}")).json()["shared"] is True
        events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
        assert [event["person"]["name"] for event in events if event["message"]] == ["ada", "bob"]
    assert (await eve.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await new_two.ada.delete(f"/api/sessions/{session_id}")).status_code == 403
    assert (await new_two.ada.patch(f"/api/sessions/{session_id}", json={"archived": True})).status_code == 403


async def test_keys_of_one_person_say_nothing_about_those_of_another(new_two: TwoPeople) -> None:
    session_id = await create_shared_session(new_two)
    url = f"/api/sessions/{session_id}"
    for path, body in (
        (f"{url}/messages", {"content": "hello"}),
        (f"{url}/messages", {"content": "/status"}),
        ("/api/commands", {"text": "/status", "session_id": session_id}),
        (f"{url}/stop", {}),
    ):
        key = f"{path} {body}".encode().hex()[-100:]
        first = await new_two.ada.post(path, json={**body, "key": key})
        second = await new_two.bob.post(path, json={**body, "key": key})
        again = await new_two.ada.post(path, json={**body, "key": key})
        assert first.json()["outcome"] != "duplicate", first.text
        assert second.json()["outcome"] != "duplicate", second.text
        assert again.json()["outcome"] == "duplicate", again.text
        assert second.json()["seq"] is None or second.json()["seq"] != first.json()["seq"]


async def test_a_guessed_key_does_not_return_the_reply_to_another_persons_command(new_two: TwoPeople) -> None:
    session_id = await create_shared_session(new_two)
    body = {"text": f"/title {SECRET}", "session_id": session_id, "key": "1"}
    assert SECRET in (await new_two.ada.post("/api/commands", json=body)).text
    guessed = await new_two.bob.post("/api/commands", json={**body, "text": "/busy"})
    assert guessed.json()["outcome"] == "command"
    assert SECRET not in guessed.text


async def test_two_people_create_edit_and_complete_with_the_same_key(new_two: TwoPeople) -> None:
    session_id = await create_shared_session(new_two)
    created = [
        (await client.post("/api/sessions", json={"key": "1"})).json()["id"] for client in (new_two.ada, new_two.bob)
    ]
    assert created[0] != created[1]
    seq = next(
        event["seq"]
        for event in (await new_two.ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
        if event["message"]
    )
    edit = {"seq": seq, "content": "hi", "key": "1", "branch": True}
    edited = [await client.post(f"/api/sessions/{session_id}/edit", json=edit) for client in (new_two.ada, new_two.bob)]
    assert len({response.json()["session"]["id"] for response in edited}) == 2, [each.text for each in edited]
    assert [response.json()["receipt"]["outcome"] for response in edited] == ["accepted", "accepted"]
    headers = {"X-Palaver-Session": session_id, "Idempotency-Key": "1"}
    for person in ("ada", "bob"):
        client = await new_two.web.open_token_client("chat", person=person)
        body = {"messages": [{"role": "user", "content": f"I am {person}"}]}
        response = await client.post("/v1/chat/completions", json=body, headers=headers)
        assert response.status_code == 200, response.text
    events = (await new_two.ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    texts = [event["message"]["content"] for event in events if event["message"]]
    assert {"I am ada", "I am bob"} <= set(texts)


async def create_shared_session(two: TwoPeople) -> str:
    """Create a thread in which both have written."""
    session_id = ""
    for client in (two.ada, two.bob):
        person = (await client.get("/api/me")).json()["person"]
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person["id"])
        receipt = await two.web.gateway.store.aio.record_user_message(source, "hello all")
        session_id = receipt.session_id
    return session_id
