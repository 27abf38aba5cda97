"""Files on their way into a message: dropped, pasted, chosen; taken or refused."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import answered, say
from palaver.agent.demo import DemoAgent
from palaver.domain.attachment import LARGEST, MOST_IN_A_MESSAGE

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page, Route

    from browser.conftest import Visitors
    from support.web import StartWeb

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf500f0003860180b5c1e6c10000000049454e44ae426082"
)
PROGRAM = b"\x7fELF\x02\x01\x01" + bytes(200)

# What a browser does when somebody drags a file from elsewhere, or pastes one; nobody else can do either.
_CARRY = """([where, data, name, type, ways]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([Uint8Array.from(atob(data), each => each.charCodeAt(0))], name, {type}));
  const target = document.querySelector(where);
  for (const way of ways) {
    const given = {bubbles: true, cancelable: true};
    target.dispatchEvent(way === 'paste' ? new ClipboardEvent(way, {...given, clipboardData: carried})
                                         : new DragEvent(way, {...given, dataTransfer: carried}));
  }
}"""


async def carry(page: Page, where: str, name: str, *ways: str, data: bytes = PICTURE) -> None:
    """Bring a file to a place on the page."""
    await page.evaluate(_CARRY, [where, b64encode(data).decode(), name, "image/png", list(ways)])


def chosen(name: str, data: bytes = PICTURE, kind: str = "image/png") -> Any:
    return {"name": name, "mimeType": kind, "buffer": data}


async def is_shown(page: Page, name: str) -> None:
    """Wait for a picture, and for what it shows."""
    picture = page.get_by_role("img", name=name)
    await expect(picture).to_be_visible()
    await expect(picture).to_have_js_property("naturalWidth", 1)


@pytest.mark.parametrize("way", ["dropped", "pasted", "chosen"])
async def test_a_picture_goes_along_and_is_shown(start_web: StartWeb, visitors: Visitors, way: str) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await say(page, "hello")
    await answered(page)
    if way == "dropped":
        await carry(page, ".messages", "dot.png", "dragover")
        await expect(page.get_by_text("Drop files to add them")).to_be_visible()
        await carry(page, ".messages", "dot.png", "drop")
        await expect(page.get_by_text("Drop files to add them")).to_have_count(0)
    elif way == "pasted":
        await carry(page, "#composer", "dot.png", "paste")
    else:
        async with page.expect_file_chooser() as choosing:
            await page.get_by_role("button", name="Add files").click()
        await (await choosing.value).set_files(chosen("dot.png"))
    await expect(page.locator(".adding .file")).to_have_attribute("aria-busy", "false")
    await say(page, "look at this")
    await expect(page.locator(".answer")).to_have_count(2)
    await answered(page)
    await is_shown(page, "dot.png")
    await page.reload()
    await is_shown(page, "dot.png")
    await expect(page.locator(".adding")).to_have_count(0)


async def test_a_conversation_begins_with_a_file_that_was_dropped(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await carry(page, ".home", "dot.png", "dragover", "drop")
    await expect(page.locator(".adding .file")).to_have_attribute("aria-busy", "false")
    await page.get_by_role("button", name="Send").click()
    await answered(page)
    await is_shown(page, "dot.png")


async def test_a_file_that_was_dropped_stays_with_its_conversation(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    owner = await web.client()
    one, two = [await web.talk(owner, "hello", title=title) for title in ("One", "Two")]
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{two}")
    await expect(page.locator(".answer")).to_be_visible()
    await page.get_by_role("link", name="One").click()
    await page.wait_for_url(f"**/{one}")
    await expect(page.locator(".answer")).to_be_visible()
    await carry(page, ".messages", "dot.png", "dragover", "drop")
    await expect(page.locator(".adding .file")).to_have_count(1)
    await page.locator("#composer").fill("half a thought")
    await page.get_by_role("link", name="Two").click()
    await page.wait_for_url(f"**/{two}")
    await expect(page.get_by_role("heading", name="Two")).to_be_visible()
    await expect(page.locator(".adding .file")).to_have_count(0)
    await page.get_by_role("link", name="One").click()
    await page.wait_for_url(f"**/{one}")
    await expect(page.locator("#composer")).to_have_value("half a thought")
    await expect(page.locator(".adding .file[aria-busy=false]")).to_contain_text("dot.png")
    await page.locator("#composer").press("Enter")
    await is_shown(page, "dot.png")
    await expect(page.locator(".adding")).to_have_count(0)

    await page.locator(".said").last.hover()
    await page.get_by_role("button", name="Edit and ask again").last.click()
    await page.get_by_role("textbox", name="Edit and ask again").fill("a whole thought")
    await page.get_by_role("link", name="Two").click()  # and back: what is being changed waits
    await page.wait_for_url(f"**/{two}")
    await page.get_by_role("link", name="One").click()
    await expect(page.get_by_role("textbox", name="Edit and ask again")).to_have_value("a whole thought")
    await page.get_by_role("button", name="Ask in a copy").click()
    await expect(page.locator(".said").last).to_contain_text("a whole thought")
    await is_shown(page, "dot.png")


async def test_a_file_is_shown_while_it_is_on_its_way_and_can_be_left_out(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    arrived = asyncio.Event()

    async def hold(route: Route) -> None:
        await arrived.wait()
        await route.continue_()

    await page.route("**/api/attachments", hold)
    await page.locator("#composer").fill("look at this")
    await page.locator("input[type=file]").set_input_files([chosen("dot.png"), chosen("other.png")])
    await expect(page.get_by_role("img", name="uploading")).to_have_count(2)
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await page.locator("#composer").press("Enter")
    await expect(page.locator("#composer")).to_have_value("look at this")
    await page.get_by_role("button", name="Remove other.png").click()
    arrived.set()
    await expect(page.get_by_role("img", name="uploading")).to_have_count(0)
    await page.get_by_role("button", name="Send").click()
    await answered(page)
    await is_shown(page, "dot.png")
    await expect(page.get_by_role("img", name="other.png")).to_have_count(0)


async def test_a_file_that_is_not_taken_says_why_and_nothing_else_is_lost(
    start_web: StartWeb, visitors: Visitors, tmp_path: Path
) -> None:
    huge = tmp_path / "huge.png"
    huge.write_bytes(PICTURE + bytes(LARGEST))
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    visitors.expected = ("422", "413")
    await page.locator("#composer").fill("half a thought")
    picker = page.locator("input[type=file]")
    await picker.set_input_files(chosen("dot.png"))
    await picker.set_input_files(chosen("tool.bin", PROGRAM, "application/octet-stream"))
    await expect(page.get_by_text("tool.bin was not added: ")).to_contain_text("taken")
    await picker.set_input_files(huge)
    await expect(page.get_by_text("huge.png was not added: ")).to_contain_text("20 MB")
    await expect(page.locator("#composer")).to_have_value("half a thought")
    await expect(page.locator(".adding .file")).to_have_count(1)
    await expect(page.locator(".adding .file")).to_contain_text("dot.png")


async def test_more_files_than_a_message_takes_are_not_left_out_in_silence(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    many = [chosen(f"{number}.png") for number in range(MOST_IN_A_MESSAGE + 2)]
    await page.locator("input[type=file]").set_input_files(many)
    await expect(page.get_by_text(f"At most {MOST_IN_A_MESSAGE} files go into one message.")).to_be_visible()
    await expect(page.locator(".adding .file[aria-busy=false]")).to_have_count(MOST_IN_A_MESSAGE)
