"""The pictures of the README: `python -m docs.screenshots` starts a server on conversations of its own."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.served import browsing, database_of, served
from docs.pictured import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, StorageState

IMAGES = Path(__file__).parent / "images"
DESK = {"width": 1360, "height": 880}
PHONE = {"width": 390, "height": 844}


def main() -> None:
    """Take every picture."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shown = fill(database_of(home), datetime.now(UTC))
        with served(home) as (url, link), browsing() as browser:
            signed_in = _sign_in(browser, link)
            look = {"storage_state": signed_in, "locale": "en-GB", "device_scale_factor": 2}
            _conversation(browser, f"{url}/{shown}", "desktop-light", viewport=DESK, color_scheme="light", **look)
            _conversation(browser, f"{url}/{shown}", "desktop-dark", viewport=DESK, color_scheme="dark", **look)
            _conversation(browser, f"{url}/{shown}", "phone", viewport=PHONE, has_touch=True, is_mobile=True, **look)
            _usage(browser, f"{url}/usage", "usage", viewport=DESK, color_scheme="light", **look)


def _sign_in(browser: Browser, link: str) -> StorageState:
    page = browser.new_page()
    page.goto(link)
    page.get_by_role("navigation").wait_for()
    return page.context.storage_state()


def _conversation(browser: Browser, address: str, name: str, **look: Any) -> None:
    page = _opened(browser, address, **look)
    page.locator(".answer pre code .hljs-comment").first.wait_for()
    _taken(page, name)


def _usage(browser: Browser, address: str, name: str, **look: Any) -> None:
    page = _opened(browser, address, **look)
    page.locator(".chart-part").first.wait_for()
    page.get_by_role("row").nth(2).wait_for()
    _taken(page, name)


def _opened(browser: Browser, address: str, **look: Any) -> Page:
    page = browser.new_context(**look, reduced_motion="reduce").new_page()
    page.goto(address)
    return page


def _taken(page: Page, name: str) -> None:
    page.wait_for_timeout(600)  # until nothing moves any more
    page.screenshot(path=IMAGES / f"{name}.png")
    page.context.close()


if __name__ == "__main__":
    main()
