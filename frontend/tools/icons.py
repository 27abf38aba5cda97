"""Draws the icons of the page from its mark: `python frontend/tools/icons.py`, whenever `public/icon.svg` changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

PUBLIC = Path(__file__).parents[1] / "public"
GROUND = "#1f6f64"  # of the mark; a maskable icon is cut by the system, so it fills its square
ICONS = (("192", 192, False), ("512", 512, False), ("maskable-512", 512, True), ("apple-180", 180, True))


def page_of(size: int, *, fills: bool) -> str:
    """A document that shows the mark and nothing else."""
    mark = (PUBLIC / "icon.svg").read_text("utf-8").replace("<svg ", f'<svg width="{size}" height="{size}" ', 1)
    ground = f"background:{GROUND}" if fills else ""
    shrink = "transform:scale(.82)" if fills else ""
    return f'<body style="margin:0;{ground}"><div style="{shrink}">{mark}</div></body>'


def main() -> None:
    """Write every icon."""
    (PUBLIC / "icons").mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for name, size, fills in ICONS:
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(page_of(size, fills=fills))
            page.screenshot(path=PUBLIC / "icons" / f"{name}.png", omit_background=not fills)
        browser.close()


if __name__ == "__main__":
    main()
