"""An open page when the server dies during an answer, something fails to load, or an address leads nowhere."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import OFFLINE_ERRORS, send_message, skip_welcome
from browser.page_checks import find_violations
from palaver.drivers.demo import DemoAgent
from palaver.web.app import PAGE_FOLDER
from support.process import TIMEOUT_SECONDS, find_free_port, run_server

if TYPE_CHECKING:
    from pathlib import Path

    from browser.conftest import Visitors
    from support.warm_process import WarmLauncher
    from support.web import StartWebServer

ANSWER_START = "I have thought about"
MAX_DELAY_MILLISECONDS = 15_000  # between two tries of the page to connect


@pytest.mark.slow
async def test_the_page_recovers_when_the_server_is_killed_during_an_answer(
    launcher: WarmLauncher, tmp_path: Path, visitors: Visitors
) -> None:
    port = find_free_port()
    visitors.allowed_errors = (
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED_ENCODING",
        "ERR_EMPTY_RESPONSE",
        "ERR_CONNECTION_RESET",
    )
    long_text = " ".join(f"thing{number}" for number in range(60))
    async with run_server(launcher, tmp_path, port) as link:
        context = await visitors.open_context(link)
        await context.clock.install()
        page = await context.new_page()
        await page.goto(link)
        await skip_welcome(page)
        await send_message(page, f"think about {long_text}")
        await expect(page.locator(".answer .reasoning")).to_contain_text("thing3")
    await expect(page.get_by_text("Reconnecting…")).to_be_visible()
    await send_message(page, "and are you there")
    await expect(page.locator(".user-message.pending")).to_contain_text("and are you there")
    async with run_server(launcher, tmp_path, port):
        await page.clock.fast_forward(MAX_DELAY_MILLISECONDS)  # it connects again, and sends what waits
        answers = page.locator(".answer")
        await expect(answers).to_have_count(2, timeout=TIMEOUT_SECONDS * 1000)
        await expect(answers.last.get_by_role("button", name="Regenerate")).to_be_visible(
            timeout=TIMEOUT_SECONDS * 1000
        )
        await expect(answers.first.locator(".markdown")).to_contain_text(ANSWER_START)
        await expect(answers.last).to_contain_text("and are you there")
        await expect(page.locator(".user-message")).to_have_count(2)
        await expect(page.locator(".user-message.pending")).to_have_count(0)
        await expect(page.get_by_text("Reconnecting…")).to_have_count(0)


async def test_a_panel_that_fails_to_load_and_unknown_addresses_say_so_and_the_rest_keeps_working(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "hello", title="Still here")
    page = await visitors.visit(web)
    visitors.allowed_errors = OFFLINE_ERRORS
    await page.route("**/assets/UsagePanel*", lambda route: route.abort())
    await page.locator("#composer").fill("half a thought")
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Usage").click()
    await expect(page.get_by_role("alert")).to_contain_text("failed to load")
    await page.get_by_role("link", name="Still here").click()
    await expect(page.get_by_role("heading", name="Still here")).to_be_visible()
    await page.go_back()
    await page.unroute("**/assets/UsagePanel*")
    await page.get_by_role("button", name="Reload page").click()
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_have_value("half a thought")

    for path in ("nothing", "settings/nothing", "one/two/three"):
        await page.goto(f"{web.url}/{path}")
        await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.get_by_role("link", name="Home").click()
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    await page.goto(f"{web.url}/settings/")
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    visitors.allowed_errors = ("404",)
    await page.goto(f"{web.url}/20200101_000000_00000000")
    await expect(page.get_by_role("heading", name="Conversation not found")).to_be_visible()
    await page.get_by_role("link", name="Home").click()
    await expect(page.locator("#composer")).to_be_focused()


async def test_a_page_that_was_replaced_by_a_new_version_says_so_and_offers_to_reload(
    start_web: StartWebServer, visitors: Visitors, tmp_path: Path
) -> None:
    folder = tmp_path / "page"
    shutil.copytree(PAGE_FOLDER, folder)
    page = await visitors.visit(await start_web(DemoAgent(word_delay=0), page_folder=folder))
    await page.locator("#composer").fill("half a thought")
    [script] = folder.glob("assets/page-*.js")
    [panel] = folder.glob("assets/UsagePanel-*.js")
    document = folder / "index.html"
    old_text = document.read_text("utf-8")
    document.write_text(old_text.replace(script.name, "page-AfterTheUpdate.js"), "utf-8")  # files have other names then
    away = panel.rename(tmp_path / panel.name)
    visitors.allowed_errors = ("404", "Failed to fetch", "Unable to preload")
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Usage").click()
    await expect(page.get_by_role("alert")).to_contain_text("Palaver was updated.")
    assert await find_violations(page) == []
    document.write_text(old_text, "utf-8")
    away.rename(panel)
    await page.get_by_role("button", name="Reload page").click()
    await expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_have_value("half a thought")


async def test_a_conversation_that_was_not_loaded_yet_can_be_written_to_offline(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner = await web.sign_in()
    await web.create_conversation(owner, "hello", title="Not visited")
    await web.create_conversation(owner, "hello", title="Earlier")
    page = await visitors.visit(web, service_workers="allow", has_clock=True)
    await page.get_by_role("link", name="Earlier").click()
    await expect(page.locator(".answer")).to_be_visible()
    await visitors.go_offline(page)
    await page.get_by_role("link", name="Not visited").click()
    await expect(page.get_by_role("heading", name="Not visited")).to_be_visible()
    await expect(page.get_by_role("status")).to_contain_text(["Messages not available offline"])
    await send_message(page, "for later")
    await expect(page.locator(".user-message.pending")).to_contain_text("Will be sent when you’re back online")
    await page.context.set_offline(False)
    await page.clock.fast_forward(MAX_DELAY_MILLISECONDS)
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator(".user-message").last).to_contain_text("for later")
    await expect(page.locator(".user-message.pending")).to_have_count(0)
