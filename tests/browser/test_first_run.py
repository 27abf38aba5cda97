"""The first run, from the link to an answer, with real servers and without a file."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.page_checks import find_violations
from drivers.openai_server import OpenAIServer, reply_with_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from browser.conftest import Visitors
    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.slow

PASSWORD = "eleven grey herons"


@asynccontextmanager
async def run_server(launcher: WarmLauncher, home: Path, database: Path) -> AsyncIterator[tuple[str, str]]:
    """Run `palaver serve`, and yield its address and the link of its owner."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    process = launcher.launch(
        *("--home", str(home), "serve", "--port", "0", "--no-open", "--link"),
        env=environment | {"PALAVER_DATABASE_URL": f"sqlite:///{database}", "PYTHONUNBUFFERED": "1"},
    )

    def read_link() -> tuple[str, str]:
        output = ""
        while "/sign-in#" not in output and (line := process.stdout.readline()):
            output += line
        found = re.search(r"(http://\S+)/sign-in#\S+", output)
        assert found is not None, output
        return found[1], found[0]

    try:
        yield await asyncio.to_thread(read_link)
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


async def test_from_the_link_to_an_answer_of_a_provider_without_a_file(
    launcher: WarmLauncher, tmp_path: Path, visitors: Visitors
) -> None:
    home, database = tmp_path / "home", tmp_path / "palaver.db"
    with OpenAIServer(models=("embed", "large", "small")) as provider:
        async with run_server(launcher, home, database) as (url, link):
            page = await (await visitors.open_context(url)).new_page()
            await page.goto(link)
            await page.get_by_label("Your name").fill("Grace")
            await page.get_by_label("Password").fill(PASSWORD)
            await page.get_by_role("button", name="Continue").click()
            await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()
            await expect(page.locator("#composer")).to_be_focused()  # nothing blocks it

            setup = page.get_by_role("region", name="Finish setting up")
            await expect(setup).to_contain_text("It is a placeholder")
            assert await find_violations(page) == []
            await setup.get_by_role("button", name="Skip: Connect a platform").click()
            await expect(setup.get_by_text("Skipped")).to_be_visible()
            await page.reload()
            await expect(setup.get_by_text("Skipped")).to_be_visible()

            await setup.get_by_role("button", name="Add a provider").click()
            await setup.get_by_role("combobox", name="Provider").select_option(label="Other (OpenAI-compatible)")
            await setup.get_by_label("Name").fill("lab")
            await setup.get_by_label("Address (URL)").fill(provider.url)
            await setup.get_by_label("API key").fill("sk-0123456789abcdef")
            provider.add_replies(reply_with_text("Yes."))
            await setup.get_by_role("button", name="Test", exact=True).click()
            await expect(setup.get_by_role("status")).to_contain_text("It works")
            await setup.get_by_role("button", name="Save provider").click()
            await expect(setup.get_by_role("combobox", name="Model")).to_be_visible()
            await setup.get_by_role("button", name="Use as default model").click()
            await expect(setup).to_have_count(0)

            await page.get_by_role("button", name="Model: lab:large").click()
            await page.get_by_role("menuitem", name="More models…").click()
            dialog = page.get_by_role("dialog", name="Choose a model")
            await expect(dialog.get_by_role("status")).to_have_text("3 models")
            assert await find_violations(page) == []
            await dialog.get_by_role("searchbox", name="Search models").fill("small")
            await page.keyboard.press("Enter")
            await expect(dialog).to_have_count(0)  # it returns the focus to the button of its menu
            await expect(page.get_by_role("button", name="Model: lab:small")).to_be_visible()

            provider.add_replies(reply_with_text("High tide ", "is at noon."), reply_with_text("Tides"))
            await page.locator("#composer").fill("When is high tide?")
            await page.keyboard.press("Enter")
            await expect(page.locator(".answer").last).to_contain_text("High tide is at noon.")
            await expect(page.get_by_role("button", name="Model: lab:small")).to_be_visible()
            assert [each["model"] for each in provider.requests[:2]] == ["large", "small"]  # the test, then the answer
            await page.context.close()  # before its server, whose end it would report
    assert not (home / "config.yaml").exists()
    assert not (tmp_path / "config.yaml").exists()


@pytest.mark.soak
async def test_a_change_on_the_page_of_one_server_is_shown_by_another(
    launcher: WarmLauncher, tmp_path: Path, visitors: Visitors
) -> None:
    here_home, there_home, database = tmp_path / "here", tmp_path / "there", tmp_path / "palaver.db"
    there_home.mkdir()
    (there_home / "config.yaml").write_text("turns:\n  max_queued: 5\n")
    async with (
        run_server(launcher, here_home, database) as (here_url, here_link),
        run_server(launcher, there_home, database) as (there_url, there_link),
    ):
        pages = []
        for url, link in ((here_url, here_link), (there_url, there_link)):
            page = await (await visitors.open_context(url)).new_page()
            await page.goto(link)
            await page.get_by_role("button", name="Skip for now").or_(page.locator("#composer")).first.wait_for()
            if await page.get_by_role("button", name="Skip for now").is_visible():
                await page.get_by_role("button", name="Skip for now").click()
            await expect(page.locator("#composer")).to_be_visible()
            await page.goto(f"{url}/server#turns")
            pages.append(page)
        here, there = pages
        pinned = there.get_by_label("Most waiting messages", exact=True)
        await expect(pinned).to_be_disabled()
        await expect(there.get_by_text("Set in config.yaml, line 2")).to_be_visible()
        await here.get_by_label("How many at the same time", exact=True).fill("3")
        await here.get_by_role("button", name="Save", exact=True).click()
        await expect(here.get_by_text("Saved. It applies now.")).to_be_visible()
        await there.reload()
        await expect(there.get_by_label("How many at the same time", exact=True)).to_have_value("3")
        for page in pages:
            await page.context.close()
