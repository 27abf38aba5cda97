"""The panel in which an owner lets strangers in and separates accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from palaver import SessionSource
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer


POLL_INTERVAL_MILLISECONDS = 5_000  # between two looks at the requests


async def write_as_stranger(web: WebServer, user: str, name: str) -> None:
    source = SessionSource("telegram", user, user_id=user, user_name=name)
    await web.gateway.inbox.accept(Inbound(source=source, content="hello", message_id=f"m-{user}"))


async def test_an_owner_lets_strangers_in(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(rules={"open_platforms": frozenset()})
    page = await visitors.visit(web, path="/people", has_clock=True)
    await expect(page.get_by_role("button", name="Invite someone")).to_be_visible()
    await expect(page.get_by_role("heading", name="Requests for access")).to_have_count(0)
    await write_as_stranger(web, "4711", "Grace")
    await write_as_stranger(web, "4712", "Mallory")
    await write_as_stranger(web, "4713", "My phone")
    await page.clock.fast_forward(POLL_INTERVAL_MILLISECONDS)
    requests = page.get_by_role("region", name="Requests for access").get_by_role("listitem")
    await expect(requests).to_have_count(3)
    await expect(requests.first).to_contain_text("Telegram · 4711")

    await page.get_by_role("button", name="Deny Mallory").click()
    await expect(requests).to_have_count(2)
    await page.get_by_role("button", name="Approve My phone").click()
    await page.get_by_role("menuitem", name="This is me").click()
    await expect(requests).to_have_count(1)
    await page.get_by_role("button", name="Approve Grace").click()
    await page.get_by_role("menuitem", name="As a guest").click()
    await expect(page.get_by_role("heading", name="Requests for access")).to_have_count(0)
    await expect(page.get_by_role("listitem").filter(has_text="Grace")).to_contain_text("Guest")

    await page.get_by_role("button", name="Actions for “owner”").click()
    await page.get_by_role("menuitem", name="Unlink Telegram").click()
    await page.get_by_role("dialog").get_by_role("button", name="Unlink").click()
    await expect(page.get_by_text("Telegram is no longer linked to owner.")).to_be_visible()
    me = page.get_by_role("listitem").filter(has_text="owner")
    await expect(me.get_by_role("img", name="Telegram")).to_have_count(0)
