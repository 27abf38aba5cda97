"""The agent that uses a provider's model: OpenAI, Anthropic, Google, or any server with an OpenAI-compatible API.

This module is quick to import. `warm_up` or the first turn imports the packages of the providers, which takes seconds,
in a thread beside the event loop. Creating the agent costs nothing and opens no connection.
"""

from __future__ import annotations

import asyncio
import importlib
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.agent.base import Agent, AgentEvent, AgentRequest, RetryPolicy, Sleep, Tool, make_fallback_notice
from palaver.core.errors import AgentError, AgentRejected, ConfigError, InvalidInput
from palaver.core.texts import say
from palaver.drivers.mcp_servers import McpServers
from palaver.drivers.providers import (
    ModelName,
    ModelPrices,
    Timeouts,
    add_environment_keys,
    check_reachable,
    find_context_window,
    find_default_models,
    parse_model_name,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from palaver.config.agent_rules import AgentProfile
    from palaver.config.budget_rules import TokenPrice
    from palaver.drivers.model_clients import ModelClients
    from palaver.drivers.tool_loop import ToolLoop

MAX_TOOL_ROUNDS = 25  # in one turn


class ModelAgent:
    can_write_titles = True

    def __init__(
        self,
        profile: AgentProfile,
        environ: Mapping[str, str],
        *,
        model: str | None = None,
        description: str = "",
        last_resort: Agent | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        sleep: Sleep = asyncio.sleep,
        max_tool_rounds: int = MAX_TOOL_ROUNDS,
    ) -> None:
        self._providers = add_environment_keys(profile.providers, environ)
        self._name = self._parse_reachable_model(model or profile.model)
        self._last_resort = last_resort  # answers when none of the providers' models can
        self._fallbacks = [
            self._parse_fallback(name)
            for name in profile.fallback_models
            if last_resort is None or name != last_resort.model
        ]
        self._context_windows = profile.context_windows
        self._prices = ModelPrices(profile.prices, self._providers)
        self.model = str(self._name)
        self.description = description or f"Model: {self._name} (from the settings)"
        self._timeouts = timeouts or Timeouts()
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._max_tool_rounds = max_tool_rounds
        self._servers = McpServers(profile.mcp_servers)
        self._clients: ModelClients | None = None

    def list_models(self) -> Sequence[str]:
        """List the default model, the fallbacks, and the default model of every provider that has a key."""
        provider_defaults = find_default_models(self._providers).values()
        last_resort = [] if self._last_resort is None else [self._last_resort.model]
        return tuple(dict.fromkeys([self.model, *map(str, self._fallbacks), *last_resort, *provider_defaults]))

    def check_model(self, name: str) -> None:
        """Raise `InvalidInput` if the provider cannot be reached; only the provider itself knows all its models."""
        if not self._is_last_resort(name):
            self._parse_reachable_model(name)

    async def get_context_window(self, name: str) -> int | None:
        """Return the context window from the settings, or else from the price list."""
        if self._last_resort is not None and self._is_last_resort(name):
            return await self._last_resort.get_context_window(name)
        try:
            model = self._parse_reachable_model(name)
        except InvalidInput:
            return None
        if str(model) in self._context_windows:
            return self._context_windows[str(model)]
        return await asyncio.to_thread(
            find_context_window, model.model, model.provider, self._providers[model.provider].base_url
        )

    async def get_price(self, name: str) -> TokenPrice | None:
        """Return the price from the settings, or else from the price list; models of an Ollama here cost nothing."""
        if self._last_resort is not None and self._is_last_resort(name):
            return await self._last_resort.get_price(name)
        try:
            return await self._prices.find_price(self._parse_reachable_model(name))
        except InvalidInput:
            return None

    def list_tool_servers(self) -> Sequence[str]:
        return self._servers.names

    async def load_tools(self) -> Sequence[Tool]:
        return await self._servers.load_tools()

    async def warm_up(self) -> None:
        """Import the provider's packages and create the client, so that the first turn does not wait for them."""
        clients = await self._load_clients()
        await clients.get_model(self._name)
        await self.get_context_window(self.model)
        await self.get_price(self.model)

    async def run(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Answer with the model chosen for the conversation, or else with one of the fallbacks."""
        for notice in self._servers.take_notices():
            yield notice
        last_resort = self._last_resort
        if last_resort is None or request.model != last_resort.model:
            loop = await self._make_loop(request)
            try:
                async with aclosing(loop.run()) as events:
                    async for event in events:
                        yield event
                return
            except AgentError as error:
                if last_resort is None or not loop.can_use_other_agent:
                    raise
                yield make_fallback_notice(error, last_resort.model, str(loop.chain[0]))
        async with aclosing(last_resort.run(replace(request, model=None))) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    async def _make_loop(self, request: AgentRequest) -> ToolLoop:
        try:
            chosen = self._parse_reachable_model(request.model) if request.model else self._name
        except InvalidInput as error:
            raise AgentRejected(
                say("model.choose_with_command", "{problem} Choose another model with /model.", problem=error.text),
                model=request.model,
            ) from error
        clients = await self._load_clients()
        from palaver.drivers.tool_loop import ToolLoop

        return ToolLoop(
            request=request,
            chain=list(dict.fromkeys([chosen, *self._fallbacks])),
            clients=clients,
            prices=self._prices,
            retry=self._retry,
            sleep=self._sleep,
            max_rounds=self._max_tool_rounds,
        )

    async def _load_clients(self) -> ModelClients:
        if self._clients is None:
            await asyncio.to_thread(importlib.import_module, "palaver.drivers.tool_loop")
        from palaver.drivers.model_clients import ModelClients

        if self._clients is None:
            self._clients = ModelClients(self._providers, self._timeouts)
        return self._clients

    async def close(self) -> None:
        await self._servers.close()
        if self._last_resort is not None:
            await self._last_resort.close()
        if self._clients is not None:
            await self._clients.close()

    def _is_last_resort(self, name: str) -> bool:
        return self._last_resort is not None and name == self._last_resort.model

    def _parse_fallback(self, text: str) -> ModelName:
        try:
            return self._parse_reachable_model(text)
        except InvalidInput as error:
            raise ConfigError(f"fallback_models: {error}", key="fallback_models", **error.facts) from error

    def _parse_reachable_model(self, text: str) -> ModelName:
        name = parse_model_name(text)
        check_reachable(name, self._providers)
        return name
