"""What stands before every route: hosts, origins, proxies, sizes, and the headers of every response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import APIRoute

from palaver.domain.errors import ConfigError
from palaver.web.guard import LARGEST_FROM_STRANGERS, HostName, Proxies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from support.web import StartWeb, Web

BEHIND: dict[str, Any] = {"trusted_proxies": ("127.0.0.1", "10.0.0.0/24"), "public_host": "chat.example.org"}
FORWARDED = {"Host": "chat.example.org", "Origin": "https://chat.example.org", "X-Forwarded-Proto": "https"}


def code(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["code"])


def port_of(web: Web) -> str:
    return web.url.rpartition(":")[2]


# ---- headers ---------------------------------------------------------------------------------------------


async def _fails() -> None:
    raise RuntimeError("on purpose")


async def test_every_response_has_the_strict_headers_also_those_that_went_wrong(web: Web) -> None:
    web.app.router.routes.insert(0, APIRoute("/api/fails", _fails))  # before the page, which takes every other path
    client = await web.client()
    answers = [
        await client.get("/api/me"),
        await client.get("/healthz"),
        await client.get("/api/nothing"),
        await client.post("/api/me/tokens", json={}),
        await client.get("/api/me", headers={"Host": "evil.example"}),
        await client.get("/api/fails"),
    ]
    assert [each.status_code for each in answers] == [200, 200, 404, 422, 400, 500]
    for answer in answers:
        assert answer.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';"
            " font-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'none';"
            " form-action 'self'; frame-ancestors 'none'"
        )
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "microphone=()" in answer.headers["permissions-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


async def test_over_https_browsers_are_told_to_stay_there(start_web: StartWeb) -> None:
    web = await start_web(**BEHIND)
    answer = await (await web.stranger()).get("/healthz", headers=FORWARDED)
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


# ---- hosts -----------------------------------------------------------------------------------------------


async def asked(web: Web, host: str) -> int:
    client = await web.stranger()
    return (await client.get("/healthz", headers={"Host": host, "Origin": f"http://{host.lower()}"})).status_code


async def test_a_server_on_this_machine_answers_to_its_own_names_alone(web: Web) -> None:
    port = port_of(web)
    for good in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert await asked(web, good) == 200, good
    for bad in ("evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}", "localhost", "127.0.0.1:1"):
        assert await asked(web, bad) == 400, bad
    for bad in (f"127.0.0.1:{port}:{port}", f"a@127.0.0.1:{port}", f"127.0.0.1:{port}/", f"192.168.1.2:{port}", "[::1"):
        assert await asked(web, bad) == 400, bad


async def test_a_refused_host_says_how_to_allow_it(web: Web) -> None:
    answer = await (await web.stranger()).get("/healthz", headers={"Host": "chat.example.org"})
    assert code(answer) == "unknown_host"
    assert "web.public_url" in answer.text


async def test_a_server_answers_to_the_name_it_was_given(start_web: StartWeb) -> None:
    web = await start_web(public_host="Chat.Example.org")
    port = port_of(web)
    for good in ("chat.example.org", f"chat.example.org:{port}", "chat.example.org:80", f"localhost:{port}"):
        assert await asked(web, good) == 200, good
    for bad in ("example.org", "chat.example.org:81", "x.chat.example.org", "chat.example.org.evil.example"):
        assert await asked(web, bad) == 400, bad


async def test_a_name_with_a_port_is_meant_exactly(start_web: StartWeb) -> None:
    web = await start_web(public_host="chat.example.org:8443")
    assert await asked(web, "chat.example.org:8443") == 200
    assert await asked(web, "chat.example.org") == 400
    assert await asked(web, f"chat.example.org:{port_of(web)}") == 400


async def test_two_hosts_in_one_request_are_none(web: Web) -> None:
    own = f"127.0.0.1:{port_of(web)}"
    for lines in ([f"Host: {own}", "Host: evil.example"], ["Host: evil.example", f"Host: {own}"], []):
        assert b" 400 " in await raw(web, "GET /healthz HTTP/1.1", *lines)


async def raw(web: Web, *lines: str) -> bytes:
    """The first line of the answer to a request that no client would make."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port_of(web)))
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    first = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    return first


