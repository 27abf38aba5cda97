"""Importing by dropping a file on the page: what would come in, confirm, and the conversations are there."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_violations, measure_overflow
from palaver.testing import ScriptedAgent
from support.exports import make_chatgpt_conversation, make_chatgpt_export, make_claude_export

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

_DROP = """([selector, name, data]) => {
    const bytes = Uint8Array.from(atob(data), each => each.charCodeAt(0))
    const transfer = new DataTransfer()
    transfer.items.add(new File([bytes], name))
    const place = document.querySelector(selector)
    for (const type of ['dragover', 'drop'])
        place.dispatchEvent(new DragEvent(type, {dataTransfer: transfer, bubbles: true, cancelable: true}))
}"""


async def drop_file(page: Page, selector: str, name: str, data: bytes) -> None:
    await page.evaluate(_DROP, [selector, name, base64.b64encode(data).decode()])


def make_export() -> bytes:
    return make_chatgpt_export(
        make_chatgpt_conversation(1, "where is my xylophone?", "In the **cellar**.", "Lost instruments"),
        make_chatgpt_conversation(2, "how do I bake bread?", "With flour.", "Bread"),
    )


@pytest.mark.soak
async def test_a_dropped_export_is_shown_confirmed_and_imported(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent())
    page = await visitors.visit(web)
    await drop_file(page, ".home", "data.json", b'{"name": "palaver"}')  # no export, so it is attached
    await page.get_by_role("button", name="Remove data.json").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await drop_file(page, ".home", "chatgpt.zip", make_export())
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Import conversations from “chatgpt.zip”?")
    assert await find_violations(page) == []
    await dialog.get_by_role("button", name="Upload and check").click()
    await expect(dialog.get_by_role("heading")).to_have_text("Import from ChatGPT")
    await expect(dialog.locator("dl > div").first).to_have_text("New conversations2")
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()
    assert await find_violations(page) == []
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.get_by_role("heading")).to_have_text("Import finished")
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)  # what is typed before goes to its button

    await expect(page.get_by_role("navigation").get_by_role("link", name="Lost instruments")).to_be_visible()
    await page.locator("#search").fill("xylophone")
    await expect(page.get_by_role("option").filter(has_text="xylophone").first).to_be_visible()
    await page.get_by_role("button", name="Clear search").click()
    await page.get_by_role("link", name="Lost instruments").click()
    await expect(page.locator(".answer strong")).to_have_text("cellar")

    # The same file again, now on a conversation: everything is there already.
    await drop_file(page, ".messages", "chatgpt.zip", make_export())
    await dialog.get_by_role("button", name="Upload and check").click()
    await expect(dialog.get_by_text("Everything in this file is already here.")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Import", exact=True)).to_have_count(0)
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)

    other = await visitors.visit(web, "bob", path="/settings")
    await expect(other.get_by_role("button", name="Choose a file…")).to_be_visible()
    await expect(other.get_by_text("chatgpt.zip")).to_have_count(0)
    await expect(other.get_by_text("Lost instruments")).to_have_count(0)
    await check_import_in_settings(other)


async def check_import_in_settings(page: Page) -> None:
    """Import a file in the settings, which list it."""
    export = {
        "name": "conversations.json",
        "mimeType": "application/json",
        "buffer": make_claude_export("hello?", "Hello.", "Greetings"),
    }
    await page.locator("input[type=file][accept]").set_input_files(export)  # type: ignore[arg-type]
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Upload and check").click()
    await expect(dialog.get_by_role("heading")).to_have_text("Import from Claude")
    await page.reload()  # a tab that is closed loses nothing
    await page.get_by_role("button", name="Open the import of conversations.json").click()
    await dialog.get_by_role("button", name="Import", exact=True).click()
    await expect(dialog.get_by_role("heading")).to_have_text("Import finished")
    await dialog.get_by_role("button", name="Close").click()
    await expect(page.get_by_text("imported ·")).to_be_visible()
    await expect(page.get_by_role("navigation").get_by_role("link", name="Greetings")).to_be_visible()
    assert await find_violations(page) == []


async def test_a_file_that_is_no_export_says_so_in_the_readers_language(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent())
    page = await visitors.visit(
        web, path="/temporary", viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True, locale="de-DE"
    )
    await expect(page.locator("#composer")).to_be_visible()
    await drop_file(page, ".messages", "photos.zip", b"PK\x03\x04" + b"\0" * 100)
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Chats aus „photos.zip“ importieren?")
    await dialog.get_by_role("button", name="Hochladen und prüfen").tap()
    await expect(dialog.get_by_role("heading")).to_have_text("Diese Datei kann nicht importiert werden")
    await expect(dialog.get_by_role("alert")).to_be_visible()
    assert await measure_overflow(page) == 0
    assert await find_violations(page) == []
