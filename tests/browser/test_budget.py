"""Budgets on the page: the meter in a conversation, the refusal at a limit, and the panel."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import open_path, send_message, wait_for_answer
from browser.page_checks import find_violations, measure_overflow
from palaver.agent.base import CUT_OFF_NOTICE, TextDelta
from palaver.config.budget_rules import BudgetScope
from palaver.core.engines.base import Write
from palaver.drivers.demo import DemoAgent
from palaver.testing import FakeClock, ScriptedAgent
from support.budgets import DOLLAR, store_usage
from support.metered_work import make_call, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

MAX_QUESTIONS = 12


async def take_screenshot(page: Page, name: str) -> None:
    """Keep a picture for people to look at, if they ask for one."""
    if folder := os.environ.get("PALAVER_SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png")


def find_meter(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile(r"of your daily budget used"))


async def use_budget(web: WebServer, scope: BudgetScope, subject: str, **amounts: int) -> None:
    store = web.gateway.store
    await store.engine.arun(Write(lambda tx: store_usage(tx, scope, subject, store.clock.now(), **amounts)))


async def test_a_limit_is_set_reached_and_raised(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0), clock=FakeClock())
    page = await visitors.visit(web)
    await send_message(page, "Hello")
    await wait_for_answer(page)
    conversation = page.url.rpartition("/")[2]
    await expect(find_meter(page)).to_have_count(0)  # no limit applies

    await open_path(page, "/budget")
    await page.get_by_role("button", name="Add limit").click()
    await page.get_by_role("combobox", name="For").select_option("Each person")
    await page.get_by_label("Tokens", exact=True).fill("lots")
    await expect(page.get_by_role("alert")).to_contain_text("Enter tokens such as 200k")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("Tokens", exact=True).fill("2k")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Limit saved")).to_be_visible()
    today = page.get_by_role("group", name="You, Today")
    await expect(today).to_contain_text("of 2k tokens")
    await expect(page.get_by_role("group", name="Each person, Today")).to_contain_text("2k tokens")
    assert await find_violations(page) == []

    await open_path(page, f"/{conversation}")
    await expect(find_meter(page)).to_be_visible()
    refusal = page.locator(".event-line.is-error")
    for number in range(MAX_QUESTIONS):
        await send_message(page, f"Question {number}")
        ended = page.locator(".answer:not([aria-busy=true]), .event-line.is-error")
        await expect(ended).to_have_count(number + 2)
        if await refusal.count():
            break
        await wait_for_answer(page)
    await expect(refusal).to_contain_text(
        re.compile("Your daily budget has only .* tokens left, too little for this answer")
    )
    await expect(refusal).to_contain_text("It resets")
    await expect(find_meter(page)).to_have_text(re.compile("[3-9][0-9]%"))  # follows the answers
    await find_meter(page).click()
    await expect(page.get_by_role("menu")).to_contain_text("of 2k tokens")
    await page.keyboard.press("Escape")
    await take_screenshot(page, "refusal")

    await refusal.get_by_role("link", name="Raise limit").click()
    await page.get_by_role("button", name="Edit limit: Each person, Today").click()
    await page.get_by_label("Tokens", exact=True).fill("1M")
    await page.get_by_role("button", name="Save").click()
    await expect(today).to_contain_text(re.compile("of 1m tokens", re.IGNORECASE))
    await expect(page.get_by_role("button", name="Edit limit: Each person, Today")).to_be_focused()
    await open_path(page, f"/{conversation}")
    await expect(refusal).to_be_visible()
    answers = await page.locator(".answer").count()
    await refusal.get_by_role("button", name="Regenerate").click()
    await expect(page.locator(".answer")).to_have_count(answers + 1)
    await wait_for_answer(page)
    await expect(find_meter(page)).to_have_attribute("data-level", "ok")


async def test_everybody_sees_only_their_own_budget(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0), clock=FakeClock())
    owner, ada, ben = await web.sign_in(), await web.sign_in("ada"), await web.sign_in("ben")
    ids = [(await client.get("/api/me")).json()["person"]["id"] for client in (owner, ada, ben)]
    for person_id, dollars in zip(ids, (1, 9, 4), strict=True):
        await use_budget(web, BudgetScope.PERSON, person_id, nanos=dollars * DOLLAR, tokens=dollars * 1000)
    await use_budget(web, BudgetScope.ALL, "", nanos=14 * DOLLAR, tokens=14_000)
    await owner.put("/api/budgets/person/*/day", json={"usd": "10"})
    await owner.put("/api/budgets/all/*/day", json={"usd": "14"})

    page = await visitors.visit(web, path="/budget")
    await expect(page.get_by_role("group", name="Everybody together, Today")).to_contain_text("$14.00 of $14.00")
    await expect(page.get_by_role("group", name="ada, Today")).to_contain_text("90%")
    await take_screenshot(page, "desktop")
    await page.emulate_media(color_scheme="dark")
    await take_screenshot(page, "dark")
    await page.get_by_role("button", name="Edit limit: ada, Today").click()
    await page.get_by_label("Dollars", exact=True).fill("20")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("group", name="ada, Today")).to_contain_text("$9.00 of $20.00")
    await page.get_by_role("button", name="Edit limit: ada, Today").click()
    await page.get_by_role("button", name="Use the server settings").click()
    await expect(page.get_by_role("group", name="ada, Today")).to_contain_text("$9.00 of $10.00")

    phone = await visitors.visit(
        web, "ben", path="/budget", viewport={"width": 390, "height": 844}, has_touch=True, locale="de-DE"
    )
    await expect(phone.get_by_role("group", name="Du, Heute")).to_contain_text("4,00 $ von 10,00 $")
    await expect(phone.get_by_role("note")).to_contain_text("Das gemeinsame Tagesbudget ist bis")
    text = await phone.locator(".panel").inner_text()
    assert [hidden for hidden in ("ada", "9,00", "14,00", "14.000", "14k") if hidden in text] == []
    assert await measure_overflow(phone) == 0
    assert await find_violations(phone) == []
    await take_screenshot(phone, "phone")


async def test_what_is_said_of_the_end_of_an_answer_stays_below_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        held = await request.meter.hold(make_call(10, 3000))
        yield TextDelta("It begins with")
        await held.settle(make_usage(0, 850))
        yield CUT_OFF_NOTICE
        yield TextDelta(" this")
        await has_arrived.wait()

    has_arrived = asyncio.Event()
    web = await start_web(ScriptedAgent(answer), clock=FakeClock())
    owner = await web.sign_in()
    await owner.put("/api/budgets/person/*/day", json={"tokens": 1050})
    page = await visitors.visit(web)
    await send_message(page, "Tell me.")
    await expect(page.locator(".answer")).to_contain_text("It begins with this")
    has_arrived.set()
    await wait_for_answer(page)
    note = page.locator(".answer-end")
    await expect(note).to_contain_text("The answer was cut off because it reached the maximum length.")
    await expect(note).to_contain_text("Little of the budget is left")
    await expect(note).to_contain_text("Your daily budget is 80% used (850 tokens of 1,050 tokens).")
