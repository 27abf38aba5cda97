"""What the page shows of tools: how long they take, and which of them a conversation has."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import answered, say
from palaver.agent.base import TextDelta, ToolCall, ToolResult
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWeb


async def test_a_tool_tells_how_long_it_takes_also_after_a_reload(start_web: StartWeb, visitors: Visitors) -> None:
    may_end, may_speak = asyncio.Event(), asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield ToolCall("c", "look", '{"at": "sea"}')
        await may_end.wait()
        yield ToolResult("c", "look", "blue")
        await may_speak.wait()
        yield TextDelta("It is blue.")

    page = await visitors.visit(await start_web(ScriptedAgent(answer)))
    await say(page, "what colour is the sea?")
    took = page.locator(".tool .lasted")
    await expect(took).to_have_text(re.compile(r"^[2-9]\ss$"))
    await page.reload()
    await expect(took).to_have_text(re.compile(r"\ss$"))
    counted = int((await took.inner_text()).split()[0])
    assert counted >= 2  # it has not begun anew
    may_end.set()
    await expect(took).to_have_text(re.compile(r"^\d+\.\d\ss$"))
    told = await took.inner_text()
    may_speak.set()
    await answered(page)
    await expect(took).to_have_text(told)
    await expect(page.locator(".answer .message-foot")).to_contain_text(re.compile(r"worked \d"))
