"""Starts `palaver serve` on a folder of its own, and a browser to open its page in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

BROWSER_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def build_database_url(home: Path) -> str:
    """Return the URL of the database that the server of this folder uses."""
    return f"sqlite:///{home}/palaver.db"


@contextmanager
def start_server(home: Path, module: str = "palaver", model: str = "demo") -> Iterator[tuple[str, str]]:
    """Run a server inside the block. Yields its URL and a link that signs the owner in."""
    environment = {"PALAVER_HOME": str(home), "PALAVER_DATABASE_URL": build_database_url(home), "PALAVER_MODEL": model}
    command = [sys.executable, "-m", module, "serve", "--port", "0", "--no-open", "--link"]
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        for line in process.stdout or ():
            if match := re.search(r"(http://\S+)/sign-in#\S+", line):
                yield match[1], match[0]
                return
        raise SystemExit("The server did not start. Run `palaver serve` to see why.")
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a headless browser: the one installed on this machine, or else Playwright's own."""
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("PALAVER_BROWSER") or next(filter(None, map(shutil.which, BROWSER_COMMANDS)), None)
    arguments = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=arguments)
        yield browser
        browser.close()
