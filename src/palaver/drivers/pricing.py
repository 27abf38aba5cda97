"""Costs of requests, prices and context windows of models: from the settings, or the price list of `genai-prices`.

The cost of a model that is in neither is unknown, never zero. The list is part of the package: nothing is fetched.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING

from palaver.config.budget_rules import FREE, TokenPrice
from palaver.drivers.providers import OLLAMA, check_reachable, is_loopback_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from genai_prices.types import AbstractUsage
    from pydantic_ai.usage import RequestUsage

    from palaver.config.agent_rules import Provider
    from palaver.drivers.providers import ModelName

COST_SOURCE = "genai-prices"
SETTINGS_COST_SOURCE = "settings"
OWN_SERVER_COST_SOURCE = "own server"
_HIGHEST_TIER_TOKENS = 10_000_000  # more than any model reads or writes: every tier of its prices applies
_TOKENS_PER_PRICE = 1_000_000


class ModelPrices:
    """The prices of the providers' models."""

    def __init__(self, configured: Mapping[str, TokenPrice], providers: Mapping[str, Provider]) -> None:
        self._configured = configured
        self._providers = providers
        self._list_prices: dict[ModelName, TokenPrice | None] = {}

    async def find_price(self, name: ModelName) -> TokenPrice | None:
        """Return what a model costs at most, or None if that is unknown."""
        price = self._find_own_price(name)
        if price is not None:
            return price
        if name not in self._list_prices:
            base_url = check_reachable(name, self._providers).base_url
            # In a thread: importing the price list takes 0.4 s.
            self._list_prices[name] = await asyncio.to_thread(find_list_price, name.model, name.provider, base_url)
        return self._list_prices[name]

    def calculate_cost(self, usage: RequestUsage, name: ModelName, model: str) -> tuple[Decimal | None, str | None]:
        """Return the cost of a request and where it is from; `model` is the name that the provider itself gives."""
        price = self._find_own_price(name)
        if price is not None:
            source = SETTINGS_COST_SOURCE if str(name) in self._configured else OWN_SERVER_COST_SOURCE
            return price.compute_cost(usage.input_tokens, usage.output_tokens), source
        cost = calculate_cost(usage, model, name.provider, check_reachable(name, self._providers).base_url)
        return cost, None if cost is None else COST_SOURCE

    def _find_own_price(self, name: ModelName) -> TokenPrice | None:
        """Return the price from the settings; models of an Ollama on this machine cost nothing."""
        configured = self._configured.get(str(name))
        if configured is not None:
            return configured
        provider = self._providers.get(name.provider)
        if name.provider == OLLAMA and provider is not None and is_loopback_url(provider.base_url or ""):
            return FREE
        return None


def find_list_price(model: str, provider: str, base_url: str | None = None) -> TokenPrice | None:
    """Return the highest list prices of a model: of its highest tier, and of input that is written to a cache."""
    from genai_prices import Usage  # 0.4 s

    plain = calculate_cost(Usage(input_tokens=_HIGHEST_TIER_TOKENS), model, provider, base_url)
    if plain is None:
        return None
    cached_usage = Usage(input_tokens=_HIGHEST_TIER_TOKENS, cache_write_tokens=_HIGHEST_TIER_TOKENS)
    cached = calculate_cost(cached_usage, model, provider, base_url) or plain
    both_usage = Usage(input_tokens=_HIGHEST_TIER_TOKENS, output_tokens=_HIGHEST_TIER_TOKENS)
    both = calculate_cost(both_usage, model, provider, base_url) or plain
    factor = Decimal(_TOKENS_PER_PRICE) / _HIGHEST_TIER_TOKENS
    return TokenPrice(input_usd=max(plain, cached) * factor, output_usd=(both - plain) * factor)


def calculate_cost(usage: AbstractUsage, model: str, provider: str, base_url: str | None = None) -> Decimal | None:
    """Calculate the cost in US dollars from list prices.

    None if the list does not have this model, or the numbers of the usage contradict each other.
    """
    from genai_prices import calc_price  # 0.4 s

    try:
        return calc_price(usage, model, provider_id=provider).total_price
    except ValueError:
        return None
    except LookupError:
        if base_url is None:
            return None
    try:  # the operator may have chosen their own name for the provider
        return calc_price(usage, model, provider_api_url=base_url).total_price
    except (LookupError, ValueError):
        return None


def find_context_window(model: str, provider: str, base_url: str | None = None) -> int | None:
    """Return a model's context window in tokens, or None if the list does not have this model."""
    from genai_prices.data_snapshot import get_snapshot  # 0.4 s

    price_list = get_snapshot()
    try:
        return price_list.find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        if base_url is None:
            return None
    try:
        return price_list.find_provider_model(model, None, None, base_url)[1].context_window
    except LookupError:
        return None
