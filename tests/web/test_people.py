"""People: the owner invites, renames and removes them, and changes their roles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.core import invocation
from palaver.sessions.inbound import Inbound, Outcome
from palaver.testing import FakeClock
from support.gateway import ask
from support.people import find_code

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer


def get_error_code(response: httpx2.Response) -> str:
    return str(response.json()["error"]["code"])


async def list_people(web: WebServer) -> dict[str, Any]:
    people = (await (await web.sign_in()).get("/api/people")).json()["people"]
    return {each["name"]: each for each in people}


def telegram_source(user: str) -> SessionSource:
    return SessionSource("telegram", user, user_id=user, user_name=user.title())


async def test_an_invitation_link_signs_in_once(web: WebServer) -> None:
    owner = await web.sign_in()
    added = await owner.post("/api/people", json={"name": "Ada"})
    assert added.status_code == 201
    person, url = added.json()["person"], added.json()["link"]["url"]
    assert (person["name"], person["role"]) == ("Ada", "member")
    assert url.startswith(f"{web.url}/sign-in#")
    ada = await web.open_anonymous_client()
    token = {"token": url.partition("#")[2]}
    assert (await ada.post("/api/sign-in/link", json=token)).json()["person"]["id"] == person["id"]
    assert (await (await web.open_anonymous_client()).post("/api/sign-in/link", json=token)).status_code == 401


async def test_web_and_api_sources_belong_to_the_same_person(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    me = (await ada.get("/api/me")).json()["person"]
    for platform in ("web", "api"):
        source = SessionSource(platform, "a-chat", user_id=me["id"])
        assert (await web.gateway.store.aio.get_or_create_person(source)).id == me["id"]


async def test_only_an_owner_can_list_and_change_people(web: WebServer) -> None:
    ada, owner = await web.sign_in("ada"), await web.sign_in()
    mine = (await owner.get("/api/me")).json()["person"]["id"]
    responses = [
        await ada.get("/api/people"),
        await ada.post("/api/people", json={"name": "Eve"}),
        await ada.patch(f"/api/people/{mine}", json={"role": "guest"}),
        await ada.delete(f"/api/people/{mine}"),
        await ada.post(f"/api/people/{mine}/link"),
        await ada.get("/api/people/requests"),
        await ada.post("/api/people/requests/pr_1/approve", json={"grant": "me"}),
        await ada.post("/api/people/requests/pr_1/deny"),
        await ada.post(f"/api/people/{mine}/unlink", json={"platform": "telegram", "account": "1"}),
    ]
    assert [each.status_code for each in responses] == [403] * 9
    assert set(await list_people(web)) == {"owner", "ada"}


async def test_the_list_shows_platforms_and_sign_in_methods(web: WebServer) -> None:
    await web.sign_in("ada")
    await web.gateway.store.aio.get_or_create_person(telegram_source("grace"))
    people = await list_people(web)
    assert people["owner"]["uses_terminal"]
    assert people["ada"]["sign_in_methods"] == {"has_password": False, "passkey_count": 0}
    assert people["ada"]["last_seen_at"] is not None
    assert (people["Grace"]["role"], people["Grace"]["platforms"]) == ("guest", ["telegram"])
    assert people["Grace"]["sign_in_methods"] is None


async def test_people_are_listed_in_pages(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    owner = await web.sign_in()
    for n in range(7):
        clock.advance(seconds=n // 2)
        await web.gateway.store.aio.get_or_create_person(telegram_source(f"guest{n}"))
    names: list[str] = []
    cursor = None
    while True:
        page = (await owner.get("/api/people", params={"limit": 3, **({"cursor": cursor} if cursor else {})})).json()
        names += [each["name"] for each in page["people"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(names) == [*(f"Guest{n}" for n in range(7)), "owner"]
    assert len((await owner.get("/api/people?role=guest")).json()["people"]) == 7
    assert (await owner.get("/api/people?cursor=nonsense")).status_code == 422


@pytest.mark.both_engines
async def test_a_guest_who_becomes_a_member_keeps_their_conversations(start_web: StartWebServer) -> None:
    web = await start_web(rules={"open_platforms": frozenset()})
    owner = await web.sign_in()
    source = telegram_source("grace")
    rejected = await web.gateway.inbox.accept(Inbound(source=source, content="hello"))
    assert rejected.outcome is Outcome.REJECTED
    assert "Grace" not in await list_people(web)
    [request] = (await owner.get("/api/people/requests")).json()["requests"]
    assert (request["platform"], request["account"], request["name"]) == ("telegram", "grace", "Grace")
    assert find_code(rejected.reply) not in str(request)
    approved = await owner.post(f"/api/people/requests/{request['id']}/approve", json={"grant": "guest"})
    assert (approved.json()["name"], approved.json()["role"]) == ("Grace", "guest")
    assert approved.json()["chat_accounts"] == [{"platform": "telegram", "account": "grace"}]
    again = await owner.post(f"/api/people/requests/{request['id']}/approve", json={"grant": "member"})
    assert again.status_code == 404
    grace = (await list_people(web))["Grace"]
    early = await owner.post(f"/api/people/{grace['id']}/link")
    assert (early.status_code, get_error_code(early)) == (403, "not_allowed")

    changed = await owner.patch(f"/api/people/{grace['id']}", json={"role": "member", "name": "Grace Hopper"})
    assert (changed.json()["role"], changed.json()["name"]) == ("member", "Grace Hopper")
    await ask(web.gateway, source, "hello again")
    link = (await owner.post(f"/api/people/{grace['id']}/link")).json()["link"]["url"]
    browser = await web.open_anonymous_client()
    await browser.post("/api/sign-in/link", json={"token": link.partition("#")[2]})
    [session] = (await browser.get("/api/sessions")).json()["sessions"]
    assert session["platform"] == "telegram"


async def test_requests_are_denied_and_accounts_linked_and_separated_on_the_page(start_web: StartWebServer) -> None:
    web = await start_web(rules={"open_platforms": frozenset()})
    owner = await web.sign_in()
    for user in ("grace", "mine"):
        await web.gateway.inbox.accept(Inbound(source=telegram_source(user), content="hello"))
    first, second = (each["id"] for each in (await owner.get("/api/people/requests")).json()["requests"])
    assert (await owner.post(f"/api/people/requests/{first}/deny")).status_code == 204
    linked = await owner.post(f"/api/people/requests/{second}/approve", json={"grant": "me"})
    me = (await owner.get("/api/me")).json()["person"]["id"]
    assert linked.json()["id"] == me
    assert (await owner.get("/api/people/requests")).json()["requests"] == []
    await ask(web.gateway, telegram_source("mine"), "hello from my phone")
    assert [each["platform"] for each in (await owner.get("/api/sessions")).json()["sessions"]] == ["telegram"]
    body = {"platform": "telegram", "account": "mine"}
    assert (await owner.post(f"/api/people/{me}/unlink", json=body)).json()["chat_accounts"] == []
    assert (await owner.post(f"/api/people/{me}/unlink", json=body)).status_code == 404


async def test_two_people_cannot_sign_in_with_the_same_name(web: WebServer) -> None:
    owner = await web.sign_in()
    await web.sign_in("grace")
    await web.gateway.store.aio.get_or_create_person(telegram_source("grace"))
    guest = (await list_people(web))["Grace"]
    await owner.patch(f"/api/people/{guest['id']}", json={"role": "member"})
    taken = await owner.post(f"/api/people/{guest['id']}/link")
    assert (taken.status_code, get_error_code(taken)) == (422, "name_taken")
    await owner.patch(f"/api/people/{guest['id']}", json={"name": "Grace H."})
    assert (await owner.post(f"/api/people/{guest['id']}/link")).status_code == 201


@pytest.mark.parametrize("action", ["remove", "make guest"])
async def test_removing_a_person_signs_them_out_and_keeps_their_conversations(web: WebServer, action: str) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    program = await web.open_token_client("read", person="ada")
    await ada.put("/api/me/password", json={"new_password": "four words are enough"})
    session_id = await web.create_session(ada)
    await web.send_message(ada, session_id, "remember me")
    person = (await list_people(web))["ada"]
    pending = (await owner.post(f"/api/people/{person['id']}/link")).json()["link"]["url"].partition("#")[2]

    if action == "remove":
        assert (await owner.delete(f"/api/people/{person['id']}")).status_code == 204
    else:
        changed = (await owner.patch(f"/api/people/{person['id']}", json={"role": "guest"})).json()
        assert (changed["role"], changed["sign_in_methods"]) == ("guest", None)
    assert (await ada.get("/api/me")).status_code == 401
    assert (await program.get("/api/me")).status_code == 401
    anonymous = await web.open_anonymous_client()
    credentials = {"name": "ada", "password": "four words are enough"}
    assert (await anonymous.post("/api/sign-in/password", json=credentials)).status_code == 401
    assert (await anonymous.post("/api/sign-in/link", json={"token": pending})).status_code == 401
    assert "ada" not in await list_people(web)
    assert (await owner.delete(f"/api/people/{person['id']}")).status_code == 404
    sessions = (await owner.get("/api/sessions?all=true")).json()["sessions"]
    assert session_id in [each["id"] for each in sessions]


async def test_a_removed_chat_user_is_a_guest_again(web: WebServer) -> None:
    owner = await web.sign_in()
    await web.gateway.store.aio.get_or_create_person(telegram_source("grace"))
    grace = (await list_people(web))["Grace"]
    await owner.patch(f"/api/people/{grace['id']}", json={"role": "member"})
    await owner.delete(f"/api/people/{grace['id']}")
    assert (await list_people(web))["Grace"]["role"] == "guest"


async def test_a_name_is_free_again_after_its_person_was_removed(web: WebServer) -> None:
    owner = await web.sign_in()
    await web.sign_in("ada")
    taken = await owner.post("/api/people", json={"name": "ADA"})
    assert (taken.status_code, get_error_code(taken)) == (422, "name_taken")
    assert set(await list_people(web)) == {"owner", "ada"}, "a failed invitation creates no one"
    await owner.delete(f"/api/people/{(await list_people(web))['ada']['id']}")
    assert (await owner.post("/api/people", json={"name": "Ada"})).status_code == 201


@pytest.mark.both_engines
async def test_concurrent_invitations_with_the_same_name_create_one_person(web: WebServer) -> None:
    owner = await web.sign_in()
    responses = await asyncio.gather(*(owner.post("/api/people", json={"name": "Ada"}) for _ in range(6)))
    assert sorted(each.status_code for each in responses) == [201] + [422] * 5
    assert set(await list_people(web)) == {"owner", "Ada"}


async def test_the_terminal_user_is_always_an_owner(web: WebServer) -> None:
    other = await web.sign_in("ada", role="owner")
    owner = (await list_people(web))["owner"]
    for response in (
        await other.patch(f"/api/people/{owner['id']}", json={"role": "member"}),
        await other.delete(f"/api/people/{owner['id']}"),
    ):
        assert (response.status_code, get_error_code(response)) == (403, "not_allowed")
    assert (await other.patch(f"/api/people/{owner['id']}", json={"name": "Root"})).status_code == 200
    assert (await other.delete(f"/api/people/{(await list_people(web))['ada']['id']}")).status_code == 204
    assert (await other.get("/api/people")).status_code == 401


async def test_a_role_change_applies_to_the_next_request(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    person = (await list_people(web))["ada"]
    assert (await ada.get("/api/people")).status_code == 403
    await owner.patch(f"/api/people/{person['id']}", json={"role": "owner"})
    assert (await ada.get("/api/people")).status_code == 200
    await owner.patch(f"/api/people/{person['id']}", json={"role": "member"})
    assert (await ada.get("/api/people")).status_code == 403
    assert (await ada.get("/api/sessions?all=true")).status_code == 403


async def test_a_new_link_invalidates_the_old_one(web: WebServer) -> None:
    owner = await web.sign_in()
    added = (await owner.post("/api/people", json={"name": "Ada"})).json()
    newer = (await owner.post(f"/api/people/{added['person']['id']}/link")).json()
    tokens = [each["link"]["url"].partition("#")[2] for each in (added, newer)]
    anonymous = await web.open_anonymous_client()
    responses = [await anonymous.post("/api/sign-in/link", json={"token": token}) for token in tokens]
    assert [each.status_code for each in responses] == [401, 200]


async def test_changing_a_missing_person_fails(web: WebServer) -> None:
    owner = await web.sign_in()
    for person_id in ("p_000000000000", "unknown", "%00", "x" * 300):
        responses = [
            await owner.patch(f"/api/people/{person_id}", json={"name": "x"}),
            await owner.delete(f"/api/people/{person_id}"),
            await owner.post(f"/api/people/{person_id}/link"),
        ]
        assert [each.status_code for each in responses] == [404] * 3


async def test_a_guest_cannot_be_invited(web: WebServer) -> None:
    response = await (await web.sign_in()).post("/api/people", json={"name": "Ada", "role": "guest"})
    assert response.status_code == 422


@pytest.mark.parametrize(
    ("options", "url", "is_local_only"),
    [
        ({}, None, True),
        ({"network_url": "http://192.168.1.20:8765"}, "http://192.168.1.20:8765", False),
        (
            {"network_url": "http://192.168.1.20:8765", "public_url": "https://chat.example.org"},
            "https://chat.example.org",
            False,
        ),
        ({"public_url": "http://localhost:8765"}, "http://localhost:8765", True),
    ],
)
async def test_an_invitation_from_the_machine_of_the_server_has_an_address_for_others(
    start_web: StartWebServer, options: dict[str, Any], url: str | None, is_local_only: bool
) -> None:
    web = await start_web(**options)
    link = (await (await web.sign_in()).post("/api/people", json={"name": "Ada"})).json()["link"]
    assert link["url"].startswith(f"{url or web.url}/sign-in#")
    assert link["is_local_only"] is is_local_only


@pytest.mark.both_engines
async def test_a_welcome_is_offered_until_it_is_declined_or_there_is_another_way_to_sign_in(web: WebServer) -> None:
    async def needs_welcome(client: httpx2.AsyncClient) -> bool:
        return bool((await client.get("/api/me")).json()["needs_welcome"])

    owner, ada = await web.sign_in(), await web.sign_in("ada")
    assert await needs_welcome(owner)
    assert (await owner.post("/api/me/welcome")).status_code == 204
    assert not await needs_welcome(owner)
    assert await needs_welcome(ada)
    response = await ada.put("/api/me/password", json={"new_password": "eleven grey herons"})
    assert response.status_code == 204
    assert not await needs_welcome(ada)


async def test_only_an_owner_sees_where_the_program_is(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "_find_program", lambda: "/srv/palaver/.venv/bin/palaver")
    owner, ada, stranger = await web.sign_in(), await web.sign_in("ada"), await web.open_anonymous_client()
    assert (await owner.get("/api/me")).json()["command"] == "/srv/palaver/.venv/bin/palaver"
    assert (await ada.get("/api/me")).json()["command"] == "palaver"
    assert (await stranger.get("/api/sign-in")).json()["link_command"] == "palaver serve --link"
