"""An agent that knows how many runs use it, so that it can be closed when other settings have replaced it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from palaver.agent.base import Agent, AgentEvent, AgentRequest


class SharedAgent:
    """Passes everything on to an agent, and counts its users."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.model = agent.model
        self.description = agent.description
        self.can_write_titles = agent.can_write_titles
        self.list_models = agent.list_models
        self.check_model = agent.check_model
        self.get_context_window = agent.get_context_window
        self.get_price = agent.get_price
        self.list_tool_servers = agent.list_tool_servers
        self.load_tools = agent.load_tools
        self.warm_up = agent.warm_up
        self.close = agent.close
        self._user_count = 0
        self._unused = asyncio.Event()
        self._unused.set()

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
