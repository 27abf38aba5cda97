"""Agents that take their time, as long as a test wants."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta, ToolCall, ToolResult
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

WORDS = [f"word{number} " for number in range(40)]


class Slowly:
    """An agent that says one word after the other, as fast as it is let."""

    def __init__(self) -> None:
        self.allowed = asyncio.Semaphore(0)

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(self._said)

    def let(self, words: int) -> None:
        for _ in range(words):
            self.allowed.release()

    async def _said(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        for word in WORDS:
            await self.allowed.acquire()
            yield TextDelta(word)


class Looking:
    """An agent that looks something up, as long as it is let, and then says what it was told meanwhile."""

    def __init__(self) -> None:
        self.found = asyncio.Event()

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(self._said)

    async def _said(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Let me look.")
        yield ToolCall("c1", "look_up", "{}")
        await self.found.wait()
        yield ToolResult("c1", "look_up", "Nothing.")
        told = await request.steering()
        yield TextDelta(f"I was told: {', '.join(told) or 'nothing'}.")
