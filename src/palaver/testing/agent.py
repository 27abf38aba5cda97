"""An agent that follows the script of a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from palaver.agent.base import AgentEvent, AgentRequest, TextDelta, Tool
from palaver.config.budget_rules import FREE, TokenPrice

if TYPE_CHECKING:
    Script = Callable[[AgentRequest], AsyncGenerator[AgentEvent, None] | Sequence[AgentEvent] | str]


class ScriptedAgent:
    """Answers with the result of a function of the request: text, a list of events, or an async generator of them."""

    model = "scripted"
    description = "Scripted agent for tests"

    def __init__(
        self,
        script: Script | str = "Done.",
        tools: Sequence[Tool] = (),
        *,
        context_window: int | None = None,
        price: TokenPrice | None = FREE,
        can_write_titles: bool = False,
    ) -> None:
        self._script: Script = (lambda _request: script) if isinstance(script, str) else script
        self._tools = tools
        self._context_window = context_window
        self._price = price
        self.can_write_titles = can_write_titles
        self.requests: list[AgentRequest] = []  # all requests it has received

    def list_models(self) -> Sequence[str]:
        return ("scripted", "scripted-large")

    def check_model(self, name: str) -> None:
        """Accept any name."""

    async def get_context_window(self, name: str) -> int | None:
        """Return the window given to the constructor, for every model."""
        return self._context_window

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return the price given to the constructor, for every model."""
        return self._price

    def list_tool_servers(self) -> Sequence[str]:
        """Return the servers that the given tools belong to."""
        names = (tool.toolset.removeprefix("mcp:") for tool in self._tools if tool.toolset.startswith("mcp:"))
        return tuple(dict.fromkeys(names))

    async def load_tools(self) -> Sequence[Tool]:
        return self._tools

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        self.requests.append(request)
        result = self._script(request)
        if isinstance(result, str):
            yield TextDelta(result)
        elif isinstance(result, AsyncGenerator):
            try:
                async for event in result:
                    yield event
            finally:
                await result.aclose()
        else:
            for event in result:
                yield event

    async def warm_up(self) -> None:
        """Do nothing: it is always ready."""

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class FakeClock:
    """A clock that stands still until a test moves it. Pass it to a store instead of the system clock."""

    def __init__(self, now: datetime = datetime(2026, 11, 15, 8, 12, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to a time, forward or back."""
        self._now = now

    def advance(self, **duration: float) -> datetime:
        """Move forward by some `minutes`, `hours`, `days` … and return the new time."""
        self._now += timedelta(**duration)
        return self._now
