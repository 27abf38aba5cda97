"""Take the screenshots of the README: `python -m docs.screenshots`.

Starts a server on a temporary store with sample conversations, and takes the screenshots in a browser.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.palaver_server import build_database_url, open_browser, start_server
from docs.screenshot_data import fill_store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, StorageState

IMAGES_DIR = Path(__file__).parent / "images"
DESKTOP = {"width": 1360, "height": 880}
PHONE = {"width": 390, "height": 844}
ANIMATION_MS = 600  # until nothing on the page moves


def main() -> None:
    IMAGES_DIR.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        session_id = fill_store(build_database_url(home), datetime.now(UTC))
        with start_server(home) as (url, link), open_browser() as browser:
            options = {"storage_state": _sign_in(browser, link), "locale": "en-GB", "device_scale_factor": 2}
            light = {"viewport": DESKTOP, "color_scheme": "light", **options}
            dark = {"viewport": DESKTOP, "color_scheme": "dark", **options}
            phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True, **options}
            _capture_conversation(browser, f"{url}/{session_id}", "desktop-light", light)
            _capture_conversation(browser, f"{url}/{session_id}", "desktop-dark", dark)
            _capture_conversation(browser, f"{url}/{session_id}", "phone", phone)
            _capture_usage(browser, f"{url}/usage", "usage", light)
            _capture_setup(browser, url, light)


def _capture_setup(browser: Browser, url: str, options: dict[str, Any]) -> None:
    """Take the screens that set up the server: the first run, models, a platform."""
    page = _open_page(browser, url, options)
    page.get_by_role("button", name="Add a provider").click()
    page.locator(".provider-form").wait_for()
    page.locator("#setup-title").scroll_into_view_if_needed()
    _save_screenshot(page, "first-run")
    page = _open_page(browser, f"{url}/server#models", options)
    page.locator(".provider-form").wait_for()
    _save_screenshot(page, "settings-models")
    page = _open_page(browser, f"{url}/platforms#telegram", options)
    page.get_by_role("button", name="Save and connect").wait_for()
    _save_screenshot(page, "platform-telegram")


def _sign_in(browser: Browser, link: str) -> StorageState:
    page = browser.new_page()
    page.goto(link)
    page.get_by_role("button", name="Skip for now").click()
    page.get_by_role("navigation").wait_for()
    return page.context.storage_state()


def _capture_conversation(browser: Browser, url: str, name: str, options: dict[str, Any]) -> None:
    page = _open_page(browser, url, options)
    page.locator(".answer pre code .hljs-comment").first.wait_for()
    _save_screenshot(page, name)


def _capture_usage(browser: Browser, url: str, name: str, options: dict[str, Any]) -> None:
    page = _open_page(browser, url, options)
    page.locator(".chart-part").first.wait_for()
    page.get_by_role("row").nth(2).wait_for()
    _save_screenshot(page, name)


def _open_page(browser: Browser, url: str, options: dict[str, Any]) -> Page:
    page = browser.new_context(**options, reduced_motion="reduce").new_page()
    page.goto(url)
    return page


def _save_screenshot(page: Page, name: str) -> None:
    page.wait_for_timeout(ANIMATION_MS)
    page.screenshot(path=IMAGES_DIR / f"{name}.png")
    page.context.close()


if __name__ == "__main__":
    main()
