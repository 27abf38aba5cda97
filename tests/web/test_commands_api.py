"""Slash commands over HTTP: as text, and as routes that call them with typed arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.engines.base import Write

if TYPE_CHECKING:
    import httpx2

    from support.web import WebServer


async def run_text(client: httpx2.AsyncClient, text: str, key: str, session_id: str | None = None) -> httpx2.Response:
    return await client.post("/api/commands", json={"text": text, "key": key, "session_id": session_id})


async def count_messages(client: httpx2.AsyncClient, session_id: str) -> Any:
    return (await client.get(f"/api/sessions/{session_id}")).json()["message_count"]


async def test_a_route_and_a_text_with_the_same_key_are_one_command(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two", "three")
    first = await owner.post(f"/api/sessions/{session_id}/undo", json={"turns": 1, "key": "k"})
    again = await run_text(owner, "/undo", "k", session_id)
    assert [first.json()["outcome"], again.json()["outcome"]] == ["command", "duplicate"]
    assert again.json()["reply"] == first.json()["reply"]
    assert await count_messages(owner, session_id) == 4


async def test_reading_commands_can_be_repeated_with_their_key(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    receipts = [(await run_text(owner, "/export", "k", session_id)).json() for _ in range(2)]
    assert [receipt["outcome"] for receipt in receipts] == ["command", "duplicate"]
    assert receipts[0]["facts"]["text"].startswith("# ")
    assert receipts[0]["reply"] == receipts[1]["reply"]


async def test_bad_arguments_are_rejected_with_a_reason(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    receipt = (await run_text(owner, "/undo many", "k", session_id)).json()
    assert (receipt["outcome"], receipt["facts"]) == ("rejected", {"error": "bad_arguments"})
    assert "`/undo 2`" in receipt["reply"]


async def test_a_command_with_a_text_can_send_a_message(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "hello")
    receipt = (await run_text(owner, "/queue and then?", "k", session_id)).json()
    assert (receipt["outcome"], receipt["session_id"]) == ("accepted", session_id)
    assert receipt["seq"] is not None


async def test_characters_that_cannot_be_stored_are_replaced_in_typed_arguments(web: WebServer) -> None:
    owner = await web.sign_in()
    session_id = await web.create_conversation(owner, "one", "two", "three")
    response = await owner.post(f"/api/sessions/{session_id}/compact", json={"focus": "a\0b"})
    assert response.status_code == 200, response.text
    assert response.json()["facts"]["focus"] == "a b"


async def test_guests_cannot_use_the_commands_of_members(web: WebServer) -> None:
    guest = await web.sign_in("gus")
    session_id = await web.create_conversation(guest, "hello")
    person_id = (await guest.get("/api/me")).json()["person"]["id"]
    make_guest = Write[int](lambda tx: tx.execute("UPDATE person SET role = 'guest' WHERE id = $1", person_id))
    await web.gateway.store.engine.arun(make_guest)
    listed = {command["name"] for command in (await guest.get("/api/commands")).json()["commands"]}
    assert {"/undo", "/export"} & listed == {"/undo"}
    responses = [
        await run_text(guest, "/model scripted-large", "a", session_id),
        await guest.post(f"/api/sessions/{session_id}/compact", json={}),
        await guest.get(f"/api/sessions/{session_id}/export"),
        await guest.post(f"/api/sessions/{session_id}/fork", json={}),
    ]
    for response in responses:
        assert (response.status_code, response.json()["error"]["code"]) == (403, "not_allowed")
    assert (await guest.post(f"/api/sessions/{session_id}/undo", json={})).status_code == 200


@pytest.mark.parametrize("session_id", ["20200101_000000_00000000", "nonsense", "a%00b"])
async def test_a_session_that_does_not_exist_is_not_found(web: WebServer, session_id: str) -> None:
    owner = await web.sign_in()
    path = f"/api/sessions/{session_id}"
    responses = [
        await owner.post(f"{path}/messages", json={"content": "hello", "key": "a"}),
        await owner.post(f"{path}/messages", json={"content": "/status", "key": "b"}),
        await owner.post(f"{path}/undo", json={"key": "c"}),
        await run_text(owner, "/undo", "d", session_id.replace("%00", "\0")),
        await run_text(owner, "/status", "e", session_id.replace("%00", "\0")),
    ]
    for response in responses:
        assert (response.status_code, response.json()["error"]["code"]) == (404, "session_not_found")


async def test_the_key_of_another_person_returns_nothing_about_their_message(web: WebServer) -> None:
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    session_id = await web.create_conversation(ada, "my secret")
    path = f"/api/sessions/{session_id}"
    await ada.post(f"{path}/messages", json={"content": "a secret", "key": "message"})
    await run_text(ada, "/title Secret", "title", session_id)
    await run_text(ada, "/status", "status", session_id)
    responses = [
        await bob.post(f"{path}/messages", json={"content": "hello", "key": "message"}),
        await run_text(bob, "/title Mine", "title", session_id),
        await run_text(bob, "/status", "status", session_id),
    ]
    assert [response.status_code for response in responses] == [404] * 3
