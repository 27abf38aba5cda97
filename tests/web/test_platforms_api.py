"""How the platforms are doing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver.domain.errors import SendRejected, SendUncertain
from palaver.platforms.loopback import Loopback
from support.gateway import PATIENCE, until

if TYPE_CHECKING:
    from palaver.domain.delivery import Delivery
    from support.web import StartWeb, Web


async def health(web: Web) -> dict[str, Any]:
    owner = await web.client()
    found = (await owner.get("/api/platforms")).json()["platforms"]
    return {each["platform"]: each for each in found}


async def told(web: Web, counted: str) -> dict[str, Any]:
    """What is told of the loopback platform, as soon as there is something to count."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, Any] = (await health(web)).get("loopback", {})
            if found.get(counted):
                return found
            await asyncio.sleep(0.02)


async def lost(_delivery: Delivery) -> str:
    raise SendUncertain("the line was cut")


async def refused(_delivery: Delivery) -> str:
    raise SendRejected("the chat is read-only")


async def test_a_platform_that_is_connected_and_well_says_so(start_web: StartWeb) -> None:
    loopback = Loopback()
    web = await start_web(adapters=[loopback])
    await loopback.say("hello", user="ada")
    await until(lambda: bool(loopback.sent))
    assert await health(web) == {
        "loopback": {
            "platform": "loopback",
            "connected": True,
            "waiting": 0,
            "uncertain": 0,
            "failed": 0,
            "trouble": None,
            "trouble_at": None,
        }
    }


@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize(
    ("wire", "counted", "words"),
    [(lost, "uncertain", "the line was cut"), (refused, "failed", "the chat is read-only")],
)
async def test_what_did_not_arrive_is_counted_and_told(
    start_web: StartWeb, wire: Any, counted: str, words: str
) -> None:
    loopback = Loopback(wire)
    web = await start_web(adapters=[loopback])
    await loopback.say("hello", user="ada")
    found = await told(web, counted)
    assert (found[counted], found["waiting"], found["trouble"]) == (1, 0, words)
    assert found["trouble_at"]


async def test_what_waits_for_a_platform_that_is_not_connected_is_told(start_web: StartWeb) -> None:
    loopback = Loopback()
    web = await start_web(adapters=[loopback])
    other = await start_web()
    assert await health(other) == {}
    await web.gateway.outbox.stop()
    await loopback.say("are you there", user="ada")
    assert (await told(other, "waiting"))["connected"] is False


async def test_only_the_owner_is_told(start_web: StartWeb) -> None:
    web = await start_web(adapters=[Loopback()])
    answer = await (await web.client("ada")).get("/api/platforms")
    assert answer.status_code == 403
    assert "loopback" not in answer.text
