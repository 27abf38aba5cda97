"""Stepping between the versions of a message on the page: regenerated and edited in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, send_message, wait_for_answer
from browser.page_checks import find_small_targets, find_violations, measure_overflow
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from browser.conftest import Visitors
    from support.web import StartWebServer

PHONE = {"viewport": PHONE_VIEWPORT, "has_touch": True, "is_mobile": True}


# The children of an element, line by line, by class or kind.
FIND_LINES = """foot => {
    const lines = []
    for (const child of [...foot.children].map(each => [each.getBoundingClientRect(), each])
        .sort(([a], [b]) => Math.abs(a.bottom - b.bottom) > 20 ? a.bottom - b.bottom : a.left - b.left)) {
        const [{ top, bottom }, element] = child, line = lines.at(-1), middle = (top + bottom) / 2
        const name = element.className || element.tagName
        if (line && Math.abs(line.middle - middle) < 10) line.names.push(name)
        else lines.push({ middle, names: [name] })
    }
    return lines.map(line => line.names)
}"""


def make_agent() -> ScriptedAgent:
    agent = ScriptedAgent(lambda _request: f"Answer {len(agent.requests)}")
    return agent


def find_switch(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name)


async def say(page: Page, text: str) -> None:
    """Send a message with the button, as on a phone, where Enter starts a new line."""
    await page.locator("#composer").fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()


@pytest.mark.soak
@pytest.mark.parametrize(
    "options", [pytest.param({}, id="desktop", marks=pytest.mark.soak), pytest.param(PHONE, id="phone")]
)
async def test_a_regenerated_answer_can_be_stepped_through_in_every_tab(
    start_web: StartWebServer, visitors: Visitors, options: dict[str, Any]
) -> None:
    page = await visitors.visit(await start_web(make_agent()), **options)
    await say(page, "try it once")
    await wait_for_answer(page)
    await say(page, "more")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    address = page.url
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator(".answer")).to_have_count(2)

    await page.locator(".answer").first.hover()
    await page.locator(".answer").first.get_by_role("button", name="Regenerate").click()
    for each in (page, other):
        await expect(each.locator(".answer")).to_have_count(1)  # what followed belongs to the other version
        await expect(each.locator(".answer")).to_contain_text("Answer 3")
        await expect(find_switch(each, "Version 2 of 2")).to_be_visible()
    await find_switch(page, "Version 2 of 2").get_by_role("button", name="Previous version").click()
    for each in (page, other):
        await expect(each.locator(".answer")).to_have_count(2)
        await expect(each.locator(".answer").first).to_contain_text("Answer 1")
        await expect(each.locator(".answer").last).to_contain_text("Answer 2")
        await expect(find_switch(each, "Version 1 of 2")).to_be_visible()
    assert page.url == address
    assert await find_violations(page) == []
    assert await find_small_targets(page) == [] or not options
    assert await measure_overflow(page) == 0
    if options:
        await page.set_viewport_size({"width": 320, "height": 700})
        for foot in await page.locator(".message-foot").all():
            assert await foot.evaluate("foot => foot.scrollWidth - foot.clientWidth") == 0
        foot = page.locator(".message-foot").filter(has=find_switch(page, "Version 1 of 2"))
        assert await foot.evaluate(FIND_LINES) == [["version-switch", "TIME", "duration"], ["message-actions"]]
    if not options:  # on a phone, the list is behind a button
        await expect(page.locator(".session")).to_have_count(1)


async def test_an_edited_message_replaces_the_other_version_in_place(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    agent = make_agent()
    page = await visitors.visit(await start_web(agent))
    await send_message(page, "what is one")
    await wait_for_answer(page)
    address = page.url
    await page.locator(".user-message").hover()
    edit = page.get_by_role("button", name="Edit", exact=True)
    await edit.click()
    await page.keyboard.press("Escape")
    await expect(edit).to_be_focused()
    await edit.click()
    await page.get_by_role("textbox", name="Edit").fill("what is two")
    await page.keyboard.press("Enter")
    await expect(page.locator(".user-message")).to_contain_text("what is two")
    await expect(page.locator(".user-message")).to_have_count(1)
    await expect(page.locator("#composer")).to_be_focused()
    await expect(page.locator(".answer")).to_contain_text("Answer 2")
    await wait_for_answer(page)
    assert [message["content"] for message in agent.requests[-1].messages] == ["what is two"]
    switch = page.locator(".user-message").get_by_role("group", name="Version 2 of 2")
    await expect(switch).to_be_visible()
    assert await find_violations(page) == []

    # Keyboard only: the focus stays on the control.
    await switch.get_by_role("button", name="Previous version").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".user-message")).to_contain_text("what is one")
    await expect(page.locator(".answer")).to_contain_text("Answer 1")
    next_button = find_switch(page, "Version 1 of 2").get_by_role("button", name="Next version")
    await expect(next_button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".user-message")).to_contain_text("what is two")
    assert page.url == address
    await expect(page.locator(".session")).to_have_count(1)
    await send_message(page, "and then")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    assert [message["content"] for message in agent.requests[-1].messages] == ["what is two", "Answer 2", "and then"]


@pytest.mark.soak
async def test_versions_are_chosen_by_command_and_in_german(start_web: StartWebServer, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(make_agent()), locale="de-DE")
    await send_message(page, "versuch es")
    await expect(page.locator(".answer")).to_contain_text("Answer 1")
    await page.locator("#composer").fill("/retry")
    await page.locator("#composer").press("Enter")
    await expect(page.locator(".answer")).to_contain_text("Answer 2")
    await expect(find_switch(page, "Version 2 von 2")).to_be_visible()
    await page.locator("#composer").fill("/version 1")
    await page.locator("#composer").press("Enter")
    await expect(page.locator(".answer").first).to_contain_text("Answer 1")
    switch = find_switch(page, "Version 1 von 2")
    await switch.get_by_role("button", name="Nächste Version").click()
    await expect(page.locator(".answer").first).to_contain_text("Answer 2")


async def test_a_tab_in_the_middle_of_a_conversation_shows_the_version_that_another_tab_chooses(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(make_agent())
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "one", "two")
    store = web.gateway.store

    async def add_later_messages(word: str) -> None:
        batch = [{"role": role, "content": f"{word} {n}"} for n in range(60) for role in ("user", "assistant")]
        await store.aio.append_to_transcript(session, batch)

    async def find_seq(text: str) -> int:
        log = (await owner.get(f"/api/sessions/{session}/messages", params={"after": 0, "limit": 9})).json()["events"]
        return int(next(event["seq"] for event in log if event["message"] and event["message"]["content"] == text))

    await add_later_messages("early")
    seq = await find_seq("two")
    retried = await owner.post(f"/api/sessions/{session}/retry", json={"seq": seq})
    await wait_for_turn(web.gateway, retried.json()["turn_id"])
    await add_later_messages("late")
    seq = await find_seq("two")
    page = await visitors.visit(web, path=f"/{session}#{seq}")
    messages = page.locator("main")  # without the previews of the sidebar
    await expect(find_switch(page, "Version 2 of 2")).to_be_visible()
    await expect(messages.get_by_text("Answer 3")).to_be_visible()
    await expect(messages.get_by_text("late 59", exact=True)).to_have_count(0)  # the end is not loaded

    chosen = await owner.post(f"/api/sessions/{session}/version", json={"seq": seq, "version": 1})
    assert chosen.is_success, chosen.text
    await expect(find_switch(page, "Version 1 of 2")).to_be_visible()
    await expect(messages.get_by_text("Answer 2")).to_be_visible()
    await expect(messages.get_by_text("early 0", exact=True).first).to_be_visible()
    await expect(messages.get_by_text("late 0", exact=True)).to_have_count(0)
