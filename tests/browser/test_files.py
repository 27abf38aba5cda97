"""Attaching files to a message: by drop, paste and file picker; uploads and rejections."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver.drivers.demo import DemoAgent
from palaver.sessions.speech import MAX_FILE_BYTES, MAX_FILES_PER_MESSAGE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page, Route

    from browser.conftest import Visitors
    from support.web import StartWebServer

PNG_BYTES = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf500f0003860180b5c1e6c10000000049454e44ae426082"
)
ELF_BYTES = b"\x7fELF\x02\x01\x01" + bytes(200)

# Dispatches the events of dragging or pasting a file, which Playwright cannot do itself.
_DISPATCH_FILE_EVENTS = """([where, data, name, type, ways]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([Uint8Array.from(atob(data), each => each.charCodeAt(0))], name, {type}));
  const target = document.querySelector(where);
  for (const way of ways) {
    const given = {bubbles: true, cancelable: true};
    target.dispatchEvent(way === 'paste' ? new ClipboardEvent(way, {...given, clipboardData: carried})
                                         : new DragEvent(way, {...given, dataTransfer: carried}));
  }
}"""


async def dispatch_file_events(page: Page, where: str, name: str, *ways: str, data: bytes = PNG_BYTES) -> None:
    await page.evaluate(_DISPATCH_FILE_EVENTS, [where, b64encode(data).decode(), name, "image/png", list(ways)])


def build_upload(name: str, data: bytes = PNG_BYTES, kind: str = "image/png") -> Any:
    return {"name": name, "mimeType": kind, "buffer": data}


async def expect_image_loaded(page: Page, name: str) -> None:
    """Wait until an image is visible and its data is loaded."""
    picture = page.get_by_role("img", name=name)
    await expect(picture).to_be_visible()
    await expect(picture).to_have_js_property("naturalWidth", 1)


async def test_images_are_attached_in_three_ways_and_stay_with_their_conversation(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner = await web.sign_in()
    session, one, two = [await web.create_conversation(owner, "hello", title=each) for each in ("Zero", "One", "Two")]
    page = await visitors.visit(web, path=f"/{session}")
    await wait_for_answer(page)
    await dispatch_file_events(page, ".messages", "dropped.png", "dragover")
    await expect(page.get_by_text("Drop files to attach")).to_be_visible()
    await dispatch_file_events(page, ".messages", "dropped.png", "drop")
    await expect(page.get_by_text("Drop files to attach")).to_have_count(0)
    await dispatch_file_events(page, "#composer", "pasted.png", "paste")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Add files").click()
    await (await choosing.value).set_files(build_upload("chosen.png"))
    await expect(page.locator(".draft-files .file[aria-busy=false]")).to_have_count(3)
    await send_message(page, "look at these")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    for name in ("dropped.png", "pasted.png", "chosen.png"):
        await expect_image_loaded(page, name)
    await page.reload()
    for name in ("dropped.png", "pasted.png", "chosen.png"):
        await expect_image_loaded(page, name)
    await expect(page.locator(".draft-files")).to_have_count(0)
    await check_drafts(page, one, two)


async def check_drafts(page: Page, one: str, two: str) -> None:
    """The files of a draft and an edit stay with their conversation."""
    await page.get_by_role("link", name="One").click()
    await page.wait_for_url(f"**/{one}")
    await expect(page.locator(".answer")).to_be_visible()
    await dispatch_file_events(page, ".messages", "dot.png", "dragover", "drop")
    await expect(page.locator(".draft-files .file")).to_have_count(1)
    await page.locator("#composer").fill("half a thought")
    await page.get_by_role("link", name="Two").click()
    await page.wait_for_url(f"**/{two}")
    await expect(page.get_by_role("heading", name="Two")).to_be_visible()
    await expect(page.locator(".draft-files .file")).to_have_count(0)
    await page.get_by_role("link", name="One").click()
    await page.wait_for_url(f"**/{one}")
    await expect(page.locator("#composer")).to_have_value("half a thought")
    await expect(page.locator(".draft-files .file[aria-busy=false]")).to_contain_text("dot.png")
    await page.locator("#composer").press("Enter")
    await expect_image_loaded(page, "dot.png")
    await expect(page.locator(".draft-files")).to_have_count(0)

    await page.locator(".user-message").last.hover()
    await page.get_by_role("button", name="Edit").last.click()
    await page.get_by_role("textbox", name="Edit").fill("a whole thought")
    await page.get_by_role("link", name="Two").click()  # and back: the edit is kept
    await page.wait_for_url(f"**/{two}")
    await page.get_by_role("link", name="One").click()
    await expect(page.get_by_role("textbox", name="Edit")).to_have_value("a whole thought")
    await page.get_by_role("button", name="Send in a new branch").click()
    await expect(page.locator(".user-message").last).to_contain_text("a whole thought")
    await expect_image_loaded(page, "dot.png")


@pytest.mark.soak
async def test_files_on_the_home_page_are_uploaded_removed_and_rejected_with_the_reason(
    start_web: StartWebServer, visitors: Visitors, tmp_path: Path
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(word_delay=0)))
    await dispatch_file_events(page, ".home", "dot.png", "dragover", "drop")
    await expect(page.locator(".draft-files .file")).to_have_attribute("aria-busy", "false")
    await page.get_by_role("button", name="Send").click()
    await wait_for_answer(page)
    await expect_image_loaded(page, "dot.png")

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await check_upload(page)

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    visitors.allowed_errors = ("422", "413")
    await check_rejections(page, tmp_path)


async def check_upload(page: Page) -> None:
    """Start to upload two files, remove one of them meanwhile, and send the other."""
    may_upload = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_upload.wait()
        await route.continue_()

    await page.route("**/api/attachments", hold)
    await page.locator("#composer").fill("look at this")
    await page.locator("input[type=file]").set_input_files([build_upload("dot.png"), build_upload("other.png")])
    await expect(page.get_by_role("img", name="uploading")).to_have_count(2)
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await page.locator("#composer").press("Enter")
    await expect(page.locator("#composer")).to_have_value("look at this")
    await page.get_by_role("button", name="Remove other.png").click()
    may_upload.set()
    await expect(page.get_by_role("img", name="uploading")).to_have_count(0)
    await page.get_by_role("button", name="Send").click()
    await wait_for_answer(page)
    await expect_image_loaded(page, "dot.png")
    await expect(page.get_by_role("img", name="other.png")).to_have_count(0)


async def check_rejections(page: Page, folder: Path) -> None:
    """Choose files that are rejected: each with its reason, and the rest of the draft stays."""
    huge = folder / "huge.png"
    huge.write_bytes(PNG_BYTES + bytes(MAX_FILE_BYTES))
    await page.locator("#composer").fill("half a thought")
    picker = page.locator("input[type=file]")
    await picker.set_input_files(build_upload("dot.png"))
    await picker.set_input_files(build_upload("tool.bin", ELF_BYTES, "application/octet-stream"))
    await expect(page.get_by_text("Couldn’t attach tool.bin: ")).to_contain_text("This file type isn’t supported.")
    await picker.set_input_files(huge)
    await expect(page.get_by_text("Couldn’t attach huge.png: ")).to_contain_text("20 MB")
    await expect(page.locator("#composer")).to_have_value("half a thought")
    await expect(page.locator(".draft-files .file")).to_have_count(1)
    await expect(page.locator(".draft-files .file")).to_contain_text("dot.png")

    await page.get_by_role("button", name="Remove dot.png").click()
    many = [build_upload(f"{number}.png") for number in range(MAX_FILES_PER_MESSAGE + 2)]
    await picker.set_input_files(many)
    await expect(
        page.get_by_text(f"You can attach up to {MAX_FILES_PER_MESSAGE} files to one message.")
    ).to_be_visible()
    await expect(page.locator(".draft-files .file[aria-busy=false]")).to_have_count(MAX_FILES_PER_MESSAGE)
