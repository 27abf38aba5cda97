"""Signing in and out: links, passwords, cookies, devices, and limits on guessing."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

import httpx2
import pytest

from palaver.accounts import sign_in
from palaver.accounts.sign_in import DUMMY_HASH
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read
from palaver.people.model import MIN_PASSWORD_CHARS
from palaver.testing import FakeClock
from support.gateway import wait_until

if TYPE_CHECKING:
    from http.cookiejar import Cookie
    from pathlib import Path

    from support.web import StartWebServer, WebServer

PASSWORD = "four words are enough"


async def sign_in_by_password(web: WebServer, name: str = "owner", password: str = PASSWORD) -> httpx2.Response:
    client = await web.open_anonymous_client()
    return await client.post("/api/sign-in/password", json={"name": name, "password": password})


async def set_password(web: WebServer, person: str = "owner", password: str = PASSWORD) -> httpx2.AsyncClient:
    client = await web.sign_in(person)
    response = await client.put("/api/me/password", json={"new_password": password})
    assert response.status_code == 204, response.text
    return client


def get_sign_in_cookie(client: httpx2.AsyncClient) -> Cookie:
    [cookie] = [cookie for cookie in client.cookies.jar if not cookie.name.endswith("-device")]
    return cookie


def get_error_code(response: httpx2.Response) -> str:
    return str(response.json()["error"]["code"])


# ---- links -----------------------------------------------------------------------------------------------


async def test_an_owner_link_signs_in_once(web: WebServer) -> None:
    secret = await web.state.accounts.create_owner_link()
    client, late = await web.open_anonymous_client(), await web.open_anonymous_client()
    first = await client.post("/api/sign-in/link", json={"token": secret})
    assert first.status_code == 200
    assert first.json()["person"]["role"] == "owner"
    assert (await client.get("/api/me")).json()["person"]["name"] == "owner"

    second = await late.post("/api/sign-in/link", json={"token": secret})
    assert (second.status_code, get_error_code(second)) == (401, "sign_in_failed")
    assert not late.cookies


async def test_concurrent_uses_of_a_link_sign_in_once(web: WebServer) -> None:
    secret = await web.state.accounts.create_owner_link()
    clients = [await web.open_anonymous_client() for _ in range(8)]
    responses = await asyncio.gather(*(each.post("/api/sign-in/link", json={"token": secret}) for each in clients))
    assert sorted(each.status_code for each in responses) == [200] + [401] * 7


async def test_a_link_expires(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    secret = await web.state.accounts.create_owner_link()
    clock.advance(minutes=16)
    response = await (await web.open_anonymous_client()).post("/api/sign-in/link", json={"token": secret})
    assert response.status_code == 401


async def test_no_secret_is_in_the_database(web: WebServer, tmp_path: Path) -> None:
    link = await web.state.accounts.create_owner_link()
    client = await set_password(web)
    created = await client.post("/api/me/tokens", json={"name": "script", "scopes": ["read"]})
    await asyncio.to_thread(web.gateway.store.close)
    stored = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.glob("palaver.db*")))
    cookies = [str(cookie.value) for cookie in client.cookies.jar]
    assert len(cookies) == 2
    for secret in (link, *cookies, created.json()["secret"], PASSWORD):
        assert secret.encode() not in stored


# ---- the cookie ------------------------------------------------------------------------------------------


async def test_the_cookie_is_protected_from_scripts_and_other_sites(web: WebServer) -> None:
    secret = await web.state.accounts.create_owner_link()
    response = await (await web.open_anonymous_client()).post("/api/sign-in/link", json={"token": secret})
    cookie, device_cookie = response.headers.get_list("set-cookie")
    port = web.url.rpartition(":")[2]
    assert device_cookie.startswith(f"palaver-{port}-device=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(device_cookie.split("; "))
    assert cookie.startswith(f"palaver-{port}=")  # two servers on one machine do not sign out each other's users
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Domain" not in cookie


async def test_the_https_cookie_is_bound_to_this_host(start_web: StartWebServer) -> None:
    web = await start_web(trusted_proxies=("127.0.0.1",), public_host="chat.example.org")
    response = await sign_in_behind_proxy(web)
    assert response.status_code == 200, response.text
    cookie, _ = response.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-palaver=")
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))


async def test_the_cookie_is_limited_to_the_base_path(start_web: StartWebServer) -> None:
    web = await start_web(trusted_proxies=("127.0.0.1",), public_host="chat.example.org", base_path="/talk")
    response = await sign_in_behind_proxy(web, "/talk")
    assert response.status_code == 200, response.text
    cookie, _ = response.headers.get_list("set-cookie")
    assert cookie.startswith("__Secure-palaver=")
    assert {"Secure", "Path=/talk"} <= set(cookie.split("; "))


async def sign_in_behind_proxy(web: WebServer, base: str = "") -> httpx2.Response:
    secret = await web.state.accounts.create_owner_link()
    headers = {"Host": "chat.example.org", "Origin": "https://chat.example.org", "X-Forwarded-Proto": "https"}
    return await (await web.open_anonymous_client()).post(
        f"{base}/api/sign-in/link", json={"token": secret}, headers=headers
    )


async def test_a_request_without_a_cookie_is_rejected(web: WebServer) -> None:
    response = await (await web.open_anonymous_client()).get("/api/me")
    assert (response.status_code, get_error_code(response)) == (401, "not_signed_in")
    assert response.headers["www-authenticate"] == "Bearer"


async def test_an_invented_cookie_is_rejected(web: WebServer) -> None:
    client = await web.open_anonymous_client()
    port = web.url.rpartition(":")[2]
    for invented in ("x", "", "é", "p_123", "a" * 5000):
        response = await client.get("/api/me", headers={b"Cookie": f"palaver-{port}={invented}".encode()})
        assert response.status_code == 401


async def test_a_new_sign_in_ends_the_browsers_old_one(web: WebServer) -> None:
    client = await web.sign_in()
    old = get_sign_in_cookie(client)
    response = await client.post("/api/sign-in/link", json={"token": await web.state.accounts.create_owner_link()})
    assert response.status_code == 200
    [device] = (await client.get("/api/me/devices")).json()["devices"]
    assert device["is_current"]
    stolen = await web.open_anonymous_client()
    assert (await stolen.get("/api/me", headers={"Cookie": f"{old.name}={old.value}"})).status_code == 401


async def wait_until_use_is_stored(web: WebServer) -> None:
    """Wait until the last use of the only sign-in is stored, which no request waits for."""
    read = Read(lambda tx: tx.fetch_one("SELECT last_seen_at FROM sign_in"))
    await wait_until(lambda: web.gateway.store.engine.run(read) == (to_micros(web.gateway.store.clock.now()),))


async def test_a_sign_in_expires_only_when_unused(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client = await web.sign_in()
    for _ in range(5):
        clock.advance(days=29)
        assert (await client.get("/api/me")).status_code == 200
        await wait_until_use_is_stored(web)
    clock.advance(days=31)
    assert (await client.get("/api/me")).status_code == 401


async def test_a_sign_in_lasts_at_most_half_a_year(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client = await web.sign_in()
    responses = []
    for _ in range(10):
        clock.advance(days=20)
        responses.append((await client.get("/api/me")).status_code)
        if responses[-1] == 200:
            await wait_until_use_is_stored(web)
    assert responses == [200] * 8 + [401] * 2


# ---- passwords -------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_signing_in_with_name_and_password(web: WebServer) -> None:
    await set_password(web)
    response = await sign_in_by_password(web, " OWNER ")
    assert response.status_code == 200, response.text
    assert response.json()["person"]["name"] == "owner"


async def test_all_failed_password_sign_ins_get_the_same_response(web: WebServer) -> None:
    await set_password(web)
    await web.sign_in("ada")
    responses = [
        await sign_in_by_password(web, "owner", "wrong horse battery"),
        await sign_in_by_password(web, "unknown", PASSWORD),
        await sign_in_by_password(web, "ada", PASSWORD),
        await sign_in_by_password(web, "no\0body", PASSWORD),
        await sign_in_by_password(web, "owner", "\ud800 is half a letter".encode("utf-8", "replace").decode()),
    ]
    assert {each.status_code for each in responses} == {401}
    assert len({each.content for each in responses}) == 1


@pytest.mark.real_hashing
async def test_an_unknown_name_costs_the_same_hashing(web: WebServer) -> None:
    """For an unknown name, a dummy hash with the same cost parameters is checked."""
    await set_password(web)
    stored = await asyncio.to_thread(load_password_hash, web)
    assert stored.split("$")[1:4] == DUMMY_HASH.split("$")[1:4]
    assert "argon2id" in stored


def load_password_hash(web: WebServer) -> str:
    from palaver.core.engines.base import Read
    from palaver.people import account_table as accounts

    _, password_hash = web.gateway.store.engine.run(Read(lambda tx: accounts.find_credentials(tx, "owner")))
    return str(password_hash)


async def test_both_unicode_forms_of_an_accent_match(web: WebServer) -> None:
    await set_password(web, password="caf\u00e9 au lait s'il vous plait")
    assert (await sign_in_by_password(web, password="cafe\u0301 au lait s'il vous plait")).status_code == 200


async def test_a_weak_password_is_rejected(web: WebServer) -> None:
    client = await web.sign_in()
    for weak in ("short", "Password123!", "owner2026!"):
        response = await client.put("/api/me/password", json={"new_password": weak})
        assert (response.status_code, get_error_code(response)) == (422, "weak_password"), weak
    assert not (await client.get("/api/me")).json()["sign_in_methods"]["has_password"]


async def test_a_password_with_eight_characters_is_accepted(web: WebServer) -> None:
    await set_password(web, password="kLw#92xq")
    assert MIN_PASSWORD_CHARS == 8


async def test_changing_a_password_needs_the_current_one(web: WebServer) -> None:
    client = await set_password(web)
    for current in ({}, {"current_password": "something else"}):
        response = await client.put("/api/me/password", json={"new_password": "another good one", **current})
        assert (response.status_code, get_error_code(response)) == (403, "wrong_password")
    changed = await client.put(
        "/api/me/password", json={"current_password": PASSWORD, "new_password": "another good one"}
    )
    assert changed.status_code == 204
    assert (await sign_in_by_password(web)).status_code == 401
    assert (await sign_in_by_password(web, password="another good one")).status_code == 200


async def test_a_new_password_signs_out_other_browsers_and_invalidates_links(web: WebServer) -> None:
    client = await web.sign_in()
    other = await web.open_anonymous_client()
    await other.post("/api/sign-in/link", json={"token": await web.state.accounts.create_owner_link()})
    link = await web.state.accounts.create_owner_link()
    await set_password(web)
    assert (await client.get("/api/me")).status_code == 200
    assert (await other.get("/api/me")).status_code == 401
    assert (await other.post("/api/sign-in/link", json={"token": link})).status_code == 401


async def test_the_available_sign_in_methods_are_listed(web: WebServer) -> None:
    anonymous = await web.open_anonymous_client()
    methods = {"password": False, "passkey": False, "link_command": "palaver serve --link"}
    assert (await anonymous.get("/api/sign-in")).json() == methods
    await set_password(web)
    assert (await anonymous.get("/api/sign-in")).json() == methods | {"password": True}


# ---- guessing -----------------------------------------------------------------------------------------


async def guess_passwords(web: WebServer, times: int) -> list[int]:
    return [(await sign_in_by_password(web, "owner", f"guess number {n}")).status_code for n in range(times)]


async def guess_links(web: WebServer, times: int, headers: dict[str, str] | None = None) -> list[int]:
    client = await web.open_anonymous_client()
    return [
        (await client.post("/api/sign-in/link", json={"token": f"t{n}"}, headers=headers)).status_code
        for n in range(times)
    ]


async def test_after_too_many_guesses_even_the_right_password_has_to_wait(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    await set_password(web)
    assert await guess_passwords(web, 11) == [401] * 10 + [429]
    rejected = await sign_in_by_password(web)
    assert (rejected.status_code, get_error_code(rejected)) == (429, "too_many_attempts")
    assert 0 < int(rejected.headers["retry-after"]) <= 61
    clock.advance(seconds=int(rejected.headers["retry-after"]))
    assert (await sign_in_by_password(web)).status_code == 200


async def test_concurrent_guesses_are_all_counted(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    await set_password(web)
    responses = await asyncio.gather(*(sign_in_by_password(web, "owner", f"guess number {n}") for n in range(14)))
    assert sorted(each.status_code for each in responses) == [401] * 10 + [429] * 4


async def test_guesses_at_several_servers_are_counted_together(start_web: StartWebServer) -> None:
    clock = FakeClock()
    servers = [await start_web(clock=clock) for _ in range(3)]
    responses = await asyncio.gather(*(guess_links(each, 15) for each in servers))
    assert sorted(status for each in responses for status in each) == [401] * 30 + [429] * 15


async def test_a_restart_does_not_reset_the_count(start_web: StartWebServer) -> None:
    clock = FakeClock()
    first = await start_web(clock=clock)
    await set_password(first)
    assert await guess_passwords(first, 11) == [401] * 10 + [429]
    second = await start_web(clock=clock)
    assert await guess_passwords(second, 1) == [429]


async def test_headers_cannot_fake_the_clients_address(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    responses = []
    for n in range(31):
        headers = {
            "X-Forwarded-For": f"198.51.100.{n}",
            "X-Real-IP": f"198.51.100.{n}",
            "Forwarded": f"for=198.51.100.{n}",
        }
        responses += await guess_links(web, 1, headers)
    assert responses == [401] * 30 + [429]


async def test_guesses_from_one_address_do_not_lock_out_another(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await set_password(web)
    assert (await guess_links(web, 31))[-1] == 429
    assert (await sign_in_by_password(web)).status_code == 429
    other_address = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
    async with httpx2.AsyncClient(base_url=web.url, transport=other_address) as other:
        response = await other.post("/api/sign-in/password", json={"name": "owner", "password": PASSWORD})
    assert response.status_code == 200
    assert (await client.get("/api/me")).status_code == 200


async def test_successful_sign_ins_are_not_limited(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    await set_password(web)
    responses = [(await sign_in_by_password(web)).status_code for _ in range(12)]
    assert responses == [200] * 12


async def test_guessing_links_is_limited_too(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    assert await guess_links(web, 31) == [401] * 30 + [429]


async def test_guessing_the_current_password_is_limited(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await set_password(web)
    responses = [
        (
            await client.put(
                "/api/me/password", json={"current_password": f"guess number {n}", "new_password": PASSWORD}
            )
        ).status_code
        for n in range(11)
    ]
    assert responses == [403] * 10 + [429]


# ---- known devices ---------------------------------------------------------------------------------------


def open_client_at(web: WebServer, address: str, cookies: httpx2.Cookies | None = None) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(local_address=address)
    return httpx2.AsyncClient(base_url=web.url, transport=transport, headers={"Origin": web.url}, cookies=cookies)


async def guess_at(web: WebServer, address: str, times: int, name: str = "owner") -> list[int]:
    async with open_client_at(web, address) as client:
        return [
            (
                await client.post("/api/sign-in/password", json={"name": name, "password": f"guess number {n}"})
            ).status_code
            for n in range(times)
        ]


async def try_password_at(web: WebServer, address: str, cookies: httpx2.Cookies | None = None) -> int:
    async with open_client_at(web, address, cookies) as client:
        body = {"name": "owner", "password": PASSWORD}
        return (await client.post("/api/sign-in/password", json=body)).status_code


async def test_a_strangers_guesses_lock_out_only_the_stranger(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    await set_password(web)
    assert await guess_at(web, "127.0.0.2", 11) == [401] * 10 + [429]
    assert await try_password_at(web, "127.0.0.2") == 429
    assert await try_password_at(web, "127.0.0.3") == 200


@pytest.mark.both_engines
async def test_guesses_from_many_addresses_lock_out_all_but_known_devices(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client = await set_password(web)
    guesses = [await guess_at(web, f"127.0.0.{n}", 10) for n in range(2, 8)]
    assert guesses == [[401] * 10] * 5 + [[429] * 10]
    assert await try_password_at(web, "127.0.0.9") == 429, "an unknown device has to wait"
    assert await try_password_at(web, "127.0.0.9", client.cookies) == 200, "a device that signed in before has not"
    await client.post("/api/sign-out")
    assert await try_password_at(web, "127.0.0.1", client.cookies) == 429, "its cookie was replaced above"
    clock.advance(seconds=31)
    assert await try_password_at(web, "127.0.0.9") == 200


async def test_a_device_stays_known_after_signing_out(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await set_password(web)
    await client.post("/api/sign-out")
    assert await guess_at(web, "127.0.0.1", 11) == [401] * 10 + [429]
    assert (await client.post("/api/sign-in/password", json={"name": "owner", "password": PASSWORD})).status_code == 200


async def test_a_known_device_of_one_person_is_not_known_for_another(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    await set_password(web)
    ada = await web.sign_in("Ada")
    assert await guess_at(web, "127.0.0.1", 11) == [401] * 10 + [429]
    response = await ada.post("/api/sign-in/password", json={"name": "owner", "password": PASSWORD})
    assert response.status_code == 429


async def test_a_browser_that_several_people_use_is_known_for_all_of_them(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    shared = await set_password(web)
    await set_password(web, "Ada", "five words are even better")
    for name, password in (("Ada", "five words are even better"), ("owner", PASSWORD)):
        assert (await shared.post("/api/sign-in/password", json={"name": name, "password": password})).is_success
    for name in ("Ada", "owner"):
        assert await guess_at(web, "127.0.0.1", 11, name) == [401] * 10 + [429]
    for name, password in (("Ada", "five words are even better"), ("owner", PASSWORD)):
        assert (await shared.post("/api/sign-in/password", json={"name": name, "password": password})).is_success


async def test_guesses_at_a_known_device_are_limited(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await set_password(web)
    body = {"name": "owner", "password": "a wrong guess"}
    responses = [(await client.post("/api/sign-in/password", json=body)).status_code for _ in range(11)]
    assert responses == [401] * 10 + [429]


async def test_an_invented_device_cookie_changes_nothing(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    await set_password(web)
    assert await guess_at(web, "127.0.0.1", 11) == [401] * 10 + [429]
    cookies = httpx2.Cookies({f"palaver-{web.url.rpartition(':')[2]}-device": "invented"})
    assert await try_password_at(web, "127.0.0.1", cookies) == 429


async def test_strangers_cannot_keep_a_signed_in_person_from_changing_the_password(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await set_password(web)
    for address in range(1, 7):
        await guess_at(web, f"127.0.0.{address}", 10)
    response = await client.put(
        "/api/me/password", json={"current_password": PASSWORD, "new_password": "five words are even better"}
    )
    assert response.status_code == 204


# ---- devices ---------------------------------------------------------------------------------------------


async def test_signing_out_invalidates_the_cookie(web: WebServer) -> None:
    client = await web.sign_in()
    cookie = get_sign_in_cookie(client)
    response = await client.post("/api/sign-out")
    assert response.status_code == 204
    assert [each.name for each in client.cookies.jar] == [f"{cookie.name}-device"]
    headers = {"Cookie": f"{cookie.name}={cookie.value}"}
    assert (await (await web.open_anonymous_client()).get("/api/me", headers=headers)).status_code == 401


async def test_devices_can_be_listed_and_signed_out(web: WebServer) -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    client = await web.sign_in()
    other = await web.open_anonymous_client()
    secret = await web.state.accounts.create_owner_link()
    await other.post("/api/sign-in/link", json={"token": secret}, headers={"User-Agent": firefox})
    devices = (await client.get("/api/me/devices")).json()["devices"]
    assert [each["is_current"] for each in devices].count(True) == 1
    [other_device] = [each for each in devices if not each["is_current"]]
    assert (other_device["name"], other_device["sign_in_method"], other_device["ip_address"]) == (
        "Firefox, Linux",
        "link",
        "127.0.0.1",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", other_device["signed_in_at"])

    assert (await client.delete(f"/api/me/devices/{other_device['id']}")).status_code == 204
    assert (await other.get("/api/me")).status_code == 401
    assert (await client.delete(f"/api/me/devices/{other_device['id']}")).status_code == 404


async def test_signing_out_everywhere_signs_out_every_browser(web: WebServer) -> None:
    await set_password(web)
    browsers = [await web.sign_in(), *[await web.open_anonymous_client() for _ in range(3)]]
    for each in browsers[1:]:
        await each.post("/api/sign-in/password", json={"name": "owner", "password": PASSWORD})
    assert len((await browsers[0].get("/api/me/devices")).json()["devices"]) == 4
    assert (await browsers[1].post("/api/sign-out/everywhere")).status_code == 204
    assert [(await each.get("/api/me")).status_code for each in browsers] == [401] * 4
    assert (await sign_in_by_password(web)).status_code == 200


async def test_signing_out_someone_elses_device_fails(web: WebServer) -> None:
    ada, owner = await web.sign_in("ada"), await web.sign_in()
    [owner_device] = (await owner.get("/api/me/devices")).json()["devices"]
    forbidden = await ada.delete(f"/api/me/devices/{owner_device['id']}")
    missing = await ada.delete("/api/me/devices/dev_000000000000")
    assert forbidden.status_code == missing.status_code == 404
    assert forbidden.text.replace(owner_device["id"], "x") == missing.text.replace("dev_000000000000", "x")
    assert (await owner.get("/api/me")).status_code == 200


async def test_a_sign_in_can_be_checked_again_later(web: WebServer) -> None:
    client = await web.sign_in()
    cookie = get_sign_in_cookie(client)
    signed_in = await web.state.accounts.find_by_cookie(str(cookie.value))
    assert signed_in is not None
    assert await web.state.accounts.is_still_signed_in(signed_in)
    await client.post("/api/sign-out")
    assert not await web.state.accounts.is_still_signed_in(signed_in)


# ---- own account --------------------------------------------------------------------------------------


async def test_me_shows_the_account_and_the_agent(web: WebServer) -> None:
    me = (await (await web.sign_in("ada")).get("/api/me")).json()
    assert (me["person"]["name"], me["person"]["role"]) == ("ada", "member")
    assert me["sign_in_methods"] == {"has_password": False, "passkey_count": 0}
    assert me["agent"]["model"] == "scripted"
    assert me["version"]


@pytest.mark.both_engines
async def test_a_new_name_replaces_the_old_one_for_signing_in(web: WebServer) -> None:
    client = await set_password(web)
    response = await client.patch("/api/me", json={"name": "  Grace   Hopper "})
    assert response.json()["name"] == "Grace Hopper"
    assert (await sign_in_by_password(web, "grace hopper")).status_code == 200
    assert (await sign_in_by_password(web, "owner")).status_code == 401


async def test_two_people_cannot_have_the_same_name(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    await web.sign_in()
    taken = await ada.patch("/api/me", json={"name": "OWNER"})
    assert (taken.status_code, get_error_code(taken)) == (422, "name_taken")
    assert (await ada.patch("/api/me", json={"name": "\u200b"})).status_code == 422
    assert (await ada.patch("/api/me", json={"name": "x" * 61})).status_code == 422


# ---- where a server may listen ---------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_listening_beyond_this_machine_needs_an_owners_password(web: WebServer) -> None:
    can_listen_on = web.state.accounts.can_listen_on
    assert [await can_listen_on(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [await can_listen_on(host) for host in ("0.0.0.0", "::", "192.168.1.2", "chat.example.org", "")] == [
        False
    ] * 5
    ada = await web.sign_in("ada")
    await ada.put("/api/me/password", json={"new_password": PASSWORD})
    assert not await can_listen_on("0.0.0.0"), "a member's password does not make the owner's account safe"
    await set_password(web)
    assert await can_listen_on("0.0.0.0")


# ---- steps of setting up ---------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_step_of_setting_up_is_skipped_by_one_person_and_offered_again(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")

    async def list_skipped(client: httpx2.AsyncClient) -> list[str]:
        skipped: list[str] = (await client.get("/api/me")).json()["skipped_steps"]
        return skipped

    assert await list_skipped(owner) == []
    for step in ("model", "platform", "model"):  # skipping it again changes nothing
        response = await owner.put("/api/me/steps", json={"step": step, "skipped": True})
        assert (response.status_code, response.content) == (204, b"")
    assert sorted(await list_skipped(owner)) == ["model", "platform"]
    assert await list_skipped(ada) == []
    assert (await owner.put("/api/me/steps", json={"step": "model", "skipped": False})).status_code == 204
    assert (await owner.put("/api/me/steps", json={"step": "model", "skipped": False})).status_code == 204
    assert await list_skipped(owner) == ["platform"]
    for wrong in ({"step": "cellar", "skipped": True}, {"step": "model"}, {"step": "model", "skipped": "maybe"}, {}):
        refused = await owner.put("/api/me/steps", json=wrong)
        assert (refused.status_code, get_error_code(refused)) == (422, "invalid_request"), wrong
    assert await list_skipped(owner) == ["platform"]
    assert (
        await (await web.open_anonymous_client()).put("/api/me/steps", json={"step": "model", "skipped": True})
    ).status_code == 401


async def test_guesses_from_one_address_keep_nobody_else_from_signing_in(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guesses never end; the owner, behind the same proxy, signs in and changes their password meanwhile."""
    web = await start_web(trusted_proxies=("127.0.0.1",))
    await set_password(web)
    verify, end_guesses, guesses = sign_in._verify, threading.Event(), []

    def verify_slowly(hashed: str, password: str) -> bool:
        if password == "a guess":
            guesses.append(password)
            end_guesses.wait(60)
        return verify(hashed, password)

    monkeypatch.setattr(sign_in, "_verify", verify_slowly)

    async def send(name: str, password: str, address: str) -> httpx2.Response:
        client = await web.open_anonymous_client()
        body = {"name": name, "password": password}
        return await client.post("/api/sign-in/password", json=body, headers={"X-Forwarded-For": address})

    attack = [asyncio.create_task(send(f"name {n}", "a guess", "198.51.100.7")) for n in range(50)]
    try:
        refused = 50 - 1 - sign_in.MAX_WAITING_PER_KEY  # one is being checked, a few wait
        await wait_until(lambda: guesses and sum(each.done() for each in attack) == refused)
        assert (await send("owner", PASSWORD, "203.0.113.5")).status_code == 200
        owner = await web.sign_in()
        change = {"current_password": PASSWORD, "new_password": "five words are enough too"}
        assert (await owner.put("/api/me/password", json=change)).status_code == 204
        assert (len(guesses), sum(each.done() for each in attack)) == (1, refused)
    finally:
        end_guesses.set()
        answers = await asyncio.gather(*attack)
    too_many = [each for each in answers if each.status_code == 429]
    assert len(too_many) == refused
    assert all(int(each.headers["retry-after"]) >= 1 for each in too_many)
    assert {each.status_code for each in answers} == {401, 429}


