"""Messages from chat platforms and the terminal appear live on the open page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver.core.engines.base import Write
from palaver.drivers.demo import DemoAgent
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import MessageDeleted, MessageEdited, RepliedMessage
from support.process import start_palaver

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.warm_process import WarmLauncher
    from support.web import StartWebServer, WebServer


def find_row(page: Page, text: str) -> Locator:
    return page.locator(".session").filter(has_text=text)


async def link_account_to_owner(web: WebServer, account: str) -> None:
    """Link an account on the loopback platform to the owner."""
    owner = (await (await web.sign_in()).get("/api/me")).json()["person"]["id"]
    insert_identity = "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('loopback', $1, $2, 0)"
    await web.gateway.store.engine.arun(Write(lambda tx: tx.execute(insert_identity, account, owner)))


async def test_a_platform_message_appears_in_the_conversation_and_in_the_list_of_those_who_may_see_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(DemoAgent(word_delay=0), adapters=[loopback])
    await link_account_to_owner(web, "mira")
    page = await visitors.visit(web)
    await loopback.say("a word from the road", user="mira")
    row = page.locator(".session")
    await expect(row).to_have_count(1)
    await expect(row.locator(".platform")).to_have_attribute("data-platform", "loopback")
    await expect(row.get_by_role("img", name="unread")).to_be_visible()

    await row.get_by_role("link").click()
    await expect(page.locator(".user-message")).to_contain_text("a word from the road")
    await expect(page.get_by_role("radio", name="here")).to_be_checked()
    await loopback.say("and another one", user="mira")
    await expect(page.locator(".user-message").last).to_contain_text("and another one")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    await expect(row.get_by_role("img", name="unread")).to_have_count(0)

    await loopback.say("hello from Ada", user="ada")
    await send_message(page, "answered at the desk")
    await expect(page.locator(".answer")).to_have_count(3)
    await wait_for_answer(page)
    answers = [each for each in loopback.sent if each.kind is DeliveryKind.ANSWER and each.address.chat_id == "mira"]
    assert len(answers) == 2  # messages from the page are answered on the page

    await expect(row).to_have_count(1)
    await page.get_by_role("switch", name="Everyone’s conversations").click()
    await expect(row).to_have_count(2)
    await loopback.say("hello from Bob", user="bob")
    await expect(find_row(page, "Bob").locator(".platform")).to_have_attribute("data-platform", "loopback")


async def test_edits_and_deletions_on_a_platform_appear_live_and_after_a_reload(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    loopback = LoopbackAdapter()
    web = await start_web(DemoAgent(word_delay=0), adapters=[loopback])
    await link_account_to_owner(web, "mira")
    page = await visitors.visit(web)
    mira = loopback.get_source("mira", "club")
    await loopback.say("lunch at noon", user="bob", chat="club", is_addressed=False)
    replied = RepliedMessage("4", "Bob", "the menu")
    await loopback.say("what did he sai?", user="mira", chat="club", message_id="1", replied_message=replied)
    await page.locator(".session").get_by_role("link").click()
    await wait_for_answer(page)
    await loopback.say("never mind", user="mira", chat="club", message_id="2")
    await expect(page.locator(".user-message")).to_have_count(2)
    await loopback.receive(MessageEdited(source=mira, message_id="1", content="what did he say?"))
    await loopback.receive(MessageDeleted(source=mira, message_id="2"))
    for _ in range(2):
        message = page.locator(".user-message")
        await expect(message).to_have_count(1)
        await expect(message).to_contain_text("what did he say?")
        await expect(message.locator(".edited")).to_have_text("edited")
        await expect(page.locator(".event-line").get_by_text("A message was deleted on Loopback.")).to_be_visible()
        await page.get_by_text("Show previous text").click()
        await expect(page.locator(".event-block pre")).to_have_text("what did he sai?")
        await message.get_by_text("1 earlier message in the chat").click()
        await expect(message.locator(".quoted-messages").first).to_contain_text("Bob lunch at noon")
        await message.get_by_text("Reply to Bob").click()
        await expect(message.locator(".quoted-messages").last).to_contain_text("the menu")
        await page.reload()


async def test_a_terminal_message_appears_on_the_page_of_another_process(
    launcher: WarmLauncher, start_web: StartWebServer, visitors: Visitors, tmp_path: Path
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    first = start_palaver(launcher, tmp_path, "-m", "said in a terminal")
    row = find_row(page, "said in a terminal")
    await expect(row.get_by_role("img", name="Terminal")).to_be_visible()
    await asyncio.to_thread(first.communicate)
    assert first.returncode == 0

    await row.get_by_role("link").click()
    await expect(page.locator(".answer")).to_have_count(1)
    second = start_palaver(launcher, tmp_path, "-m", "and once more", "--continue")
    await expect(page.locator(".user-message").last).to_contain_text("and once more")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    assert "You said: “and once more”" in (await asyncio.to_thread(second.communicate))[0]
    await expect(page.locator(".answer").last).to_contain_text("You said: “and once more”")
