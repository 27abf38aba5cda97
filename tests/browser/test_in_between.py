"""What is said while an answer is being given: it waits, steers or interrupts; and stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import answered, say
from palaver import Platform
from palaver.domain.turn import BusyPolicy
from support.agents import Looking, Slowly

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWeb

WAITS = "Waits until the answer is finished"
STEERS = "Is given to the agent at its next step"


async def choose(page: Page, before: str, name: str) -> None:
    """Choose what becomes of messages in between."""
    await page.get_by_role("button", name=before).click()
    await page.get_by_role("menuitemradio", name=name).click()
    await expect(page.get_by_role("button", name=name)).to_be_visible()


async def test_stopping_keeps_what_was_said(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "talk")
    slowly.let(6)
    await expect(page.locator(".answer")).to_contain_text("word5")
    await page.get_by_role("button", name="Stop the answer").click()
    await expect(page.get_by_role("button", name="Stop the answer")).to_be_hidden()
    await expect(page.locator(".answer")).to_contain_text("word5")
    await expect(page.locator(".answer .tag")).to_have_text("stopped")


async def test_a_message_in_between_waits_its_turn(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "first")
    slowly.let(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await say(page, "second")
    await expect(page.get_by_text("Waits until the answer is finished")).to_be_visible()
    slowly.let(78)
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    await expect(page.get_by_text("Waits until the answer is finished")).to_be_hidden()


async def test_what_waits_can_be_dropped_with_the_answer(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "first")
    slowly.let(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await say(page, "second")
    await page.get_by_role("button", name="Stop, and drop what waits").click()
    await expect(page.get_by_text("Waits until the answer is finished")).to_be_hidden()
    await expect(page.get_by_role("button", name="Stop the answer")).to_be_hidden()
    await expect(page.locator(".answer")).to_have_count(1)
    await expect(page.locator(".said")).to_have_count(2)


async def test_a_message_in_between_can_interrupt(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "first")
    slowly.let(3)
    await expect(page.locator(".answer")).to_contain_text("word2")
    await page.get_by_role("button", name="Queue").click()
    await page.get_by_role("menuitemradio", name="Interrupt").click()
    await say(page, "second")
    await expect(page.locator(".answer").first).to_contain_text("stopped")
    slowly.let(80)
    await expect(page.locator(".answer").last).to_contain_text("word39")
    await expect(page.locator(".answer")).to_have_count(2)


async def test_a_message_in_between_steers_the_agent_and_says_so(start_web: StartWeb, visitors: Visitors) -> None:
    looking = Looking()
    page = await visitors.visit(await start_web(looking.agent()))
    await say(page, "What is new?")
    await expect(page.locator(".tool")).to_have_attribute("data-state", "running")
    other = await page.context.new_page()
    await other.goto(page.url)
    await choose(page, "Queue", "Steer")
    await say(page, "only this year")
    for each in (page, other):
        await expect(each.get_by_text(STEERS)).to_be_visible()
        await expect(each.get_by_text(WAITS)).to_have_count(0)
    looking.found.set()
    for each in (page, other):
        await answered(each)
        await expect(each.get_by_text(STEERS)).to_have_count(0)
        await expect(each.locator(".answer").last).to_contain_text("I was told: only this year.")
        await expect(each.locator(".said")).to_have_count(2)
        await expect(each.locator(".row")).to_have_count(5)  # two of each, and the day
    shown = await page.locator(".row").all_inner_texts()
    await page.reload()
    await answered(page)
    assert await page.locator(".row").all_inner_texts() == shown


async def test_what_the_settings_say_of_messages_in_between_holds_on_the_page(
    start_web: StartWeb, visitors: Visitors
) -> None:
    slowly = Slowly()
    web = await start_web(slowly.agent(), rules={"busy_by_platform": {Platform.WEB: BusyPolicy.INTERRUPT}})
    page = await visitors.visit(web)
    await say(page, "first")
    slowly.let(3)
    await expect(page.locator(".answer")).to_contain_text("word2")
    await expect(page.get_by_role("button", name="Interrupt")).to_be_visible()
    await say(page, "second")
    await expect(page.locator(".answer").first).to_contain_text("stopped")
    slowly.let(80)
    await expect(page.locator(".answer").last).to_contain_text("word39")


async def test_what_steers_and_comes_too_late_is_answered_by_itself(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "first")
    slowly.let(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await choose(page, "Queue", "Steer")
    await say(page, "second")
    await expect(page.get_by_text(STEERS)).to_be_visible()
    slowly.let(80)
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    await expect(page.get_by_text(STEERS)).to_have_count(0)


async def test_several_that_wait_are_told_their_place(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "first")
    slowly.let(2)
    await expect(page.locator(".answer")).to_contain_text("word1")
    await say(page, "second")
    await expect(page.get_by_text(WAITS)).to_be_visible()
    await say(page, "third")
    await expect(page.get_by_text("Waits behind 2 others")).to_be_visible()
    await page.get_by_role("button", name="Stop the answer").click()
    await expect(page.locator(".answer .tag")).to_have_text("stopped")
    await expect(page.get_by_text("Waits behind 2 others")).to_have_count(0)
    await expect(page.get_by_text(WAITS)).to_be_visible()  # the third, behind the second
    await page.get_by_role("button", name="Stop, and drop what waits").click()
    await expect(page.get_by_text(WAITS)).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop the answer")).to_have_count(0)
    await expect(page.locator(".said")).to_have_count(3)
