"""Clients for the providers' models, created on first use.

Each provider has one HTTP client with our timeouts. The providers' own clients never retry: `tool_loop` alone
decides about retries.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import httpx2

from palaver.drivers.providers import OLLAMA, ModelName, Timeouts, check_reachable, is_loopback_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as ModelProvider

    from palaver.config.agent_rules import Provider

_DUMMY_KEY = "none"  # for servers without keys, because the client insists on sending one


class ModelClients:
    """Creates and keeps a client for every model that was used, and the HTTP connections."""

    def __init__(self, providers: Mapping[str, Provider], timeouts: Timeouts) -> None:
        self._providers = providers
        self._timeouts = timeouts
        self._models: dict[ModelName, Model] = {}
        self._http_clients: dict[str, httpx2.AsyncClient] = {}
        self._lock = asyncio.Lock()

    def get_provider(self, name: ModelName) -> Provider:
        return check_reachable(name, self._providers)

    async def get_model(self, name: ModelName) -> Model:
        async with self._lock:
            if name not in self._models:
                # In a thread: importing a provider's client takes seconds, and other turns are running meanwhile.
                self._models[name] = await asyncio.to_thread(self._create_model, name, self.get_provider(name))
            return self._models[name]

    async def close(self) -> None:
        clients = list(self._http_clients.values())
        self._http_clients.clear()
        self._models.clear()
        for client in clients:
            await client.aclose()

    def _create_model(self, name: ModelName, provider: Provider) -> Model:
        client = self._get_http_client(name.provider, provider)
        key = provider.api_key or _DUMMY_KEY
        match name.provider:
            case "anthropic":
                from pydantic_ai.models.anthropic import AnthropicModel, AnthropicStaleThinkingBlockWarning
                from pydantic_ai.providers.anthropic import AnthropicProvider

                # Reasoning is dropped where a summary or an edit has changed what came before it. That is no mistake.
                warnings.simplefilter("ignore", AnthropicStaleThinkingBlockWarning)
                anthropic = AnthropicProvider(api_key=key, base_url=provider.base_url, http_client=client)
                return AnthropicModel(name.model, provider=anthropic)
            case "google":
                from pydantic_ai.models.google import GoogleModel
                from pydantic_ai.providers.google import GoogleProvider

                google = GoogleProvider(api_key=key, base_url=provider.base_url, http_client=client)
                return GoogleModel(name.model, provider=google)
            case _:
                if name.provider == "openai" and provider.base_url is None:
                    return _create_responses_model(name.model, key, client)
                from pydantic_ai.profiles.openai import OpenAIModelProfile

                from palaver.drivers.chat_model import CostReportingModel

                openai = _create_openai_provider(name.provider, provider.base_url, key, client)
                # A stream that ends without a finish reason was cut off.
                profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
                return CostReportingModel(name.model, provider=openai, profile=profile)

    def _get_http_client(self, name: str, provider: Provider) -> httpx2.AsyncClient:
        if name not in self._http_clients:
            timeout = httpx2.Timeout(self._timeouts.read_seconds, connect=self._timeouts.connect_seconds)
            self._http_clients[name] = make_http_client(provider, timeout)
        return self._http_clients[name]


def make_http_client(provider: Provider, timeout: httpx2.Timeout, **options: Any) -> httpx2.AsyncClient:
    is_local = provider.base_url is not None and is_loopback_url(provider.base_url)
    # trust_env would send requests to this machine through a proxy.
    return httpx2.AsyncClient(timeout=timeout, trust_env=not is_local, **options)


def _create_responses_model(model: str, key: str, client: httpx2.AsyncClient) -> Model:
    """Create a model of OpenAI itself. Only this API returns its reasoning, encrypted, and takes it back.

    OpenAI stores nothing of the conversation, as it does with the chat API.
    """
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = OpenAIProvider(api_key=key, http_client=client)
    return OpenAIResponsesModel(model, provider=openai, settings=OpenAIResponsesModelSettings(openai_store=False))


def _create_openai_provider(
    name: str, base_url: str | None, key: str, client: httpx2.AsyncClient
) -> ModelProvider[AsyncOpenAI]:
    if name == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIProvider(base_url=base_url, api_key=key, http_client=client)
    if name == OLLAMA:
        from pydantic_ai.providers.ollama import OllamaProvider

        return OllamaProvider(base_url=base_url, api_key=key, http_client=client)
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider(name, base_url=base_url or "", api_key=key, http_client=client)
