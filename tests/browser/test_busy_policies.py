"""Messages during an answer (queue, steer, interrupt), and stopping it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver import Platform
from palaver.sessions.turn import BusyPolicy
from support.agents import LookupAgent, SlowAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

QUEUED_FIRST = "Queued (1 ahead)"
WILL_STEER = "Will be sent to the agent at its next step"


async def choose_busy_policy(page: Page, current: str, name: str) -> None:
    await page.get_by_role("button", name=current).click()
    await page.get_by_role("menuitemradio", name=name).click()
    await expect(page.get_by_role("button", name=name)).to_be_visible()


async def expect_rows(page: Page, *first_words: str) -> None:
    """Wait until the rows after the day begin with these words."""
    rows = page.locator(".row")
    await expect(rows).to_have_count(len(first_words) + 1)
    for index, word in enumerate(first_words, 1):
        await expect(rows.nth(index)).to_have_text(re.compile(rf"^\W*{word}"), use_inner_text=True)


async def test_a_message_during_an_answer_is_queued(start_web: StartWebServer, visitors: Visitors) -> None:
    slow_agent = SlowAgent()
    page = await visitors.visit(await start_web(slow_agent.agent), viewport={"width": 500, "height": 480})
    await send_message(page, "first")
    slow_agent.allow_words(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    other = await page.context.new_page()
    await other.goto(page.url)
    await send_message(page, "second")
    for each in (page, other):
        await expect(each.get_by_text(QUEUED_FIRST)).to_be_visible()
        await expect_rows(each, "first", "word0", "second", "Queued")
    slow_agent.allow_words(36)
    await expect(page.locator(".answer")).to_contain_text("word37")
    await expect(page.get_by_text(QUEUED_FIRST)).to_be_in_viewport()  # the list follows the answer above it
    await other.reload()
    await expect(other.locator(".answer")).to_contain_text("word37")
    await expect_rows(other, "first", "word0", "second", "Queued")
    slow_agent.allow_words(42)
    for each in (page, other):
        await expect(each.locator(".answer")).to_have_count(2)
        await wait_for_answer(each)
        await expect(each.get_by_text(QUEUED_FIRST)).to_be_hidden()
    await other.reload()
    await wait_for_answer(other)
    for each in (page, other):
        await expect_rows(each, "first", "word0", "second", "word0")
    await page.get_by_role("button", name="Regenerate", exact=True).last.click()
    slow_agent.allow_words(40)
    await wait_for_answer(page)
    await expect(page.locator(".answer")).to_have_count(2)  # the answer to the first message stays


async def test_a_message_can_steer_the_agent(start_web: StartWebServer, visitors: Visitors) -> None:
    lookup_agent = LookupAgent()
    page = await visitors.visit(await start_web(lookup_agent.agent))
    await send_message(page, "What is new?")
    await expect(page.locator(".tool")).to_have_attribute("data-state", "running")
    other = await page.context.new_page()
    await other.goto(page.url)
    await choose_busy_policy(page, "Queue", "Steer")
    await send_message(page, "only this year")
    for each in (page, other):
        await expect(each.get_by_text(WILL_STEER)).to_be_visible()
        await expect(each.get_by_text(QUEUED_FIRST)).to_have_count(0)
    lookup_agent.may_finish.set()
    for each in (page, other):
        await wait_for_answer(each)
        await expect(each.get_by_text(WILL_STEER)).to_have_count(0)
        await expect(each.locator(".answer").last).to_contain_text("I was told: only this year.")
        await expect(each.locator(".user-message")).to_have_count(2)
        await expect(each.locator(".row")).to_have_count(5)  # two messages, two answers and the day
    shown = await page.locator(".row").all_inner_texts()
    await page.reload()
    await wait_for_answer(page)
    assert await page.locator(".row").all_inner_texts() == shown


async def test_the_page_follows_the_configured_busy_policy(start_web: StartWebServer, visitors: Visitors) -> None:
    slow_agent = SlowAgent()
    web = await start_web(slow_agent.agent, rules={"busy_policy_by_platform": {Platform.WEB: BusyPolicy.INTERRUPT}})
    page = await visitors.visit(web)
    await send_message(page, "first")
    slow_agent.allow_words(3)
    await expect(page.locator(".answer")).to_contain_text("word2")
    await expect(page.get_by_role("button", name="Interrupt")).to_be_visible()
    await send_message(page, "second")
    await expect(page.locator(".answer").first).to_contain_text("stopped")
    slow_agent.allow_words(80)
    await expect(page.locator(".answer").last).to_contain_text("word39")


async def test_queued_messages_show_their_position_and_are_cleared_and_steering_ones_may_come_too_late(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    slow_agent = SlowAgent()
    page = await visitors.visit(await start_web(slow_agent.agent))
    await send_message(page, "first")
    slow_agent.allow_words(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await send_message(page, "second")
    await expect(page.get_by_text(QUEUED_FIRST)).to_be_visible()
    await send_message(page, "third")
    await expect(page.get_by_text("Queued (2 ahead)")).to_be_visible()
    await page.get_by_role("button", name="Stop", exact=True).click()
    await expect(page.locator(".answer .tag")).to_have_text("stopped")
    await expect(page.locator(".answer").first).to_contain_text("word1")
    await expect(page.get_by_text("Queued (2 ahead)")).to_have_count(0)
    await expect(page.get_by_text(QUEUED_FIRST)).to_be_visible()  # the third message, behind the second
    await page.get_by_role("button", name="Stop and clear queue").click()
    await expect(page.get_by_text(QUEUED_FIRST)).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    await expect(page.locator(".user-message")).to_have_count(3)

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await check_late_steering(page, slow_agent)


async def check_late_steering(page: Page, slow_agent: SlowAgent) -> None:
    """A steering message that comes too late gets its own answer, which another message can interrupt."""
    await send_message(page, "first")
    slow_agent.allow_words(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await choose_busy_policy(page, "Queue", "Steer")
    await send_message(page, "second")
    await expect(page.get_by_text(WILL_STEER)).to_be_visible()
    slow_agent.allow_words(41)  # the rest of the first answer, and the beginning of the second
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator(".answer").last).to_contain_text("word2")
    await expect(page.get_by_text(WILL_STEER)).to_have_count(0)

    await choose_busy_policy(page, "Steer", "Interrupt")
    await send_message(page, "third")
    await expect(page.locator(".answer").nth(1)).to_contain_text("stopped")
    slow_agent.allow_words(80)
    await expect(page.locator(".answer").last).to_contain_text("word39")
    await expect(page.locator(".answer")).to_have_count(3)
