"""The owner settles messages that were not delivered, many at once; a member sees only their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver import SessionSource
from palaver.drivers.demo import DemoAgent
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryState
from support.deliveries import add_undelivered
from support.gateway import wait_until

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer


async def test_the_owner_settles_undelivered_messages(start_web: StartWebServer, visitors: Visitors) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(DemoAgent(word_delay=0), adapters=[loopback])
    store = web.gateway.store

    def add() -> None:
        add_undelivered(store, loopback.get_source("ada"), error="The line <b>broke</b>.")
        add_undelivered(store, loopback.get_source("ben"), DeliveryState.FAILED, error="Blocked.")
        add_undelivered(store, SessionSource("telegram", "1", user_id="1"))

    await asyncio.to_thread(add)
    page = await visitors.visit(web, path="/platforms", viewport=PHONE_VIEWPORT, has_touch=True)
    region = page.get_by_role("region", name="Undelivered messages")
    await expect(region.get_by_role("listitem")).to_have_count(3)
    await expect(region).to_contain_text("Status unknown: loopback:ada")
    await expect(region).to_contain_text("The line <b>broke</b>.")
    assert await find_violations(page) == []
    small = [each for each in await find_small_targets(page) if not each.startswith("<input type")]
    assert small == [], "but for checkboxes, whose labels can be pressed"
    assert await measure_overflow(page) == 0

    await region.get_by_label("Platform").select_option("telegram")
    await region.get_by_label("Select all").check()
    await region.get_by_role("button", name="Mark as delivered").click()
    await expect(region.get_by_role("listitem")).to_have_count(2)
    await region.get_by_label("Select all").check()
    await expect(region.get_by_role("status")).to_have_text("2 selected")
    await expect(region.get_by_role("button", name="Mark as delivered")).to_have_count(0)  # one has certainly failed
    await region.get_by_role("button", name="Send again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    await expect(region).to_have_count(0)
    await wait_until(lambda: len(loopback.sent) == 2)
    assert sorted(message.address.chat_id for message in loopback.sent) == ["ada", "ben"]

    await asyncio.to_thread(add)
    member = await visitors.visit(web, "jonas", path="/platforms")
    await expect(member.get_by_role("heading", name="Platforms", level=1)).to_be_visible()
    assert "broke" not in await member.content()
