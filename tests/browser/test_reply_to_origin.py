"""Conversations of a chat platform on the page: replying on the page only or to the chat, and delivery status."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, wait_for_answer
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.core.errors import AgentRejected, SendRejected
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.delivery import DeliveryKind
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn, wait_until
from support.linked_accounts import link_chat_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentRequest
    from palaver.delivery.adapter import OutgoingMessage
    from support.web import StartWebServer, WebServer

QUOTED_ANSWER = "> ada, from the web: When does it leave?\n\nYou said: When does it leave?"


def build_echo_agent() -> ScriptedAgent:
    return ScriptedAgent(lambda request: f"You said: {request.messages[-1]['content']}")


async def start_chat_server(start_web: StartWebServer, loopback: LoopbackAdapter) -> WebServer:
    """Start a server with a chat platform where Ada has linked her account."""
    web = await start_web(build_echo_agent(), adapters=[loopback])
    await link_chat_account(web, "ada", "ada")
    return web


async def open_chat_conversation(web: WebServer, visitors: Visitors, **options: Any) -> Page:
    """Open the page for Ada, send a message as her in the chat, and open that conversation."""
    page = await visitors.visit(web, "ada", **options)
    loopback: Any = web.gateway.accounts.list_live_adapters()[LoopbackAdapter.platform, ""]
    receipt = await loopback.say("hello from the chat")
    await wait_for_turn(web.gateway, receipt.turn_id)
    if "is_mobile" in options:
        await page.goto(f"{web.url}/{receipt.session_id}")
    else:
        await page.get_by_role("listitem").get_by_role("link").click()
    await expect(page.locator(".bubble").get_by_text("hello from the chat", exact=True)).to_be_visible()
    return page


async def send_and_wait(page: Page, text: str) -> None:
    await page.locator("#composer").fill(text)
    await page.keyboard.press("Enter")
    await expect(page.locator(".answer").last).to_contain_text(f"You said: {text}")
    await wait_for_answer(page)


async def test_a_reply_from_the_page_is_delivered_once_and_only_to_a_connected_chat(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    may_send = asyncio.Event()

    async def wire(_message: OutgoingMessage) -> str:
        await may_send.wait()
        return "r"

    loopback = LoopbackAdapter(wire)
    web = await start_chat_server(start_web, loopback)
    page = await open_chat_conversation(web, visitors)
    await expect(page.locator(".answer .delivery")).to_have_text("sending to loopback")
    may_send.set()
    await expect(page.locator(".answer .delivery")).to_have_text("sent to loopback")
    await wait_until(lambda: len(loopback.sent) == 1)
    await page.get_by_role("radio", name="loopback").check()
    await send_and_wait(page, "When does it leave?")
    await expect(page.locator(".user-message .delivery")).to_have_text("also to loopback")
    await expect(page.locator(".answer .delivery").last).to_have_text("sent to loopback")
    assert [message.body for message in loopback.sent] == ["You said: hello from the chat", QUOTED_ANSWER]

    await page.reload()
    await expect(page.get_by_role("radio", name="loopback")).to_be_checked()
    await expect(page.locator(".user-message .delivery")).to_have_text("also to loopback")
    await expect(page.locator(".answer .delivery")).to_have_count(2)

    await page.get_by_role("radio", name="here").check()
    await send_and_wait(page, "Only for me")
    await expect(page.locator(".answer")).to_have_count(3)
    await expect(page.locator(".answer .delivery")).to_have_count(2)
    assert sum(message.kind is DeliveryKind.ANSWER for message in loopback.sent) == 2

    await expect(page.get_by_role("group", name="Reply")).to_be_visible()
    await page.locator(".answer").last.hover()
    await page.get_by_role("button", name="Branch from here").last.click()
    await expect(page.get_by_text("You’re now in the new branch.")).to_be_visible()
    await expect(page.get_by_text("Messages you write here are answered here")).to_be_visible()
    await expect(page.get_by_role("group", name="Reply")).to_have_count(0)
    await page.get_by_role("button", name="New conversation").first.click()
    await send_and_wait(page, "in a conversation of the page")
    await expect(page.get_by_role("group", name="Reply")).to_have_count(0)


def build_failing_adapter(times: int) -> tuple[LoopbackAdapter, Callable[[], None]]:
    """Build an adapter that rejects the first answers, and a function that breaks its connection for the next one."""
    refused = [SendRejected("the message is too long")] * times
    broken: list[bool] = []

    async def wire(_message: OutgoingMessage) -> str:
        if refused:
            raise refused.pop()
        if broken:
            broken.clear()
            raise OSError("connection lost")
        return "r"

    return LoopbackAdapter(wire), lambda: broken.append(True)


async def test_failed_and_uncertain_deliveries_can_be_sent_again(start_web: StartWebServer, visitors: Visitors) -> None:
    loopback, break_connection = build_failing_adapter(1)
    web = await start_chat_server(start_web, loopback)
    page = await open_chat_conversation(web, visitors)
    delivery = page.locator(".answer .delivery").first
    await expect(delivery).to_contain_text("not delivered to loopback")
    await expect(delivery).to_contain_text("the message is too long")
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Try again").click()
    await expect(delivery).to_have_text("sent to loopback")
    await expect(page.locator(".event-line")).to_contain_text("An answer was sent to loopback again.")

    break_connection()
    await page.get_by_role("radio", name="loopback").check()
    await send_and_wait(page, "When does it leave?")
    second = page.locator(".answer .delivery").last
    await expect(second).to_contain_text("may not have reached loopback")
    await page.get_by_role("button", name="Send again").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Sending again may deliver it twice.")
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(loopback.sent) == 1
    await page.get_by_role("button", name="Send again").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    await expect(second).to_have_text("sent to loopback")
    assert [message.body for message in loopback.sent] == ["You said: hello from the chat", QUOTED_ANSWER]


async def test_a_failed_turn_shows_the_delivery_of_its_error_and_the_reply_choice_fits_a_phone(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    def fail(_request: AgentRequest) -> str:
        raise AgentRejected("there is no credit left")

    web = await start_web(ScriptedAgent(fail), adapters=[LoopbackAdapter()])
    await link_chat_account(web, "ada", "ada")
    page = await open_chat_conversation(web, visitors, viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True)
    failed = page.locator(".event-line.is-error")
    await expect(failed).to_contain_text("there is no credit left")
    await expect(failed.locator(".delivery")).to_have_text("sent to loopback")
    await page.get_by_role("radio", name="loopback").check()
    assert await measure_overflow(page) == 0
    assert await find_small_targets(page) == []
    assert await find_violations(page) == []
