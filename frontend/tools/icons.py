"""Render the icons of the page from `public/icon.svg`: run `python frontend/tools/icons.py` when the logo changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

PUBLIC = Path(__file__).parents[1] / "public"
BACKGROUND = "#1f6f64"  # the system crops a maskable icon, so the background fills the square
ICONS = (("192", 192, False), ("512", 512, False), ("maskable-512", 512, True), ("apple-180", 180, True))


def build_page(size: int, *, is_maskable: bool) -> str:
    logo = (PUBLIC / "icon.svg").read_text("utf-8").replace("<svg ", f'<svg width="{size}" height="{size}" ', 1)
    background = f"background:{BACKGROUND}" if is_maskable else ""
    scale = "transform:scale(.82)" if is_maskable else ""
    return f'<body style="margin:0;{background}"><div style="{scale}">{logo}</div></body>'


def main() -> None:
    (PUBLIC / "icons").mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for name, size, is_maskable in ICONS:
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(build_page(size, is_maskable=is_maskable))
            page.screenshot(path=PUBLIC / "icons" / f"{name}.png", omit_background=not is_maskable)
        browser.close()


if __name__ == "__main__":
    main()
