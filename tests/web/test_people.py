"""People: how the owner lets them in, renames them, gives them roles and shuts them out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.domain.inbound import Inbound, Outcome
from palaver.testing import FakeClock
from support.gateway import ask

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWeb, Web

BOTH = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


def code(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["code"])


async def everybody(web: Web) -> dict[str, Any]:
    listed = (await (await web.client()).get("/api/people")).json()["people"]
    return {each["name"]: each for each in listed}


def telegram(user: str) -> SessionSource:
    return SessionSource("telegram", user, user_id=user, user_name=user.title())


@BOTH
async def test_somebody_new_is_let_in_by_a_link_that_works_once(web: Web) -> None:
    owner = await web.client()
    added = await owner.post("/api/people", json={"name": "Ada"})
    assert added.status_code == 201
    person, url = added.json()["person"], added.json()["link"]["url"]
    assert (person["name"], person["role"]) == ("Ada", "member")
    assert url.startswith(f"{web.url}/sign-in#")
    ada = await web.stranger()
    token = {"token": url.partition("#")[2]}
    assert (await ada.post("/api/sign-in/link", json=token)).json()["person"]["id"] == person["id"]
    assert (await (await web.stranger()).post("/api/sign-in/link", json=token)).status_code == 401


@BOTH
async def test_what_somebody_says_on_the_web_is_theirs(web: Web) -> None:
    ada = await web.client("ada")
    me = (await ada.get("/api/me")).json()["person"]
    for platform in ("web", "api"):
        source = SessionSource(platform, "a-chat", user_id=me["id"])
        assert (await web.gateway.store.aio.person_for(source)).id == me["id"]


async def test_only_an_owner_sees_and_changes_people(web: Web) -> None:
    ada, owner = await web.client("ada"), await web.client()
    mine = (await owner.get("/api/me")).json()["person"]["id"]
    tried = [
        await ada.get("/api/people"),
        await ada.post("/api/people", json={"name": "Eve"}),
        await ada.patch(f"/api/people/{mine}", json={"role": "guest"}),
        await ada.delete(f"/api/people/{mine}"),
        await ada.post(f"/api/people/{mine}/link"),
    ]
    assert [each.status_code for each in tried] == [403] * 5
    assert set(await everybody(web)) == {"owner", "ada"}


async def test_the_list_says_where_people_are_known_and_how_they_sign_in(web: Web) -> None:
    await web.client("ada")
    await web.gateway.store.aio.person_for(telegram("grace"))
    people = await everybody(web)
    assert people["owner"]["at_terminal"]
    assert people["ada"]["ways"] == {"password": False, "passkeys": 0}
    assert people["ada"]["seen_at"] is not None
    assert (people["Grace"]["role"], people["Grace"]["platforms"]) == ("guest", ["telegram"])
    assert people["Grace"]["ways"] is None


@BOTH
async def test_the_list_comes_page_by_page(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    owner = await web.client()
    for n in range(7):
        clock.advance(seconds=n // 2)
        await web.gateway.store.aio.person_for(telegram(f"guest{n}"))
    names: list[str] = []
    cursor = None
    while True:
        page = (await owner.get("/api/people", params={"limit": 3, **({"cursor": cursor} if cursor else {})})).json()
        names += [each["name"] for each in page["people"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(names) == [*(f"Guest{n}" for n in range(7)), "owner"]
    assert len((await owner.get("/api/people?role=guest")).json()["people"]) == 7
    assert (await owner.get("/api/people?cursor=nonsense")).status_code == 422


@BOTH
async def test_a_guest_from_a_chat_becomes_a_member_and_keeps_their_conversations(start_web: StartWeb) -> None:
    web = await start_web(rules={"open_to_all": frozenset()})
    owner = await web.client()
    source = telegram("grace")
    refused = await web.gateway.inbox.accept(Inbound(source=source, content="hello"))
    assert refused.outcome is Outcome.REFUSED
    grace = (await everybody(web))["Grace"]
    early = await owner.post(f"/api/people/{grace['id']}/link")
    assert (early.status_code, code(early)) == (403, "not_allowed")

    changed = await owner.patch(f"/api/people/{grace['id']}", json={"role": "member", "name": "Grace Hopper"})
    assert (changed.json()["role"], changed.json()["name"]) == ("member", "Grace Hopper")
    await ask(web.gateway, source, "hello again")
    link = (await owner.post(f"/api/people/{grace['id']}/link")).json()["link"]["url"]
    browser = await web.stranger()
    await browser.post("/api/sign-in/link", json={"token": link.partition("#")[2]})
    [session] = (await browser.get("/api/sessions")).json()["sessions"]
    assert session["platform"] == "telegram"


async def test_two_guests_with_one_name_cannot_both_sign_in_by_it(web: Web) -> None:
    owner = await web.client()
    await web.client("grace")
    await web.gateway.store.aio.person_for(telegram("grace"))
    guest = (await everybody(web))["Grace"]
    await owner.patch(f"/api/people/{guest['id']}", json={"role": "member"})
    taken = await owner.post(f"/api/people/{guest['id']}/link")
    assert (taken.status_code, code(taken)) == (422, "name_taken")
    await owner.patch(f"/api/people/{guest['id']}", json={"name": "Grace H."})
    assert (await owner.post(f"/api/people/{guest['id']}/link")).status_code == 201


@BOTH
@pytest.mark.parametrize("how", ["removed", "made a guest"])
async def test_somebody_shut_out_is_signed_out_everywhere_and_their_conversations_stay(web: Web, how: str) -> None:
    owner, ada = await web.client(), await web.client("ada")
    program = await web.token("read", person="ada")
    await ada.put("/api/me/password", json={"new": "four words are enough"})
    session_id = await web.session(ada)
    await web.say(ada, session_id, "remember me")
    person = (await everybody(web))["ada"]
    pending = (await owner.post(f"/api/people/{person['id']}/link")).json()["link"]["url"].partition("#")[2]

    if how == "removed":
        assert (await owner.delete(f"/api/people/{person['id']}")).status_code == 204
    else:
        changed = (await owner.patch(f"/api/people/{person['id']}", json={"role": "guest"})).json()
        assert (changed["role"], changed["ways"]) == ("guest", None)
    assert (await ada.get("/api/me")).status_code == 401
    assert (await program.get("/api/me")).status_code == 401
    stranger = await web.stranger()
    again = {"name": "ada", "password": "four words are enough"}
    assert (await stranger.post("/api/sign-in/password", json=again)).status_code == 401
    assert (await stranger.post("/api/sign-in/link", json={"token": pending})).status_code == 401
    assert "ada" not in await everybody(web)
    assert (await owner.delete(f"/api/people/{person['id']}")).status_code == 404
    kept = (await owner.get("/api/sessions?all=true")).json()["sessions"]
    assert session_id in [each["id"] for each in kept]


async def test_a_removed_person_from_a_chat_is_a_guest_again(web: Web) -> None:
    owner = await web.client()
    await web.gateway.store.aio.person_for(telegram("grace"))
    grace = (await everybody(web))["Grace"]
    await owner.patch(f"/api/people/{grace['id']}", json={"role": "member"})
    await owner.delete(f"/api/people/{grace['id']}")
    assert (await everybody(web))["Grace"]["role"] == "guest"


async def test_a_name_is_free_again_when_its_owner_is_gone(web: Web) -> None:
    owner = await web.client()
    await web.client("ada")
    taken = await owner.post("/api/people", json={"name": "ADA"})
    assert (taken.status_code, code(taken)) == (422, "name_taken")
    assert set(await everybody(web)) == {"owner", "ada"}, "half a person is nobody"
    await owner.delete(f"/api/people/{(await everybody(web))['ada']['id']}")
    assert (await owner.post("/api/people", json={"name": "Ada"})).status_code == 201


@BOTH
async def test_of_many_who_are_added_at_the_same_moment_with_one_name_one_is(web: Web) -> None:
    owner = await web.client()
    answers = await asyncio.gather(*(owner.post("/api/people", json={"name": "Ada"}) for _ in range(6)))
    assert sorted(each.status_code for each in answers) == [201] + [422] * 5
    assert set(await everybody(web)) == {"owner", "Ada"}


async def test_whoever_sits_at_the_terminal_stays_the_owner(web: Web) -> None:
    other = await web.client("ada", role="owner")
    owner = (await everybody(web))["owner"]
    for answer in (
        await other.patch(f"/api/people/{owner['id']}", json={"role": "member"}),
        await other.delete(f"/api/people/{owner['id']}"),
    ):
        assert (answer.status_code, code(answer)) == (403, "not_allowed")
    assert (await other.patch(f"/api/people/{owner['id']}", json={"name": "Root"})).status_code == 200
    assert (await other.delete(f"/api/people/{(await everybody(web))['ada']['id']}")).status_code == 204
    assert (await other.get("/api/people")).status_code == 401


async def test_a_role_counts_from_the_next_request_on(web: Web) -> None:
    owner, ada = await web.client(), await web.client("ada")
    person = (await everybody(web))["ada"]
    assert (await ada.get("/api/people")).status_code == 403
    await owner.patch(f"/api/people/{person['id']}", json={"role": "owner"})
    assert (await ada.get("/api/people")).status_code == 200
    await owner.patch(f"/api/people/{person['id']}", json={"role": "member"})
    assert (await ada.get("/api/people")).status_code == 403
    assert (await ada.get("/api/sessions?all=true")).status_code == 403


async def test_a_new_link_makes_the_old_one_worthless(web: Web) -> None:
    owner = await web.client()
    added = (await owner.post("/api/people", json={"name": "Ada"})).json()
    newer = (await owner.post(f"/api/people/{added['person']['id']}/link")).json()
    tokens = [each["link"]["url"].partition("#")[2] for each in (added, newer)]
    stranger = await web.stranger()
    answers = [await stranger.post("/api/sign-in/link", json={"token": token}) for token in tokens]
    assert [each.status_code for each in answers] == [401, 200]


async def test_who_is_not_there_cannot_be_changed(web: Web) -> None:
    owner = await web.client()
    for person_id in ("p_000000000000", "nobody", "%00", "x" * 300):
        tried = [
            await owner.patch(f"/api/people/{person_id}", json={"name": "x"}),
            await owner.delete(f"/api/people/{person_id}"),
            await owner.post(f"/api/people/{person_id}/link"),
        ]
        assert [each.status_code for each in tried] == [404] * 3


async def test_nobody_is_let_in_as_a_guest(web: Web) -> None:
    answer = await (await web.client()).post("/api/people", json={"name": "Ada", "role": "guest"})
    assert answer.status_code == 422
