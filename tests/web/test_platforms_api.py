"""Accounts on platforms, their connections and deliveries, over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform
from palaver.core.errors import AccountRefused, SendRejected, SendUncertain
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import LinkingPrompt
from palaver.platforms.loopback import LoopbackAdapter
from support.gateway import TIMEOUT_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.adapter import AccountLink
    from palaver.sessions.delivery import Delivery
    from support.web import StartWebServer, WebServer


async def get_platforms(web: WebServer) -> dict[str, Any]:
    owner = await web.sign_in()
    accounts = (await owner.get("/api/platforms")).json()["accounts"]
    return {each["platform"]: each for each in accounts}


async def wait_for_account(web: WebServer, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Wait until the account on the loopback platform is as expected, and return it."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            account: dict[str, Any] = (await get_platforms(web)).get("loopback", {})
            if account and condition(account):
                return account
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
    account = await wait_for_account(web, lambda each: each["last_message_at"])
    assert account.pop("since") <= account.pop("last_message_at")
    assert account == {
        "platform": "loopback",
        "account": "",
        "configured": True,
        "state": "live",
        "name": None,
        "warnings": [],
        "details": [],
        "linking": None,
        "error": None,
        "error_at": None,
        "last_test": None,
        "waiting": 0,
        "uncertain": 0,
        "failed": 0,
        "delivery_error": None,
        "delivery_error_at": None,
        "home_channel": None,
    }


async def test_a_platform_that_is_set_up_but_not_connected(start_web: StartWebServer) -> None:
    web = await start_web(config=GatewayConfig(connected_platforms=(Platform.TELEGRAM, Platform.WEB)))
    platforms = await get_platforms(web)
    assert [(name, each["configured"], each["state"], each["since"]) for name, each in platforms.items()] == [
        ("telegram", True, "off", None)
    ]


@pytest.mark.both_engines
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
    account = await wait_for_account(web, lambda each: each[field])
    assert (account[field], account["waiting"], account["delivery_error"]) == (1, 0, error)
    assert account["delivery_error_at"]


async def test_every_server_on_a_database_shows_the_accounts_of_the_others(start_web: StartWebServer) -> None:
    loopback = LoopbackAdapter()
    web, other = await start_web(adapters=[loopback]), await start_web()
    assert (await wait_for_account(other, lambda each: each["state"] == "live"))["configured"] is True
    await wait_until(lambda: other.gateway.platforms == {loopback.platform})
    await web.gateway.outbox.stop()
    await loopback.say("are you there", user="ada")
    assert (await wait_for_account(other, lambda each: each["waiting"]))["state"] == "live"
    await web.gateway.accounts.stop()
    account = await wait_for_account(other, lambda each: each["state"] == "off")
    assert (account["configured"], account["waiting"]) == (False, 1)
    await wait_until(lambda: other.gateway.platforms == frozenset())


async def test_a_platform_that_fails_is_in_the_readiness_and_the_metrics_and_stops_nothing(
    start_web: StartWebServer,
) -> None:
    class RefusedAdapter(LoopbackAdapter):
        async def probe(self) -> AccountInfo:
            raise AccountRefused("The token was revoked.")

    web = await start_web(adapters=[RefusedAdapter()])
    account = await wait_for_account(web, lambda each: each["state"] == "refused")
    assert account["error"] == "The token was revoked."
    stranger = await web.open_anonymous_client()
    ready = await stranger.get("/readyz")
    assert (ready.status_code, ready.json()["status"], ready.json()["platforms"]) == (200, "ok", "problem")
    metrics = (await (await web.sign_in()).get("/metrics")).text
    labels = 'account="",platform="loopback"'
    assert f'palaver_platform_account_state{{{labels},state="refused"}} 1.0' in metrics
    assert f'palaver_platform_account_state{{{labels},state="live"}} 0.0' in metrics
    assert f'palaver_platform_account_deliveries{{{labels},state="waiting"}} 0.0' in metrics


class PairedAdapter(LoopbackAdapter):
    """Waits to be linked with a phone, and tells what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_linked = asyncio.Event()

    async def probe(self) -> AccountInfo:
        return AccountInfo(name="+49 30 1234", details=("Version 1.2",), warnings=("One thing is missing.",))

    async def run(self, link: AccountLink) -> None:
        link.report_linking(LinkingPrompt(instructions="Scan it.", qr_text="pair:hunter2", code="ABCD-1234"))
        await self.is_linked.wait()
        await super().run(link)


async def test_an_owner_links_an_account_with_what_only_owners_see(start_web: StartWebServer) -> None:
    adapter = PairedAdapter()
    web = await start_web(adapters=[adapter])
    account = await wait_for_account(web, lambda each: each["state"] == "linking")
    linking = account["linking"]
    assert (linking["instructions"], linking["code"], linking["expires_at"]) == ("Scan it.", "ABCD-1234", None)
    assert {len(row) for row in linking["qr_code"]} == {len(linking["qr_code"])}
    assert "hunter2" not in str(account)
    ada, stranger = await web.sign_in("ada"), await web.open_anonymous_client()
    for reader in (ada, stranger):
        for response in (
            await reader.get("/api/platforms"),
            await reader.post("/api/platforms/loopback/test"),
            await reader.get("/readyz"),
        ):
            assert response.status_code in {200, 401, 403}
            assert "ABCD" not in response.text
            assert "1111111" not in response.text
    adapter.is_linked.set()
    account = await wait_for_account(web, lambda each: each["state"] == "live")
    assert (account["linking"], account["name"], account["details"]) == (None, "+49 30 1234", ["Version 1.2"])


async def test_an_owner_tests_a_connection_on_any_server(start_web: StartWebServer) -> None:
    problem = "The token was revoked. Create a new one."

    class RepairedAdapter(LoopbackAdapter):
        async def probe(self) -> AccountInfo:
            if problem:
                raise AccountRefused(problem)
            return AccountInfo(name="@bot", warnings=("One thing is missing.",))

    web, other = await start_web(adapters=[RepairedAdapter()]), await start_web()
    await wait_for_account(web, lambda each: each["state"] == "refused")
    owner = await other.sign_in()
    refused = (await owner.post("/api/platforms/loopback/test")).json()
    assert (refused["state"], refused["last_test"]["error"]) == ("refused", problem)
    problem = ""
    connected = (await owner.post("/api/platforms/loopback/test")).json()
    assert (connected["state"], connected["name"], connected["last_test"]["error"]) == ("live", "@bot", None)
    assert connected["last_test"]["seconds"] >= 0
    again = (await owner.post("/api/platforms/loopback/test")).json()
    assert again["warnings"] == ["One thing is missing."]
    assert again["last_test"]["finished_at"] > connected["last_test"]["finished_at"]


async def test_what_cannot_be_tested_is_told(start_web: StartWebServer) -> None:
    web = await start_web(config=GatewayConfig(connected_platforms=(Platform.TELEGRAM,)))
    owner = await web.sign_in()
    unknown = await owner.post("/api/platforms/telegram/test", params={"account": "work"})
    assert unknown.status_code == 404
    not_running = await owner.post("/api/platforms/telegram/test")
    assert (not_running.status_code, not_running.json()["error"]["code"]) == (409, "account_not_running")


async def test_only_the_owner_can_list_and_test_platforms(start_web: StartWebServer) -> None:
    web = await start_web(adapters=[LoopbackAdapter()])
    ada = await web.sign_in("ada")
    for response in (await ada.get("/api/platforms"), await ada.post("/api/platforms/loopback/test")):
        assert response.status_code == 403
        assert "loopback" not in response.text
