"""The guard: hosts, origins, proxies, body sizes, and security headers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import APIRoute

from palaver.core.errors import ConfigError
from palaver.web.body_limit import MAX_ANONYMOUS_BODY_BYTES
from palaver.web.guard import HostName, TrustedProxies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from support.web import StartWebServer, WebServer

BEHIND_PROXY: dict[str, Any] = {"trusted_proxies": ("127.0.0.1", "10.0.0.0/24"), "public_host": "chat.example.org"}
FORWARDED = {"Host": "chat.example.org", "Origin": "https://chat.example.org", "X-Forwarded-Proto": "https"}


def get_error_code(response: httpx2.Response) -> str:
    return str(response.json()["error"]["code"])


def get_port(web: WebServer) -> str:
    return web.url.rpartition(":")[2]


# ---- headers ---------------------------------------------------------------------------------------------


async def fail() -> None:
    raise RuntimeError("on purpose")


async def test_every_response_has_the_security_headers_including_errors(web: WebServer) -> None:
    web.app.router.routes.insert(0, APIRoute("/api/fails", fail))  # before the page, which serves every other path
    client = await web.sign_in()
    responses = [
        await client.get("/api/me"),
        await client.get("/healthz"),
        await client.get("/api/nothing"),
        await client.post("/api/me/tokens", json={}),
        await client.get("/api/me", headers={"Host": "evil.example"}),
        await client.get("/api/fails"),
    ]
    assert [each.status_code for each in responses] == [200, 200, 404, 422, 400, 500]
    for response in responses:
        assert response.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
            " img-src 'self' data: blob: https:; media-src 'self' blob:; font-src 'self'; manifest-src 'self';"
            " worker-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
        assert "microphone=(self)" in response.headers["permissions-policy"]
        assert response.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in response.headers
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers


async def test_https_responses_have_strict_transport_security(start_web: StartWebServer) -> None:
    web = await start_web(**BEHIND_PROXY)
    response = await (await web.open_anonymous_client()).get("/healthz", headers=FORWARDED)
    assert response.headers["strict-transport-security"] == "max-age=31536000"


# ---- hosts -----------------------------------------------------------------------------------------------


async def get_status(web: WebServer, host: str) -> int:
    client = await web.open_anonymous_client()
    return (await client.get("/healthz", headers={"Host": host, "Origin": f"http://{host.lower()}"})).status_code


async def test_a_loopback_server_accepts_only_its_own_host_names(web: WebServer) -> None:
    port = get_port(web)
    for good in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert await get_status(web, good) == 200, good
    for bad in ("evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}", "localhost", "127.0.0.1:1"):
        assert await get_status(web, bad) == 400, bad
    for bad in (f"127.0.0.1:{port}:{port}", f"a@127.0.0.1:{port}", f"127.0.0.1:{port}/", f"192.168.1.2:{port}", "[::1"):
        assert await get_status(web, bad) == 400, bad


async def test_a_rejected_host_says_how_to_allow_it(web: WebServer) -> None:
    response = await (await web.open_anonymous_client()).get("/healthz", headers={"Host": "chat.example.org"})
    assert get_error_code(response) == "unknown_host"
    assert "web.public_url" in response.text


async def test_the_public_host_is_accepted(start_web: StartWebServer) -> None:
    web = await start_web(public_host="Chat.Example.org")
    port = get_port(web)
    for good in ("chat.example.org", f"chat.example.org:{port}", "chat.example.org:80", f"localhost:{port}"):
        assert await get_status(web, good) == 200, good
    for bad in ("example.org", "chat.example.org:81", "x.chat.example.org", "chat.example.org.evil.example"):
        assert await get_status(web, bad) == 400, bad


async def test_a_public_host_with_a_port_must_match_exactly(start_web: StartWebServer) -> None:
    web = await start_web(public_host="chat.example.org:8443")
    assert await get_status(web, "chat.example.org:8443") == 200
    assert await get_status(web, "chat.example.org") == 400
    assert await get_status(web, f"chat.example.org:{get_port(web)}") == 400


async def test_a_request_without_exactly_one_host_is_rejected(web: WebServer) -> None:
    own = f"127.0.0.1:{get_port(web)}"
    for lines in ([f"Host: {own}", "Host: evil.example"], ["Host: evil.example", f"Host: {own}"], []):
        assert b" 400 " in await send_raw_request(web, "GET /healthz HTTP/1.1", *lines)


async def test_a_request_whose_end_is_ambiguous_is_rejected_and_nothing_after_it_is_read(web: WebServer) -> None:
    """One server would take the second request for the body of the first, another one would answer it."""
    response = await send_raw_request(
        web,
        "POST /healthz HTTP/1.1",
        f"Host: 127.0.0.1:{get_port(web)}",
        "Content-Length: 100",
        "Transfer-Encoding: chunked",
        "",
        "0",
        "",
        "GET /healthz HTTP/1.1",
        f"Host: 127.0.0.1:{get_port(web)}",
    )
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1") == 1
    assert b"ambiguous_length" in response


async def send_raw_request(web: WebServer, *lines: str) -> bytes:
    """Send a request that no HTTP client would send, and return everything that the server sends until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(get_port(web)))
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
    received = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    return received


