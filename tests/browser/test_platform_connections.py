"""The owner links, connects and tests accounts on chat platforms in the panel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.page_checks import find_violations
from palaver.agent.demo import DemoAgent
from palaver.domain.errors import AccountRefused
from palaver.domain.platform_health import LinkingPrompt
from palaver.platforms.loopback import LoopbackAdapter
from palaver.services.platforms.adapter import AccountInfo

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from palaver.services.platforms.adapter import AccountLink
    from support.web import StartWebServer

INSTRUCTIONS = "Open the app on your phone: Settings → Linked devices → Link new device, and scan this code."


class LinkedAdapter(LoopbackAdapter):
    """Waits to be linked with a phone; `next_code` replaces the code, and then links it."""

    def __init__(self) -> None:
        super().__init__(account="phone")
        self.next_code = asyncio.Event()

    async def probe(self) -> AccountInfo:
        return AccountInfo(name="+49 30 1234567", details=("Version 1.2, linked 3 days ago",))

    async def run(self, link: AccountLink) -> None:
        for code in ("ABCD-1111", "ABCD-2222"):
            text = f"sgnl://linkdevice?uuid=9aXw3v0m2Tn1JqKc5bEd7g%3D%3D&pub_key={code}"
            link.report_linking(LinkingPrompt(instructions=INSTRUCTIONS, qr_text=text, code=code))
            await self.next_code.wait()
            self.next_code.clear()
        await super().run(link)


async def test_the_owner_links_an_account_with_a_code_that_renews_itself_and_nobody_else_sees_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    adapter = LinkedAdapter()
    web = await start_web(DemoAgent(word_delay=0), adapters=[adapter])
    page = await visitors.visit(web, path="/platforms", color_scheme="dark")
    region = page.get_by_role("region", name="loopback")
    await expect(region).to_contain_text("Waiting to be linked")
    await expect(region).to_contain_text(INSTRUCTIONS)
    await expect(region.get_by_text("ABCD-1111")).to_be_visible()
    code = region.get_by_role("img", name="QR code to link")
    await expect(code.locator("rect")).to_have_css("fill", "rgb(255, 255, 255)")
    await expect(code.locator("path")).to_have_css("fill", "rgb(0, 0, 0)")
    first = await code.locator("path").get_attribute("d")
    assert await find_violations(page) == []
    member = await visitors.visit(web, "jonas", path="/platforms")
    await expect(member.get_by_role("heading", name="Platforms", level=1)).to_be_visible()
    assert "ABCD" not in await member.content()
    adapter.next_code.set()
    await expect(region.get_by_text("ABCD-2222")).to_be_visible()
    assert await code.locator("path").get_attribute("d") != first
    adapter.next_code.set()
    await expect(region).to_contain_text("phone · +49 30 1234567Connected since")
    await expect(code).to_have_count(0)
    await expect(region).to_contain_text("Version 1.2, linked 3 days ago")


async def test_the_owner_connects_an_account_now_and_tests_it(start_web: StartWebServer, visitors: Visitors) -> None:
    problem = "The token was revoked. Create a new one with @BotFather."

    class RepairedAdapter(LoopbackAdapter):
        async def probe(self) -> AccountInfo:
            if problem:
                raise AccountRefused(problem)
            return AccountInfo(name="@palaver_bot", warnings=("Privacy mode is on: /setprivacy turns it off.",))

    web = await start_web(DemoAgent(word_delay=0), adapters=[RepairedAdapter()])
    page = await visitors.visit(web, path="/platforms")
    region = page.get_by_role("region", name="loopback")
    await expect(region).to_contain_text("Needs your attention")
    await region.get_by_role("button", name="Connect now").click()
    await expect(region.get_by_role("status")).to_contain_text("Still not connected (")
    await expect(region).to_contain_text(problem)
    problem = ""
    await region.get_by_role("button", name="Connect now").click()
    await expect(region.get_by_role("status")).to_contain_text("It works: signed in as @palaver_bot (")
    await expect(region).to_contain_text("Privacy mode is on")
    problem = "The platform is closed for today."
    await region.get_by_role("button", name="Test connection").click()
    await expect(region.get_by_role("status")).to_contain_text(f": {problem}")
    await expect(region).to_contain_text("Connected since")
