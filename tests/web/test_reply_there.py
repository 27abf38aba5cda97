"""A conversation of a chat over HTTP: answered there, followed on its way, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.domain.errors import SendRejected
from palaver.platforms.loopback import Loopback
from support.gateway import ended, until
from support.places import in_the_chat
from support.sse import Page, listening

if TYPE_CHECKING:
    import httpx2

    from palaver.domain.delivery import Delivery
    from support.web import StartWeb, Web

ENGINES = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
QUOTED = "> ada, from the web: and now?\n\nDone."


async def in_both(web: Web, loopback: Loopback) -> tuple[httpx2.AsyncClient, str]:
    """Ada on the web, and her conversation in the chat."""
    ada = await web.client("ada")
    await in_the_chat(web, "ada", "ada")
    receipt = await loopback.say("hello")
    await ended(web.gateway, receipt.turn_id)
    await until(lambda: loopback.sent)
    return ada, receipt.session_id or ""


async def deliveries(client: httpx2.AsyncClient, session_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/sessions/{session_id}/deliveries")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["deliveries"]
    return found


@ENGINES
async def test_a_message_may_be_answered_there_and_the_page_is_told_how_that_stands(start_web: StartWeb) -> None:
    loopback = Loopback()
    web = await start_web(adapters=[loopback])
    ada, session_id = await in_both(web, loopback)
    assert (await ada.get(f"/api/sessions/{session_id}")).json()["reachable"] is True
    page = Page(ada, (session_id,))
    task = await listening(
        page,
        lambda page: (
            [
                told.data["delivery"]["quotes"]
                for told in page.told
                if told.name == "delivery" and told.data["delivery"]["state"] == "sent"
            ][-1:]
            not in ([], [[]])
        ),
    )
    receipt = await web.say(ada, session_id, "and now?", reply="there")
    await task
    turns = [told.data["turn"] for told in page.told if told.name == "turn"]
    assert {(turn["goes_to"], tuple(turn["quotes"])) for turn in turns} == {("loopback", (receipt["seq"],))}
    assert [delivery.content for delivery in loopback.sent] == ["Done.", QUOTED]
    first, second = await deliveries(ada, session_id)
    assert (first["state"], first["quotes"]) == ("sent", [])
    assert (second["state"], second["quotes"], second["turn_id"]) == ("sent", [receipt["seq"]], receipt["turn_id"])
    events = (await ada.get(f"/api/sessions/{session_id}/messages")).json()["events"]
    assert events[-1]["at"] == second["created_at"], "by which a page knows whose delivery it is"
    again = Page(ada, (session_id,))
    await again.until(lambda page: sum(told.name == "delivery" for told in page.told) == 2)


async def test_what_cannot_be_reached_is_refused_and_says_so(start_web: StartWeb) -> None:
    loopback = Loopback()
    web = await start_web(adapters=[loopback])
    ada, session_id = await in_both(web, loopback)
    own = await web.talk(ada, "hello")
    copy = (await ada.post(f"/api/sessions/{session_id}/fork", json={})).json()
    assert copy["reachable"] is False
    for unreachable in (own, copy["id"]):
        assert (await ada.get(f"/api/sessions/{unreachable}")).json()["reachable"] is False
        body = {"content": "there?", "key": "k", "reply": "there"}
        refused = await ada.post(f"/api/sessions/{unreachable}/messages", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_reachable")
        assert "nowhere else" in refused.json()["error"]["message"]
    assert len(loopback.sent) == 1


async def test_without_its_platform_a_conversation_is_not_reachable(start_web: StartWeb) -> None:
    loopback = Loopback()
    connected = await start_web(adapters=[loopback])
    ada, session_id = await in_both(connected, loopback)
    elsewhere = await start_web()  # on the same database
    token = await connected.token("read", "write", person="ada")
    client = await elsewhere.stranger()
    client.headers["Authorization"] = token.headers["Authorization"]
    assert (await client.get(f"/api/sessions/{session_id}")).json()["reachable"] is False
    body = {"content": "there?", "key": "k", "reply": "there"}
    refused = await client.post(f"/api/sessions/{session_id}/messages", json=body)
    assert refused.status_code == 409
    assert "Loopback is not connected" in refused.json()["error"]["message"]
    assert (await ada.get(f"/api/sessions/{session_id}")).json()["reachable"] is True


async def test_what_failed_is_sent_again_by_those_it_belongs_to_and_nobody_else(start_web: StartWeb) -> None:
    refuse = [SendRejected("too long")]

    async def wire(_delivery: Delivery) -> str:
        if refuse:
            raise refuse.pop()
        return "r"

    loopback = Loopback(wire)
    web = await start_web(adapters=[loopback])
    ada, bob = await web.client("ada"), await web.client("bob")
    await in_the_chat(web, "ada", "ada")
    receipt = await loopback.say("hello")
    session_id, missing = receipt.session_id or "", "20200101_000000_00000000"
    await ended(web.gateway, receipt.turn_id)
    await until(lambda: not refuse)
    (failed,) = await deliveries(ada, session_id)
    again = f"/deliveries/{failed['id']}/again"
    for client in (bob, await web.client()):  # and not an owner either, who looks at everybody's
        for method, rest, body in (
            ("GET", "/deliveries", None),
            ("POST", again, None),
            ("POST", "/messages", {"content": "hi", "key": "k", "reply": "there"}),
        ):
            hidden = await client.request(method, f"/api/sessions/{session_id}{rest}", json=body)
            nothing = await client.request(method, f"/api/sessions/{missing}{rest}", json=body)
            assert (hidden.status_code, hidden.text) == (404, nothing.text.replace(missing, session_id))
    mine = await web.talk(bob, "hello")
    assert (await bob.post(f"/api/sessions/{mine}{again}")).status_code == 404
    assert loopback.sent == []
    sent = await ada.post(f"/api/sessions/{session_id}{again}")
    assert (sent.status_code, sent.json()["state"]) == (200, "pending")
    await until(lambda: loopback.sent)
    assert (await ada.post(f"/api/sessions/{session_id}{again}")).status_code == 409
    assert len(loopback.sent) == 1