# ---- origins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://localhost", "http://127.0.0.1"])
async def test_a_foreign_page_cannot_use_our_cookie(web: WebServer, origin: str) -> None:
    client = await web.sign_in()
    response = await client.patch("/api/me", json={"name": "mallory"}, headers={"Origin": origin})
    assert (response.status_code, get_error_code(response)) == (403, "foreign_origin")
    assert (await client.get("/api/me")).json()["person"]["name"] == "owner"


async def test_another_port_or_scheme_is_a_foreign_origin(web: WebServer) -> None:
    client = await web.sign_in()
    port = get_port(web)
    for origin in ("http://127.0.0.1:3000", f"https://127.0.0.1:{port}", f"http://localhost:{port}"):
        response = await client.patch("/api/me", json={"name": "mallory"}, headers={"Origin": origin})
        assert response.status_code == 403, origin


async def test_a_change_needs_an_origin_besides_the_cookie(web: WebServer) -> None:
    client = await web.sign_in()
    del client.headers["Origin"]
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}):
        assert (await client.patch("/api/me", json={"name": "mallory"}, headers=headers)).status_code == 403
        assert (await client.get("/api/me", headers=headers)).status_code == 200
    same = await client.patch("/api/me", json={"name": "Grace"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert same.status_code == 200


async def test_a_foreign_page_cannot_read(web: WebServer) -> None:
    client = await web.sign_in()
    assert (await client.get("/api/me", headers={"Origin": "https://evil.example"})).status_code == 403


async def test_a_foreign_page_cannot_sign_a_visitor_in(web: WebServer) -> None:
    secret = await web.state.accounts.create_owner_link()
    client = await web.open_anonymous_client()
    response = await client.post(
        "/api/sign-in/link", json={"token": secret}, headers={"Origin": "https://evil.example"}
    )
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert (await client.post("/api/sign-in/link", json={"token": secret})).status_code == 200


async def test_a_cors_preflight_is_rejected(web: WebServer) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    response = await (await web.open_anonymous_client()).request("OPTIONS", "/api/me", headers=headers)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


async def test_a_token_works_with_any_origin_or_none(web: WebServer) -> None:
    program = await web.open_token_client("read", "write")
    assert (await program.get("/api/me", headers={"Origin": "https://tool.example"})).status_code == 200
    assert (await program.post("/api/projects", json={"name": "From a script"})).is_success


async def test_a_cookie_beside_an_invalid_token_is_ignored(web: WebServer) -> None:
    """Otherwise a foreign page could bypass the origin check with any Authorization header."""
    client = await web.sign_in()
    bearer = {"Authorization": "Bearer pal_invented", "Origin": "https://evil.example"}
    assert (await client.patch("/api/me", json={"name": "mallory"}, headers=bearer)).status_code == 401
    basic = {"Authorization": "Basic eDp5", "Origin": "https://evil.example"}
    assert (await client.patch("/api/me", json={"name": "mallory"}, headers=basic)).status_code == 403


# ---- proxies ---------------------------------------------------------------------------------------------


async def sign_in_and_get_address(web: WebServer, **extra_headers: str) -> str:
    client = await web.open_anonymous_client()
    headers = FORWARDED | {name.replace("_", "-"): value for name, value in extra_headers.items()}
    secret = await web.state.accounts.create_owner_link()
    response = await client.post("/api/sign-in/link", json={"token": secret}, headers=headers)
    assert response.status_code == 200, response.text
    cookie, _ = response.headers.get_list("set-cookie")
    signed_in = headers | {"Cookie": cookie.partition(";")[0]}
    devices = (await client.get("/api/me/devices", headers=signed_in)).json()["devices"]
    return str(next(each["ip_address"] for each in devices if each["is_current"]))


async def test_a_trusted_proxy_reports_the_clients_address(start_web: StartWebServer) -> None:
    web = await start_web(**BEHIND_PROXY)
    assert await sign_in_and_get_address(web) == "127.0.0.1"
    assert await sign_in_and_get_address(web, X_Forwarded_For="198.51.100.7") == "198.51.100.7"
    assert await sign_in_and_get_address(web, X_Forwarded_For="198.51.100.7, 10.0.0.9") == "198.51.100.7"
    assert await sign_in_and_get_address(web, X_Forwarded_For="1.2.3.4, 198.51.100.7") == "198.51.100.7", (
        "only the entry added by our proxy counts"
    )
    assert await sign_in_and_get_address(web, X_Forwarded_For="1.2.3.4, nonsense") == "127.0.0.1"
    assert await sign_in_and_get_address(web, X_Forwarded_For="2001:db8::1") == "2001:db8::1"


async def test_headers_of_an_untrusted_proxy_are_ignored(start_web: StartWebServer) -> None:
    web = await start_web(public_host="chat.example.org", trusted_proxies=("10.0.0.0/24",))
    client = await web.open_anonymous_client()
    secret = await web.state.accounts.create_owner_link()
    response = await client.post("/api/sign-in/link", json={"token": secret}, headers=FORWARDED)
    assert (response.status_code, get_error_code(response)) == (403, "foreign_origin"), "not an HTTPS request"
    assert "web.trusted_proxies" in response.text
    forged = {"X-Forwarded-Host": "chat.example.org", "Host": "evil.example"}
    assert (await client.get("/healthz", headers=forged)).status_code == 400


async def test_a_trusted_proxy_can_forward_only_our_own_host(start_web: StartWebServer) -> None:
    web = await start_web(**BEHIND_PROXY)
    client = await web.open_anonymous_client()
    forwarded = FORWARDED | {"Host": "palaver.internal:8765"}
    assert (
        await client.get("/healthz", headers=forwarded | {"X-Forwarded-Host": "chat.example.org"})
    ).status_code == 200
    assert (await client.get("/healthz", headers=forwarded | {"X-Forwarded-Host": "evil.example"})).status_code == 400
    assert (await client.get("/healthz", headers=forwarded)).status_code == 400


@pytest.mark.parametrize("keeps_path", [True, False], ids=["proxy keeps the path", "proxy strips the path"])
async def test_a_base_path_works_whether_the_proxy_keeps_it_or_not(start_web: StartWebServer, keeps_path: bool) -> None:
    web = await start_web(**BEHIND_PROXY, base_path="/talk")
    client = await web.open_anonymous_client()
    base = "/talk" if keeps_path else ""
    secret = await web.state.accounts.create_owner_link()
    response = await client.post(f"{base}/api/sign-in/link", json={"token": secret}, headers=FORWARDED)
    assert response.status_code == 200
    cookie, _ = response.headers.get_list("set-cookie")
    headers = FORWARDED | {"Cookie": cookie.partition(";")[0]}
    assert (await client.get(f"{base}/api/me", headers=headers)).status_code == 200
    added = await client.post(f"{base}/api/people", json={"name": "Ada"}, headers=headers)
    assert added.json()["link"]["url"].startswith("https://chat.example.org/talk/sign-in#")


async def test_a_base_path_without_a_slash_redirects_to_the_one_with_it(start_web: StartWebServer) -> None:
    web = await start_web(**BEHIND_PROXY, base_path="/talk")
    response = await (await web.open_anonymous_client()).get("/talk", headers=FORWARDED)
    assert (response.status_code, response.headers["location"]) == (308, "/talk/")


def test_invalid_settings_are_rejected_by_name() -> None:
    with pytest.raises(ConfigError, match=r"web\.trusted_proxies: 'nginx'"):
        TrustedProxies.from_settings(("10.0.0.1", "nginx"))
    for invalid in ("https://chat.example.org", "chat example", "", "chat.example.org/talk"):
        with pytest.raises(ConfigError, match=r"web\.public_url"):
            HostName.from_setting(invalid)


def test_an_ipv4_proxy_is_trusted_in_its_ipv6_form_too() -> None:
    proxies = TrustedProxies.from_settings(("10.0.0.0/24", "fd00::1"))
    assert all(proxies.is_trusted(each) for each in ("10.0.0.9", "::ffff:10.0.0.9", "fd00::1", "fd00::1%eth0"))
    assert not any(proxies.is_trusted(each) for each in ("10.0.1.9", "fd00::2", "", "unix:"))


# ---- sizes -----------------------------------------------------------------------------------------------


async def test_a_large_body_is_rejected_before_it_fills_memory(web: WebServer) -> None:
    client = await web.open_anonymous_client()
    declared = await client.post(
        "/api/sign-in/password", json={"name": "a", "password": "x" * MAX_ANONYMOUS_BODY_BYTES}
    )
    assert (declared.status_code, get_error_code(declared)) == (413, "too_large")

    async def stream_body() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 8192

    streamed = await client.post(
        "/api/sign-in/password", content=stream_body(), headers={"Content-Type": "application/json"}
    )
    assert streamed.status_code == 413
