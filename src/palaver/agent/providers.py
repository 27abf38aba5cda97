"""Providers of models: which are known, how a model is named, and where a key is looked for.

A model is named `provider:model`. Three providers are reached in their own way; every other one is reached at a
`base_url` that speaks as OpenAI's does. Nothing here imports what it takes to reach them, and no text holds a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.domain.errors import InvalidInput
from palaver.domain.profile import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping

OLLAMA: Final = "ollama"
INSTALL: Final = "pip install 'palaver[models]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a provider without being told."""

    title: str
    default_model: str | None = None  # what `auto` takes
    key_variables: tuple[str, ...] = ()  # the first that is set is used
    base_url: str | None = None


# In the order in which `auto` tries them.
KNOWN: Final[Mapping[str, Known]] = MappingProxyType(
    {
        "openai": Known(title="OpenAI", default_model="gpt-5.4-mini", key_variables=("OPENAI_API_KEY",)),
        "anthropic": Known(title="Anthropic", default_model="claude-sonnet-5-5", key_variables=("ANTHROPIC_API_KEY",)),
        "google": Known(
            title="Google", default_model="gemini-3.5-flash", key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY")
        ),
        OLLAMA: Known(title="Ollama", base_url="http://127.0.0.1:11434/v1"),
    }
)


class ModelName(NamedTuple):
    """A model of a provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def model_name(text: str) -> ModelName:
    """The model that is named `provider:model`."""
    provider, colon, model = text.strip().partition(":")
    if not (provider and colon and model):
        raise InvalidInput(f"model: {text!r} does not name a model; say provider:model, such as openai:gpt-5.4-mini")
    return ModelName(provider.lower(), model)


def title_of(provider: str) -> str:
    """The provider's name, as people write it."""
    known = KNOWN.get(provider)
    return known.title if known else provider


def with_environment(providers: Mapping[str, Provider], environ: Mapping[str, str]) -> dict[str, Provider]:
    """The providers that can be reached, with the keys that the environment holds and the addresses that are known."""
    found = dict(providers)
    for name, known in KNOWN.items():
        given = found.get(name, Provider())
        key = given.api_key or next(
            (environ[variable] for variable in known.key_variables if environ.get(variable)), None
        )
        given = replace(given, api_key=key, base_url=given.base_url or known.base_url)
        if given.api_key or given.base_url:
            found[name] = given
    return found


def check_reachable(name: ModelName, providers: Mapping[str, Provider]) -> Provider:
    """The provider of a model; refuses one that cannot be reached for want of a key or an address."""
    provider = providers.get(name.provider, Provider())
    if name.provider not in KNOWN and not provider.base_url:
        there = ", ".join(dict.fromkeys([*KNOWN, *providers]))
        raise InvalidInput(
            f"model: it is not known where {str(name)!r} is; set providers.{name.provider}.base_url in config.yaml, "
            f"or use another provider ({there})",
            provider=name.provider,
        )
    if not (provider.api_key or provider.base_url):
        raise InvalidInput(
            f"model: {str(name)!r} needs a key: {how_to_give_a_key(name.provider)}", provider=name.provider
        )
    return provider


def how_to_give_a_key(provider: str) -> str:
    """Where to put a provider's key."""
    known = KNOWN.get(provider)
    key = f"providers.{provider}.api_key in config.yaml"
    return f"set {known.key_variables[0]}, or {key}" if known and known.key_variables else f"set {key}"
