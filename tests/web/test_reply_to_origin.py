"""Replies to the chat that a conversation comes from: access, delivery status, and retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import SendRejected
from palaver.platforms.loopback import LoopbackAdapter
from support.gateway import wait_for_turn, wait_until
from support.linked_accounts import link_chat_account
from support.sse import LivePage, start_listening

if TYPE_CHECKING:
    import httpx2

    from palaver.delivery.adapter import OutgoingMessage
    from support.web import StartWebServer, WebServer

QUOTED_ANSWER = "> ada, from the web: and now?\n\nDone."


async def open_chat_and_web(web: WebServer, loopback: LoopbackAdapter) -> tuple[httpx2.AsyncClient, str]:
    """Sign ada in on the web, and return her client and the id of her conversation in the chat."""
    ada = await web.sign_in("ada")
    await link_chat_account(web, "ada", "ada")
    receipt = await loopback.say("hello")
    await wait_for_turn(web.gateway, receipt.turn_id)
    await wait_until(lambda: loopback.sent)
    return ada, receipt.session_id or ""


async def list_deliveries(client: httpx2.AsyncClient, session_id: str) -> list[dict[str, Any]]:
    response = await client.get(f"/api/sessions/{session_id}/deliveries")
    assert response.status_code == 200, response.text
    deliveries: list[dict[str, Any]] = response.json()["deliveries"]
    return deliveries


async def test_an_answer_can_be_delivered_to_the_origin_and_the_page_sees_its_state(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(adapters=[loopback])
    ada, session_id = await open_chat_and_web(web, loopback)
    assert (await ada.get(f"/api/sessions/{session_id}")).json()["reachable"] is True
    page = LivePage(ada, (session_id,))
    task = await start_listening(
        page,
        lambda page: (
            [
                event.data["delivery"]["quoted_seqs"]
                for event in page.received
                if event.name == "delivery" and event.data["delivery"]["state"] == "sent"
            ][-1:]
            not in ([], [[]])
        ),
    )
    receipt = await web.send_message(ada, session_id, "and now?", reply_to="origin")
    await task
    turns = [event.data["turn"] for event in page.received if event.name == "turn"]
    assert {(turn["delivers_to"], tuple(turn["quoted_seqs"])) for turn in turns} == {("loopback", (receipt["seq"],))}
    assert [message.body for message in loopback.sent] == ["Done.", QUOTED_ANSWER]
    first, second = await list_deliveries(ada, session_id)
    assert (first["state"], first["quoted_seqs"]) == ("sent", [])
    assert (second["state"], second["quoted_seqs"], second["turn_id"]) == ("sent", [receipt["seq"]], receipt["turn_id"])
    events = (await ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    assert events[-1]["at"] == second["created_at"], "the page matches deliveries to answers by this time"
    second_page = LivePage(ada, (session_id,))
    await second_page.read_until(lambda page: sum(event.name == "delivery" for event in page.received) == 2)


async def test_replying_to_an_unreachable_origin_is_an_error(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(adapters=[loopback])
    ada, session_id = await open_chat_and_web(web, loopback)
    web_session = await web.create_conversation(ada, "hello")
    copy = (await ada.post(f"/api/sessions/{session_id}/fork", json={})).json()
    assert copy["reachable"] is False
    for unreachable in (web_session, copy["id"]):
        assert (await ada.get(f"/api/sessions/{unreachable}")).json()["reachable"] is False
        body = {"content": "there?", "key": "k", "reply_to": "origin"}
        rejected = await ada.post(f"/api/sessions/{unreachable}/messages", json=body)
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (409, "chat_not_reachable")
        assert "from a chat" in rejected.json()["error"]["message"]
    assert len(loopback.sent) == 1


async def test_a_conversation_is_reachable_while_any_server_is_connected_to_its_platform(
    start_web: StartWebServer,
) -> None:
    loopback = LoopbackAdapter()
    connected = await start_web(adapters=[loopback])
    ada, session_id = await open_chat_and_web(connected, loopback)
    other = await start_web()  # on the same database
    token = await connected.open_token_client("read", "write", person="ada")
    client = await other.open_anonymous_client()
    client.headers["Authorization"] = token.headers["Authorization"]
    await wait_until(lambda: other.gateway.platforms)
    assert (await client.get(f"/api/sessions/{session_id}")).json()["reachable"] is True
    body = {"content": "there?", "key": "k", "reply_to": "origin"}
    assert (await client.post(f"/api/sessions/{session_id}/messages", json=body)).status_code == 202
    await wait_until(lambda: any("there?" in message.body for message in loopback.sent))
    await connected.gateway.accounts.stop()
    await wait_until(lambda: not other.gateway.platforms)
    assert (await client.get(f"/api/sessions/{session_id}")).json()["reachable"] is False
    rejected = await client.post(f"/api/sessions/{session_id}/messages", json={**body, "key": "l"})
    assert rejected.status_code == 409
    assert "Loopback isn't connected" in rejected.json()["error"]["message"]
    await wait_until(lambda: not connected.gateway.platforms)
    assert (await ada.get(f"/api/sessions/{session_id}")).json()["reachable"] is False


async def test_only_participants_can_retry_a_failed_delivery(start_web: StartWebServer) -> None:
    errors = [SendRejected("too long")]

    async def wire(_message: OutgoingMessage) -> str:
        if errors:
            raise errors.pop()
        return "r"

    loopback = LoopbackAdapter(wire)
    web = await start_web(adapters=[loopback])
    ada, bob = await web.sign_in("ada"), await web.sign_in("bob")
    await link_chat_account(web, "ada", "ada")
    receipt = await loopback.say("hello")
    session_id, missing = receipt.session_id or "", "20200101_000000_00000000"
    await wait_for_turn(web.gateway, receipt.turn_id)
    await wait_until(lambda: not errors)
    (failed,) = await list_deliveries(ada, session_id)
    retry = f"/deliveries/{failed['id']}/retry"
    for client in (bob, await web.sign_in()):  # not even an owner, who can view everyone's
        for method, rest, body in (
            ("GET", "/deliveries", None),
            ("POST", retry, None),
            ("POST", "/messages", {"content": "hi", "key": "k", "reply_to": "origin"}),
        ):
            forbidden = await client.request(method, f"/api/sessions/{session_id}{rest}", json=body)
            not_found = await client.request(method, f"/api/sessions/{missing}{rest}", json=body)
            assert (forbidden.status_code, forbidden.text) == (404, not_found.text.replace(missing, session_id))
    mine = await web.create_conversation(bob, "hello")
    assert (await bob.post(f"/api/sessions/{mine}{retry}")).status_code == 404
    assert loopback.sent == []
    response = await ada.post(f"/api/sessions/{session_id}{retry}")
    assert (response.status_code, response.json()["state"]) == (200, "pending")
    await wait_until(lambda: loopback.sent)
    assert (await ada.post(f"/api/sessions/{session_id}{retry}")).status_code == 409
    assert len(loopback.sent) == 1


@pytest.mark.both_engines
async def test_deliveries_come_in_pages_with_their_true_number(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(adapters=[loopback])
    ada, session_id = await open_chat_and_web(web, loopback)
    for number in range(6):
        receipt = await loopback.say(f"hello {number}")
        await wait_for_turn(web.gateway, receipt.turn_id)
    everything = await list_deliveries(ada, session_id)
    assert len(everything) == 7
    path, cursor = f"/api/sessions/{session_id}/deliveries", None
    found: list[dict[str, Any]] = []
    for expected_count in (3, 3, 1):
        page = (await ada.get(path, params={"limit": 3} | ({} if cursor is None else {"cursor": cursor}))).json()
        assert (len(page["deliveries"]), page["total"]) == (expected_count, 7)
        found, cursor = [*page["deliveries"], *found], page["next_cursor"]
    assert cursor is None
    assert [each["id"] for each in found] == [each["id"] for each in everything]
    for wrong in ("x", "d_" + "0" * 16, "\x00"):
        assert (await ada.get(path, params={"cursor": wrong})).status_code == 422
    ben = await web.sign_in("ben")
    assert (await ben.get(path, params={"cursor": everything[3]["id"]})).status_code == 404
    other = await web.create_conversation(ada, "elsewhere")
    stolen = await ada.get(f"/api/sessions/{other}/deliveries", params={"cursor": everything[3]["id"]})
    assert stolen.status_code == 422
