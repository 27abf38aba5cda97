"""The page on a phone, and with more than anybody could scroll through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import Route, expect

from browser.conftest import PHONE, answered, say
from palaver.agent.demo import DemoAgent
from palaver.services.conversations import Conversations, Wanted
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWeb

MANY = 10_000
FEW_THOUSAND = 2000
SMALLEST_TARGET = 44  # CSS pixels, for fingers

TOO_SMALL = """least => [...document.querySelectorAll('button, a, input, textarea, summary')]
    .filter(each => each.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    .filter(each => !each.closest('.markdown, .visually-hidden') && !each.matches('.skip, .shade, .text-button'))
    .map(each => [each.getBoundingClientRect(), each])
    .filter(([box]) => box.width > 0 && (box.width < least || box.height < least))
    .map(([box, each]) => `${each.outerHTML.slice(0, 90)} ${box.width}x${box.height}`)"""


async def too_wide(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    found: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


async def questions(page: Page) -> list[int]:
    """The numbers of the questions that are drawn."""
    found = await page.locator(".bubble").all_inner_texts()
    return sorted(int(text.removeprefix("question ")) for text in found if text.startswith("question "))


async def test_a_phone_shows_one_thing_at_a_time_with_targets_for_fingers(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web, viewport=PHONE, has_touch=True, is_mobile=True)
    assert await page.evaluate(TOO_SMALL, SMALLEST_TARGET) == []
    await page.locator("#composer").fill("show me markdown")
    await page.get_by_role("button", name="Send").tap()
    await answered(page)
    assert await too_wide(page) == 0
    assert await page.evaluate(TOO_SMALL, SMALLEST_TARGET) == []
    await page.get_by_role("button", name="Actions for").tap()
    await expect(page.get_by_role("menu")).to_contain_text("tokens in")
    await expect(page.get_by_role("menu")).to_contain_text("$0.00 spent")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("navigation")).to_have_count(0)
    await page.get_by_role("button", name="Show conversations").tap()
    await expect(page.get_by_role("navigation")).to_be_visible()
    assert await page.evaluate(TOO_SMALL, SMALLEST_TARGET) == []
    await page.get_by_role("listitem").get_by_role("link").tap()
    await expect(page.get_by_role("navigation")).to_have_count(0)


async def test_ten_thousand_messages_are_opened_at_their_end_and_read_backwards(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.client()
    session = await web.session(owner, title="Endless")
    messages = []
    for number in range(MANY // 2):
        messages += [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "Certainly."}]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    await web.say(owner, session, "the last one")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    await expect(page.get_by_text("the last one").last).to_be_in_viewport()
    assert await page.locator(".row").count() < 60
    await page.get_by_role("region", name="Messages").hover()
    earliest = MANY
    for _ in range(400):
        earliest = min(await questions(page), default=earliest)
        if earliest < MANY // 2 - 300:
            break
        await page.mouse.wheel(0, -3000)
        await page.wait_for_timeout(20)
    assert earliest < MANY // 2 - 300
    numbers = await questions(page)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert await page.locator(".row").count() < 80
    await page.get_by_role("button", name="Jump to the latest").click()
    await expect(page.get_by_text("the last one").last).to_be_in_viewport()

    await page.goto(f"{web.url}/{session}#4000")  # whoever says something in the middle sees it
    await expect(page.locator(".row.target")).to_be_in_viewport()
    await say(page, "and another")
    await expect(page.get_by_text("and another").last).to_be_in_viewport()
    await answered(page)


async def test_what_is_read_stays_in_place_while_earlier_messages_come(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.client()
    session = await web.session(owner, title="Long")
    messages = [{"role": "user", "content": f"line {number}\n" * (number % 7 + 1)} for number in range(400)]
    await web.gateway.store.aio.rewrite_transcript(session, messages)
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
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
    await page.wait_for_timeout(100)  # until nothing moves any more
    place = (
        "log => { const middle = log.getBoundingClientRect().top + log.clientHeight / 2;"
        " const row = [...log.querySelectorAll('.row')].find(each => each.getBoundingClientRect().bottom > middle);"
        " return [row.querySelector('.bubble').innerText, Math.round(row.getBoundingClientRect().top)]; }"
    )
    before = await log.evaluate(place)
    async with page.expect_response("**/messages?*before=*"):
        go_on.set()
    await page.wait_for_timeout(500)
    after = await log.evaluate(place)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) <= 2


async def test_thousands_of_conversations_are_fetched_as_they_are_scrolled(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    await web.client()  # from now on the owner is known on the web
    store = web.gateway.store
    person = await store.aio.owner()

    async def talk(number: int) -> None:
        begun = await Conversations(store).begin(person, Wanted(title=f"Talk {number}"))
        await store.aio.append_to_transcript(begun.session.id, {"role": "user", "content": "hello"})

    await talk(0)
    await asyncio.gather(*(talk(number) for number in range(1, FEW_THOUSAND)))
    await talk(FEW_THOUSAND)
    page = await visitors.visit(web)
    await expect(page.locator(".session").first).to_contain_text(f"Talk {FEW_THOUSAND}")
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
