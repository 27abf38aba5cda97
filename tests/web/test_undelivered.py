"""Messages that failed or may not have arrived, through the API: people see and settle their own, owners all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from palaver.core.errors import SendRejected
from palaver.platforms.loopback import LoopbackAdapter
from support.deliveries import FailingTransport
from support.gateway import wait_for_turn, wait_until
from support.linked_accounts import link_chat_account

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer

PATH = "/api/deliveries"


async def list_states(client: httpx2.AsyncClient, **params: str | bool) -> dict[str, str]:
    response = await client.get(PATH, params=params)
    assert response.status_code == 200, response.text
    return {each["id"]: each["state"] for each in response.json()["deliveries"]}


def has_attempted(transport: FailingTransport, count: int) -> bool:
    return len(transport.attempted) == count


async def test_people_settle_their_own_and_owners_all(start_web: StartWebServer) -> None:
    transport = FailingTransport(OSError("the line broke"), SendRejected("too long"))
    loopback = LoopbackAdapter(transport)
    web = await start_web(adapters=[loopback])
    owner, ada, bob = await web.sign_in(), await web.sign_in("ada"), await web.sign_in("bob")
    for number, name in enumerate(("ada", "bob"), 1):
        await link_chat_account(web, name, name)
        receipt = await loopback.say("hello", user=name)
        await wait_for_turn(web.gateway, receipt.turn_id)
        await wait_until(partial(has_attempted, transport, number))
    await wait_until(lambda: not web.gateway.outbox._active_sends)
    (of_ada,), (of_bob,) = await list_states(ada), await list_states(bob)
    assert await list_states(owner) == {}
    assert await list_states(owner, all=True) == {of_ada: "uncertain", of_bob: "failed"}
    assert await list_states(owner, all=True, state="failed", platform="loopback") == {of_bob: "failed"}
    assert await list_states(owner, all=True, target="loopback:ada") == {of_ada: "uncertain"}
    assert (await ada.get(PATH, params={"all": True})).status_code == 403
    assert (await ada.get(PATH, params={"cursor": "x"})).status_code == 422
    first = (await owner.get(PATH, params={"all": True, "limit": 1})).json()
    rest = await owner.get(PATH, params={"all": True, "limit": 1, "cursor": first["next_cursor"]})
    assert {each["id"] for page in (first, rest.json()) for each in page["deliveries"]} == {of_ada, of_bob}

    foreign = await bob.post(f"{PATH}/resolve", json={"ids": [of_ada, "d_0"], "action": "resend"})
    assert foreign.json() == {"resolved": [], "unchanged": [of_ada, "d_0"]}, "both look the same"
    assert (
        await bob.post(f"{PATH}/resolve", params={"all": True}, json={"ids": [of_ada], "action": "resend"})
    ).is_error
    assert (await bob.post(f"{PATH}/resolve", json={"ids": [], "action": "resend"})).status_code == 422
    body = {"ids": [of_ada, of_bob, of_ada], "action": "resend"}
    both = await owner.post(f"{PATH}/resolve", params={"all": True}, json=body)
    assert both.json() == {"resolved": [of_ada, of_bob], "unchanged": []}
    again = await owner.post(f"{PATH}/resolve", params={"all": True}, json=body)
    assert again.json() == {"resolved": [], "unchanged": [of_ada, of_bob]}
    await wait_until(lambda: len(transport.arrived) == 2)
    assert await list_states(owner, all=True) == {}
