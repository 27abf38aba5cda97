"""Talking with the agent on the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import PHONE, answered, link_for, say
from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.agent.demo import DemoAgent
from palaver.testing import ScriptedAgent
from support.agents import WORDS, Slowly

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent
    from support.web import StartWeb

SESSION = re.compile(r"/\d{8}_\d{6}_[0-9a-f]{8}$")


async def test_a_link_signs_in_once_and_leaves_the_address(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    link = await link_for(web, "owner")
    page = await (await visitors.context(web.url)).new_page()
    await page.goto(link)
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    assert "#" not in page.url

    visitors.expected = ("401",)
    await page.goto(link)  # whoever is signed in already needs no fresh one
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    other = await (await visitors.context(web.url)).new_page()
    await other.goto(link)
    await expect(other.get_by_role("alert")).to_contain_text("used or is too old")


async def test_a_name_and_a_password_sign_in_too(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    changed = await (await web.client()).put("/api/me/password", json={"new": "correct horse battery"})
    assert changed.is_success, changed.text
    visitors.expected = ("401",)
    page = await (await visitors.context(web.url)).new_page()
    await page.goto(web.url)
    await page.get_by_label("Name").fill("owner")
    await page.get_by_label("Password").fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Password").fill("correct horse battery")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Hello, owner")).to_be_visible()
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()


async def test_who_signs_in_after_another_sees_nothing_of_theirs(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    owner, ann = await web.client(), await web.client("Ann")
    assert (await owner.post("/api/projects", json={"name": "Travel"})).is_success
    assert (await ann.put("/api/me/password", json={"new": "correct horse battery"})).is_success
    page = await visitors.visit(web)
    await page.get_by_role("button", name="Travel", exact=True).click()
    other = await page.context.new_page()
    await other.goto(web.url)
    await expect(other.get_by_role("heading", name="Hello, owner")).to_be_visible()
    visitors.expected = ("401",)
    await page.context.clear_cookies()  # as when the owner was signed out from elsewhere
    await page.get_by_role("searchbox").fill("anything")
    await page.get_by_label("Name").fill("Ann")
    await page.get_by_label("Password").fill("correct horse battery")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Hello, Ann")).to_be_visible()
    await expect(page.get_by_text("Travel")).to_have_count(0)
    await say(page, "hello")
    await answered(page)  # and it did not begin in the project of another
    await expect(other.get_by_role("heading", name="Hello, Ann")).to_be_visible()
    await expect(other.get_by_text("Travel")).to_have_count(0)


async def test_the_first_page_says_what_runs_and_can_be_told_to_be_quiet(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    about = page.get_by_role("region", name="What is running here")
    await expect(about).to_contain_text("demo agent")
    await expect(about).to_contain_text("live in both")
    await about.get_by_role("button", name="Hide this").click()
    await page.reload()
    await expect(page.get_by_role("button", name="What is running here?")).to_be_visible()


async def test_a_message_begins_a_conversation_and_its_answer_grows(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "Tell me **something** about Lisbon")
    await page.wait_for_url(SESSION)
    slowly.let(5)
    answer = page.locator(".answer")
    await expect(answer).to_contain_text("word4")
    await expect(answer).to_have_attribute("aria-busy", "true")
    await expect(page.get_by_role("img", name="an answer is being given")).to_be_visible()
    slowly.let(40)
    await answered(page)
    await expect(answer).to_contain_text("word39")
    await expect(page.locator(".answer")).to_have_count(1)
    await expect(page.locator(".said")).to_have_count(1)
    listed = page.get_by_role("listitem").get_by_role("link")
    await expect(listed).to_contain_text("Tell me something about Lisbon")


async def test_a_reload_in_mid_answer_loses_nothing(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    page = await visitors.visit(await start_web(slowly.agent()))
    await say(page, "go on")
    await page.wait_for_url(SESSION)
    slowly.let(10)
    await expect(page.locator(".answer")).to_contain_text("word9")
    await page.reload()
    await expect(page.locator(".answer")).to_contain_text("word0 word1 word2 word3 word4 word5 word6 word7 word8 word9")
    slowly.let(40)
    await answered(page)
    await expect(page.locator(".answer .markdown")).to_have_text("".join(WORDS).strip())
    await expect(page.locator(".said")).to_have_count(1)


async def test_two_tabs_stay_the_same(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    first = await visitors.visit(await start_web(slowly.agent()))
    await say(first, "one for both")
    await first.wait_for_url(SESSION)
    second = await first.context.new_page()
    await second.goto(first.url)
    slowly.let(3)
    for page in (first, second):
        await expect(page.locator(".answer")).to_contain_text("word2")
    slowly.let(40)
    for page in (first, second):
        await answered(page)
    await say(second, "and back")
    await expect(first.locator(".said")).to_have_count(2)
    await expect(first.locator(".said").last).to_contain_text("and back")
    slowly.let(40)
    for page in (first, second):
        await expect(page.locator(".answer")).to_have_count(2)
        await answered(page)


async def test_two_tabs_and_a_phone_show_the_same(start_web: StartWeb, visitors: Visitors) -> None:
    slowly = Slowly()
    web = await start_web(slowly.agent())
    desk = await visitors.visit(web)
    await say(desk, "one for all")
    await desk.wait_for_url(SESSION)
    tab = await desk.context.new_page()
    phone = await visitors.visit(web, viewport=PHONE, has_touch=True, is_mobile=True)
    everywhere = (desk, tab, phone)
    for page in (tab, phone):
        await page.goto(desk.url)
    slowly.let(7)
    for page in everywhere:
        await expect(page.locator(".answer")).to_contain_text("word6")
    await phone.locator("#composer").fill("and from the phone")
    await phone.get_by_role("button", name="Send").tap()
    for page in everywhere:
        await expect(page.get_by_text("Waits until the answer is finished")).to_be_visible()
    slowly.let(80)
    for page in everywhere:
        await expect(page.locator(".answer")).to_have_count(2)
        await answered(page)
    head = desk.locator("header.bar")
    await head.get_by_role("button", name=re.compile("Actions for")).click()
    await desk.get_by_role("menuitem", name="Undo the last turn").click()
    for page in everywhere:
        await expect(page.get_by_text("One turn was taken back.")).to_be_visible()
        await expect(page.locator(".said")).to_have_count(1)
    shown = [await page.locator(".row").all_inner_texts() for page in everywhere]
    assert shown[0] == shown[1] == shown[2]


async def test_an_answer_shows_markdown_reasoning_and_tools(start_web: StartWeb, visitors: Visitors) -> None:
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
    await say(page, "show me")
    await answered(page)
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


async def test_what_is_said_offline_is_kept_and_sent_once(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await say(page, "before")
    await answered(page)
    visitors.expected = ("ERR_INTERNET_DISCONNECTED",)
    await page.context.set_offline(True)
    await say(page, "kept for later")
    await expect(page.locator(".said.pending")).to_contain_text("kept for later")
    await expect(page.get_by_text("You are offline.")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.locator(".said.pending")).to_have_count(0)
    await expect(page.locator(".answer")).to_have_count(2)
    owner = await web.client()
    events = (await owner.get(f"/api/sessions/{page.url.rpartition('/')[2]}/messages")).json()["events"]
    said = [each["message"]["content"] for each in events if each["message"] and each["message"]["role"] == "user"]
    assert said == ["before", "kept for later"]

    visitors.expected += ("404",)
    await page.context.set_offline(True)
    await say(page, "too late for this one")
    await expect(page.locator(".said.pending")).to_be_visible()
    assert (await owner.delete(f"/api/sessions/{page.url.rpartition('/')[2]}")).status_code == 204
    await page.context.set_offline(False)
    await expect(page.get_by_role("heading", name="This conversation is not there.")).to_be_visible()
    await expect(page.locator(".said.pending")).to_contain_text("too late for this one")
    await page.get_by_role("button", name="Edit").click()
    await expect(page.locator("#composer")).to_have_value("too late for this one")
    await expect(page.locator(".said.pending")).to_have_count(0)


async def test_a_command_is_completed_and_answered_beside_the_conversation(
    start_web: StartWeb, visitors: Visitors
) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await say(page, "hello")
    await answered(page)
    await page.locator("#composer").press_sequentially("/sta")
    await expect(page.get_by_role("option", name="/status")).to_be_visible()
    await page.locator("#composer").press("Enter")
    await page.locator("#composer").press("Enter")
    await expect(page.locator(".reply")).to_contain_text("Model")
    await expect(page.locator(".said")).to_have_count(1)
    await page.locator(".reply").get_by_role("button", name="Dismiss").click()
    await expect(page.locator(".reply")).to_have_count(0)


async def test_what_is_half_written_is_still_there_after_a_reload(start_web: StartWeb, visitors: Visitors) -> None:
    page = await visitors.visit(await start_web(DemoAgent(pace=0)))
    await say(page, "hello")
    await answered(page)
    await page.locator("#composer").fill("half a thou")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator("#composer")).to_have_value("")
    await page.go_back()
    await expect(page.locator("#composer")).to_have_value("half a thou")
    await page.reload()
    await expect(page.locator("#composer")).to_have_value("half a thou")


async def test_a_command_that_is_written_out_is_carried_out_and_one_that_is_begun_is_completed(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await say(page, "Remember the milk")
    await answered(page)

    composer = page.locator("#composer")
    await composer.press_sequentially("/und")
    await expect(page.get_by_role("option", name="/undo")).to_be_visible()
    await composer.press("Enter")
    await expect(composer).to_have_value("/undo ")

    await composer.fill("/undo")
    await expect(page.get_by_role("option", name="/undo")).to_be_visible()
    await composer.press("Enter")
    await expect(page.locator(".quiet").filter(has_text="taken back")).to_be_visible()
    await expect(composer).to_have_value("")
