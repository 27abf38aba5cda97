"""API tokens: shown once, good for what they were made for, and worthless when they are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.testing import FakeClock

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWeb, Web

BOTH = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


def code(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["code"])


@BOTH
async def test_a_token_is_shown_once_and_then_only_its_name(web: Web) -> None:
    client = await web.client()
    made = await client.post("/api/me/tokens", json={"name": " my  script ", "scopes": ["write", "read"]})
    assert made.status_code == 201
    assert made.json()["secret"].startswith("pal_")
    listed = await client.get("/api/me/tokens")
    [token] = listed.json()["tokens"]
    assert (token["name"], token["scopes"]) == ("my script", ["read", "write"])
    assert token == made.json()["token"]
    assert made.json()["secret"] not in listed.text


@BOTH
async def test_a_token_that_is_taken_back_is_worthless_at_once(web: Web) -> None:
    client, program = await web.client(), await web.token("read")
    assert (await program.get("/api/me")).status_code == 200
    [token] = (await client.get("/api/me/tokens")).json()["tokens"]
    assert token["used_at"] is not None
    assert (await client.delete(f"/api/me/tokens/{token['id']}")).status_code == 204
    refused = await program.get("/api/me")
    assert (refused.status_code, code(refused)) == (401, "not_signed_in")
    assert (await client.delete(f"/api/me/tokens/{token['id']}")).status_code == 404


async def test_a_token_ends_when_its_days_are_over(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    client, program = await web.client(), await web.stranger()
    made = await client.post("/api/me/tokens", json={"name": "soon", "scopes": ["read"], "expires_in_days": 7})
    program.headers["Authorization"] = f"Bearer {made.json()['secret']}"
    clock.advance(days=6.9)
    assert (await program.get("/api/me")).status_code == 200
    clock.advance(days=0.2)
    assert (await program.get("/api/me")).status_code == 401


async def test_looking_needs_read_and_changing_needs_write(web: Web) -> None:
    reader, writer = await web.token("read"), await web.token("write")
    assert (await reader.get("/api/projects")).status_code == 200
    refused = await reader.post("/api/projects", json={"name": "Palaver"})
    assert (refused.status_code, code(refused)) == (403, "not_allowed")
    assert "write" in refused.text
    assert (await writer.post("/api/projects", json={"name": "Palaver"})).is_success
    assert (await writer.get("/api/projects")).status_code == 403


async def test_a_token_for_chatting_cannot_look_around(web: Web) -> None:
    program = await web.token("chat")
    for path in ("/api/sessions", "/api/search?text=hello", "/api/me", "/api/projects", "/api/usage"):
        assert (await program.get(path)).status_code == 403, path


async def test_only_an_owners_token_with_admin_reaches_what_is_the_owners(web: Web) -> None:
    plain, admin = await web.token("read", "write"), await web.token("read", "admin")
    assert (await plain.get("/api/people")).status_code == 403
    assert (await admin.get("/api/people")).status_code == 200
    assert (await plain.get("/api/sessions?all=true")).status_code == 403
    assert (await admin.get("/api/sessions?all=true")).status_code == 200
    refused = await (await web.client("ada")).post("/api/me/tokens", json={"name": "x", "scopes": ["admin"]})
    assert (refused.status_code, code(refused)) == (403, "owner_only")


async def test_an_admin_token_of_somebody_who_is_no_owner_any_more_opens_nothing(web: Web) -> None:
    await web.client("ada", role="owner")
    program = await web.token("read", "admin", person="ada")
    assert (await program.get("/api/people")).status_code == 200
    owner = await web.client()
    [ada] = [each for each in (await owner.get("/api/people")).json()["people"] if each["name"] == "ada"]
    await owner.patch(f"/api/people/{ada['id']}", json={"role": "member"})
    assert (await program.get("/api/people")).status_code == 403
    assert (await program.get("/api/me")).status_code == 200


async def test_a_stolen_token_leads_to_no_other_way_in(web: Web) -> None:
    program = await web.token("read", "write", "chat", "admin")
    tried = [
        await program.post("/api/me/tokens", json={"name": "more", "scopes": ["read"]}),
        await program.put("/api/me/password", json={"new": "four words are enough"}),
        await program.post("/api/me/passkeys/options"),
        await program.post("/api/me/passkeys", json={"name": "x", "credential": {}}),
        await program.patch("/api/me", json={"name": "mallory"}),
        await program.post("/api/sign-out/everywhere"),
    ]
    assert [each.status_code for each in tried] == [403] * len(tried)
    owner = await web.client()
    [token] = (await owner.get("/api/me/tokens")).json()["tokens"]
    assert (await program.delete(f"/api/me/tokens/{token['id']}")).status_code == 403
    assert (await owner.get("/api/me")).status_code == 200


async def test_a_token_is_one_persons_and_sees_what_they_see(web: Web) -> None:
    ada, owner = await web.client("ada"), await web.client()
    program = await web.token("read", person="ada")
    session_id = await web.session(owner, title="The owner's own")
    assert (await program.get(f"/api/sessions/{session_id}")).status_code == 404
    assert (await program.get("/api/me")).json()["person"]["name"] == "ada"
    [token] = (await ada.get("/api/me/tokens")).json()["tokens"]
    assert (await owner.delete(f"/api/me/tokens/{token['id']}")).status_code == 404
    assert (await program.get("/api/me")).status_code == 200


async def test_what_is_no_token_lets_nobody_in(web: Web) -> None:
    await web.token("read")
    stranger = await web.stranger()
    for said in ("Bearer", "Bearer pal_", "Bearer x", "bearer pal_é", "Token pal_x", "pal_x"):
        answer = await stranger.get("/api/me", headers={b"Authorization": said.encode()})
        assert answer.status_code == 401, said


async def test_a_token_that_cannot_be_meant_is_not_made(web: Web) -> None:
    client = await web.client()
    for wrong in (
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "\u200b", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "expires_in_days": 0},
        {"scopes": ["read"]},
    ):
        assert (await client.post("/api/me/tokens", json=wrong)).status_code == 422, wrong
    assert (await client.get("/api/me/tokens")).json() == {"tokens": []}
