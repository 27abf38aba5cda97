"""A browser, and people who look at the page with it.

Always true: a test fails when the page logs an error, breaks its content security policy, or asks anybody but the
server for anything. A browser is launched once and each visitor has a profile of their own; so all of these tests share
one loop, which is the browser's.
"""

from __future__ import annotations

import os
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect
from pytest_asyncio import is_async_test

from palaver.web.app import PAGE
from support.web import starting_web
from web.conftest import web_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, Page

    from support.web import StartWeb, Web

__all__ = ["web_store"]

HERE = Path(__file__).parent
SHELL = "chromium-headless-shell"  # the same without its windows, and three times as fast
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--ignore-certificate-errors",)  # a proxy in a test has a certificate that nobody has signed
DESK = {"width": 1280, "height": 820}
PHONE = {"width": 390, "height": 844}

# The page listens itself, because not every browser logs a violation as an error.
_LISTEN = (
    "addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective + ' ' + e.blockedURI))"
)

expect.set_options(timeout=30_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests beside this file run in the loop of the browser."""
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@asynccontextmanager
async def launched(*, whole: bool) -> AsyncIterator[Browser]:
    """A browser of this machine, else Playwright's: the whole one, or where there is one its shell, without notices.

    `PALAVER_BROWSER` names another one.
    """
    names = BROWSERS if whole else (SHELL, *BROWSERS)
    program = os.environ.get("PALAVER_BROWSER") or next(
        (found for name in names if (found := shutil.which(name))), None
    )
    async with async_playwright() as playwright:
        if program is None and not os.access(playwright.chromium.executable_path, os.X_OK):
            pytest.fail("there is no Chromium here: install chromium, or name one in PALAVER_BROWSER")
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = await playwright.chromium.launch(
            executable_path=program,
            channel="chromium" if whole and program is None else None,
            args=[*sandbox, *FLAGS],
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A browser without a window, for all tests."""
    async with launched(whole=False) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def start_web(web_store: str, tmp_path: Path) -> AsyncIterator[StartWeb]:
    """Starts servers on this test's database, each with a store of its own, and stops them in the end."""
    async with starting_web(web_store, tmp_path) as start:
        yield start


@dataclass
class Visitors:
    """Opens the page for people, and keeps what went wrong."""

    browser: Browser
    stack: AsyncExitStack
    troubles: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()  # what may be logged as an error, in a test that cuts the line

    async def context(self, url: str, **options: Any) -> BrowserContext:
        """A browser profile of its own, signed in nowhere."""
        context = await self.browser.new_context(**({"viewport": DESK, "locale": "en-GB"} | options))
        self.stack.push_async_callback(context.close)
        await context.add_init_script(_LISTEN)
        context.on("console", lambda line: self._logged(line.type, line.text))
        context.on("weberror", lambda error: self.troubles.append(f"error: {error.error}"))
        context.on("request", lambda request: self._asked(url, request.url))
        return context

    async def visit(self, web: Web, person: str = "owner", **options: Any) -> Page:
        """The page, for somebody who has just opened their link."""
        context = await self.context(web.url, **options)
        page = await context.new_page()
        await page.goto(await link_for(web, person))
        await expect(page.locator("main.main h1")).to_be_visible()
        return page

    def _logged(self, kind: str, text: str) -> None:
        if kind == "error" and not any(each in text for each in self.expected):
            self.troubles.append(f"console: {text}")

    def _asked(self, own: str, url: str) -> None:
        if urlsplit(url).scheme in {"http", "https"} and urlsplit(url).netloc != urlsplit(own).netloc:
            self.troubles.append(f"request to elsewhere: {url}")


@pytest_asyncio.fixture(loop_scope="session")
async def visitors(browser: Browser) -> AsyncIterator[Visitors]:
    """Those who look at the page in a test."""
    if not (PAGE / "index.html").is_file():
        pytest.fail("the page is not built: run `npm ci && npm run build` in frontend")
    async with AsyncExitStack() as stack:
        found = Visitors(browser, stack)
        yield found
    assert found.troubles == []


async def link_for(web: Web, person: str) -> str:
    """A link that signs somebody in once."""
    if person == "owner":
        return f"{web.url}/sign-in#{await web.state.accounts.owner_link()}"
    await web.client(person)  # from now on they are known
    owner = await web.client()
    people = (await owner.get("/api/people")).json()["people"]
    known = next(each["id"] for each in people if each["name"] == person)
    made = await owner.post(f"/api/people/{known}/link")
    return f"{web.url}/sign-in#{made.json()['link']['url'].partition('#')[2]}"


async def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    await page.locator("#composer").fill(text)
    await page.locator("#composer").press("Enter")


async def answered(page: Page) -> None:
    """Wait for the end of the last answer."""
    await expect(page.locator(".answer").last.get_by_role("button", name="Ask again")).to_be_visible()
