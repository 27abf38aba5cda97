"""The page on a phone: nothing is wider than the screen, and every control is large enough for a finger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, open_path, wait_for_answer
from browser.page_checks import MIN_TARGET_PIXELS, find_small_targets, measure_overflow
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer

PANELS = {
    "jobs": "Jobs",
    "memory": "Memory",
    "usage": "Usage",
    "people": "People",
    "platforms": "Platforms",
    "settings": "Settings",
}

# Lists controls that are too small for a finger. A control with a label is as large as its label.
_FIND_SMALL_PANEL_TARGETS = """minimum => [...document.querySelectorAll('.panel, dialog')].flatMap(place =>
  [...place.querySelectorAll('button, a, input, select, summary')]
    .filter(each => each.checkVisibility() && !each.closest('table, .visually-hidden'))
    .map(each => [each.closest('label.option, .segmented label') ?? each, each])
    .map(([box, each]) => [box.getBoundingClientRect(), each])
    .filter(([box]) => box.width < minimum || box.height < minimum)
    .map(([box, each]) => `${each.outerHTML.slice(0, 90)} ${box.width}x${box.height}`))"""


async def visit_on_phone(visitors: Visitors, web: WebServer) -> Page:
    return await visitors.visit(
        web, viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True, reduced_motion="no-preference"
    )


async def test_a_conversation_and_the_panels_fit_a_phone(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visit_on_phone(visitors, web)
    await check_conversation(page)
    owner = await web.sign_in()
    job = {
        "name": "W" * 60,
        "prompt": "<b>x</b>" * 1000,
        "schedule": "every 2h",
        "timezone": "America/Argentina/Ushuaia",
    }
    assert (await owner.post("/api/jobs", json=job)).status_code == 201
    await web.create_conversation(
        owner,
        "remember that my cat is called Ada",
        title="A title that is longer than any telephone is wide, by far",
    )
    await web.sign_in("A Person With Quite A Long Name Who Is Also Here")
    for panel, title in PANELS.items():
        await page.get_by_role("button", name="Show conversations").tap()
        await page.get_by_role("navigation").get_by_role("button", name="owner").tap()
        await page.get_by_role("menuitem", name=title, exact=True).tap()
        await expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        await expect(page.get_by_role("navigation", name="Conversations")).to_have_count(0)  # the drawer is closed
        assert page.url == f"{web.url}/{panel}"
        await expect(page.locator(".card").first).to_be_visible()
        await expect(page.locator(".panel .spinner")).to_have_count(0)
        for closed in await page.locator(".panel summary, .panel [aria-expanded=false]:not([aria-haspopup])").all():
            await closed.tap()
        assert await measure_overflow(page) == 0, panel
        assert await page.evaluate(_FIND_SMALL_PANEL_TARGETS, MIN_TARGET_PIXELS) == [], panel

    await open_path(page, "/settings")
    await page.get_by_role("button", name="New token").tap()
    box = await page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE_VIEWPORT["width"]
    assert await page.evaluate(_FIND_SMALL_PANEL_TARGETS, MIN_TARGET_PIXELS) == []

    await open_path(page, "/jobs")
    await page.get_by_role("button", name="New job").tap()
    await expect(page.get_by_role("dialog").get_by_role("button", name="Create job")).to_be_visible()
    assert await page.get_by_role("dialog").evaluate("dialog => dialog.scrollWidth - dialog.clientWidth") == 0
    assert await page.evaluate(_FIND_SMALL_PANEL_TARGETS, MIN_TARGET_PIXELS) == []


async def check_conversation(page: Page) -> None:
    """Start a conversation, open its menu, and come back to it from the list."""
    assert await find_small_targets(page) == []
    await page.locator("#composer").fill("show me markdown")
    await page.get_by_role("button", name="Send").tap()
    await wait_for_answer(page)
    assert await measure_overflow(page) == 0
    assert await find_small_targets(page) == []
    await page.get_by_role("button", name="Actions for").tap()
    await expect(page.get_by_role("menu")).to_contain_text("tokens in")
    await expect(page.get_by_role("menu")).to_contain_text("$0.00 spent")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("navigation")).to_have_count(0)
    await page.get_by_role("button", name="Show conversations").tap()
    await expect(page.get_by_role("navigation")).to_be_visible()
    assert await find_small_targets(page) == []
    await page.get_by_role("listitem").get_by_role("link").tap()
    await expect(page.get_by_role("navigation")).to_have_count(0)
