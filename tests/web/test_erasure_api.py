"""Erasing people and pruning conversations over the API: owners only, with a confirmation by name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines import sqlite_backup as sqlite_vacuum
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from support.web import StartWebServer, WebServer


@pytest.mark.both_engines
async def test_an_owner_erases_a_person_who_is_signed_out_at_once(web: WebServer) -> None:
    owner, ada, bob = await web.sign_in(), await web.sign_in("ada"), await web.sign_in("bob")
    session = await web.create_session(ada)
    await ada.post(f"/api/sessions/{session}/messages", json={"content": "a secret"})
    theirs = await web.create_session(bob)
    person = (await ada.get("/api/me")).json()["person"]
    preview = (await owner.get(f"/api/people/{person['id']}/erasure")).json()
    assert (preview["name"], preview["counts"]["conversations"]) == (person["name"], 1)
    wrong = await owner.post(f"/api/people/{person['id']}/erase", json={"name": "bob"})
    assert wrong.status_code == 422
    assert (await ada.get("/api/me")).status_code == 200
    erased = await owner.post(f"/api/people/{person['id']}/erase", json={"name": person["name"].upper()})
    assert erased.status_code == 200, erased.text
    assert erased.json()["counts"]["conversations"] == 1
    assert erased.json()["ended_at"] is not None
    assert (await ada.get("/api/me")).status_code == 401
    assert (await owner.get(f"/api/sessions/{session}?all=true")).status_code == 404
    assert (await bob.get(f"/api/sessions/{theirs}")).status_code == 200
    assert (await owner.get(f"/api/people/{person['id']}/erasure")).status_code == 404


async def test_members_neither_erase_nor_prune_nor_see_counts(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    person = (await bob.get("/api/me")).json()["person"]
    responses = [
        await ada.get(f"/api/people/{person['id']}/erasure"),
        await ada.post(f"/api/people/{person['id']}/erase", json={"name": person["name"]}),
        await ada.post("/api/retention/prune", json={"older_than_days": 1, "dry_run": False}),
        await ada.post("/api/retention/rewrite-file"),
    ]
    assert {response.status_code for response in responses} == {403}
    assert (await bob.get("/api/me")).status_code == 200


async def test_the_person_at_the_terminal_is_not_erased(web: WebServer) -> None:
    owner = await web.sign_in()
    me = (await owner.get("/api/me")).json()["person"]
    response = await owner.post(f"/api/people/{me['id']}/erase", json={"name": me["name"]})
    assert response.status_code == 403
    assert "terminal" in response.json()["error"]["message"]


async def test_an_owner_sees_the_policy_and_prunes(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    await web.gateway.store.aio.record_user_message(SessionSource("telegram", "eve", user_id="eve"), "old")
    clock.advance(days=40)
    owner = await web.sign_in()
    policy = (await owner.get("/api/retention")).json()
    assert policy == {
        "max_age_days": None,
        "max_database_mb": None,
        "text": "Conversations are kept until a person deletes them.",
    }
    dry_run = (await owner.post("/api/retention/prune", json={"older_than_days": 30})).json()
    assert (dry_run["sessions"], dry_run["is_dry_run"]) == (1, True)
    pruned = (await owner.post("/api/retention/prune", json={"older_than_days": 30, "dry_run": False})).json()
    assert (pruned["sessions"], pruned["is_dry_run"]) == (1, False)
    assert (await owner.post("/api/retention/prune", json={"older_than_days": 30})).json()["sessions"] == 0
    assert (await owner.post("/api/retention/prune", json={"older_than_days": 0})).status_code == 422


@pytest.mark.both_engines
async def test_an_owner_rewrites_the_database_file(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "a long text " * 5000)
    assert (await owner.delete(f"/api/sessions/{session_id}")).status_code == 204
    first, second = await asyncio.gather(*(owner.post("/api/retention/rewrite-file") for _ in range(2)))
    assert {first.status_code, second.status_code} <= {200, 503}
    saved = [each.json()["saved_bytes"] for each in (first, second) if each.status_code == 200]
    is_sqlite = web.gateway.store.engine.name == "sqlite"
    assert max(saved) > 50_000 if is_sqlite else set(saved) == {None}
    monkeypatch.setattr(sqlite_vacuum, "FREE_BYTES", 10**18)
    refused = await owner.post("/api/retention/rewrite-file")
    assert refused.status_code in ({503, 507} if is_sqlite else {200})
    assert not is_sqlite or "Nothing was changed" in refused.text
    await web.create_conversation(owner, "still works")
