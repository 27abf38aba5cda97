"""Texts that take a parser minutes: the page shows them and stays usable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import send_message
from palaver.core.errors import AgentError
from palaver.drivers.demo import DemoAgent
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentRequest
    from support.web import StartWebServer

HOSTILE_TEXTS = {
    "a formula that never ends": "$$" + " " * 6000,
    "quotes in quotes": ">" * 3000 + " deep",
    "emphasis": "*_" * 10_000,
    "links": "[" * 10_000,
    "code": "```java\n" + "$" * 30_000 + "\n```",
    "many languages": "\n".join(f"```{name}\n{'a ' * 5000}\n```" for name in ("c", "ini", "perl", "scala")),
}

CODE = {
    "something slow": "```java\n" + "$" * 40_000 + "\n```",
    "some code": "```python\ndef greet(name: str) -> str:\n    return name\n```",
}


def get_question(request: AgentRequest) -> str:
    return str(request.messages[-1]["content"])


async def wait_for_frames(page: Page, count: int) -> None:
    """Wait until the page has been drawn some times: a page that is busy is not drawn."""
    await page.evaluate(
        """count => new Promise(resolve => {
            const next = () => { count -= 1; count < 0 ? resolve() : requestAnimationFrame(next); };
            next();
        })""",
        count,
    )


def answer(request: AgentRequest) -> str:
    question = get_question(request)
    if question in HOSTILE_TEXTS:
        return f"{HOSTILE_TEXTS[question]}\n\nthe end"
    if question in CODE:
        return CODE[question]
    raise AgentError(
        "The provider rejected the key.",
        detail="Incorrect API key provided: (key removed)",
        status=401,
        provider="openai",
    )


async def start_conversation(page: Page) -> None:
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()


async def test_hostile_texts_and_messages_of_providers_are_shown_and_the_page_stays_usable(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(ScriptedAgent(answer)))
    for number, name in enumerate(HOSTILE_TEXTS, 1):
        await send_message(page, name)
        await expect(page.get_by_text("the end")).to_have_count(number)
        await asyncio.wait_for(wait_for_frames(page, 3), 60)
    await page.locator("#composer").fill("still here")
    await expect(page.locator("#composer")).to_have_value("still here")
    await start_conversation(page)
    await check_highlighting(page)
    await start_conversation(page)
    await check_message_of_provider(page)


async def check_highlighting(page: Page) -> None:
    """Code is highlighted after a text that took too long."""
    await send_message(page, "something slow")
    await expect(page.locator("pre code")).to_have_count(1)
    await send_message(page, "some code")
    await expect(page.locator("pre code .hljs-keyword").first).to_have_text("def")


async def check_message_of_provider(page: Page) -> None:
    """The provider's own message is shown on demand."""
    await send_message(page, "hello")
    await expect(page.get_by_text("The provider rejected the key.")).to_be_visible()
    await expect(page.get_by_text("Incorrect API key provided")).to_be_hidden()
    await page.get_by_text("Details").click()
    await expect(page.get_by_text("Incorrect API key provided")).to_be_visible()


async def test_an_owner_sees_and_ends_everybodys_shared_links(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    grace = await web.sign_in("grace")
    session_id = await web.create_conversation(grace, "Trip to Lisbon")
    shared = await grace.post(f"/api/sessions/{session_id}/shares")
    assert shared.is_success, shared.text
    page = await visitors.visit(web, path="/settings")
    await (
        page.get_by_role("button", name="Shared links")
        .or_(page.get_by_role("tab", name="Shared links"))
        .or_(page.get_by_role("link", name="Shared links"))
        .first.click()
    )
    await expect(page.get_by_text("grace")).to_be_visible()
    await page.get_by_role("button", name="Stop sharing").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop sharing").click()
    await expect(page.get_by_text("grace")).to_be_hidden()
    assert (await grace.get("/api/shares")).json()["shares"] == []
