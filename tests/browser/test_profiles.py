"""Profile, personality and workspace on the page, and filters of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver.config.agent_rules import AgentProfile, Profile
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

CHOICES = AgentProfile(
    profiles={"work": Profile(description="For the office", model="scripted-large")},
    personalities={"pirate": "Talk like a pirate."},
)


@pytest.mark.soak
async def test_a_profile_is_chosen_before_the_first_message_and_changed_later_and_a_search_is_filtered(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    agent = ScriptedAgent("The train leaves at nine.")
    page = await visitors.visit(await start_web(agent, profile=CHOICES))
    await page.get_by_role("button", name="Profile and workspace").click()
    await page.get_by_role("menuitemradio", name="work").click()
    menu = page.get_by_role("button", name="Profile and workspace: work")
    await menu.click()
    await page.get_by_role("menuitem", name="Set workspace…").click()
    await page.get_by_label("Folder or topic that the agent is told").fill("/srv/site")
    await page.get_by_role("button", name="Save").click()
    await send_message(page, "hello")
    await wait_for_answer(page)
    assert agent.requests[-1].model == "scripted-large"
    assert '"/srv/site"' in agent.requests[-1].instructions
    await expect(page.get_by_role("button", name="Model: scripted-large")).to_be_visible()

    await page.get_by_role("button", name="Profile and workspace: work, /srv/site").click()
    await page.get_by_role("menuitemradio", name="pirate").click()
    await expect(page.get_by_text("Personality changed to pirate.")).to_be_visible()
    await page.get_by_role("button", name="Profile and workspace: work, pirate, /srv/site").click()
    await page.get_by_role("menuitemradio", name="Default").click()
    await expect(page.get_by_text("Profile changed to the default.")).to_be_visible()
    await expect(page.get_by_role("button", name="Model: scripted", exact=True)).to_be_visible()
    await check_search_filters(page)


async def check_search_filters(page: Page) -> None:
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await send_message(page, "when does the train leave?")
    await wait_for_answer(page)
    await page.get_by_label("Search titles and messages").fill("train")
    hits = page.locator(".search-hit .snippet")
    await expect(hits).to_have_count(3)
    await page.get_by_text("Filter", exact=True).click()
    await page.get_by_label("Written by").select_option("Agent")
    await expect(hits).to_have_text(["The train leaves at nine."] * 2)
    await page.get_by_label("To", exact=True).fill("2020-01-01")
    await expect(hits).to_have_count(0)
    await page.get_by_role("button", name="Clear filters").click()
    await expect(hits).to_have_count(3)
