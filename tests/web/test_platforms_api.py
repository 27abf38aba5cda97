"""The delivery status of platforms over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform
from palaver.domain.errors import SendRejected, SendUncertain
from palaver.platforms.loopback import LoopbackAdapter
from support.gateway import TIMEOUT_SECONDS, wait_until

if TYPE_CHECKING:
    from palaver.domain.delivery import Delivery
    from support.web import StartWebServer, WebServer


async def get_platforms(web: WebServer) -> dict[str, Any]:
    owner = await web.sign_in()
    platforms = (await owner.get("/api/platforms")).json()["platforms"]
    return {each["platform"]: each for each in platforms}


async def wait_for_count(web: WebServer, field: str) -> dict[str, Any]:
    """Wait until a count of the loopback platform is not zero, and return the platform."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            platform: dict[str, Any] = (await get_platforms(web)).get("loopback", {})
            if platform.get(field):
                return platform
            await asyncio.sleep(0.02)


async def lose_connection(_delivery: Delivery) -> str:
    raise SendUncertain("the connection was lost")


async def reject(_delivery: Delivery) -> str:
    raise SendRejected("the chat is read-only")


async def test_a_connected_platform_without_problems(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(adapters=[loopback])
    await loopback.say("hello", user="ada")
    await wait_until(lambda: bool(loopback.sent))
    assert await get_platforms(web) == {
        "loopback": {
            "platform": "loopback",
            "configured": False,
            "connected": True,
            "pending": 0,
            "uncertain": 0,
            "failed": 0,
            "last_error": None,
            "last_error_at": None,
        }
    }


async def test_a_platform_that_is_set_up_but_not_connected(start_web: StartWebServer) -> None:
    web = await start_web(config=GatewayConfig(connected_platforms=(Platform.TELEGRAM, Platform.WEB)))
    platforms = await get_platforms(web)
    assert [(name, each["configured"], each["connected"]) for name, each in platforms.items()] == [
        ("telegram", True, False)
    ]


@pytest.mark.parametrize("web_store_url", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize(
    ("wire", "field", "error"),
    [(lose_connection, "uncertain", "the connection was lost"), (reject, "failed", "the chat is read-only")],
)
async def test_failed_and_uncertain_deliveries_are_counted_with_their_error(
    start_web: StartWebServer, wire: Any, field: str, error: str
) -> None:
    loopback = LoopbackAdapter(wire)
    web = await start_web(adapters=[loopback])
    await loopback.say("hello", user="ada")
    platform = await wait_for_count(web, field)
    assert (platform[field], platform["pending"], platform["last_error"]) == (1, 0, error)
    assert platform["last_error_at"]


async def test_pending_deliveries_of_a_disconnected_platform_are_counted(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(adapters=[loopback])
    other = await start_web()
    assert await get_platforms(other) == {}
    await web.gateway.outbox.stop()
    await loopback.say("are you there", user="ada")
    assert (await wait_for_count(other, "pending"))["connected"] is False


async def test_only_the_owner_can_list_platforms(start_web: StartWebServer) -> None:
    web = await start_web(adapters=[LoopbackAdapter()])
    response = await (await web.sign_in("ada")).get("/api/platforms")
    assert response.status_code == 403
    assert "loopback" not in response.text
