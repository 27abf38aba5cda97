"""Providers of models: the known ones, names of models, and where API keys come from.

A model is named `provider:model`. Three providers have their own API; every other one has a `base_url` with an
OpenAI-compatible API. This module imports no client of a provider, and its texts never contain a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from palaver.config.agent_rules import Provider
from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping


OLLAMA: Final = "ollama"
INSTALL_COMMAND: Final = "pip install 'palaver[models]'"


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
    """A provider and one of its models."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    """Parse `provider:model`."""
    provider, colon, model = text.strip().partition(":")
    if not (provider and colon and model):
        raise InvalidInput(f"{text!r} is not a model name. Use provider:model, such as openai:gpt-5.4-mini.")
    return ModelName(provider.lower(), model)


def get_provider_title(provider: str) -> str:
    """Return the name of a provider for a sentence: OpenAI, or "workshop" for one from the settings."""
    known = KNOWN_PROVIDERS.get(provider)
    return known.title if known else f'"{provider}"'


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


def check_reachable(name: ModelName, providers: Mapping[str, Provider]) -> Provider:
    """Return the provider of a model; raises `InvalidInput` if it lacks a key or an address."""
    provider = providers.get(name.provider, Provider())
    if name.provider not in KNOWN_PROVIDERS and not provider.base_url:
        available = ", ".join(dict.fromkeys([*KNOWN_PROVIDERS, *providers]))
        raise InvalidInput(
            f"Unknown provider in the model name {str(name)!r}. Set providers.{name.provider}.base_url in the settings,"
            f" or use another provider: {available}.",
            provider=name.provider,
        )
    if not (provider.api_key or provider.base_url):
        raise InvalidInput(
            f"The model {str(name)!r} requires an API key. {explain_api_key(name.provider)}", provider=name.provider
        )
    return provider


def explain_api_key(provider: str) -> str:
    """Return a sentence that says where to put a provider's API key."""
    known = KNOWN_PROVIDERS.get(provider)
    setting = f"providers.{provider}.api_key in the settings"
    return f"Set {known.key_variables[0]} or {setting}." if known and known.key_variables else f"Set {setting}."


def explain_invalid_address(provider: str) -> str:
    """Return sentences about a provider whose address no client can use."""
    title, setting = get_provider_title(provider), f"providers.{provider}.base_url in the settings"
    return f"The address of {title} is not valid. Set {setting} to a URL that begins with http:// or https://."


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
    """How long to wait for a provider."""

    connect_seconds: float = 5.0
    read_seconds: float = 120.0  # between two pieces of an answer; a model may think before the first one
