"""Filters of a search as chips: chosen and removed by mouse and keyboard, and kept in the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer


def get_options(page: Page) -> Locator:
    return page.locator("#search-results").get_by_role("option")


def get_field(page: Page, label: str) -> Locator:
    return page.locator(".search-filter-fields").get_by_label(label)


async def create_trips(web: WebServer) -> None:
    """Create an archived conversation, and one that is not."""
    owner = await web.sign_in()
    await web.create_conversation(owner, "a train to lisbon", title="Lisbon")
    archived = await web.create_conversation(owner, "a train to porto", title="Porto")
    await owner.patch(f"/api/sessions/{archived}", json={"archived": True})


async def test_filters_are_chips_and_part_of_the_address_which_can_be_linked(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    await create_trips(web)
    page = await visitors.visit(web)
    field = page.get_by_role("combobox", name="Search")
    await field.fill("train")
    await expect(get_options(page)).to_have_count(2)
    await page.get_by_text("Filter", exact=True).click()
    await get_field(page, "Archived").select_option(label="Only archived")
    await expect(get_options(page)).to_have_count(1)
    await expect(get_options(page)).to_contain_text("porto")
    chip = page.get_by_role("button", name="Remove filter: Only archived")
    await expect(chip).to_be_visible()
    await page.wait_for_url(re.compile(r"/\?q=train&archived=only$"))
    await get_field(page, "Platform").select_option(label="Telegram")
    await expect(get_options(page)).to_have_count(0)
    assert await find_violations(page) == []

    await page.reload()
    await expect(field).to_have_value("train")
    await expect(page.locator(".filter-chip")).to_have_text(["Platform: Telegram", "Only archived"])
    await page.get_by_role("button", name="Remove filter: Platform: Telegram").press("Delete")
    await expect(chip).to_be_focused()
    await expect(get_options(page)).to_have_count(1)
    await page.go_back()
    await expect(page.locator(".filter-chip")).to_have_count(2)
    await page.go_forward()
    await expect(page.locator(".filter-chip")).to_have_count(1)

    await get_options(page).click()  # the search stays while a result is open
    await page.wait_for_url(re.compile(r"/\d+_\d+_\w+\?q=train&archived=only#\d+$"))
    await expect(page.locator(".user-message")).to_contain_text("a train to porto")
    await chip.click()
    await expect(field).to_be_focused()
    await expect(get_options(page)).to_have_count(2)
    await field.press("Escape")
    await expect(page.locator("#search-results")).to_have_count(0)
    await page.wait_for_url(re.compile(r"/\d+_\d+_\w+#\d+$"))

    await page.goto(f"{web.url}/?q=lisbon&archived=without&from=2020-01-01&role=boss")
    await expect(get_options(page)).to_have_count(2)  # its title and its message
    await expect(page.locator(".filter-chip")).to_have_text(["From 1 Jan 2020", "Not archived"])
    await page.goto(f"{web.url}/?archived=only")  # without words: the conversations
    await expect(get_options(page)).to_have_count(1)
    await expect(get_options(page)).to_contain_text("Porto")


@pytest.mark.soak
async def test_a_copied_link_finds_the_same_in_another_tab_also_what_a_person_wrote(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent("Certainly."))
    owner, eve = await web.sign_in(), await web.sign_in("Eve")
    mine = await web.create_conversation(owner, "a train to lisbon", title="Lisbon")
    await web.create_conversation(owner, "a train to porto", title="Porto")
    await web.create_conversation(eve, "a train of Eve", title="Hers")
    project = (await owner.post("/api/projects", json={"name": "Trips"})).json()["id"]
    await owner.patch(f"/api/sessions/{mine}", json={"project": project, "archived": True})

    async def check_in_another_tab(page: Page, chips: list[str], text: str) -> None:
        other = await page.context.new_page()
        await other.goto(page.url)
        for each in (page, other):
            await expect(each.locator(".filter-chip")).to_have_text(chips)
            await expect(get_options(each)).to_have_count(1)
            await expect(get_options(each)).to_contain_text(text)
        await other.close()

    page = await visitors.visit(web)
    await page.get_by_role("combobox", name="Search").fill("train")
    await expect(get_options(page)).to_have_count(2)  # nothing of Eve
    await page.get_by_text("Filter", exact=True).click()
    for label, value in (("Platform", "Web"), ("Project", "Trips"), ("Archived", "Only archived")):
        await get_field(page, label).select_option(label=value)
    await expect(get_field(page, "Person")).to_have_count(0)  # Eve shares no conversation with the owner
    for label, day in (("From", "2020-01-01"), ("To", "2099-12-31")):
        await page.get_by_label(label, exact=True).fill(day)
    chips = ["Platform: Web", "Project: Trips", "From 1 Jan 2020", "To 31 Dec 2099", "Only archived"]
    await check_in_another_tab(page, chips, "lisbon")
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_role("switch", name="Everyone’s conversations").click()
    await get_field(page, "Person").select_option(label="Eve")
    await page.wait_for_url(re.compile("everyone=1"))
    await check_in_another_tab(page, ["Person: Eve"], "Eve")


@pytest.mark.soak
async def test_filters_work_on_a_phone_in_german(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("Gerne."))
    await create_trips(web)
    page = await visitors.visit(
        web,
        path="/?q=train&archived=only&platform=web&from=2020-01-01&to=2099-12-31",
        viewport=PHONE_VIEWPORT,
        locale="de-DE",
        has_touch=True,
        is_mobile=True,
    )
    await page.get_by_role("button", name="Chats einblenden").tap()
    await expect(page.locator(".filter-chip")).to_have_count(4)
    await expect(page.locator(".filter-chip").last).to_have_text("Nur archivierte")
    assert await find_violations(page) == []
    assert await find_small_targets(page) == []
    assert await measure_overflow(page) == 0
    await page.get_by_role("button", name="Filter entfernen: Nur archivierte").tap()
    await expect(page.locator(".filter-chip")).to_have_count(3)
    await expect(get_options(page)).to_have_count(2)
