"""An agent that does what a test tells it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from palaver.agent.base import TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest, Tool

    Script = Callable[[AgentRequest], AsyncGenerator[AgentEvent, None] | Sequence[AgentEvent] | str]


class ScriptedAgent:
    """Answers by a function of the request: a text, a list of events, or an async generator of them."""

    model = "scripted"
    description = "A scripted agent answers, for tests."

    def __init__(
        self, script: Script | str = "Done.", tools: Sequence[Tool] = (), *, window: int | None = None
    ) -> None:
        self._script: Script = (lambda _request: script) if isinstance(script, str) else script
        self._tools = tools
        self._window = window
        self.requests: list[AgentRequest] = []  # everything it was asked

    def models(self) -> Sequence[str]:
        """What a conversation may choose."""
        return ("scripted", "scripted-large")

    def check_model(self, name: str) -> None:
        """Take any name."""

    async def context_window(self, name: str) -> int | None:
        """The one it was made with, whatever the model."""
        return self._window

    def tool_servers(self) -> Sequence[str]:
        """Those that its tools name."""
        served = (tool.toolset.removeprefix("mcp:") for tool in self._tools if tool.toolset.startswith("mcp:"))
        return tuple(dict.fromkeys(served))

    async def tools(self) -> Sequence[Tool]:
        """The tools it was made with."""
        return self._tools

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """Do what the script says."""
        self.requests.append(request)
        said = self._script(request)
        if isinstance(said, str):
            yield TextDelta(said)
        elif isinstance(said, AsyncGenerator):
            try:
                async for event in said:
                    yield event
            finally:
                await said.aclose()
        else:
            for event in said:
                yield event

    async def close(self) -> None:
        """Nothing to let go of."""
