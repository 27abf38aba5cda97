"""Conversations with thousands of messages, and lists of hundreds of conversations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Route, expect

from browser.conftest import send_message, wait_for_answer
from browser.page_checks import wait_until_still
from palaver.sessions.conversations import Conversations
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

MESSAGE_COUNT = 10_000
CONVERSATION_COUNT = 200
SCROLLED_COUNT = 150  # questions


async def get_visible_questions(page: Page) -> list[int]:
    """Return the numbers of the questions that are rendered."""
    found = await page.locator(".bubble").all_inner_texts()
    return sorted(int(text.removeprefix("question ")) for text in found if text.startswith("question "))


async def test_ten_thousand_messages_open_at_the_end_and_scroll_back(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.sign_in()
    session = await web.create_session(owner, title="Endless")
    messages = []
    for number in range(MESSAGE_COUNT // 2):
        messages += [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "Certainly."}]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    await web.send_message(owner, session, "the last one")
    page = await visitors.visit(web, path=f"/{session}")
    await expect(page.get_by_text("the last one").last).to_be_in_viewport()
    assert await page.locator(".row").count() < 60
    await page.get_by_role("region", name="Messages").hover()
    earliest = MESSAGE_COUNT
    for _ in range(400):
        earliest = min(await get_visible_questions(page), default=earliest)
        if earliest < MESSAGE_COUNT // 2 - SCROLLED_COUNT:
            break
        await page.mouse.wheel(0, -3000)
        await page.wait_for_timeout(20)
    assert earliest < MESSAGE_COUNT // 2 - SCROLLED_COUNT
    await wait_until_still(page.get_by_role("region", name="Messages"))
    numbers = await get_visible_questions(page)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert await page.locator(".row").count() < 80
    await page.get_by_role("button", name="Jump to latest").click()
    await expect(page.get_by_text("the last one").last).to_be_in_viewport()

    await page.goto(f"{web.url}/{session}#4000")  # a message sent from the middle is scrolled into view
    await expect(page.locator(".row.target")).to_be_in_viewport()
    await send_message(page, "and another")
    await expect(page.get_by_text("and another").last).to_be_in_viewport()
    await wait_for_answer(page)


@pytest.mark.soak
async def test_the_scroll_position_is_stable_while_earlier_messages_load(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.sign_in()
    session = await web.create_session(owner, title="Long")
    messages = [{"role": "user", "content": f"line {number}\n" * (number % 7 + 1)} for number in range(400)]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    page = await visitors.visit(web, path=f"/{session}")
    log = page.get_by_role("region", name="Messages")
    await expect(page.get_by_text("line 399").last).to_be_in_viewport()
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await go_on.wait()
        await route.continue_()

    await page.route("**/messages?*before=*", hold)
    for _ in range(200):
        await log.evaluate("log => log.scrollTop -= 300")
        await page.wait_for_timeout(20)
        if held.is_set():
            break
    await wait_until_still(log)
    locate_middle_row = (
        "log => { const middle = log.getBoundingClientRect().top + log.clientHeight / 2;"
        " const row = [...log.querySelectorAll('.row')].find(each => each.getBoundingClientRect().bottom > middle);"
        " return [row.querySelector('.bubble').innerText, Math.round(row.getBoundingClientRect().top)]; }"
    )
    before = await log.evaluate(locate_middle_row)
    height = await log.evaluate("log => log.scrollHeight")
    go_on.set()
    await page.wait_for_function(
        "([log, height]) => log.scrollHeight > height", arg=[await log.element_handle(), height]
    )
    await wait_until_still(log)
    after = await log.evaluate(locate_middle_row)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) <= 2


async def test_hundreds_of_conversations_load_while_scrolling(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    await web.sign_in()  # creates the owner
    store = web.gateway.store
    person = await store.aio.get_owner()

    async def create_conversation(number: int) -> None:
        conversation = await Conversations(store).start(person, {"title": f"Talk {number}"})
        await store.aio.append_to_transcript(conversation.session.id, {"role": "user", "content": "hello"})

    await create_conversation(0)
    await asyncio.gather(*(create_conversation(number) for number in range(1, CONVERSATION_COUNT)))
    await create_conversation(CONVERSATION_COUNT)
    page = await visitors.visit(web)
    await expect(page.locator(".session").first).to_contain_text(f"Talk {CONVERSATION_COUNT}")
    for _ in range(20):
        await page.keyboard.press("Alt+ArrowDown")
    await expect(page.locator(".session a[aria-current=page]")).to_be_in_viewport(ratio=1)
    await page.locator(".sidebar .session").last.hover()
    oldest = page.locator(".session-name").get_by_text("Talk 0", exact=True)
    for _ in range(600):
        if await oldest.count():
            break
        await page.mouse.wheel(0, 20_000)
        await page.wait_for_timeout(10)
    await expect(oldest).to_be_visible()
    assert await page.locator(".session").count() < 80
