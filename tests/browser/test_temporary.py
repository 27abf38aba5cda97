"""Temporary conversations on the page: they say what they are, work like others, and leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, open_path
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.agent.base import AgentRequest, ReasoningDelta, TextDelta
from palaver.testing import ScriptedAgent
from support.agents import SlowAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.async_api import Dialog, Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent
    from support.web import StartWebServer

SECRET = "xylophone"


def answer(request: AgentRequest) -> Sequence[AgentEvent]:
    texts = [str(message["content"]) for message in request.messages]
    return [ReasoningDelta("Counting."), TextDelta(f"**{len(texts)}** messages, the last is *{texts[-1]}*")]


async def ask(page: Page, text: str) -> None:
    await page.locator("#composer").fill(text)
    await page.get_by_role("button", name="Send").click()


async def read_storage(page: Page) -> str:
    stored: str = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
    return stored


async def test_a_temporary_conversation_works_and_leaves_nothing(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent(answer))
    page = await visitors.visit(web)
    await page.keyboard.press("Control+Shift+L")
    await expect(page.get_by_role("heading", name="Temporary conversation")).to_be_visible()
    await open_path(page, "")
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("tempo")
    await expect(palette.get_by_role("option", selected=True)).to_contain_text("emporary")
    await page.keyboard.press("Enter")
    await expect(palette).to_have_count(0)
    await expect(page.get_by_role("heading", name="Temporary conversation")).to_be_visible()
    await open_path(page, "")
    await page.get_by_role("button", name="Temporary conversation").click()
    await expect(page.get_by_role("heading", name="Temporary conversation")).to_be_visible()
    await expect(page.get_by_role("note")).to_contain_text("not saved, not in search or memory")
    await expect(page.locator("#composer")).to_be_focused()
    await expect(page.get_by_role("button", name="Add files")).to_have_count(0)
    assert await find_violations(page) == []
    await ask(page, f"my {SECRET} is in the cellar")
    await expect(page.locator(".answer").locator("strong")).to_have_text("1")
    await ask(page, "and where now?")
    await expect(page.locator(".answer").last.locator("strong")).to_have_text("3")
    await page.locator("#composer").fill("half a thought")
    assert SECRET not in await read_storage(page)
    assert "half a thought" not in await read_storage(page)
    assert await find_violations(page) == []

    await page.get_by_role("button", name="Regenerate").click()
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator(".answer").last.locator("strong")).to_have_text("3")

    # Other pages keep it, and neither the list nor the search knows of it.
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()
    await page.locator("#search").fill(SECRET)
    await expect(page.get_by_text("0 results")).to_be_attached()
    await page.get_by_role("button", name="Temporary conversation (open)").click()
    await expect(page.locator(".answer")).to_have_count(2)
    await expect(page.locator("#composer")).to_have_value("half a thought")
    await page.get_by_role("button", name="Clear search").click()

    await page.get_by_role("button", name="Delete now").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.locator(".answer")).to_have_count(0)
    await expect(page.get_by_text("can’t see your other conversations")).to_be_visible()
    await check_reload_asks_first(page)


async def check_reload_asks_first(page: Page) -> None:
    """Ask something, and lose it with a reload that asks whether to leave the page."""
    await ask(page, "hello")
    await expect(page.locator(".answer").locator("strong")).to_have_text("1")
    questions: list[str] = []

    async def leave(dialog: Dialog) -> None:
        questions.append(dialog.type)
        await dialog.accept()

    page.on("dialog", leave)
    await page.reload()
    await expect(page.get_by_text("can’t see your other conversations")).to_be_visible()
    assert questions == ["beforeunload"]
    await page.reload()  # nothing is lost now, so there is no question
    assert questions == ["beforeunload"]


async def test_an_answer_streams_and_can_be_stopped(start_web: StartWebServer, visitors: Visitors) -> None:
    slow = SlowAgent()
    web = await start_web(slow.agent)
    page = await visitors.visit(web, path="/temporary")
    await ask(page, "tell me a story")
    slow.allow_words(3)
    await expect(page.locator(".answer")).to_contain_text("word0 word1 word2")
    await expect(page.get_by_role("button", name="Send")).to_have_count(0)
    await page.keyboard.press("Shift+Escape")
    await expect(page.locator(".answer").get_by_text("stopped")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.locator(".answer")).to_contain_text("word0 word1 word2")


async def test_it_fits_a_phone_and_says_in_german_why_a_question_is_refused(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(ScriptedAgent(answer))
    visitors.allowed_errors += ("422",)
    phone: dict[str, Any] = {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True}
    page = await visitors.visit(web, path="/temporary", locale="de-DE", **phone)
    await expect(page.get_by_role("note")).to_contain_text("wird nicht gespeichert")
    send = page.get_by_role("button", name="Senden")
    await page.locator("#composer").fill("/new")
    await send.tap()
    await expect(page.get_by_text("In einem temporären Chat funktionieren keine Befehle.")).to_be_visible()
    await page.locator("#composer").fill("a" * 300)
    await send.tap()
    await expect(page.locator(".answer").last.locator("strong")).to_have_text("2")
    assert await measure_overflow(page) == 0
    assert await find_small_targets(page) == []
    assert await find_violations(page) == []
    await page.get_by_role("button", name="Chats einblenden").tap()
    assert await find_small_targets(page) == []
    await page.get_by_role("button", name="Temporärer Chat (offen)").tap()
    await expect(page.get_by_role("navigation")).to_have_count(0)
