"""Providers of models: the known ones, names of models, API keys, and prices.

A model is named `provider:model`. Three providers have their own API; every other one has a `base_url` with an
OpenAI-compatible API. This module imports no client of a provider, and its texts never contain a key.

Prices and context windows come from the settings or the price list of `genai-prices`, which is part of the package:
nothing is fetched. The cost of a model that is in neither is unknown, never zero.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from palaver.config.agent_rules import Provider
from palaver.config.budget_rules import FREE, TokenPrice
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.texts import say, tell_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from genai_prices.types import AbstractUsage
    from pydantic_ai.usage import RequestUsage


T = TypeVar("T")
OLLAMA: Final = "ollama"
INSTALL_COMMAND: Final = "pip install 'palaver[models]'"
COST_SOURCE = "genai-prices"
SETTINGS_COST_SOURCE = "settings"
OWN_SERVER_COST_SOURCE = "own server"
_HIGHEST_TIER_TOKENS = 10_000_000  # more than any model reads or writes: every tier of its prices applies
_TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """A provider that needs no configuration besides a key."""

    title: str
    default_model: str | None = None  # what `auto` uses
    key_variables: tuple[str, ...] = ()  # the first that is set is used
    base_url: str | None = None


# In the order in which `auto` tries them.
KNOWN_PROVIDERS: Final[Mapping[str, KnownProvider]] = MappingProxyType(
    {
        "openai": KnownProvider(title="OpenAI", default_model="gpt-5.4-mini", key_variables=("OPENAI_API_KEY",)),
        "anthropic": KnownProvider(
            title="Anthropic", default_model="claude-sonnet-5-5", key_variables=("ANTHROPIC_API_KEY",)
        ),
        "google": KnownProvider(
            title="Google", default_model="gemini-3.5-flash", key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY")
        ),
        OLLAMA: KnownProvider(title="Ollama", base_url="http://127.0.0.1:11434/v1"),
    }
)


class ModelName(NamedTuple):
    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    provider, colon, model = text.strip().partition(":")
    if not (provider and colon and model):
        raise InvalidInput.say(
            "drivers.bad_model_name",
            "{name} is not a model name. Use provider:model, such as openai:gpt-5.4-mini.",
            name=repr(text),
        )
    return ModelName(provider.lower(), model)


def get_provider_title(provider: str) -> str:
    """Return the name of a provider for a sentence: OpenAI, or "workshop" for one from the settings."""
    known = KNOWN_PROVIDERS.get(provider)
    return known.title if known else f'"{provider}"'


def quote_provider(provider: Provider, text: str, max_chars: int) -> str:
    """Return what a provider has said in one line, without our key and other secrets."""
    from palaver.core.logs import remove_secrets  # a command loads no logging

    if provider.api_key:
        text = text.replace(provider.api_key, "…")
    text = " ".join(remove_secrets(text).split())
    return text if len(text) <= max_chars else text[:max_chars] + "…"


def add_environment_keys(providers: Mapping[str, Provider], environ: Mapping[str, str]) -> dict[str, Provider]:
    """Return the configured providers and the known ones, with API keys from the environment and known addresses.

    A key from the environment is not added to a provider with an address of its own: it was not entered for that.
    """
    complete = dict(providers)
    for name, known in KNOWN_PROVIDERS.items():
        provider = complete.get(name, Provider())
        variables = known.key_variables if provider.base_url is None else ()
        key = provider.api_key or next((environ[variable] for variable in variables if environ.get(variable)), None)
        provider = replace(provider, api_key=key, base_url=provider.base_url or known.base_url)
        if provider.api_key or provider.base_url:
            complete[name] = provider
    return complete


def find_default_models(providers: Mapping[str, Provider]) -> dict[str, str]:
    """Return the default models of the providers that have a key, by provider, in the order in which to try them."""
    return {
        name: f"{name}:{known.default_model}"
        for name, known in KNOWN_PROVIDERS.items()
        if known.default_model and name in providers and providers[name].api_key
    }


def check_reachable(name: ModelName, providers: Mapping[str, Provider]) -> Provider:
    """Return the provider of a model; raises `InvalidInput` if it lacks a key or an address."""
    provider = providers.get(name.provider, Provider())
    if name.provider not in KNOWN_PROVIDERS and not provider.base_url:
        available = ", ".join(dict.fromkeys([*KNOWN_PROVIDERS, *providers]))
        text = say(
            "drivers.unknown_provider",
            "Unknown provider in the model name {model}. Set {key} in the settings, or use another provider: {names}.",
            model=repr(str(name)),
            key=f"providers.{name.provider}.base_url",
            names=available,
        )
        raise InvalidInput(tell_owner(text, MODEL_NOT_READY), provider=name.provider)
    if not (provider.api_key or provider.base_url):
        text = say(
            "drivers.key_required",
            "The model {model} requires an API key. {advice}",
            model=repr(str(name)),
            advice=explain_api_key(name.provider),
        )
        raise InvalidInput(tell_owner(text, MODEL_NOT_READY), provider=name.provider)
    return provider


# What people read who can't set up a model.
MODEL_NOT_READY: Final = say("model.not_ready", "The model can't be used right now. That's not your fault.")


def explain_api_key(provider: str) -> str:
    """Return a sentence that says where to put a provider's API key."""
    known = KNOWN_PROVIDERS.get(provider)
    key = f"providers.{provider}.api_key"
    if known and known.key_variables:
        return say(
            "drivers.set_variable_or_key",
            "Set {variable} or {key} in the settings.",
            variable=known.key_variables[0],
            key=key,
        )
    return say("drivers.set_key", "Set {key} in the settings.", key=key)


