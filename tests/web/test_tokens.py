"""API tokens: shown once, limited to their scopes, and useless once revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read
from palaver.testing import FakeClock
from support.gateway import wait_until

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer


def get_error_code(response: httpx2.Response) -> str:
    return str(response.json()["error"]["code"])


async def test_a_tokens_secret_is_shown_once(web: WebServer) -> None:
    client = await web.sign_in()
    created = await client.post("/api/me/tokens", json={"name": " my  script ", "scopes": ["write", "read"]})
    assert created.status_code == 201
    assert created.json()["secret"].startswith("pal_")
    tokens = await client.get("/api/me/tokens")
    [token] = tokens.json()["tokens"]
    assert (token["name"], token["scopes"]) == ("my script", ["read", "write"])
    assert token == created.json()["token"]
    assert created.json()["secret"] not in tokens.text


async def test_a_revoked_token_stops_working_immediately(web: WebServer) -> None:
    client, program = await web.sign_in(), await web.open_token_client("read")
    assert (await program.get("/api/me")).status_code == 200
    used_at = Read(lambda tx: tx.fetch_one("SELECT last_used_at FROM api_token WHERE last_used_at IS NOT NULL"))
    await wait_until(lambda: web.gateway.store.engine.run(used_at))  # no request waits until the use is stored
    [token] = (await client.get("/api/me/tokens")).json()["tokens"]
    assert token["last_used_at"] is not None
    assert (await client.delete(f"/api/me/tokens/{token['id']}")).status_code == 204
    rejected = await program.get("/api/me")
    assert (rejected.status_code, get_error_code(rejected)) == (401, "not_signed_in")
    assert (await client.delete(f"/api/me/tokens/{token['id']}")).status_code == 404


async def test_a_token_expires(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client, program = await web.sign_in(), await web.open_anonymous_client()
    created = await client.post("/api/me/tokens", json={"name": "soon", "scopes": ["read"], "expires_in_days": 7})
    program.headers["Authorization"] = f"Bearer {created.json()['secret']}"
    clock.advance(days=6.9)
    assert (await program.get("/api/me")).status_code == 200
    clock.advance(days=0.2)
    assert (await program.get("/api/me")).status_code == 401


async def test_reading_needs_the_scope_read_and_changing_needs_write(web: WebServer) -> None:
    reader, writer = await web.open_token_client("read"), await web.open_token_client("write")
    assert (await reader.get("/api/projects")).status_code == 200
    rejected = await reader.post("/api/projects", json={"name": "Palaver"})
    assert (rejected.status_code, get_error_code(rejected)) == (403, "not_allowed")
    assert "write" in rejected.text
    assert (await writer.post("/api/projects", json={"name": "Palaver"})).is_success
    assert (await writer.get("/api/projects")).status_code == 403


async def test_a_chat_token_cannot_read(web: WebServer) -> None:
    program = await web.open_token_client("chat")
    for path in ("/api/sessions", "/api/search?query=hello", "/api/me", "/api/projects", "/api/usage"):
        assert (await program.get(path)).status_code == 403, path


async def test_owner_routes_need_an_owners_token_with_the_scope_admin(web: WebServer) -> None:
    plain, admin = await web.open_token_client("read", "write"), await web.open_token_client("read", "admin")
    assert (await plain.get("/api/people")).status_code == 403
    assert (await admin.get("/api/people")).status_code == 200
    assert (await plain.get("/api/sessions?all=true")).status_code == 403
    assert (await admin.get("/api/sessions?all=true")).status_code == 200
    rejected = await (await web.sign_in("ada")).post("/api/me/tokens", json={"name": "x", "scopes": ["admin"]})
    assert (rejected.status_code, get_error_code(rejected)) == (403, "owner_required")


async def test_an_admin_token_of_a_former_owner_has_no_admin_access(web: WebServer) -> None:
    await web.sign_in("ada", role="owner")
    program = await web.open_token_client("read", "admin", person="ada")
    assert (await program.get("/api/people")).status_code == 200
    owner = await web.sign_in()
    [ada] = [each for each in (await owner.get("/api/people")).json()["people"] if each["name"] == "ada"]
    await owner.patch(f"/api/people/{ada['id']}", json={"role": "member"})
    assert (await program.get("/api/people")).status_code == 403
    assert (await program.get("/api/me")).status_code == 200


async def test_a_token_cannot_create_other_ways_to_sign_in(web: WebServer) -> None:
    program = await web.open_token_client("read", "write", "chat", "admin")
    responses = [
        await program.post("/api/me/tokens", json={"name": "more", "scopes": ["read"]}),
        await program.put("/api/me/password", json={"new_password": "four words are enough"}),
        await program.post("/api/me/passkeys/options"),
        await program.post("/api/me/passkeys", json={"name": "x", "credential": {}}),
        await program.patch("/api/me", json={"name": "mallory"}),
        await program.post("/api/sign-out/everywhere"),
    ]
    assert [each.status_code for each in responses] == [403] * len(responses)
    owner = await web.sign_in()
    [token] = (await owner.get("/api/me/tokens")).json()["tokens"]
    assert (await program.delete(f"/api/me/tokens/{token['id']}")).status_code == 403
    assert (await owner.get("/api/me")).status_code == 200


async def test_a_token_sees_only_what_its_person_sees(web: WebServer) -> None:
    ada, owner = await web.sign_in("ada"), await web.sign_in()
    program = await web.open_token_client("read", person="ada")
    session_id = await web.create_session(owner, title="The owner's own")
    assert (await program.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await program.get("/api/me")).json()["person"]["name"] == "ada"
    [token] = (await ada.get("/api/me/tokens")).json()["tokens"]
    assert (await owner.delete(f"/api/me/tokens/{token['id']}")).status_code == 404
    assert (await program.get("/api/me")).status_code == 200


async def test_an_invalid_token_is_rejected(web: WebServer) -> None:
    await web.open_token_client("read")
    anonymous = await web.open_anonymous_client()
    for header in ("Bearer", "Bearer pal_", "Bearer x", "bearer pal_é", "Token pal_x", "pal_x"):
        response = await anonymous.get("/api/me", headers={b"Authorization": header.encode()})
        assert response.status_code == 401, header


async def test_an_invalid_token_request_is_rejected(web: WebServer) -> None:
    client = await web.sign_in()
    for invalid in (
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "\u200b", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "expires_in_days": 0},
        {"scopes": ["read"]},
    ):
        assert (await client.post("/api/me/tokens", json=invalid)).status_code == 422, invalid
    assert (await client.get("/api/me/tokens")).json() == {"tokens": []}
