"""Signing in and out: links, passwords, cookies, devices, and what happens to those who guess."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import httpx2
import pytest

from palaver.domain.account import SHORTEST_PASSWORD
from palaver.services.accounts.passwords import NOBODYS
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import StartWeb, Web

GOOD = "four words are enough"
BOTH = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


async def sign_in(web: Web, name: str = "owner", password: str = GOOD) -> httpx2.Response:
    client = await web.stranger()
    return await client.post("/api/sign-in/password", json={"name": name, "password": password})


async def with_password(web: Web, person: str = "owner", password: str = GOOD) -> httpx2.AsyncClient:
    client = await web.client(person)
    answer = await client.put("/api/me/password", json={"new": password})
    assert answer.status_code == 204, answer.text
    return client


def code(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["code"])


# ---- links -----------------------------------------------------------------------------------------------


@BOTH
async def test_the_owner_signs_in_by_a_link_that_works_once(web: Web) -> None:
    secret = await web.state.accounts.owner_link()
    client, late = await web.stranger(), await web.stranger()
    first = await client.post("/api/sign-in/link", json={"token": secret})
    assert first.status_code == 200
    assert first.json()["person"]["role"] == "owner"
    assert (await client.get("/api/me")).json()["person"]["name"] == "owner"

    second = await late.post("/api/sign-in/link", json={"token": secret})
    assert (second.status_code, code(second)) == (401, "sign_in_refused")
    assert not late.cookies


@BOTH
async def test_of_many_who_use_a_link_at_the_same_moment_one_gets_in(web: Web) -> None:
    secret = await web.state.accounts.owner_link()
    clients = [await web.stranger() for _ in range(8)]
    answers = await asyncio.gather(*(each.post("/api/sign-in/link", json={"token": secret}) for each in clients))
    assert sorted(each.status_code for each in answers) == [200] + [401] * 7


async def test_a_link_expires(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    secret = await web.state.accounts.owner_link()
    clock.advance(minutes=16)
    answer = await (await web.stranger()).post("/api/sign-in/link", json={"token": secret})
    assert answer.status_code == 401


async def test_no_secret_is_in_the_database(web: Web, tmp_path: Path) -> None:
    link = await web.state.accounts.owner_link()
    client = await with_password(web)
    made = await client.post("/api/me/tokens", json={"name": "script", "scopes": ["read"]})
    await asyncio.to_thread(web.gateway.store.close)
    stored = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.glob("palaver.db*")))
    [cookie] = client.cookies.jar
    for secret in (link, str(cookie.value), made.json()["secret"], GOOD):
        assert secret.encode() not in stored


# ---- the cookie ------------------------------------------------------------------------------------------


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(web: Web) -> None:
    secret = await web.state.accounts.owner_link()
    answer = await (await web.stranger()).post("/api/sign-in/link", json={"token": secret})
    [cookie] = answer.headers.get_list("set-cookie")
    port = web.url.rpartition(":")[2]
    assert cookie.startswith(f"palaver-{port}=")  # two servers on one machine do not sign each other's people out
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Domain" not in cookie


async def test_over_https_the_cookie_is_bound_to_this_host_alone(start_web: StartWeb) -> None:
    web = await start_web(trusted_proxies=("127.0.0.1",), public_host="chat.example.org")
    answer = await behind_proxy(web)
    assert answer.status_code == 200, answer.text
    [cookie] = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-palaver=")
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))


async def test_below_a_base_path_the_cookie_is_sent_there_only(start_web: StartWeb) -> None:
    web = await start_web(trusted_proxies=("127.0.0.1",), public_host="chat.example.org", base_path="/talk")
    answer = await behind_proxy(web, "/talk")
    assert answer.status_code == 200, answer.text
    [cookie] = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Secure-palaver=")
    assert {"Secure", "Path=/talk"} <= set(cookie.split("; "))


async def behind_proxy(web: Web, base: str = "") -> httpx2.Response:
    secret = await web.state.accounts.owner_link()
    headers = {"Host": "chat.example.org", "Origin": "https://chat.example.org", "X-Forwarded-Proto": "https"}
    return await (await web.stranger()).post(f"{base}/api/sign-in/link", json={"token": secret}, headers=headers)


async def test_without_a_cookie_nobody_is_let_in(web: Web) -> None:
    answer = await (await web.stranger()).get("/api/me")
    assert (answer.status_code, code(answer)) == (401, "not_signed_in")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_cookie_that_was_made_up_lets_nobody_in(web: Web) -> None:
    client = await web.stranger()
    port = web.url.rpartition(":")[2]
    for invented in ("x", "", "é", "p_123", "a" * 5000):
        answer = await client.get("/api/me", headers={b"Cookie": f"palaver-{port}={invented}".encode()})
        assert answer.status_code == 401


async def test_a_new_sign_in_ends_the_one_that_the_browser_had(web: Web) -> None:
    client = await web.client()
    [old] = client.cookies.jar
    answer = await client.post("/api/sign-in/link", json={"token": await web.state.accounts.owner_link()})
    assert answer.status_code == 200
    [device] = (await client.get("/api/me/devices")).json()["devices"]
    assert device["current"]
    stolen = await web.stranger()
    assert (await stolen.get("/api/me", headers={"Cookie": f"{old.name}={old.value}"})).status_code == 401


async def test_a_sign_in_that_is_not_used_ends_and_one_that_is_used_goes_on(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client = await web.client()
    for _ in range(5):
        clock.advance(days=29)
        assert (await client.get("/api/me")).status_code == 200
    clock.advance(days=31)
    assert (await client.get("/api/me")).status_code == 401


async def test_no_sign_in_lasts_longer_than_half_a_year(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client = await web.client()
    answers = []
    for _ in range(10):
        clock.advance(days=20)
        answers.append((await client.get("/api/me")).status_code)
    assert answers == [200] * 8 + [401] * 2


# ---- passwords -------------------------------------------------------------------------------------------


@BOTH
async def test_somebody_signs_in_by_name_and_password(web: Web) -> None:
    await with_password(web)
    answer = await sign_in(web, " OWNER ")
    assert answer.status_code == 200, answer.text
    assert answer.json()["person"]["name"] == "owner"


async def test_a_wrong_password_an_unknown_name_and_one_without_password_are_the_same_answer(web: Web) -> None:
    await with_password(web)
    await web.client("ada")
    answers = [
        await sign_in(web, "owner", "wrong horse battery"),
        await sign_in(web, "nobody", GOOD),
        await sign_in(web, "ada", GOOD),
        await sign_in(web, "no\0body", GOOD),
        await sign_in(web, "owner", "\ud800 is half a letter".encode("utf-8", "replace").decode()),
    ]
    assert {each.status_code for each in answers} == {401}
    assert len({each.content for each in answers}) == 1


@pytest.mark.full_price
async def test_a_name_that_nobody_has_costs_the_same_work(web: Web) -> None:
    """What is checked for an unknown name is a hash made with the costs of a real one."""
    await with_password(web)
    stored = await asyncio.to_thread(_hashes, web)
    assert stored.split("$")[1:4] == NOBODYS.split("$")[1:4]
    assert "argon2id" in stored


def _hashes(web: Web) -> str:
    from palaver.storage import accounts
    from palaver.storage.engines.base import Read

    found = web.gateway.store.engine.run(Read(lambda tx: accounts.credentials(tx, "owner")))
    assert found is not None
    return str(found.password)


async def test_an_accent_may_be_typed_in_either_way(web: Web) -> None:
    await with_password(web, password="caf\u00e9 au lait s'il vous plait")
    assert (await sign_in(web, password="cafe\u0301 au lait s'il vous plait")).status_code == 200


async def test_a_password_that_anybody_would_try_is_refused(web: Web) -> None:
    client = await web.client()
    for weak in ("short", "Password123!", "owner2026!"):
        answer = await client.put("/api/me/password", json={"new": weak})
        assert (answer.status_code, code(answer)) == (422, "weak_password"), weak
    assert not (await client.get("/api/me")).json()["ways"]["password"]


async def test_a_password_of_eight_characters_is_taken(web: Web) -> None:
    await with_password(web, password="kLw#92xq")
    assert SHORTEST_PASSWORD == 8


async def test_to_change_a_password_one_must_know_it(web: Web) -> None:
    client = await with_password(web)
    for current in ({}, {"current": "something else"}):
        answer = await client.put("/api/me/password", json={"new": "another good one", **current})
        assert (answer.status_code, code(answer)) == (403, "wrong_password")
    changed = await client.put("/api/me/password", json={"current": GOOD, "new": "another good one"})
    assert changed.status_code == 204
    assert (await sign_in(web)).status_code == 401
    assert (await sign_in(web, password="another good one")).status_code == 200


async def test_a_new_password_signs_out_every_other_browser_and_ends_every_link(web: Web) -> None:
    client = await web.client()
    other = await web.stranger()
    await other.post("/api/sign-in/link", json={"token": await web.state.accounts.owner_link()})
    link = await web.state.accounts.owner_link()
    await with_password(web)
    assert (await client.get("/api/me")).status_code == 200
    assert (await other.get("/api/me")).status_code == 401
    assert (await other.post("/api/sign-in/link", json={"token": link})).status_code == 401


async def test_the_page_learns_which_ways_there_are(web: Web) -> None:
    stranger = await web.stranger()
    assert (await stranger.get("/api/sign-in")).json() == {"password": False, "passkey": False}
    await with_password(web)
    assert (await stranger.get("/api/sign-in")).json() == {"password": True, "passkey": False}


# ---- those who guess -------------------------------------------------------------------------------------


async def guess(web: Web, times: int) -> list[int]:
    return [(await sign_in(web, "owner", f"guess number {n}")).status_code for n in range(times)]


async def guess_links(web: Web, times: int, headers: dict[str, str] | None = None) -> list[int]:
    client = await web.stranger()
    return [
        (await client.post("/api/sign-in/link", json={"token": f"t{n}"}, headers=headers)).status_code
        for n in range(times)
    ]


async def test_whoever_guesses_a_password_has_to_wait_and_the_right_one_does_not_help(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    await with_password(web)
    assert await guess(web, 11) == [401] * 10 + [429]
    refused = await sign_in(web)
    assert (refused.status_code, code(refused)) == (429, "too_many_attempts")
    assert 0 < int(refused.headers["retry-after"]) <= 61
    clock.advance(seconds=int(refused.headers["retry-after"]))
    assert (await sign_in(web)).status_code == 200


@BOTH
async def test_guesses_at_the_same_moment_are_all_counted(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    await with_password(web)
    answers = await asyncio.gather(*(sign_in(web, "owner", f"guess number {n}") for n in range(14)))
    assert sorted(each.status_code for each in answers) == [401] * 10 + [429] * 4


@BOTH
async def test_guesses_at_several_servers_are_counted_together(start_web: StartWeb) -> None:
    clock = FakeClock()
    servers = [await start_web(clock=clock) for _ in range(3)]
    answers = await asyncio.gather(*(guess_links(each, 15) for each in servers))
    assert sorted(status for each in answers for status in each) == [401] * 30 + [429] * 15


async def test_a_restart_does_not_begin_the_count_anew(start_web: StartWeb) -> None:
    clock = FakeClock()
    first = await start_web(clock=clock)
    await with_password(first)
    assert await guess(first, 11) == [401] * 10 + [429]
    second = await start_web(clock=clock)
    assert await guess(second, 1) == [429]


async def test_no_header_makes_somebody_look_like_somebody_else(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    answers = []
    for n in range(31):
        said = {
            "X-Forwarded-For": f"198.51.100.{n}",
            "X-Real-IP": f"198.51.100.{n}",
            "Forwarded": f"for=198.51.100.{n}",
        }
        answers += await guess_links(web, 1, said)
    assert answers == [401] * 30 + [429]


async def test_one_address_that_guesses_does_not_lock_out_another(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    client = await with_password(web)
    assert (await guess_links(web, 31))[-1] == 429
    assert (await sign_in(web)).status_code == 429
    elsewhere = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
    async with httpx2.AsyncClient(base_url=web.url, transport=elsewhere) as other:
        answer = await other.post("/api/sign-in/password", json={"name": "owner", "password": GOOD})
    assert answer.status_code == 200
    assert (await client.get("/api/me")).status_code == 200


async def test_who_signs_in_rightly_again_and_again_is_never_told_to_wait(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    await with_password(web)
    answers = [(await sign_in(web)).status_code for _ in range(12)]
    assert answers == [200] * 12


async def test_links_cannot_be_guessed_for_long_either(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    assert await guess_links(web, 31) == [401] * 30 + [429]


async def test_knowing_the_cookie_is_not_enough_to_guess_the_password(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    client = await with_password(web)
    answers = [
        (await client.put("/api/me/password", json={"current": f"guess number {n}", "new": GOOD})).status_code
        for n in range(11)
    ]
    assert answers == [403] * 10 + [429]


# ---- devices ---------------------------------------------------------------------------------------------


async def test_signing_out_ends_the_sign_in_and_not_only_the_cookie(web: Web) -> None:
    client = await web.client()
    [cookie] = client.cookies.jar
    answer = await client.post("/api/sign-out")
    assert answer.status_code == 204
    assert not client.cookies
    kept = {"Cookie": f"{cookie.name}={cookie.value}"}
    assert (await (await web.stranger()).get("/api/me", headers=kept)).status_code == 401


async def test_devices_are_listed_and_can_be_signed_out_one_by_one(web: Web) -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    client = await web.client()
    other = await web.stranger()
    secret = await web.state.accounts.owner_link()
    await other.post("/api/sign-in/link", json={"token": secret}, headers={"User-Agent": firefox})
    devices = (await client.get("/api/me/devices")).json()["devices"]
    assert [each["current"] for each in devices].count(True) == 1
    [there] = [each for each in devices if not each["current"]]
    assert (there["name"], there["way"], there["address"]) == ("Firefox, Linux", "link", "127.0.0.1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", there["signed_in_at"])

    assert (await client.delete(f"/api/me/devices/{there['id']}")).status_code == 204
    assert (await other.get("/api/me")).status_code == 401
    assert (await client.delete(f"/api/me/devices/{there['id']}")).status_code == 404


async def test_signing_out_everywhere_ends_every_browser(web: Web) -> None:
    await with_password(web)
    browsers = [await web.client(), *[await web.stranger() for _ in range(3)]]
    for each in browsers[1:]:
        await each.post("/api/sign-in/password", json={"name": "owner", "password": GOOD})
    assert len((await browsers[0].get("/api/me/devices")).json()["devices"]) == 4
    assert (await browsers[1].post("/api/sign-out/everywhere")).status_code == 204
    assert [(await each.get("/api/me")).status_code for each in browsers] == [401] * 4
    assert (await sign_in(web)).status_code == 200


async def test_nobody_signs_out_somebody_elses_device(web: Web) -> None:
    ada, owner = await web.client("ada"), await web.client()
    [theirs] = (await owner.get("/api/me/devices")).json()["devices"]
    taken = await ada.delete(f"/api/me/devices/{theirs['id']}")
    missing = await ada.delete("/api/me/devices/dev_000000000000")
    assert taken.status_code == missing.status_code == 404
    assert taken.text.replace(theirs["id"], "x") == missing.text.replace("dev_000000000000", "x")
    assert (await owner.get("/api/me")).status_code == 200


async def test_what_lasts_long_can_ask_whether_somebody_is_still_signed_in(web: Web) -> None:
    client = await web.client()
    [cookie] = client.cookies.jar
    signed = await web.state.accounts.by_cookie(str(cookie.value))
    assert signed is not None
    assert await web.state.accounts.still_signed_in(signed)
    await client.post("/api/sign-out")
    assert not await web.state.accounts.still_signed_in(signed)


# ---- oneself ---------------------------------------------------------------------------------------------


async def test_me_says_who_i_am_and_who_answers(web: Web) -> None:
    me = (await (await web.client("ada")).get("/api/me")).json()
    assert (me["person"]["name"], me["person"]["role"]) == ("ada", "member")
    assert me["ways"] == {"password": False, "passkeys": 0}
    assert me["agent"]["model"] == "scripted"
    assert me["version"]


async def test_a_new_name_is_the_one_to_sign_in_by(web: Web) -> None:
    client = await with_password(web)
    answer = await client.patch("/api/me", json={"name": "  Grace   Hopper "})
    assert answer.json()["name"] == "Grace Hopper"
    assert (await sign_in(web, "grace hopper")).status_code == 200
    assert (await sign_in(web, "owner")).status_code == 401


async def test_two_people_who_sign_in_have_different_names(web: Web) -> None:
    ada = await web.client("ada")
    await web.client()
    taken = await ada.patch("/api/me", json={"name": "OWNER"})
    assert (taken.status_code, code(taken)) == (422, "name_taken")
    assert (await ada.patch("/api/me", json={"name": "\u200b"})).status_code == 422
    assert (await ada.patch("/api/me", json={"name": "x" * 61})).status_code == 422


# ---- where a server may listen ---------------------------------------------------------------------------


async def test_beyond_this_machine_only_with_a_password_or_a_passkey(web: Web) -> None:
    may_bind = web.state.accounts.may_bind
    assert [await may_bind(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [await may_bind(host) for host in ("0.0.0.0", "::", "192.168.1.2", "chat.example.org", "")] == [False] * 5
    ada = await web.client("ada")
    await ada.put("/api/me/password", json={"new": GOOD})
    assert not await may_bind("0.0.0.0"), "a member's password does not make the owner's account safe"
    await with_password(web)
    assert await may_bind("0.0.0.0")
