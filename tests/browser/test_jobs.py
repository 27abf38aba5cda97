"""The panel of jobs: making one, running it, its history, and what another person sees of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import open_path
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer


async def test_a_job_is_made_in_the_chosen_time_zone_run_edited_and_deleted(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    visitors.allowed_errors = ("422",)  # of the schedule that is not allowed
    web = await start_web(DemoAgent(word_delay=0), is_server=True)
    page = await visitors.visit(web, path="/settings", timezone_id="Asia/Tokyo")
    await choose_time_zone(page)
    await open_path(page, "/jobs")
    await expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()

    await page.get_by_role("button", name="New job").click()
    dialog = page.get_by_role("dialog", name="New job")
    await expect(dialog.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    await dialog.get_by_label("What should the agent do?").fill("Water the plants")
    await dialog.get_by_label("When?").fill("every 1 minute")
    await expect(dialog.get_by_role("status")).to_contain_text("5 minutes")  # the smallest interval
    await dialog.get_by_label("When?").fill("0 7 * * 1-5")
    await dialog.get_by_label("Time zone").fill("America/New_York")
    preview = dialog.get_by_role("status")
    await expect(preview).to_contain_text("every weekday at 07:00 (America/New_York)")
    await expect(preview).to_contain_text("no cost")
    await expect(preview).to_have_text(
        re.compile(r"^(?:(?!07:00).)*(?:07:00(?:(?!07:00).)*){4}$", re.DOTALL)
    )  # in words, and thrice
    await dialog.get_by_label("Name").fill("Plants")
    await dialog.get_by_role("button", name="Create job").click()
    row = page.get_by_role("list", name="Jobs").get_by_role("listitem").first
    await expect(row).to_contain_text("Plants")
    await expect(row).to_contain_text("every weekday at 07:00 (America/New_York)")
    await expect(row).to_contain_text("next run")

    await row.get_by_role("button", name="Actions for “Plants”").click()
    await page.get_by_role("menuitem", name="Run now").click()
    await page.get_by_role("button", name="Details of “Plants”").click()
    history = page.get_by_role("region", name="History")
    await expect(history).to_contain_text("Done")
    await expect(history).to_contain_text("started manually")
    await expect(page.get_by_role("region", name="Projects")).to_contain_text("Scheduled")  # without a reload

    await row.get_by_role("button", name="Actions for “Plants”").click()
    await page.get_by_role("menuitem", name="Pause").click()
    await expect(row.get_by_text("Paused", exact=True)).to_be_visible()
    await row.get_by_role("button", name="Actions for “Plants”").click()
    await page.get_by_role("menuitem", name="Edit job").click()
    editor = page.get_by_role("dialog", name="Edit job")
    await editor.get_by_label("When?").fill("every 2h")
    await expect(editor.get_by_role("status")).to_contain_text("every 2 hours (America/New_York)")
    await editor.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("every 2 hours")

    await history.get_by_role("link", name="Open conversation").click()
    await expect(page.get_by_text("Water the plants").first).to_be_visible()
    await page.go_back()
    await row.get_by_role("button", name="Actions for “Plants”").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()


async def choose_time_zone(page: Page) -> None:
    """Choose the time zone of new jobs."""
    form = page.locator("form").filter(has=page.get_by_label("Your time zone"))
    await expect(form).to_contain_text("Your browser’s is Asia/Tokyo.")
    await form.get_by_label("Your time zone").fill("Asia/Tokyo")
    await form.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Time zone saved.")).to_be_visible()


async def test_another_person_sees_no_job_of_mine(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner = await web.sign_in()
    made = await owner.post("/api/jobs", json={"name": "Secret plan", "prompt": "Plan", "schedule": "every 1d"})
    assert made.status_code == 201, made.text
    page = await visitors.visit(web, "grace", path="/jobs", locale="de-DE")
    await expect(page.get_by_role("heading", name="Noch keine Aufgaben")).to_be_visible()
    await expect(page.get_by_text("Secret plan")).to_have_count(0)
