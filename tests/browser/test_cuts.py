"""A server that dies in mid-answer, or has not what the page needs next, seen from a page that stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import say
from palaver.agent.demo import DemoAgent
from support.process import PATIENCE, free_port, served

if TYPE_CHECKING:
    from pathlib import Path

    from browser.conftest import Visitors
    from support.web import StartWeb

ANSWER = "I have thought about"


@pytest.mark.slow
async def test_a_server_killed_in_mid_answer_comes_back_and_the_page_has_all_of_it(
    tmp_path: Path, visitors: Visitors
) -> None:
    port = free_port()
    visitors.expected = (
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED_ENCODING",
        "ERR_EMPTY_RESPONSE",
        "ERR_CONNECTION_RESET",
    )
    long = " ".join(f"thing{number}" for number in range(150))
    async with served(tmp_path, port) as link:
        page = await (await visitors.context(link)).new_page()
        await page.goto(link)
        await say(page, f"think about {long}")
        await expect(page.locator(".answer .reasoning")).to_contain_text("thing20")
    await expect(page.get_by_text("Reconnecting…")).to_be_visible()
    await say(page, "and are you there")
    await expect(page.locator(".said.pending")).to_contain_text("and are you there")
    async with served(tmp_path, port):
        answers = page.locator(".answer")
        await expect(answers).to_have_count(2, timeout=PATIENCE * 1000)
        await expect(answers.last.get_by_role("button", name="Ask again")).to_be_visible(timeout=PATIENCE * 1000)
        await expect(answers.first.locator(".markdown")).to_contain_text(ANSWER)
        await expect(answers.last).to_contain_text("and are you there")
        await expect(page.locator(".said")).to_have_count(2)
        await expect(page.locator(".said.pending")).to_have_count(0)
        await expect(page.get_by_text("Reconnecting…")).to_have_count(0)


async def test_a_page_that_cannot_be_fetched_says_so_and_leaves_the_rest(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "hello", title="Still here")
    page = await visitors.visit(web, service_workers="block")
    visitors.expected = ("ERR_FAILED", "Failed to fetch", "Unable to preload")
    await page.route("**/assets/UsagePanel*", lambda route: route.abort())
    await page.locator("#composer").fill("half a thought")
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Usage").click()
    await expect(page.get_by_role("alert")).to_contain_text("could not be shown")
    await page.get_by_role("link", name="Still here").click()
    await expect(page.get_by_role("heading", name="Still here")).to_be_visible()
    await page.go_back()
    await page.unroute("**/assets/UsagePanel*")
    await page.get_by_role("button", name="Load the page again").click()
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_have_value("half a thought")
