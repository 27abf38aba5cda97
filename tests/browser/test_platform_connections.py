"""The owner links, connects and tests accounts on chat platforms in the panel."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.core.errors import AccountRefused
from palaver.delivery.adapter import AccountInfo
from palaver.delivery.model import LinkingPrompt
from palaver.drivers.demo import DemoAgent
from palaver.platforms.loopback import LoopbackAdapter
from palaver.settings.editor import SettingsEdit
from platforms.signal.signal_server import SignalServer
from platforms.telegram.bot_api_server import TOKEN, BotApiServer
from support.gateway import wait_until

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from palaver.delivery.adapter import AccountLink
    from support.web import StartWebServer

REFRESH_INTERVAL_MILLISECONDS = 5_000
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


async def refresh(page: Page) -> None:
    """Let the open panel ask the server again at once. What has changed later is shown after its usual interval."""
    await page.clock.fast_forward(REFRESH_INTERVAL_MILLISECONDS)


async def test_the_owner_links_an_account_with_a_code_that_renews_itself_and_only_owners_see_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    adapter = LinkedAdapter()
    web = await start_web(DemoAgent(word_delay=0), adapters=[adapter])
    page = await visitors.visit(web, path="/platforms", color_scheme="dark", has_clock=True)
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
    await refresh(page)
    await expect(region.get_by_text("ABCD-2222")).to_be_visible()
    assert await code.locator("path").get_attribute("d") != first
    adapter.next_code.set()
    await refresh(page)
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


async def fill_bot(form: Locator, server: BotApiServer, token: str = TOKEN) -> None:
    await form.get_by_label("Bot token").fill(token)
    more = form.locator("details:not([open]) > summary", has_text="More settings")
    if await more.count():
        await more.click()
    await form.get_by_label("API address (URL)").fill(server.url)


def find_code(text: str) -> str:
    found = re.search(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b", text)
    assert found is not None, text
    return found[0]


@pytest.mark.soak
async def test_the_owner_connects_two_bots_tests_them_and_lets_a_stranger_in(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    async with BotApiServer() as server, BotApiServer() as second:
        second.bot["username"] = "office_bot"
        web = await start_web(DemoAgent(word_delay=0), is_server=True)
        owner = await web.sign_in()
        assert (await owner.patch("/api/settings", json={"set": {"model": "demo"}})).is_success
        page = await visitors.visit(web, path="/platforms#telegram", has_clock=True)
        visitors.allowed_errors = ("409",)
        first = page.get_by_role("region", name="Connect Telegram")
        state = page.get_by_role("region", name="Connection")
        await fill_bot(first, server, TOKEN[:-1] + "x")
        await first.get_by_role("button", name="Test").click()
        result = first.get_by_role("status")
        await expect(result).to_contain_text("The test failed. Telegram refuses the bot token")
        await fill_bot(first, server)
        await first.get_by_role("button", name="Test").click()
        await expect(result).to_contain_text("It works: signed in as @palaver_bot.")
        await first.get_by_role("button", name="Save and connect").click()
        await expect(state).to_contain_text("@palaver_botConnected since")  # without a reload

        others = page.get_by_role("region", name="More accounts")
        await others.get_by_label("Name of the account").fill("office")
        await others.get_by_role("button", name="Add an account").click()
        await fill_bot(others, second)
        await others.get_by_role("button", name="Test").click()
        await expect(others.get_by_role("status")).to_contain_text("It works: signed in as @office_bot.")
        assert (await owner.patch("/api/settings", json={"set": {"turns.max_running": 5}})).is_success
        await others.get_by_role("button", name="Save and connect").click()
        await expect(others.get_by_role("alert").last).to_contain_text("changed the settings in the meantime")
        await others.get_by_role("button", name="Save and connect").click()
        await expect(state).to_contain_text("office · @office_botConnected since")
        assert await find_violations(page) == []

        second.push_text("May I come in?", message_id=1)
        requests = page.get_by_role("region", name="Requests for access")
        await wait_until(lambda: second.list_texts(42))
        for code, expected_text in (
            ("AAAA-BBBB", "That code isn't valid"),
            ("please", "A code looks like ABCD-EFGH."),
            (find_code(second.list_texts(42)[0]), "This code belongs to Ada Lovelace (Telegram, 42)."),
        ):
            await requests.get_by_label("Code that they got").fill(code)
            await requests.get_by_role("button", name="Check").click()
            await expect(requests.get_by_role("status")).to_contain_text(expected_text)
        await requests.get_by_role("button", name="Approve").click()
        await page.get_by_role("menuitem", name="As a guest").click()
        await expect(requests).to_have_count(0)
        await wait_until(lambda: "You now have access" in second.list_texts(42)[-1])
        second.push_text("hello", message_id=2)
        await wait_until(lambda: "You said: “hello”" in second.list_texts(42)[-1])  # what waits keeps an account listed

        second.is_revoked = True
        await state.get_by_role("button", name="Test connection").last.click()
        await expect(state).to_contain_text("Telegram refuses the bot token")
        await others.locator("summary", has_text="office").click()
        await others.get_by_role("button", name="Disconnect office").click()
        await page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
        await expect(others.get_by_text("Disconnected", exact=True)).to_be_visible()
        await expect(state).not_to_contain_text("office")
        await expect(state).to_contain_text("@palaver_botConnected since")
        await others.get_by_role("button", name="Remove office").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(others.locator("details")).to_have_count(0)
        assert "office" not in (await owner.get("/api/settings")).text
        await first.get_by_role("button", name="Remove the account").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(state).to_have_count(0)  # no account is left
        assert server.problems + second.problems == []


@pytest.mark.soak
async def test_signal_is_linked_by_a_qr_code_on_its_page_on_a_phone(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    async with SignalServer(is_linked=False) as server:
        web = await start_web(DemoAgent(word_delay=0), is_server=True)
        owner = web.gateway.store.get_owner().principal
        values = {  # which program is started can be said only in the terminal of the server
            "platforms.signal.settings.program": str(server.program),
            "platforms.signal.settings.config_folder": str(server.config_folder),
        }
        await web.state.settings.change(owner, SettingsEdit(values=values, origin="terminal"))
        page = await visitors.visit(
            web, path="/platforms#signal", viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True, has_clock=True
        )
        state = page.get_by_role("region", name="Connection")
        await page.get_by_role("button", name="Save and connect").click()
        code = state.get_by_role("img", name="QR code to link")
        await expect(code).to_be_visible()
        first = await code.locator("path").get_attribute("d")
        assert (await find_violations(page), await measure_overflow(page)) == ([], 0)
        assert await find_small_targets(page) == []
        server.expire_code()
        await refresh(page)
        await expect(code.locator("path")).not_to_have_attribute("d", first or "")
        server.scan_code()
        await refresh(page)
        await expect(state).to_contain_text("Connected since")
        await expect(code).to_have_count(0)
        assert server.problems == []
