"""The sidebar: its list, projects, archive and search by keyboard; and the header while the sidebar is hidden."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.drivers.demo import DemoAgent
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

_HIGHLIGHTED = "[...(CSS.highlights.get('search-match') ?? [])].map(range => range.toString())"
_IS_FIRST_VISIBLE = """() => {
  const [range] = CSS.highlights.get('search-match') ?? [];
  const place = range?.getBoundingClientRect();
  const window = document.querySelector('.scroller')?.getBoundingClientRect();
  return place !== undefined && window !== undefined && place.top > window.top && place.bottom < window.bottom;
}"""


async def wait_for_match(page: Page) -> list[str]:
    """Wait until the match of a search result is in sight, and return all texts that are highlighted."""
    await page.wait_for_function(_IS_FIRST_VISIBLE)
    highlighted: list[str] = await page.evaluate(_HIGHLIGHTED)
    return highlighted


async def test_the_list_says_what_it_shows(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("# Plan\n\n- **Lisbon** by `train`\n- see [the table](https://example.com)"))
    owner, ann = await web.sign_in(), await web.sign_in("Ann")
    await web.create_conversation(owner, "my trip", title="Trip")
    await web.create_conversation(ann, "her trip", title="Hers")
    for number in range(1, 8):
        await owner.post("/api/projects", json={"name": f"Project {number}", "color": "#1f6f64"})
    page = await visitors.visit(web)
    row = page.locator(".session").filter(has_text="Trip")
    await expect(row.locator(".session-preview")).to_have_text("Plan Lisbon by train see the table")

    projects = page.get_by_role("region", name="Projects")
    await expect(projects.get_by_role("listitem")).to_have_count(5)
    await projects.get_by_role("button", name="Show all 7").press("Enter")
    last = projects.get_by_role("button", name="Project 7", exact=True)
    await last.press("Enter")
    await projects.get_by_role("button", name="Show fewer").click()
    await expect(last).to_be_visible()  # because it is selected
    await last.click()

    await page.get_by_role("switch", name="Everyone’s conversations").click()
    await expect(page.get_by_role("heading", name="Everyone’s conversations")).to_be_visible()
    await expect(page.locator(".session").filter(has_text="Hers").locator(".session-owner")).to_have_text("Ann")
    await expect(row.locator(".session-owner")).to_have_text("You")
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Show only my conversations").click()
    await expect(page.locator(".session")).to_have_count(1)

    await page.get_by_role("navigation").get_by_role("button", name="Archive", exact=True).click()
    await expect(page.get_by_role("heading", name="Archive")).to_be_visible()
    await page.get_by_role("button", name="Close archive").click()
    await expect(page.get_by_role("heading", name="Archive")).to_have_count(0)


async def test_a_search_is_used_with_the_keyboard(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner = await web.sign_in()
    filler = "\n\n".join(f"Paragraph {number} about something else." for number in range(200))
    long = await web.create_session(owner, title="A long one")
    await web.send_message(owner, long, f"{filler}\n\nThe duckbilled platypus lays eggs.\n\n{filler}")
    archived = await web.create_conversation(owner, "nothing here", title="Platypus farm")
    await owner.patch(f"/api/sessions/{archived}", json={"archived": True})
    other = await web.create_conversation(owner, "a platypus again", title="Third")
    page = await visitors.visit(web)
    field = page.get_by_role("combobox", name="Search")
    await page.keyboard.press("Escape")
    await field.fill("platyp")
    options = page.locator("#search-results").get_by_role("option")
    await expect(options).to_have_count(3)
    await expect(page.get_by_role("group", name="Titles").get_by_role("option")).to_have_text("Platypus farm")
    await expect(options.first.get_by_role("img", name="Archived")).to_be_visible()
    await expect(options.nth(1)).to_contain_text("a platypus again")
    assert await find_violations(page) == []

    await field.press("ArrowDown")
    await expect(field).to_have_attribute("aria-activedescendant", str(await options.nth(1).get_attribute("id")))
    await field.press("Enter")
    await page.wait_for_url(re.compile(rf"/{other}\?q=platyp#\d+$"))
    await expect(field).to_be_focused()
    await field.press("ArrowDown")
    await field.press("Enter")
    await page.wait_for_url(re.compile(rf"/{long}\?q=platyp#\d+$"))
    assert await wait_for_match(page) == ["platypus"]

    await field.fill('"duckbilled platypus')
    await field.press("Enter")  # before there are results
    await page.wait_for_function(f"() => ({_HIGHLIGHTED})[0] === 'duckbilled platypus'")
    assert await wait_for_match(page) == ["duckbilled platypus"]
    await options.first.press("Escape")  # back to the field
    await expect(field).to_be_focused()
    await field.press("Escape")
    await expect(field).to_have_value("")
    await field.press("Escape")
    await expect(page.locator("#composer")).to_be_focused()


@pytest.mark.soak
async def test_a_hidden_sidebar_leaves_a_way_to_start(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    session = await web.create_conversation(await web.sign_in(), "hello", title="A title of some length for a phone")
    page = await visitors.visit(web, path=f"/{session}")
    await page.get_by_role("button", name="Hide conversations").click()
    await page.locator("header.bar").get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_be_focused()
    assert page.url == f"{web.url}/"

    phone = await visitors.visit(web, viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True, path=f"/{session}")
    title = phone.get_by_role("heading", level=1)
    box = await title.bounding_box()
    assert box is not None
    assert box["width"] > PHONE_VIEWPORT["width"] / 2
    assert await find_small_targets(phone) == []
    await phone.get_by_role("button", name="Actions for").tap()
    for item in ("Model: demo", "Profile and workspace", "Tools"):
        await phone.get_by_role("menuitem", name=item).tap()
    assert await measure_overflow(phone) == 0
    await phone.get_by_role("menuitem", name="Set workspace").tap()
    await phone.get_by_role("dialog").get_by_role("textbox").fill("~/notes")
    await phone.get_by_role("button", name="Save").tap()
    await phone.get_by_role("button", name="Actions for").tap()
    await expect(phone.get_by_role("menuitem", name="~/notes")).to_be_visible()
    await phone.keyboard.press("Escape")
    await phone.get_by_role("button", name="New conversation").tap()
    await expect(phone.locator(".home")).to_be_visible()