def explain_invalid_address(provider: str) -> str:
    """Return sentences about a provider whose address no client can use."""
    text = say(
        "drivers.invalid_address",
        "The address of {provider} is not valid. Set {key} in the settings to a URL that begins with http:// or"
        " https://.",
        provider=get_provider_title(provider),
        key=f"providers.{provider}.base_url",
    )
    return tell_owner(text, MODEL_NOT_READY)


def is_loopback_url(url: str) -> bool:
    """Return whether the URL points to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    connect_seconds: float = 5.0
    read_seconds: float = 120.0  # between two pieces of an answer; a model may think before the first one


class ModelPrices:
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

    def calculate(**tokens: int) -> Decimal | None:
        usage = Usage(input_tokens=_HIGHEST_TIER_TOKENS, **tokens)
        return calculate_cost(usage, model, provider, base_url)

    plain = calculate()
    if plain is None:
        return None
    cached = calculate(cache_write_tokens=_HIGHEST_TIER_TOKENS) or plain
    both = calculate(output_tokens=_HIGHEST_TIER_TOKENS) or plain
    factor = Decimal(_TOKENS_PER_PRICE) / _HIGHEST_TIER_TOKENS
    return TokenPrice(input_usd=max(plain, cached) * factor, output_usd=(both - plain) * factor)


def calculate_cost(usage: AbstractUsage, model: str, provider: str, base_url: str | None = None) -> Decimal | None:
    """Calculate the cost in US dollars from list prices.

    None if the list does not have this model, or the numbers of the usage contradict each other.
    """
    from genai_prices import calc_price  # 0.4 s

    try:
        return _look_up(lambda **by: calc_price(usage, model, **by).total_price, provider, base_url)
    except ValueError:
        return None


def find_context_window(model: str, provider: str, base_url: str | None = None) -> int | None:
    """Return a model's context window in tokens, or None if the list does not have this model."""
    from genai_prices.data_snapshot import get_snapshot  # 0.4 s

    def find(*, provider_id: str | None = None, provider_api_url: str | None = None) -> int | None:
        return get_snapshot().find_provider_model(model, None, provider_id, provider_api_url)[1].context_window

    return _look_up(find, provider, base_url)


def _look_up(find: Callable[..., T], provider: str, base_url: str | None) -> T | None:
    """Find something in the price list by its provider's name, which the operator may have chosen, or address."""
    with suppress(LookupError):
        return find(provider_id=provider)
    with suppress(LookupError):
        return None if base_url is None else find(provider_api_url=base_url)
    return None
