"""The panels on a phone: nothing wider than the screen, and everything big enough for a finger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE
from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWeb, Web

PANELS = {"memory": "Memory", "usage": "Usage", "people": "People", "platforms": "Platforms", "settings": "Settings"}

# What can be pressed and is smaller than a finger wants; what is pressed by its label counts as big as that.
_TOO_SMALL = """() => [...document.querySelectorAll('.panel, dialog')].flatMap(place =>
  [...place.querySelectorAll('button, a, input, select, summary')]
    .filter(each => each.checkVisibility() && !each.closest('table, .visually-hidden'))
    .map(each => [each.closest('label.option, .segmented label') ?? each, each])
    .map(([box, each]) => [box.getBoundingClientRect(), each])
    .filter(([box]) => box.width < 44 || box.height < 44)
    .map(([box, each]) => `${each.outerHTML.slice(0, 90)} ${box.width}x${box.height}`))"""
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def in_hand(visitors: Visitors, web: Web) -> Page:
    """The page on a phone."""
    return await visitors.visit(web, viewport=PHONE, has_touch=True, is_mobile=True)


@pytest.mark.parametrize("panel", PANELS)
async def test_a_panel_fits_a_phone(start_web: StartWeb, visitors: Visitors, panel: str) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(
        await web.client(),
        "remember that my cat is called Ada",
        title="A title that is longer than any telephone is wide, by far",
    )
    await web.client("Somebody With Quite A Long Name Who Is Also Here")
    page = await in_hand(visitors, web)
    await page.goto(f"{web.url}/{panel}")
    await expect(page.locator(".card").first).to_be_visible()
    await expect(page.locator(".panel .spinner")).to_have_count(0)
    for closed in await page.locator(".panel summary").all():
        await closed.tap()
    assert await page.evaluate(_WIDER) == 0
    assert await page.evaluate(_TOO_SMALL) == []


async def test_a_panel_is_reached_from_the_drawer_which_gives_way(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await in_hand(visitors, web)
    for panel, title in PANELS.items():
        await page.get_by_role("button", name="Show conversations").tap()
        await page.get_by_role("navigation").get_by_role("button", name="owner").tap()
        await page.get_by_role("menuitem", name=title).tap()
        await expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        await expect(page.get_by_role("navigation", name="Conversations")).to_have_count(0)
        assert page.url == f"{web.url}/{panel}"


async def test_a_dialogue_fits_a_phone(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await in_hand(visitors, web)
    await page.goto(f"{web.url}/settings")
    await page.get_by_role("button", name="New token").tap()
    box = await page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    assert await page.evaluate(_TOO_SMALL) == []
