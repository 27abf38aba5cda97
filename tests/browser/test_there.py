"""A conversation of a chat on the page: seen at once, and answered here or there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from browser.conftest import PHONE, answered
from browser.test_accessibility import findings
from browser.test_sizes import SMALLEST_TARGET, TOO_SMALL, too_wide
from palaver.domain.errors import AgentRefused, SendRejected
from palaver.platforms.loopback import Loopback
from palaver.testing import ScriptedAgent
from support.gateway import ended, until
from support.places import in_the_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentRequest
    from palaver.domain.delivery import Delivery
    from support.web import StartWeb, Web

QUOTED = "> ada, from the web: When does it leave?\n\nYou said: When does it leave?"


def echo() -> ScriptedAgent:
    return ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}")


async def chatting(start_web: StartWeb, loopback: Loopback) -> Web:
    """A server with a chat in which Ada, who signs in on the web, is known."""
    web = await start_web(echo(), adapters=[loopback])
    await in_the_chat(web, "ada", "ada")
    return web


async def opened(web: Web, visitors: Visitors, **options: Any) -> Page:
    """Ada's page, which was there before she says something in the chat."""
    page = await visitors.visit(web, "ada", **options)
    loopback: Any = web.gateway.adapters[Loopback.platform]
    receipt = await loopback.say("hello from the chat")
    await ended(web.gateway, receipt.turn_id)
    if "is_mobile" in options:
        await page.goto(f"{web.url}/{receipt.session_id}")
    else:
        await page.get_by_role("listitem").get_by_role("link").click()
    await expect(page.locator(".bubble").get_by_text("hello from the chat", exact=True)).to_be_visible()
    return page


async def write(page: Page, text: str) -> None:
    await page.locator("#composer").fill(text)
    await page.keyboard.press("Enter")
    await expect(page.locator(".answer").last).to_contain_text(f"You said: {text}")
    await answered(page)


async def test_what_comes_from_a_chat_is_answered_there_from_the_page_once(
    start_web: StartWeb, visitors: Visitors
) -> None:
    loopback = Loopback()
    web = await chatting(start_web, loopback)
    page = await opened(web, visitors)
    await expect(page.locator(".answer .delivery")).to_have_text("sent to loopback")
    await page.get_by_role("radio", name="loopback").check()
    await write(page, "When does it leave?")
    await expect(page.locator(".said .delivery")).to_have_text("also to loopback")
    await expect(page.locator(".answer .delivery").last).to_have_text("sent to loopback")
    assert [delivery.content for delivery in loopback.sent] == ["You said: hello from the chat", QUOTED]

    await page.reload()
    await expect(page.get_by_role("radio", name="loopback")).to_be_checked()
    await expect(page.locator(".said .delivery")).to_have_text("also to loopback")
    await expect(page.locator(".answer .delivery")).to_have_count(2)

    await page.get_by_role("radio", name="here").check()
    await write(page, "Only for me")
    await expect(page.locator(".answer")).to_have_count(3)
    await expect(page.locator(".answer .delivery")).to_have_count(2)
    assert len(loopback.sent) == 2


async def test_where_nothing_can_be_sent_there_is_no_choice(start_web: StartWeb, visitors: Visitors) -> None:
    web = await chatting(start_web, Loopback())
    page = await opened(web, visitors)
    await expect(page.get_by_role("group", name="Reply goes")).to_be_visible()
    await page.locator(".answer").hover()
    await page.get_by_role("button", name="Go on in a copy from here").last.click()
    await expect(page.get_by_text("You are in the copy now.")).to_be_visible()
    await expect(page.get_by_text("What you write here is answered here")).to_be_visible()
    await expect(page.get_by_role("group", name="Reply goes")).to_have_count(0)
    await page.get_by_role("button", name="New conversation").first.click()
    await write(page, "in a conversation of the page")
    await expect(page.get_by_role("group", name="Reply goes")).to_have_count(0)


def refusing(times: int) -> tuple[Loopback, Callable[[], None]]:
    """A chat that refuses answers, and what breaks its line instead."""
    refused = [SendRejected("the message is too long")] * times
    broken: list[bool] = []

    async def wire(_delivery: Delivery) -> str:
        if refused:
            raise refused.pop()
        if broken:
            broken.clear()
            raise OSError("the line broke")
        return "r"

    return Loopback(wire), lambda: broken.append(True)


async def test_an_answer_that_did_not_arrive_says_so_and_is_sent_again_when_somebody_wants_it(
    start_web: StartWeb, visitors: Visitors
) -> None:
    loopback, break_the_line = refusing(1)
    web = await chatting(start_web, loopback)
    page = await opened(web, visitors)
    delivery = page.locator(".answer .delivery").first
    await expect(delivery).to_contain_text("not sent to loopback")
    await expect(delivery).to_contain_text("the message is too long")
    assert await findings(page) == []
    await page.get_by_role("button", name="Try again").click()
    await expect(delivery).to_have_text("sent to loopback")
    await expect(page.locator(".quiet")).to_contain_text("An answer was sent to loopback again.")

    break_the_line()
    await page.get_by_role("radio", name="loopback").check()
    await write(page, "When does it leave?")
    second = page.locator(".answer .delivery").last
    await expect(second).to_contain_text("may not have arrived on loopback")
    await page.get_by_role("button", name="Send again").click()
    await expect(page.get_by_role("dialog")).to_contain_text("it will be there twice")
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(loopback.sent) == 1
    await page.get_by_role("button", name="Send again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    await expect(second).to_have_text("sent to loopback")
    assert [delivery.content for delivery in loopback.sent] == ["You said: hello from the chat", QUOTED]


async def test_a_turn_without_an_answer_shows_whether_that_was_told_there(
    start_web: StartWeb, visitors: Visitors
) -> None:
    def fail(_request: AgentRequest) -> str:
        raise AgentRefused("there is no credit left")

    web = await start_web(ScriptedAgent(fail), adapters=[Loopback()])
    await in_the_chat(web, "ada", "ada")
    page = await opened(web, visitors)
    failed = page.locator(".quiet.serious")
    await expect(failed).to_contain_text("there is no credit left")
    await expect(failed.locator(".delivery")).to_have_text("sent to loopback")


async def test_what_is_on_its_way_is_shown_until_it_has_arrived(start_web: StartWeb, visitors: Visitors) -> None:
    held = asyncio.Event()

    async def wire(_delivery: Delivery) -> str:
        await held.wait()
        return "r"

    loopback = Loopback(wire)
    web = await chatting(start_web, loopback)
    page = await opened(web, visitors)
    await expect(page.locator(".answer .delivery")).to_have_text("on its way to loopback")
    held.set()
    await expect(page.locator(".answer .delivery")).to_have_text("sent to loopback")
    await until(lambda: len(loopback.sent) == 1)


async def test_on_a_phone_the_choice_is_for_fingers(start_web: StartWeb, visitors: Visitors) -> None:
    web = await chatting(start_web, Loopback())
    page = await opened(web, visitors, viewport=PHONE, has_touch=True, is_mobile=True)
    await page.get_by_role("radio", name="loopback").check()
    assert await too_wide(page) == 0
    assert await page.evaluate(TOO_SMALL, SMALLEST_TARGET) == []
    assert await findings(page) == []
