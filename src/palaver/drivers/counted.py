"""An agent that knows how many runs use it, so that it can be closed when other settings have replaced it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta
from palaver.core.errors import AgentRejected, InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from palaver.agent.base import Agent, AgentEvent, AgentRequest, Tool
    from palaver.config.budget_rules import TokenPrice


class CountedAgent:
    """Passes everything on to an agent, and counts its users."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
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

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Answer a request; the agent stays open until the iterator is closed."""
        release = self.acquire()
        try:
            async with aclosing(self.agent.run(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
        finally:
            release()

    async def warm_up(self) -> None:
        await self.agent.warm_up()

    async def close(self) -> None:
        await self.agent.close()


# --------------------------------------------------------------------------------------------------
# The agent when none can be made with the settings: it answers every message with the reason.
#
# So a key that can't be decrypted, or a model that was removed, stops nothing but the answers.


class UnavailableAgent:
    """Rejects every request, and says what to do."""

    can_write_titles = False

    def __init__(self, model: str, reason: str) -> None:
        self._model = model
        self._reason = reason

    @property
    def model(self) -> str:
        """Return the model that the settings name."""
        return self._model

    @property
    def description(self) -> str:
        """Say why nothing can answer."""
        return f"No model can answer. {self._reason}"

    def list_models(self) -> Sequence[str]:
        """List the model that the settings name."""
        return (self._model,)

    def check_model(self, name: str) -> None:
        """Refuse every other model."""
        if name != self._model:
            raise InvalidInput(self._reason, model=name)

    async def get_context_window(self, name: str) -> int | None:
        return None

    async def get_price(self, name: str) -> TokenPrice | None:
        return None

    def list_tool_servers(self) -> Sequence[str]:
        return ()

    async def load_tools(self) -> Sequence[Tool]:
        return ()

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Raise AgentRejected with the reason."""
        for _ in range(1):
            raise AgentRejected(self.description, model=self._model)
        yield TextDelta("")  # never reached: it makes this an asynchronous generator

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass
