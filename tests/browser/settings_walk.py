"""Visits everything that can be set: every panel, every section of the server settings, every platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import open_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from playwright.async_api import Page

    from support.web import WebServer

PANELS = ("jobs", "memory", "usage", "budget", "prompts", "people", "platforms", "health", "logs", "settings")
_OPEN_DETAILS = "document.querySelectorAll('.panel details').forEach(each => each.open = true)"


async def make_job(web: WebServer, name: str) -> None:
    """Let the owner have a job, so that the panel of jobs lists one."""
    job = {"name": name, "prompt": "Water the plants", "schedule": "every 2h"}
    made = await (await web.sign_in()).post("/api/jobs", json=job)
    assert made.status_code == 201, made.text


async def walk_places(page: Page, places: Sequence[str]) -> AsyncIterator[str]:
    """Open one of these places after the other, with everything in it unfolded, and yield its path. For an owner."""
    for place in places:
        await open_path(page, f"/{place}")
        await _unfold(page)
        yield place


async def walk_settings(page: Page) -> AsyncIterator[str]:
    """Open every place, with everything in it unfolded, and yield its path. For an owner."""
    async for place in walk_places(page, PANELS):
        yield place
    await open_path(page, "/server")
    tabs = page.locator(".section-tabs button")
    await expect(tabs.first).to_be_visible()
    for index in range(await tabs.count()):
        await tabs.nth(index).click()
        await expect(tabs.nth(index)).to_have_attribute("aria-current", "page")
        await _unfold(page)
        yield page.url.rpartition("/")[2]
    await open_path(page, "/platforms")
    links = page.locator(".connect-list a")
    await expect(links.first).to_be_visible()
    places = [await link.get_attribute("href") or "" for link in await links.all()]
    for place in places:
        await open_path(page, f"/{place.rpartition('/')[2]}")
        await expect(page.locator(".steps-list")).to_be_visible()
        await _unfold(page)
        yield place.rpartition("/")[2]


async def _unfold(page: Page) -> None:
    await expect(page.locator(".panel-title")).to_be_visible()
    await expect(page.locator(".panel .spinner")).to_have_count(0)
    await page.evaluate(_OPEN_DETAILS)
    await expect(page.locator(".panel .spinner")).to_have_count(0)  # what is loaded when it is opened
