"""Agents whose answers a test can hold up or steer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta, ToolCall, ToolResult, UsageReport
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

WORDS = [f"word{number} " for number in range(40)]


class SlowAgent:
    """Answers with `WORDS`, one after the other, as far as the test allows."""

    def __init__(self) -> None:
        self.allowed = asyncio.Semaphore(0)
        self.agent = ScriptedAgent(self._answer)

    def allow_words(self, count: int) -> None:
        for _ in range(count):
            self.allowed.release()

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        for word in WORDS:
            await self.allowed.acquire()
            yield TextDelta(word)


class LookupAgent:
    """Runs a tool until `may_finish` is set, and then answers with the messages that steered it meanwhile."""

    def __init__(self) -> None:
        self.may_finish = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Let me look.")
        yield ToolCall("c1", "look_up", "{}")
        await self.may_finish.wait()
        yield ToolResult("c1", "look_up", "Nothing.")
        steering = await request.take_steering()
        yield TextDelta(f"I was told: {', '.join(steering) or 'nothing'}.")


class EndlessAgent:
    """Starts to answer, sets `started`, and never finishes."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.agent = ScriptedAgent(self._answer)

    async def _answer(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield UsageReport(TurnUsage(model="large", provider="one", input_tokens=1000, output_tokens=10, cost="0.01"))
        yield TextDelta("Once upon a time")
        self.started.set()
        await asyncio.Event().wait()
