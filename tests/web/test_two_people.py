"""Two people on one gateway: what is one's does not exist for the other, whatever route is tried.

The routes are taken from the OpenAPI document, so a new one is tried without anybody thinking of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from palaver import SessionSource
from support.web import Web, api_document, serving_web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

DOCUMENT = api_document()
OPERATIONS = [
    (operation["operationId"], method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
SECRET = "xylophone"

# A body that each of these routes would take if only the thing were there.
BODIES: dict[str, Any] = {
    "change_session": {"title": "mine now"},
    "send_message": {"content": "let me in", "key": "k1"},
    "mark_read": {"seq": 1},
    "undo_turns": {"turns": 1},
    "edit_message": {"at": 2, "content": "let me in", "key": "k2"},
    "change_project": {"name": "mine now"},
    "change_memory": {"text": "what I say"},
    "change_person": {"name": "somebody else"},
}
# What a path names, and an id of that kind that nobody has.
MISSING = {
    "session_id": "20200101_000000_00000000",
    "project_id": "proj_00000000",
    "memory_id": "m_00000000",
    "person_id": "p_000000000000",
    "attachment_id": "att_000000000000",
    "share_id": "shr_000000000000",
    "delivery_id": "d_0000000000000000",
    "passkey_id": "pk_000000000000",
    "device_id": "dev_000000000000",
    "token_id": "tok_000000000000",
    "secret": "0" * 43,
    "model": "nobody-has-this",
}
NEVER_ENDS = {"follow_live"}  # a stream: `test_live.py` has its two people
OPEN_TO_ALL = {  # no sign-in is asked for
    *("show_ways_to_sign_in", "sign_in_by_link", "sign_in_by_password", "ask_for_passkey", "sign_in_by_passkey"),
    *("health", "ready", "read_shared"),
}


@dataclass
class Two:
    """Ada, who has things, and Bob, who wants them; and what the things are called."""

    web: Web
    ada: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    things: dict[str, str]


# One server for all of these tests: nothing that is tried here may change anything.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    folder = tmp_path_factory.mktemp("two")
    async with serving_web(f"sqlite:///{folder}/palaver.db", folder) as web:
        yield await made_ready(web)


async def made_ready(web: Web) -> Two:
    ada, bob = await web.client("ada"), await web.client("bob")
    session_id = await web.talk(ada, f"my {SECRET} is in the cellar", title=f"{SECRET} lessons")
    await web.talk(bob, "hello")
    project = await ada.post("/api/projects", json={"name": f"{SECRET} project"})
    memory = await ada.post("/api/memories", json={"text": f"the {SECRET} is out of tune"})
    uploaded = await ada.post("/api/attachments", files={"file": ("notes.txt", SECRET.encode(), "text/plain")})
    shared = await ada.post(f"/api/sessions/{session_id}/shares", json={})
    token = await ada.post("/api/me/tokens", json={"name": SECRET, "scopes": ["read"]})
    devices = (await ada.get("/api/me/devices")).json()
    things = {
        "session_id": session_id,
        "project_id": project.json()["id"],
        "memory_id": memory.json()["id"],
        "attachment_id": uploaded.json()["id"],
        "share_id": shared.json()["id"],
        "token_id": token.json()["token"]["id"],
        "device_id": next(iter(devices.values()))[0]["id"],
        "person_id": (await ada.get("/api/me")).json()["person"]["id"],
    }
    return Two(web, ada, bob, things)


def filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda name: ids[name[1]], path)


async def ask(client: httpx2.AsyncClient, name: str, method: str, path: str, **params: Any) -> httpx2.Response:
    body = {"json": BODIES.get(name, {})} if method in {"POST", "PUT", "PATCH"} else {}
    return await client.request(method, path, params=params, **body)


@pytest.mark.parametrize(("name", "method", "path"), [each for each in OPERATIONS if "{" in each[2]], ids=str)
async def test_what_is_anothers_is_answered_like_what_is_not_there(two: Two, name: str, method: str, path: str) -> None:
    ids = MISSING | two.things
    hidden = await ask(two.bob, name, method, filled(path, ids))
    missing = await ask(two.bob, name, method, filled(path, MISSING))
    named = re.findall(r"{(\w+)}", path)
    same = missing.text
    for each in named:
        same = same.replace(MISSING[each], ids[each])
    assert (hidden.status_code, hidden.text) == (missing.status_code, same)
    assert dict(hidden.headers) | _PASSING == dict(missing.headers) | _PASSING
    if named != ["secret"]:
        assert hidden.status_code in {403, 404}
    assert SECRET not in hidden.text


_PASSING = {"date": "", "content-length": ""}


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [each for each in OPERATIONS if each[1] == "GET" and re.search(r"{(session|attachment)_id}", each[2])],
    ids=str,
)
async def test_the_one_it_belongs_to_gets_it_by_the_same_id(two: Two, name: str, method: str, path: str) -> None:
    assert (await ask(two.ada, name, method, filled(path, MISSING | two.things))).status_code == 200


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [each for each in OPERATIONS if each[1] == "GET" and "{" not in each[2] and each[0] not in NEVER_ENDS],
    ids=str,
)
async def test_no_list_and_no_report_holds_what_is_anothers(two: Two, name: str, method: str, path: str) -> None:
    params = {"text": SECRET} if name == "search" else {}
    answer = await ask(two.bob, name, method, path, **params)
    assert answer.status_code in {200, 403}
    if answer.status_code == 200:
        assert SECRET not in answer.text
        assert not [thing for thing in two.things.values() if thing in answer.text]


@pytest.mark.parametrize(("name", "method", "path"), OPERATIONS, ids=str)
async def test_a_stranger_is_asked_to_sign_in_everywhere(two: Two, name: str, method: str, path: str) -> None:
    stranger = await two.web.stranger()
    answer = await ask(stranger, name, method, filled(path, MISSING))
    if name in OPEN_TO_ALL:
        assert SECRET not in answer.text
    else:
        assert answer.status_code == 401, answer.text


@pytest.mark.parametrize("path", ["/api/sessions", "/api/search", "/api/usage", "/api/sessions/{session_id}"])
async def test_only_an_owner_may_look_at_everybodys(two: Two, path: str) -> None:
    path, params = filled(path, two.things), {"all": "true", "text": SECRET}
    assert (await two.bob.get(path, params=params)).status_code == 403
    owner = await two.web.client()
    assert SECRET in (await owner.get(path, params=params)).text or path == "/api/usage"


async def test_an_owner_sees_the_conversations_of_others_only_when_they_ask_for_everybodys(two: Two) -> None:
    owner = await two.web.client()
    mine = (await owner.get("/api/sessions")).json()["sessions"]
    everybodys = (await owner.get("/api/sessions", params={"all": "true"})).json()["sessions"]
    assert mine == []
    assert {each["owner"] for each in everybodys} == {"ada", "bob"}
    assert (await owner.get(f"/api/sessions/{two.things['session_id']}")).status_code == 404


async def test_an_owner_does_not_speak_in_the_conversations_of_others(two: Two) -> None:
    owner = await two.web.client()
    place = f"/api/sessions/{two.things['session_id']}/messages"
    said = await owner.post(place, params={"all": "true"}, json={"content": "hello", "key": "k"})
    assert said.status_code == 404


async def test_a_command_does_not_reach_what_is_anothers(two: Two) -> None:
    for text in (f"/resume {two.things['session_id']}", f"/resume {SECRET} lessons", f"/search {SECRET}"):
        answer = await two.bob.post("/api/commands", json={"text": text, "key": text})
        assert "cellar" not in answer.text
        assert two.things["session_id"] not in answer.text.replace(text, "")


async def test_what_two_people_share_is_there_for_both_and_nobody_else(two: Two) -> None:
    eve = await two.web.client("eve")
    session_id = await shared_session(two)
    for client in (two.ada, two.bob):
        assert (await client.get(f"/api/sessions/{session_id}")).json()["shared"] is True
        events = (await client.get(f"/api/sessions/{session_id}/messages")).json()["events"]
        assert [event["person"]["name"] for event in events if event["message"]] == ["ada", "bob"]
    assert (await eve.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await two.ada.delete(f"/api/sessions/{session_id}")).status_code == 403
    assert (await two.ada.patch(f"/api/sessions/{session_id}", json={"archived": True})).status_code == 403


async def shared_session(two: Two) -> str:
    """A thread in which both have spoken."""
    session_id = ""
    for client in (two.ada, two.bob):
        person = (await client.get("/api/me")).json()["person"]
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person["id"])
        said = await two.web.gateway.store.aio.record_user_message(source, "hello all")
        session_id = said.session_id
    return session_id
