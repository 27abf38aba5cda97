"""The agent that asks a provider's model: OpenAI, Anthropic, Google, or whoever speaks as OpenAI does.

This module is quick to import; what it takes to reach a provider is imported when the first turn runs, beside the
event loop. Being made costs nothing and reaches nobody.
"""

from __future__ import annotations

import asyncio
import importlib
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.agent.base import Notice
from palaver.agent.mcp_servers import ToolServers
from palaver.agent.pricing import window
from palaver.agent.providers import KNOWN, check_reachable, model_name, with_environment
from palaver.agent.retry import Retry
from palaver.domain.errors import AgentRefused, InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from palaver.agent.base import AgentEvent, AgentRequest, Tool
    from palaver.agent.model_clients import Endpoints
    from palaver.agent.providers import ModelName
    from palaver.agent.retry import Sleep
    from palaver.domain.profile import AgentProfile

MOST_ROUNDS = 25  # of tool calls in one turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOuts:
    """How long a provider may be silent, in seconds."""

    connect: float = 5.0
    read: float = 120.0  # between two pieces of an answer; a model may think before the first


class ModelAgent:
    """Answers with a provider's model."""

    def __init__(
        self,
        profile: AgentProfile,
        environ: Mapping[str, str],
        *,
        model: str | None = None,
        description: str = "",
        time_outs: TimeOuts | None = None,
        retry: Retry | None = None,
        sleep: Sleep = asyncio.sleep,
        most_rounds: int = MOST_ROUNDS,
    ) -> None:
        self._providers = with_environment(profile.providers, environ)
        self._name = self._checked(model or profile.model)
        self._fallbacks = [self._checked(name) for name in profile.fallback_models]
        self._windows = profile.context_windows
        self._description = description or f"{self._name}, as configured"
        self._time_outs = time_outs or TimeOuts()
        self._retry = retry or Retry()
        self._sleep = sleep
        self._most_rounds = most_rounds
        self._servers = ToolServers(profile.mcp_servers)
        self._endpoints: Endpoints | None = None

    @property
    def model(self) -> str:
        """The model for conversations that have chosen none."""
        return str(self._name)

    @property
    def description(self) -> str:
        """Which model answers, and why."""
        return self._description

    def models(self) -> Sequence[str]:
        """The default, the fallbacks, and the usual model of every provider that we have a key for."""
        usual = [
            f"{name}:{known.default_model}"
            for name, known in KNOWN.items()
            if known.default_model and name in self._providers and self._providers[name].api_key
        ]
        return tuple(dict.fromkeys([self.model, *map(str, self._fallbacks), *usual]))

    def check_model(self, name: str) -> None:
        """Refuse a model of a provider that cannot be reached; only the provider itself knows all its models."""
        self._checked(name)

    async def context_window(self, name: str) -> int | None:
        """What the operator has said of a model, or else what the price list knows of it."""
        try:
            model = self._checked(name)
        except InvalidInput:
            return None
        if str(model) in self._windows:
            return self._windows[str(model)]
        return await asyncio.to_thread(window, model.model, model.provider, self._providers[model.provider].base_url)

    def tool_servers(self) -> Sequence[str]:
        """Those of the settings."""
        return self._servers.names

    async def tools(self) -> Sequence[Tool]:
        """The tools of the MCP servers that can be reached."""
        return await self._servers.tools()

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Answer, with the model the conversation has chosen, or else with one of the fallbacks."""
        for text in self._servers.news():
            yield Notice(text)
        try:
            first = self._checked(request.model) if request.model else self._name
        except InvalidInput as error:
            raise AgentRefused(f"{error}; choose another one with /model", model=request.model) from error
        chain = list(dict.fromkeys([first, *self._fallbacks]))
        if self._endpoints is None:
            await asyncio.to_thread(importlib.import_module, "palaver.agent.tool_loop")
        from palaver.agent.model_clients import Endpoints
        from palaver.agent.tool_loop import Rounds

        if self._endpoints is None:
            self._endpoints = Endpoints(self._providers, self._time_outs)
        rounds = Rounds(request, chain, self._endpoints, retry=self._retry, sleep=self._sleep, most=self._most_rounds)
        async with aclosing(rounds.events()) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Close connections and tool servers."""
        await self._servers.close()
        if self._endpoints is not None:
            await self._endpoints.close()

    def _checked(self, text: str) -> ModelName:
        name = model_name(text)
        check_reachable(name, self._providers)
        return name
