"""Panels for the operation of the server: health, log, what is new; and shared links that expire."""

from __future__ import annotations

import asyncio
import io
import logging
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, open_path
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.core.logs import configure_logging
from palaver.operation.health_check import HealthCheck, _parse_findings as parse_findings
from palaver.testing import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.operation.doctor.finding import Finding
    from support.warm_process import WarmLauncher
    from support.web import StartWebServer, WebServer

log = logging.getLogger("palaver.test")

LOG_INTERVAL_MILLISECONDS = 2_000  # after which the panel asks for new lines


@pytest.fixture
def server_log() -> Iterator[None]:
    """Sends the log where a server sends it, and restores logging afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging(io.StringIO())
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


class ForkedHealthCheck(HealthCheck):
    """Runs the real doctor in a fork of a process that has imported everything, in a quarter of the time."""

    def __init__(self, home: Path, launcher: WarmLauncher) -> None:
        super().__init__(home)
        self._launcher = launcher

    async def _run_doctor(self, options: Sequence[str]) -> Sequence[Finding]:
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        process = self._launcher.launch(*self._command[self._command.index("--home") :], *options, env=environment)
        output, _ = await asyncio.to_thread(process.communicate)
        return parse_findings(output.encode())


@pytest.mark.usefixtures("server_log")
async def test_an_owner_follows_the_log_and_sees_what_doctor_finds_also_on_a_phone_in_german(
    start_web: StartWebServer, visitors: Visitors, launcher: WarmLauncher, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("model: demo\n")
    web = await start_web(ScriptedAgent("Done."), health=ForkedHealthCheck(tmp_path, launcher))
    log.warning("cellar_flooded", extra={"room": "music", "api_key": "abc123"})
    log.info("train_arrived")
    page = await visitors.visit(web, path="/logs", has_clock=True)
    await check_log(page)
    await open_path(page, "/health")
    await check_findings(page)
    await check_panels_on_a_phone(web, visitors)


async def check_log(page: Page) -> None:
    lines = page.get_by_role("log", name="Log")
    await expect(lines).to_contain_text("cellar_flooded")
    await expect(lines).to_contain_text("room=music")
    await expect(lines).not_to_contain_text("abc123")
    log.error("roof_leaks")  # while the panel is open
    await page.clock.fast_forward(LOG_INTERVAL_MILLISECONDS)
    await expect(lines).to_contain_text("roof_leaks")
    await page.get_by_label("Level").select_option(label="Errors")
    await expect(lines).not_to_contain_text("cellar_flooded")
    await page.get_by_label("Level").select_option(label="Info and above")
    await page.get_by_role("searchbox", name="Search the log").fill("TRAIN")
    await expect(lines.locator(".log-line")).to_have_count(1)
    await page.get_by_role("searchbox", name="Search the log").fill("")
    await expect(lines).to_contain_text("roof_leaks")
    await page.get_by_role("button", name="Pause").press("Enter")
    resume = page.get_by_role("button", name="Resume")
    await expect(resume).to_be_visible()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    log.error("while_paused")
    await page.clock.fast_forward(5 * LOG_INTERVAL_MILLISECONDS)
    assert [url for url in requests if "/api/logs" in url] == []
    await expect(lines).not_to_contain_text("while_paused")
    await resume.press("Enter")
    await page.clock.fast_forward(LOG_INTERVAL_MILLISECONDS)
    await expect(lines).to_contain_text("while_paused")
    await expect(page.get_by_text("Other servers have their own log.")).to_be_visible()
    assert await find_violations(page) == []


async def check_findings(page: Page) -> None:
    rows = page.locator(".health-finding")
    await expect(rows.filter(has_text="Versions")).to_contain_text("Python")
    await page.get_by_role("button", name="Also ask the model a short question").click()
    model = rows.filter(has_text="a demo answers")  # no model is connected
    await expect(model).to_contain_text("Fix: Set model in the server settings to a real one")
    await expect(model.get_by_role("link", name="Open models")).to_have_attribute("href", "/server#models")
    await expect(model.get_by_role("button")).to_have_count(0)  # there is no command to copy
    for row in await page.locator(".health-finding:not([data-severity=ok])").all():
        await expect(row).to_contain_text("Fix:")
    assert await find_violations(page) == []
    again = page.get_by_role("button", name="Check again")
    async with page.expect_response("**/api/health/details*"):
        await again.press("Enter")
    await expect(again).to_be_enabled()
    await expect(rows.filter(has_text="Versions")).to_be_visible()


async def check_panels_on_a_phone(web: WebServer, visitors: Visitors) -> None:
    log.warning("a_long_line", extra={"text": "word " * 200, "path": "x" * 300})
    device: dict[str, Any] = {"viewport": PHONE_VIEWPORT, "locale": "de-DE", "has_touch": True, "is_mobile": True}
    page = await visitors.visit(web, path="/logs", **device)
    await expect(page.get_by_role("log", name="Protokoll")).to_contain_text("a_long_line")
    for path, ready in (("logs", ".log-line"), ("health", ".health-finding"), ("settings", ".update-notes")):
        await open_path(page, f"/{path}")
        await expect(page.locator(ready).first).to_be_visible()
        assert await find_violations(page) == []
        assert await find_small_targets(page) == []
        assert await measure_overflow(page) == 0
    await page.get_by_text("Neuerungen", exact=True).tap()
    await expect(page.locator(".update-notes .markdown")).to_be_visible()


@pytest.mark.soak
async def test_a_shared_link_expires_as_chosen_and_can_be_prolonged(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    clock = FakeClock()
    web = await start_web(ScriptedAgent("Certainly."), clock=clock)
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "a secret trip", title="Lisbon")
    expires_at = (clock.now() + timedelta(days=1)).isoformat()
    shared = (await owner.post(f"/api/sessions/{session}/shares", json={"expires_at": expires_at})).json()
    context = await visitors.open_context(web.url)
    stranger = await context.new_page()
    await stranger.goto(web.url + shared["path"])
    await expect(stranger.get_by_role("heading", name="Lisbon", level=1)).to_be_visible()
    assert await stranger.title() == "Lisbon · Palaver"
    name = (await owner.get("/api/me")).json()["person"]["name"]
    await expect(stranger.get_by_role("article", name=name)).to_contain_text("a secret trip")
    await expect(stranger.get_by_role("article", name="Agent")).to_contain_text("Certainly.")

    clock.advance(days=1)
    visitors.allowed_errors += ("410",)
    await stranger.reload()
    await expect(stranger.get_by_role("heading", name="This link has expired")).to_be_visible()
    await expect(stranger.get_by_text("Lisbon")).to_have_count(0)
    assert await find_violations(stranger) == []

    page = await visitors.visit(web, path="/settings")
    row = page.locator(".item-list li").filter(has_text="Lisbon")
    await row.get_by_role("button", name="Change when the link to “Lisbon” expires").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Link expires").select_option(label="Never")
    assert await find_violations(page) == []
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("doesn’t expire")
    await stranger.reload()
    await expect(stranger.get_by_role("heading", name="Lisbon", level=1)).to_be_visible()
    await check_choice_of_expiry(web, page)


async def check_choice_of_expiry(web: WebServer, page: Page) -> None:
    """The expiry is chosen when a link is created."""
    owner = await web.sign_in()
    changed = await owner.patch("/api/settings", json={"set": {"web.shared_link_days": 30}})
    assert changed.status_code == 200, changed.text
    session = await web.create_conversation(owner, "a trip", title="Porto")
    await open_path(page, f"/{session}")
    await expect(page.get_by_role("heading", name="Porto", level=1)).to_be_visible()
    await page.locator("header").get_by_role("button", name="Actions").click()
    await page.get_by_role("menuitem", name="Share").click()
    dialog = page.get_by_role("dialog")
    choice = dialog.get_by_label("Link expires")
    await expect(choice).to_have_value("30")  # the server's default
    await choice.select_option(label="On a date…")
    await expect(dialog.get_by_role("button", name="Create link")).to_be_disabled()
    await dialog.get_by_label("Last day").fill("2099-12-30")
    assert await find_violations(page) == []
    await dialog.get_by_role("button", name="Create link").click()
    await expect(dialog.get_by_role("textbox", name="Shared link")).to_be_focused()
    shares = (await owner.get("/api/shares")).json()["shares"]
    assert [each["expires_at"][:9] for each in shares if each["expires_at"]] == ["2099-12-3"]
