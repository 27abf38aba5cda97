"""The composer: focus, the menu of commands, and input after a dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page, ViewportSize

    from browser.conftest import Visitors
    from support.web import StartWebServer

VIEWPORTS: list[ViewportSize] = [
    {"width": 1000, "height": 380},
    {"width": 390, "height": 844},
    {"width": 1280, "height": 820},
]

_IS_INSIDE = """() => {
    const list = document.querySelector('.completion').getBoundingClientRect();
    const option = document.querySelector('.completion [aria-selected=true]').getBoundingClientRect();
    const composer = document.querySelector('.composer').getBoundingClientRect();
    const isInside = list.top >= 0 && list.bottom <= innerHeight && list.height >= option.height;
    const isOptionShown = option.top >= list.top && option.bottom <= list.bottom;
    const isApart = list.bottom <= composer.top || list.top >= composer.bottom;
    return isInside && isOptionShown && isApart;
}"""


async def check_command_menu(page: Page) -> None:
    """Type `/` and go through the commands: the menu stays inside the window, whatever its size."""
    await page.locator("#composer").fill("")
    await page.locator("#composer").fill("/")
    await expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    for key in ("ArrowDown", "ArrowUp", "ArrowUp"):  # the last one goes to the end of the list
        await page.wait_for_function(_IS_INSIDE)
        await page.keyboard.press(key)
    await expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    await page.wait_for_function(_IS_INSIDE)


@pytest.mark.soak
async def test_the_composer_gets_the_focus_back_from_dialogs_and_its_menu_opens_inside_the_window(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "hello", title="Opened")
    page = await visitors.visit(web)
    composer, keys = page.locator("#composer"), page.keyboard
    await expect(composer).to_be_focused()
    await keys.type("one ")
    await keys.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await keys.type("two")
    await expect(composer).to_have_value("one two")

    await page.get_by_role("link", name="Opened").click()
    await expect(page.get_by_role("heading", name="Opened")).to_be_visible()
    await expect(composer).to_be_focused()
    await keys.type("three ")
    await keys.press("Control+k")
    await expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
    await keys.type("keyboard shortcuts")
    await keys.press("Enter")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await keys.type("four")
    await expect(composer).to_have_value("three four")
    await page.reload()
    await expect(composer).to_be_focused()

    await page.locator("#search").click()  # who writes elsewhere is not interrupted
    await page.go_back()
    await expect(composer).to_have_value("one two")
    await expect(page.locator("#search")).to_be_focused()

    for viewport in VIEWPORTS:
        await page.set_viewport_size(viewport)
        await check_command_menu(page)
    await page.get_by_role("link", name="Opened").click()
    await expect(page.get_by_role("heading", name="Opened")).to_be_visible()
    for viewport in VIEWPORTS:
        await page.set_viewport_size(viewport)
        await check_command_menu(page)


async def test_a_touch_screen_shows_no_keyboard_until_the_composer_is_touched(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    session_id = await web.create_conversation(await web.sign_in(), "hello")
    page = await visitors.visit(web, viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True)
    await expect(page.locator("#composer")).not_to_be_focused()
    await page.goto(f"{web.url}/{session_id}")
    await expect(page.locator(".answer")).to_be_visible()
    await expect(page.locator("#composer")).not_to_be_focused()
