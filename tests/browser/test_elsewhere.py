"""What is said in other places, seen on a page that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import answered, say
from palaver.agent.demo import DemoAgent
from palaver.platforms.loopback import Loopback
from palaver.storage.engines.base import Write
from support.process import palaver

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.web import StartWeb, Web


def listed(page: Page, text: str) -> Locator:
    return page.locator(".session").filter(has_text=text)


async def is_the_owner(web: Web, account: str) -> None:
    """From now on an account on the other platform is known as the owner's."""
    owner = (await (await web.client()).get("/api/me")).json()["person"]["id"]
    known = "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('loopback', $1, $2, 0)"
    await web.gateway.store.engine.arun(Write(lambda tx: tx.run(known, account, owner)))


async def test_a_message_from_a_platform_appears_in_the_list_and_in_the_open_conversation(
    start_web: StartWeb, visitors: Visitors
) -> None:
    loopback = Loopback()
    web = await start_web(DemoAgent(pace=0), adapters=[loopback])
    await is_the_owner(web, "mira")
    page = await visitors.visit(web)
    await loopback.say("a word from the road", user="mira")
    row = page.locator(".session")
    await expect(row).to_have_count(1)
    await expect(row.locator(".platform")).to_have_attribute("data-platform", "loopback")
    await expect(row.get_by_role("img", name="unread")).to_be_visible()

    await row.get_by_role("link").click()
    await expect(page.locator(".said")).to_contain_text("a word from the road")
    await expect(page.get_by_role("radio", name="here")).to_be_checked()
    await loopback.say("and another one", user="mira")
    await expect(page.locator(".said").last).to_contain_text("and another one")
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    await expect(row.get_by_role("img", name="unread")).to_have_count(0)

    sent = len(loopback.sent)
    await say(page, "answered at the desk")
    await expect(page.locator(".answer")).to_have_count(3)
    await answered(page)
    assert len(loopback.sent) == sent  # what is written here is answered here


async def test_the_words_of_strangers_appear_where_the_owner_looks_at_everybody(
    start_web: StartWeb, visitors: Visitors
) -> None:
    loopback = Loopback()
    web = await start_web(DemoAgent(pace=0), adapters=[loopback])
    page = await visitors.visit(web)
    await loopback.say("hello from Ada", user="ada")
    await say(page, "my own")
    await answered(page)
    await expect(page.locator(".session")).to_have_count(1)
    await page.get_by_role("switch", name="Everybody’s conversations").click()
    await expect(page.locator(".session")).to_have_count(2)
    await loopback.say("hello from Bob", user="bob")
    await expect(listed(page, "Bob").locator(".platform")).to_have_attribute("data-platform", "loopback")


async def test_a_message_from_a_terminal_appears_in_a_page_of_another_process(
    start_web: StartWeb, visitors: Visitors, tmp_path: Path
) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    first = await palaver(tmp_path, "-m", "said in a terminal")
    row = listed(page, "said in a terminal")
    await expect(row.get_by_role("img", name="Terminal")).to_be_visible()
    await first.communicate()
    assert first.returncode == 0

    await row.get_by_role("link").click()
    await expect(page.locator(".answer")).to_have_count(1)
    second = await palaver(tmp_path, "-m", "and once more", "--continue")
    await expect(page.locator(".said").last).to_contain_text("and once more")
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    assert "I heard: “and once more”" in (await second.communicate())[0].decode()
    await expect(page.locator(".answer").last).to_contain_text("I heard: “and once more”")
