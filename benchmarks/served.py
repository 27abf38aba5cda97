"""A server as people start it, a folder of its own, and a browser that looks at it."""

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

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def database_of(home: Path) -> str:
    """Where the server of a folder keeps its conversations."""
    return f"sqlite:///{home}/palaver.db"


@contextmanager
def served(home: Path, module: str = "palaver") -> Iterator[tuple[str, str]]:
    """A server that runs inside the block: its address, and a link that signs the owner in."""
    given = {"PALAVER_HOME": str(home), "PALAVER_DATABASE_URL": database_of(home), "PALAVER_MODEL": "demo"}
    command = [sys.executable, "-m", module, "serve", "--port", "0", "--no-open", "--link"]
    process = subprocess.Popen(
        command, env=os.environ | given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        for line in process.stdout or ():
            if found := re.search(r"(http://\S+)/sign-in#\S+", line):
                yield found[1], found[0]
                return
        raise SystemExit("the server did not start: run `palaver serve` to see why")
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def browsing() -> Iterator[Browser]:
    """The browser of this machine, or Playwright's own, without a window."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("PALAVER_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        yield browser
        browser.close()