async def test_a_refusal_comes_late_and_nobody_else_waits_for_it(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address with few connections can't send hundreds of guesses a second, each of which would cost something."""
    web = await start_web(clock=FakeClock())
    await set_password(web)
    assert await guess_at(web, "127.0.0.2", 10) == [401] * 10
    refusals: list[asyncio.Task[NoReturn]] = []
    refuse = sign_in.refuse_attempt

    async def refuse_attempt(wait_seconds: float) -> None:
        refusals.append(asyncio.create_task(refuse(wait_seconds)))
        await refusals[0]

    monkeypatch.setattr(sign_in, "REFUSAL_DELAY_SECONDS", 3600)
    monkeypatch.setattr(sign_in, "refuse_attempt", refuse_attempt)
    guess = asyncio.create_task(guess_at(web, "127.0.0.2", 1))
    await wait_until(lambda: len(refusals) == 1)
    assert await try_password_at(web, "127.0.0.3") == 200
    assert not guess.done()
    refusals[0].cancel()
    await asyncio.gather(guess, return_exceptions=True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
async def test_passwords_are_hashed_with_a_lower_priority() -> None:
    def get_priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = get_priority()
    assert await sign_in.Passwords()._run("address", get_priority) == min(own + sign_in.NICENESS, 19)
    assert get_priority() == own
