"""Jobs that the agent proposes on the page: a card asks the person, in the conversation itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver.core.engines.base import Read
from palaver.drivers.demo import DemoAgent

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer


async def list_jobs(web: WebServer) -> list[Any]:
    query = "SELECT name, schedule, state FROM job ORDER BY no"
    return await web.state.gateway.store.engine.arun(Read(lambda tx: tx.fetch_all(query)))


async def test_a_proposed_job_is_confirmed_and_another_rejected_and_what_it_sends_says_where_it_is_from(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0), is_server=True)
    page = await visitors.visit(web)
    await send_message(page, "remind me every day at 7 to water the plants")
    await wait_for_answer(page)
    card = page.get_by_role("region", name="Proposed job")
    await expect(card.get_by_role("heading")).to_have_text("Create the job “water the plants”?")
    await expect(card).to_contain_text("every day at 07:00 (")
    await expect(card).to_contain_text("Reminder: water the plants")
    await expect(card).to_contain_text("free")
    assert await list_jobs(web) == [("water the plants", "0 7 * * *", "proposed")]

    other = await page.context.new_page()
    await other.goto(page.url)
    await card.get_by_role("button", name="Confirm").click()
    for each in (page, other):
        await expect(each.get_by_text("Job “water the plants” confirmed.")).to_be_visible()
        await expect(each.get_by_role("button", name="Confirm")).to_have_count(0)
    assert await list_jobs(web) == [("water the plants", "0 7 * * *", "active")]

    await send_message(page, "every 2h: drink water")
    await expect(card).to_have_count(2)
    await page.get_by_role("button", name="Reject").click()
    await expect(page.get_by_text("Job “drink water” rejected.")).to_be_visible()
    assert await list_jobs(web) == [("water the plants", "0 7 * * *", "active")]
    await send_message(page, "list my jobs")
    await expect(page.locator(".answer").last).to_contain_text("every day at 07:00")
    await wait_for_answer(page)

    [(job_id,)] = await web.state.gateway.store.engine.arun(
        Read(lambda tx: tx.fetch_all("SELECT id FROM job WHERE state = 'active'"))
    )
    started = await (await web.sign_in()).post(f"/api/jobs/{job_id}/run")
    assert started.status_code == 202, started.text
    sent = page.locator(".answer").last
    await expect(sent).to_contain_text("Sent by the job “water the plants”")
    await expect(sent).to_contain_text("⏰ water the plants")

    await send_message(page, "/undo")
    await expect(page.get_by_text("Last exchange undone.")).to_be_visible()
    for _ in range(2):  # live, and read again
        await expect(page.locator(".answer")).to_have_count(3)
        await expect(sent).to_contain_text("Sent by the job “water the plants”")
        await page.reload()
    await sent.get_by_role("link", name="View run").click()
    await expect(page.get_by_text("Reminder: water the plants").first).to_be_visible()


@pytest.mark.soak
async def test_a_proposed_job_is_described_in_german(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, locale="de-AT")
    await send_message(page, "erinnere mich jeden Tag um 7: Blumen gießen")
    card = page.get_by_role("region", name="Vorgeschlagene Aufgabe")
    await expect(card.get_by_role("heading")).to_have_text("Aufgabe „Blumen gießen“ anlegen?")
    await expect(card).to_contain_text(re.compile(r"jeden Tag um 07:00 \("))
    await expect(card).to_contain_text("kostenlos")
    await card.get_by_role("button", name="Bestätigen").click()
    await expect(page.get_by_text("Aufgabe „Blumen gießen“ bestätigt.")).to_be_visible()
    assert await list_jobs(web) == [("Blumen gießen", "0 7 * * *", "active")]
