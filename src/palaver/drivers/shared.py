"""An agent that knows how many runs use it, so that it can be closed when other settings have replaced it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from palaver.agent.base import Agent, AgentEvent, AgentRequest, Tool
    from palaver.config.budget_rules import TokenPrice


class SharedAgent:
    """Passes everything on to an agent, and counts its users."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._user_count = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @property
    def model(self) -> str:
        return self.agent.model

    @property
    def description(self) -> str:
        return self.agent.description

    @property
    def can_write_titles(self) -> bool:
        return self.agent.can_write_titles

    def list_models(self) -> Sequence[str]:
        return self.agent.list_models()

    def check_model(self, name: str) -> None:
        self.agent.check_model(name)

    async def get_context_window(self, name: str) -> int | None:
        return await self.agent.get_context_window(name)

    async def get_price(self, name: str) -> TokenPrice | None:
        return await self.agent.get_price(name)

    def list_tool_servers(self) -> Sequence[str]:
        return self.agent.list_tool_servers()

    async def load_tools(self) -> Sequence[Tool]:
        return await self.agent.load_tools()

    async def warm_up(self) -> None:
        await self.agent.warm_up()

    async def close(self) -> None:
        await self.agent.close()

    def acquire(self) -> Callable[[], None]:
        """Keep the agent open until the returned function is called, once."""
        self._user_count += 1
        self._unused.clear()
        return self._release

    def _release(self) -> None:
        self._user_count -= 1
        if self._user_count == 0:
            self._unused.set()

    async def close_when_unused(self) -> None:
        """Close the agent when the last run that uses it has ended."""
        await self._unused.wait()
        await self.agent.close()

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Answer a request; the agent stays open until the iterator is closed."""
        release = self.acquire()
        try:
            async with aclosing(self.agent.run(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
        finally:
            release()