# ---- origins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://localhost", "http://127.0.0.1"])
async def test_what_a_foreign_page_sends_with_our_cookie_is_refused(web: Web, origin: str) -> None:
    client = await web.client()
    answer = await client.patch("/api/me", json={"name": "mallory"}, headers={"Origin": origin})
    assert (answer.status_code, code(answer)) == (403, "foreign_origin")
    assert (await client.get("/api/me")).json()["person"]["name"] == "owner"


async def test_another_port_or_scheme_of_this_machine_is_foreign_too(web: Web) -> None:
    client = await web.client()
    port = port_of(web)
    for origin in ("http://127.0.0.1:3000", f"https://127.0.0.1:{port}", f"http://localhost:{port}"):
        answer = await client.patch("/api/me", json={"name": "mallory"}, headers={"Origin": origin})
        assert answer.status_code == 403, origin


async def test_a_cookie_alone_changes_nothing(web: Web) -> None:
    client = await web.client()
    del client.headers["Origin"]
    for said in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}):
        assert (await client.patch("/api/me", json={"name": "mallory"}, headers=said)).status_code == 403
        assert (await client.get("/api/me", headers=said)).status_code == 200
    same = await client.patch("/api/me", json={"name": "Grace"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert same.status_code == 200


async def test_a_foreign_page_may_not_even_look(web: Web) -> None:
    client = await web.client()
    assert (await client.get("/api/me", headers={"Origin": "https://evil.example"})).status_code == 403


async def test_a_foreign_page_cannot_sign_somebody_in_as_somebody_else(web: Web) -> None:
    secret = await web.state.accounts.owner_link()
    client = await web.stranger()
    answer = await client.post("/api/sign-in/link", json={"token": secret}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert (await client.post("/api/sign-in/link", json={"token": secret})).status_code == 200


async def test_a_foreign_page_gets_no_leave_to_try(web: Web) -> None:
    asking = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await (await web.stranger()).request("OPTIONS", "/api/me", headers=asking)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


async def test_a_program_with_a_token_needs_no_origin_and_may_have_any(web: Web) -> None:
    program = await web.token("read", "write")
    assert (await program.get("/api/me", headers={"Origin": "https://tool.example"})).status_code == 200
    assert (await program.post("/api/projects", json={"name": "From a script"})).is_success


async def test_a_cookie_beside_a_wrong_token_is_not_looked_at(web: Web) -> None:
    """Else a foreign origin could hide behind any Authorization header."""
    client = await web.client()
    said = {"Authorization": "Bearer pal_invented", "Origin": "https://evil.example"}
    assert (await client.patch("/api/me", json={"name": "mallory"}, headers=said)).status_code == 401
    basic = {"Authorization": "Basic eDp5", "Origin": "https://evil.example"}
    assert (await client.patch("/api/me", json={"name": "mallory"}, headers=basic)).status_code == 403


# ---- proxies ---------------------------------------------------------------------------------------------


async def address_seen(web: Web, **headers: str) -> str:
    client = await web.stranger()
    said = FORWARDED | {name.replace("_", "-"): value for name, value in headers.items()}
    secret = await web.state.accounts.owner_link()
    answer = await client.post("/api/sign-in/link", json={"token": secret}, headers=said)
    assert answer.status_code == 200, answer.text
    [cookie] = answer.headers.get_list("set-cookie")
    kept = said | {"Cookie": cookie.partition(";")[0]}
    devices = (await client.get("/api/me/devices", headers=kept)).json()["devices"]
    return str(next(each["address"] for each in devices if each["current"]))


async def test_a_trusted_proxy_says_where_a_request_comes_from(start_web: StartWeb) -> None:
    web = await start_web(**BEHIND)
    assert await address_seen(web) == "127.0.0.1"
    assert await address_seen(web, X_Forwarded_For="198.51.100.7") == "198.51.100.7"
    assert await address_seen(web, X_Forwarded_For="198.51.100.7, 10.0.0.9") == "198.51.100.7"
    assert await address_seen(web, X_Forwarded_For="1.2.3.4, 198.51.100.7") == "198.51.100.7", "the rest is hearsay"
    assert await address_seen(web, X_Forwarded_For="1.2.3.4, nonsense") == "127.0.0.1"
    assert await address_seen(web, X_Forwarded_For="2001:db8::1") == "2001:db8::1"


async def test_a_proxy_that_was_not_named_is_not_believed(start_web: StartWeb) -> None:
    web = await start_web(public_host="chat.example.org", trusted_proxies=("10.0.0.0/24",))
    client = await web.stranger()
    secret = await web.state.accounts.owner_link()
    answer = await client.post("/api/sign-in/link", json={"token": secret}, headers=FORWARDED)
    assert (answer.status_code, code(answer)) == (403, "foreign_origin"), "it did not come by HTTPS"
    assert "web.trusted_proxies" in answer.text
    forged = {"X-Forwarded-Host": "chat.example.org", "Host": "evil.example"}
    assert (await client.get("/healthz", headers=forged)).status_code == 400


async def test_a_trusted_proxy_may_name_the_host_but_not_any(start_web: StartWeb) -> None:
    web = await start_web(**BEHIND)
    client = await web.stranger()
    inside = FORWARDED | {"Host": "palaver.internal:8765"}
    assert (await client.get("/healthz", headers=inside | {"X-Forwarded-Host": "chat.example.org"})).status_code == 200
    assert (await client.get("/healthz", headers=inside | {"X-Forwarded-Host": "evil.example"})).status_code == 400
    assert (await client.get("/healthz", headers=inside)).status_code == 400


@pytest.mark.parametrize("kept", [True, False], ids=["the proxy keeps the path", "the proxy takes it off"])
async def test_a_base_path_works_whether_the_proxy_keeps_it_or_not(start_web: StartWeb, kept: bool) -> None:
    web = await start_web(**BEHIND, base_path="/talk")
    client = await web.stranger()
    base = "/talk" if kept else ""
    secret = await web.state.accounts.owner_link()
    answer = await client.post(f"{base}/api/sign-in/link", json={"token": secret}, headers=FORWARDED)
    assert answer.status_code == 200
    [cookie] = answer.headers.get_list("set-cookie")
    said = FORWARDED | {"Cookie": cookie.partition(";")[0]}
    assert (await client.get(f"{base}/api/me", headers=said)).status_code == 200
    added = await client.post(f"{base}/api/people", json={"name": "Ada"}, headers=said)
    assert added.json()["link"]["url"].startswith("https://chat.example.org/talk/sign-in#")


async def test_a_base_path_without_its_slash_leads_to_the_one_with_it(start_web: StartWeb) -> None:
    web = await start_web(**BEHIND, base_path="/talk")
    answer = await (await web.stranger()).get("/talk", headers=FORWARDED)
    assert (answer.status_code, answer.headers["location"]) == (308, "/talk/")


def test_what_the_operator_cannot_mean_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"web\.trusted_proxies: 'nginx'"):
        Proxies.named(("10.0.0.1", "nginx"))
    for wrong in ("https://chat.example.org", "chat example", "", "chat.example.org/talk"):
        with pytest.raises(ConfigError, match=r"web\.public_url"):
            HostName.named(wrong)


def test_an_ipv4_proxy_is_known_by_its_ipv6_form_too() -> None:
    proxies = Proxies.named(("10.0.0.0/24", "fd00::1"))
    assert all(proxies.trust(each) for each in ("10.0.0.9", "::ffff:10.0.0.9", "fd00::1", "fd00::1%eth0"))
    assert not any(proxies.trust(each) for each in ("10.0.1.9", "fd00::2", "", "unix:"))


# ---- sizes -----------------------------------------------------------------------------------------------


async def test_nobody_fills_the_memory_with_a_body(web: Web) -> None:
    client = await web.stranger()
    told = await client.post("/api/sign-in/password", json={"name": "a", "password": "x" * LARGEST_FROM_STRANGERS})
    assert (told.status_code, code(told)) == (413, "too_large")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 8192

    untold = await client.post("/api/sign-in/password", content=endless(), headers={"Content-Type": "application/json"})
    assert untold.status_code == 413
