"""The models we can ask, made when they are first asked for and kept.

Each provider has one HTTP client with our time-outs. The providers' own clients are told not to try anything again:
when that is done is decided in one place.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from palaver.agent.providers import OLLAMA, check_reachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as ModelProvider

    from palaver.agent.model import TimeOuts
    from palaver.agent.providers import ModelName
    from palaver.domain.profile import Provider

_NO_KEY = "none"  # servers without keys are given this one, because the client insists on sending one


class Endpoints:
    """Every model that has been asked, and the connections to them."""

    def __init__(self, providers: Mapping[str, Provider], time_outs: TimeOuts) -> None:
        self._providers = providers
        self._time_outs = time_outs
        self._models: dict[ModelName, Model] = {}
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._making = asyncio.Lock()

    def provider(self, name: ModelName) -> Provider:
        """How the provider of a model is reached."""
        return check_reachable(name, self._providers)

    async def model(self, name: ModelName) -> Model:
        """A model to ask."""
        async with self._making:
            if name not in self._models:
                # Importing a provider's client takes seconds, and others are being answered meanwhile.
                self._models[name] = await asyncio.to_thread(self._made, name, self.provider(name))
            return self._models[name]

    async def close(self) -> None:
        """Close all connections."""
        clients = list(self._clients.values())
        self._clients.clear()
        self._models.clear()
        for client in clients:
            await client.aclose()

    def _made(self, name: ModelName, provider: Provider) -> Model:
        client = self._client(name.provider, provider)
        key = provider.api_key or _NO_KEY
        match name.provider:
            case "anthropic":
                from pydantic_ai.models.anthropic import AnthropicModel
                from pydantic_ai.providers.anthropic import AnthropicProvider

                reached = AnthropicProvider(api_key=key, base_url=provider.base_url, http_client=client)
                return AnthropicModel(name.model, provider=reached)
            case "google":
                from pydantic_ai.models.google import GoogleModel
                from pydantic_ai.providers.google import GoogleProvider

                return GoogleModel(
                    name.model, provider=GoogleProvider(api_key=key, base_url=provider.base_url, http_client=client)
                )
            case _:
                from pydantic_ai.models.openai import OpenAIChatModel
                from pydantic_ai.profiles.openai import OpenAIModelProfile

                # A stream that ends without saying why has been cut.
                whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
                return OpenAIChatModel(
                    name.model, provider=_openai_like(name.provider, provider.base_url, key, client), profile=whole
                )

    def _client(self, name: str, provider: Provider) -> httpx2.AsyncClient:
        if name not in self._clients:
            times = httpx2.Timeout(self._time_outs.read, connect=self._time_outs.connect)
            here = provider.base_url is not None and is_loopback(provider.base_url)
            self._clients[name] = httpx2.AsyncClient(timeout=times, trust_env=not here)  # no proxy to this machine
        return self._clients[name]


def _openai_like(name: str, base_url: str | None, key: str, client: httpx2.AsyncClient) -> ModelProvider[AsyncOpenAI]:
    if name == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIProvider(base_url=base_url, api_key=key, http_client=client)
    if name == OLLAMA:
        from pydantic_ai.providers.ollama import OllamaProvider

        return OllamaProvider(base_url=base_url, api_key=key, http_client=client)
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(name, base_url=base_url or "", api_key=key, http_client=client)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
