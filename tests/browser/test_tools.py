"""Tools on the page (duration, on and off per conversation), and the context meter."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver.agent.base import TextDelta, Tool, ToolCall, ToolResult, UsageReport
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.config.agent_rules import TurnRules
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer


@pytest.mark.soak
async def test_a_tool_shows_its_duration_also_after_a_reload(start_web: StartWebServer, visitors: Visitors) -> None:
    may_end, may_speak = asyncio.Event(), asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c", "look", '{"at": "sea"}')
        await may_end.wait()
        yield ToolResult("c", "look", "blue")
        await may_speak.wait()
        yield TextDelta("It is blue.")

    page = await visitors.visit(await start_web(ScriptedAgent(answer)))
    await send_message(page, "what color is the sea?")
    took = page.locator(".tool .duration")
    await expect(took).to_have_text(re.compile(r"^[2-9]\ss$"))
    await page.reload()
    await expect(took).to_have_text(re.compile(r"\ss$"))
    counted = int((await took.inner_text()).split()[0])
    assert counted >= 2  # it has not restarted
    may_end.set()
    await expect(took).to_have_text(re.compile(r"^\d+\.\d\ss$"))
    duration = await took.inner_text()
    may_speak.set()
    await wait_for_answer(page)
    await expect(took).to_have_text(duration)
    await expect(page.locator(".answer .message-foot")).to_contain_text(re.compile(r"took \d"))


@pytest.mark.soak
async def test_the_context_meter_warns_and_offers_compaction(start_web: StartWebServer, visitors: Visitors) -> None:
    prompt_tokens = iter([300, 420, 900, 950, 200])

    def answer(request: AgentRequest) -> list[AgentEvent]:
        if request.messages[-1]["content"].startswith(SUMMARY_REQUEST):
            return [TextDelta("They talked.")]
        return [
            TextDelta("word " * 60),
            UsageReport(TurnUsage(model="m", output_tokens=60, last_prompt_tokens=next(prompt_tokens))),
        ]

    page = await visitors.visit(await start_web(ScriptedAgent(answer, context_window=1000)))
    for text in ("one", "two"):
        await send_message(page, text)
        await wait_for_answer(page)
    meter = page.get_by_role("button", name="Context 42% full: 420 of 1K tokens")
    await expect(meter).to_have_text("42%")
    await meter.click()
    await expect(page.get_by_role("menu")).to_contain_text("120 out")
    await page.keyboard.press("Escape")

    await send_message(page, "three")
    warning = page.get_by_text("The context is 90% full.")
    await expect(warning).to_be_visible()
    await page.get_by_role("button", name="Compact now").click()
    await expect(page.get_by_text("The agent now sees a summary of 2 older messages")).to_be_visible()
    await expect(warning).to_have_count(0)

    await send_message(page, "four")
    await expect(page.get_by_text("The context is 95% full.")).to_be_visible()
    await send_message(page, "five")  # which is compacted before it is answered
    await expect(page.get_by_text("The agent now sees a summary of 6 older messages")).to_be_visible()
    await wait_for_answer(page)
    await expect(page.locator(".context-meter")).to_have_text("20%")


async def test_tools_are_turned_off_for_one_conversation_and_on_again(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    async def run(_arguments: object) -> str:
        return ""

    tool = Tool(name="files_read", description="Read a file.", parameters={}, run=run, toolset="mcp:files")
    agent = ScriptedAgent(tools=[tool])
    web = await start_web(agent)
    page = await visitors.visit(web)
    await send_message(page, "hello")
    await wait_for_answer(page)
    other = await page.context.new_page()
    await other.goto(page.url)

    await page.get_by_role("button", name="Tools").click()
    memory = page.get_by_role("menuitemcheckbox", name="Memory")
    files = page.get_by_role("menuitemcheckbox", name="files")
    await expect(files).to_contain_text("files read")
    await expect(memory).to_be_checked()
    await memory.click()
    await expect(memory).not_to_be_checked()
    await files.press("Enter")
    await expect(files).not_to_be_checked()
    await page.keyboard.press("Escape")
    for each in (page, other):
        await expect(each.get_by_role("button", name="Tools (off: files, Memory)")).to_be_visible()
    await expect(page.get_by_text("Tools turned off: files, Memory.")).to_be_visible()

    await send_message(page, "what have you got?")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    assert {each.toolset for each in agent.requests[-1].tools} == {*TurnRules().toolsets} - {"memory", "web"}

    await other.get_by_role("button", name="Tools (off: files, Memory)").click()
    await other.get_by_role("menuitem", name="Turn all on").click()
    line = page.locator(".event-line", has_text="All tools turned on.")
    await expect(line).to_be_visible()
    await line.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("button", name="Tools (off: files, Memory)")).to_be_visible()

    new_page = await visitors.visit(web, "bob")
    await send_message(new_page, "hello")
    await wait_for_answer(new_page)
    await expect(new_page.get_by_role("button", name="Tools", exact=True)).to_be_visible()
    assert {each.toolset for each in agent.requests[-1].tools} == {*TurnRules().toolsets, "mcp:files"} - {"web"}
