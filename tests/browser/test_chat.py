"""Chatting with the agent on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, send_message, wait_for_answer
from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.drivers.demo import DemoAgent
from palaver.testing import ScriptedAgent
from support.agents import WORDS, SlowAgent

if TYPE_CHECKING:
    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent
    from support.web import StartWebServer, WebServer

SESSION_URL = re.compile(r"/\d{8}_\d{6}_[0-9a-f]{8}$")


async def test_the_next_person_to_sign_in_sees_nothing_of_the_previous_one(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner, ann = await web.sign_in(), await web.sign_in("Ann")
    assert (await owner.post("/api/projects", json={"name": "Travel"})).is_success
    assert (await ann.put("/api/me/password", json={"new_password": "correct horse battery"})).is_success
    page = await visitors.visit(web)
    await page.get_by_role("button", name="Travel", exact=True).click()
    other = await page.context.new_page()
    await other.goto(web.url)
    await expect(other.get_by_role("heading", name="Hello, owner")).to_be_visible()
    visitors.allowed_errors = ("401",)
    await page.context.clear_cookies()  # as if the owner had been signed out on another device
    name = page.get_by_label("Name", exact=True)  # the page may have noticed it by itself
    await page.get_by_role("combobox", name="Search").or_(name).first.fill("anything")
    await name.fill("Ann")
    await page.get_by_label("Password").fill("correct horse battery")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Hello, Ann")).to_be_visible()
    await expect(page.get_by_text("Travel")).to_have_count(0)
    await send_message(page, "hello")
    await wait_for_answer(page)  # the conversation was not started in the owner's project
    await expect(other.get_by_role("heading", name="Hello, Ann")).to_be_visible()
    await expect(other.get_by_text("Travel")).to_have_count(0)


async def test_a_reload_during_an_answer_loses_nothing_and_two_tabs_and_a_phone_stay_in_sync(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    slow_agent = SlowAgent()
    web = await start_web(slow_agent.agent)
    page = await visitors.visit(web)
    await send_message(page, "Tell me **something** about Lisbon")
    await page.wait_for_url(SESSION_URL)
    slow_agent.allow_words(5)
    answer = page.locator(".answer")
    await expect(answer).to_contain_text("word4")
    await expect(answer).to_have_attribute("aria-busy", "true")
    await expect(page.get_by_role("img", name="Responding…")).to_be_visible()
    slow_agent.allow_words(5)
    await expect(answer).to_contain_text("word9")
    await page.reload()
    await expect(answer).to_contain_text("word0 word1 word2 word3 word4 word5 word6 word7 word8 word9")
    slow_agent.allow_words(len(WORDS) - 10)
    await wait_for_answer(page)
    await expect(page.locator(".answer .markdown")).to_have_text("".join(WORDS).strip())
    await expect(page.locator(".answer")).to_have_count(1)
    await expect(page.locator(".user-message")).to_have_count(1)
    row = page.get_by_role("listitem").get_by_role("link")
    await expect(row).to_contain_text("Tell me something about Lisbon")

    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await check_two_tabs_and_a_phone(web, visitors, slow_agent, page)


async def check_two_tabs_and_a_phone(web: WebServer, visitors: Visitors, slow_agent: SlowAgent, desk: Page) -> None:
    await send_message(desk, "one for all")
    await desk.wait_for_url(SESSION_URL)
    tab = await desk.context.new_page()
    phone = await visitors.visit(web, viewport=PHONE_VIEWPORT, has_touch=True, is_mobile=True)
    everywhere = (desk, tab, phone)
    for page in (tab, phone):
        await page.goto(desk.url)
    slow_agent.allow_words(7)
    for page in everywhere:
        await expect(page.locator(".answer")).to_contain_text("word6")
    await phone.locator("#composer").fill("and from the phone")
    await phone.get_by_role("button", name="Send").tap()
    for page in everywhere:
        await expect(page.get_by_text("Queued (1 ahead)")).to_be_visible()
    slow_agent.allow_words(80)
    for page in everywhere:
        await expect(page.locator(".answer")).to_have_count(2)
        await wait_for_answer(page)
    head = desk.locator("header.bar")
    await head.get_by_role("button", name=re.compile("Actions for")).click()
    await desk.get_by_role("menuitem", name="Undo last exchange").click()
    for page in everywhere:
        await expect(page.get_by_text("Last exchange undone.")).to_be_visible()
        await expect(page.locator(".user-message")).to_have_count(1)
    texts = [await page.locator(".row").all_inner_texts() for page in everywhere]
    assert texts[0] == texts[1] == texts[2]


async def test_an_answer_shows_markdown_reasoning_and_tools(start_web: StartWebServer, visitors: Visitors) -> None:
    said = (
        "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\ndef f(): return 1\n```\n\n"
        "So $a^2$ it is.\n\n$$\\frac{1}{2}$$\n\n<script>alert(1)</script>"
    )
    events: list[AgentEvent] = [
        ReasoningDelta("I should look."),
        ToolCall("c1", "look_up", '{"word": "sea"}'),
        ToolResult("c1", "look_up", "It is blue."),
        TextDelta(said),
    ]
    page = await visitors.visit(await start_web(ScriptedAgent(lambda _: events)))
    await send_message(page, "show me")
    await wait_for_answer(page)
    answer = page.locator(".answer")
    await expect(answer.get_by_role("heading", name="Title")).to_be_visible()
    await expect(answer.get_by_role("cell", name="2")).to_be_visible()
    await expect(answer.locator(".hljs-keyword").first).to_have_text("def")
    await expect(answer.locator(".katex")).to_have_count(2)
    await expect(answer).to_contain_text("<script>alert(1)</script>")
    reasoning = answer.locator(".reasoning")
    await expect(reasoning.get_by_text("I should look.")).to_be_hidden()
    await reasoning.locator("summary").click()
    await expect(reasoning.get_by_text("I should look.")).to_be_visible()
    tool = answer.locator(".tool")
    await expect(tool).to_have_attribute("data-state", "done")
    await tool.locator("summary").click()
    await expect(tool.get_by_text("It is blue.")).to_be_visible()


async def check_offline_messages(web: WebServer, visitors: Visitors, page: Page) -> None:
    """Messages that are written offline are queued, and sent once."""
    await send_message(page, "before")
    await wait_for_answer(page)
    await visitors.go_offline(page)
    await send_message(page, "kept for later")
    await expect(page.locator(".user-message.pending")).to_contain_text("kept for later")
    await expect(page.get_by_text("You’re offline.")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.locator(".user-message.pending")).to_have_count(0)
    await expect(page.locator(".answer")).to_have_count(2)
    owner = await web.sign_in()
    events = (await owner.get(f"/api/sessions/{page.url.rpartition('/')[2]}/messages")).json()["events"]
    said = [each["message"]["content"] for each in events if each["message"] and each["message"]["role"] == "user"]
    assert said == ["before", "kept for later"]

    visitors.allowed_errors += ("404",)
    await visitors.go_offline(page)
    await send_message(page, "too late for this one")
    await expect(page.locator(".user-message.pending")).to_be_visible()
    assert (await owner.delete(f"/api/sessions/{page.url.rpartition('/')[2]}")).status_code == 204
    await page.context.set_offline(False)
    await expect(page.get_by_role("heading", name="Conversation not found")).to_be_visible()
    await expect(page.locator(".user-message.pending")).to_contain_text("too late for this one")
    await page.get_by_role("button", name="Edit").click()
    await expect(page.locator("#composer")).to_have_value("too late for this one")
    await expect(page.locator(".user-message.pending")).to_have_count(0)


async def test_drafts_survive_commands_are_completed_and_offline_messages_are_sent_once(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    await check_description_of_the_server(page)
    await send_message(page, "hello")
    await wait_for_answer(page)
    await page.locator("#composer").fill("half a thou")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_have_value("")
    await page.go_back()
    await expect(page.locator("#composer")).to_have_value("half a thou")
    await page.reload()
    await expect(page.locator("#composer")).to_have_value("half a thou")
    await page.locator("#composer").fill("")

    await page.locator("#composer").press_sequentially("/sta")
    await expect(page.get_by_role("option", name="/status")).to_be_visible()
    await page.locator("#composer").press("Enter")
    await page.locator("#composer").press("Enter")
    await expect(page.locator(".reply")).to_contain_text("Model")
    await expect(page.locator(".user-message")).to_have_count(1)
    await page.locator(".reply").get_by_role("button", name="Dismiss").click()
    await expect(page.locator(".reply")).to_have_count(0)

    composer = page.locator("#composer")
    await composer.press_sequentially("/und")
    await expect(page.get_by_role("option", name="/undo")).to_be_visible()
    await composer.press("Enter")
    await expect(composer).to_have_value("/undo ")
    await composer.fill("/undo")  # already complete, so Enter runs it
    await expect(page.get_by_role("option", name="/undo")).to_be_visible()
    await composer.press("Enter")
    await expect(page.locator(".event-line").filter(has_text="undone")).to_be_visible()
    await expect(composer).to_have_value("")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".home")).to_be_visible()
    await check_offline_messages(web, visitors, page)


async def check_description_of_the_server(page: Page) -> None:
    """Read on the home page what the server is, hide it, and find it hidden after a reload."""
    about = page.get_by_role("region", name="About this server")
    await expect(about).to_contain_text("A placeholder with scripted answers, no model.")
    await expect(about).to_contain_text("Continue the same conversations in the terminal:")
    await about.get_by_role("button", name="Hide").click()
    await page.reload()
    await expect(page.get_by_role("button", name="About this server")).to_be_visible()
