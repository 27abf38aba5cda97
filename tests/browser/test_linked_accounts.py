"""Linking a chat account on the page: what will be shared, in both languages, the two confirmations, and undoing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from palaver import SessionSource
from palaver.sessions.inbound import Inbound
from support.people import find_code

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer

TELEGRAM = SessionSource("telegram", "4711", user_id="4711", user_name="Mira")
POLL_INTERVAL_MILLISECONDS = 5_000


async def write(web: WebServer, text: str) -> str:
    return (await web.gateway.inbox.accept(Inbound(source=TELEGRAM, content=text))).reply or ""


async def test_both_sides_confirm_with_the_same_words_and_the_page_undoes_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(rules={"open_platforms": frozenset()})
    page = await visitors.visit(web, path="/settings#links", has_clock=True)
    section = page.get_by_role("region", name="Linked accounts")
    await section.get_by_role("button", name="Get code").click()
    code = find_code(await section.get_by_role("status").inner_text())
    assert "Nothing is shared yet" in await write(web, f"/link {code}")
    await page.clock.fast_forward(POLL_INTERVAL_MILLISECONDS)
    question = section.get_by_role("group", name="Link Mira (Telegram, 4711) to your account?")
    await expect(question).to_contain_text("You share: nothing yet. Mira sees and can change all of it.")
    await expect(question).to_contain_text("How much that is, you see when Mira has confirmed.")
    await expect(question).to_contain_text("Role of both: Owner.")
    await expect(question).to_contain_text("What is new after the link stays with owner.")
    await question.get_by_role("button", name="Link accounts").click()
    await expect(question.get_by_role("status")).to_have_text("You have confirmed. Waiting for Mira.")
    assert (await write(web, "/link confirm")).startswith("Linked")
    await page.clock.fast_forward(POLL_INTERVAL_MILLISECONDS)
    await expect(section.get_by_role("listitem").filter(has_text="Telegram")).to_contain_text("4711")
    await section.get_by_role("button", name="Unlink Telegram").click()
    await expect(page.get_by_role("dialog")).to_contain_text("gets back what it had before it was linked")
    await page.get_by_role("dialog").get_by_role("button", name="Unlink").click()
    await expect(section.get_by_text("No chat accounts yet")).to_be_visible()


async def test_a_link_is_canceled_and_a_wrong_code_explained_in_german(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(rules={"open_platforms": frozenset()})
    page = await visitors.visit(web, path="/settings#links", has_clock=True, locale="de-DE")
    section = page.get_by_role("region", name="Verknüpfte Konten")
    await section.get_by_label("Code von deinem anderen Konto").fill("ABCD-EFGH")
    await section.get_by_role("button", name="Code verwenden").click()
    await expect(page.get_by_text("Dieser Code gilt hier nicht.")).to_be_visible()
    await section.get_by_role("button", name="Code anfordern").click()
    code = find_code(await section.get_by_role("status").inner_text())
    await write(web, f"/link {code}")
    await page.clock.fast_forward(POLL_INTERVAL_MILLISECONDS)
    question = section.get_by_role("group", name="Mira (Telegram, 4711) mit deinem Konto verknüpfen?")
    await expect(question).to_contain_text("Rolle von beiden: Besitzer.")
    await question.get_by_role("button", name="Verknüpfung abbrechen").click()
    await expect(question).to_have_count(0)
    assert "There is no link" in await write(web, "/link confirm")
