"""Opens the page in a real browser.

Always true: a test fails when the page logs an error, violates its content security policy, or sends a request to
another host. The browser is launched once and each visitor has their own profile, so all of these tests share the
browser's event loop.
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

from palaver.web.app import PAGE_FOLDER
from support.web import web_server_factory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, BrowserContext, Page, Playwright

    from support.web import StartWebServer, WebServer

HERE = Path(__file__).parent
HEADLESS_SHELL = "chromium-headless-shell"  # Chromium without windows: three times as fast
BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_FLAGS: tuple[str, ...] = (
    "--ignore-certificate-errors",  # the proxy of a test has a self-signed certificate
    # No page lives long enough for compiled code to be worth it, and there is no graphics card.
    "--js-flags=--no-opt,--no-maglev,--no-sparkplug,--single-threaded",
    *("--disable-gpu", "--disable-gpu-compositing", "--disable-software-rasterizer"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),  # a microphone that every page may use
)
DESKTOP_VIEWPORT = {"width": 1280, "height": 820}
PHONE_VIEWPORT = {"width": 390, "height": 844}

# The page logs violations itself, because not every browser logs them as errors.
_LOG_CSP_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective + ' ' + e.blockedURI))"
)

_GET_PANEL_TITLE = "document.querySelector('.panel-title')?.textContent"

# What Chromium logs about requests without a connection: another text with a service worker, and for parts of the page.
OFFLINE_ERRORS = ("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "Failed to fetch", "Unable to preload")

TIMEOUT_MILLISECONDS = 60_000  # for anything that the page does at once, on a busy machine
expect.set_options(timeout=TIMEOUT_MILLISECONDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of this folder in the event loop of the browser."""
    for item in items:
        if item.path.is_relative_to(HERE) and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@asynccontextmanager
async def launch_browser(*, full: bool) -> AsyncIterator[Browser]:
    """Launch the installed Chromium, or else Playwright's.

    Unless a test needs the full browser, prefer the headless shell: it is faster, but shows no notifications.
    `PALAVER_BROWSER` names another executable.
    """
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**_choose_browser(playwright, full=full))
        yield browser
        await browser.close()


@asynccontextmanager
async def launch_profile(folder: Path, **options: Any) -> AsyncIterator[BrowserContext]:
    """Launch the full browser with an ordinary profile; those of `launch_browser` are private ones."""
    async with async_playwright() as playwright:
        launch = playwright.chromium.launch_persistent_context
        context = await launch(folder, **_choose_browser(playwright, full=True), **options)
        yield context
        await context.close()


def _choose_browser(playwright: Playwright, *, full: bool) -> dict[str, Any]:
    names = BROWSER_NAMES if full else (HEADLESS_SHELL, *BROWSER_NAMES)
    program = os.environ.get("PALAVER_BROWSER") or next(
        (found for name in names if (found := shutil.which(name))), None
    )
    if program is None and not os.access(playwright.chromium.executable_path, os.X_OK):
        pytest.fail("Chromium not found: install chromium, or set PALAVER_BROWSER to its path")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    channel = "chromium" if full and program is None else None
    return {"executable_path": program, "channel": channel, "args": [*sandbox, *BROWSER_FLAGS]}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launch_browser(full=False) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def full_browser() -> AsyncIterator[Browser]:
    """Launch the full browser, because the headless shell shows no notifications."""
    async with launch_browser(full=True) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def start_web(store_url: str, tmp_path: Path) -> AsyncIterator[StartWebServer]:
    """Start servers on the database of this test, each with its own store, and stop them at the end."""
    async with web_server_factory(store_url, tmp_path) as start:
        yield start


@dataclass
class Visitors:
    """Opens the page for people and records problems."""

    browser: Browser
    stack: AsyncExitStack
    problems: list[str] = field(default_factory=list)
    allowed_errors: tuple[str, ...] = ()  # parts of console errors that the test causes on purpose

    async def open_context(self, url: str, **options: Any) -> BrowserContext:
        """Open a new browser profile that is not signed in.

        Without a service worker, unless the test is about it: starting one for each profile takes a third of the time.
        And without animations, which take a sixth of it.
        """
        defaults = {
            "viewport": DESKTOP_VIEWPORT,
            "locale": "en-GB",
            "service_workers": "block",
            "reduced_motion": "reduce",
        }
        context = await self.browser.new_context(**(defaults | options))
        self.stack.push_async_callback(context.close)
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        await context.add_init_script(_LOG_CSP_VIOLATIONS)
        context.on("console", lambda line: self._check_console(line.type, line.text))
        context.on("weberror", lambda error: self.problems.append(f"error: {error.error}"))
        context.on("request", lambda request: self._check_request(url, request.url))
        return context

    async def visit(
        self, web: WebServer, person: str = "owner", *, path: str = "", has_clock: bool = False, **options: Any
    ) -> Page:
        """Sign a person in in a new browser profile, and open the home page or another one.

        With `has_clock`, the test can move the page's clock (`page.clock`) instead of waiting for its timers.
        """
        context = await self.open_context(web.url, **options)
        if has_clock:
            await context.clock.install()
        await sign_in_context(context, web, person)
        page = await context.new_page()
        await page.goto(f"{web.url}{path}")
        if not path:
            await expect(page.locator("main.main h1")).to_be_visible()
        return page

    async def go_offline(self, page: Page) -> None:
        """Take the connection from a page. Requests fail, which it logs, perhaps only when it is online again."""
        self.allowed_errors += OFFLINE_ERRORS
        await page.context.set_offline(True)

    def _check_console(self, kind: str, text: str) -> None:
        if kind == "error" and not any(each in text for each in self.allowed_errors):
            self.problems.append(f"console: {text}")

    def _check_request(self, own_url: str, url: str) -> None:
        if urlsplit(url).scheme in {"http", "https"} and urlsplit(url).netloc != urlsplit(own_url).netloc:
            self.problems.append(f"request to another host: {url}")


@pytest_asyncio.fixture(loop_scope="session")
async def visitors(browser: Browser) -> AsyncIterator[Visitors]:
    """Let a test open pages, and fail it if a page has reported a problem."""
    if not (PAGE_FOLDER / "index.html").is_file():
        pytest.fail("the page is not built: run `npm ci && npm run build` in frontend/")
    async with AsyncExitStack() as stack:
        visitors = Visitors(browser, stack)
        yield visitors
    assert visitors.problems == []


async def create_sign_in_link(web: WebServer, person: str, *, is_welcomed: bool = True) -> str:
    """Create a link that signs a person in once; usually it is not their first visit."""
    if person == "owner":
        secret = await web.state.accounts.create_owner_link()
        if is_welcomed:
            await web.state.accounts.finish_welcome((await web.gateway.store.aio.get_owner()).id)
        return f"{web.url}/sign-in#{secret}"
    await web.sign_in(person)  # creates the person
    owner = await web.sign_in()
    people = (await owner.get("/api/people")).json()["people"]
    person_id = next(each["id"] for each in people if each["name"] == person)
    created = await owner.post(f"/api/people/{person_id}/link")
    if is_welcomed:
        await web.state.accounts.finish_welcome(person_id)
    return f"{web.url}/sign-in#{created.json()['link']['url'].partition('#')[2]}"


async def sign_in_context(context: BrowserContext, web: WebServer, person: str = "owner") -> None:
    """Use a sign-in link without its page, because every page that is loaded takes time."""
    link = await create_sign_in_link(web, person)
    response = await context.request.post(
        f"{web.url}/api/sign-in/link", data={"token": link.partition("#")[2]}, headers={"Origin": web.url}
    )
    assert response.ok, await response.text()


async def skip_welcome(page: Page) -> None:
    """Decline to choose a name and a password on the first visit."""
    await page.get_by_role("button", name="Skip for now").click()


async def open_path(page: Page, path: str) -> None:
    """Go to another place of an open page, as its links do: without loading it again."""
    await page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path
    )


async def open_panel(page: Page, panel: str) -> None:
    """Go to another panel of an open page, and wait until everything in it is loaded."""
    title = await page.evaluate(_GET_PANEL_TITLE)
    await open_path(page, f"/{panel}")
    await page.wait_for_function(f"title => ![undefined, title].includes({_GET_PANEL_TITLE})", arg=title)
    await expect(page.locator(".panel .card").first).to_be_visible()
    await expect(page.locator(".panel .spinner")).to_have_count(0)


async def send_message(page: Page, text: str) -> None:
    await page.locator("#composer").fill(text)
    await page.locator("#composer").press("Enter")


async def wait_for_answer(page: Page) -> None:
    """Wait until the last answer is complete."""
    await expect(page.locator(".answer").last.get_by_role("button", name="Regenerate")).to_be_visible()
