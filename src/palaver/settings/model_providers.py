"""Asks providers of models: which models they have, and whether they answer.

A list of models is kept for ten minutes, and asked for once however many people wait for it. Only the provider decides
what exists: a model that is in no list can still be chosen by its name.

Always true: every wait and every size is bounded; an error has the provider's own words, without the key.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import AgentRequest, collect_answer
from palaver.config.agent_rules import AgentProfile, Provider
from palaver.core.dataclass import dataclass
from palaver.core.errors import AgentError, AgentRejected, AgentUnavailable, ConfigError, InvalidInput, PalaverError
from palaver.core.http_url import is_http_url
from palaver.core.logs import hide_in_logs
from palaver.core.texts import say
from palaver.core.wire import build_json
from palaver.drivers.providers import (
    INSTALL_COMMAND,
    KNOWN_PROVIDERS,
    OLLAMA,
    add_environment_keys,
    explain_api_key,
    get_provider_title,
    is_loopback_url,
    quote_provider,
)
from palaver.sessions.turn import FailureCode
from palaver.settings.wire import OfferedModelsJson, ProviderPresetJson, ProviderTestJson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LIST_SECONDS: Final = 15.0
KEEP_SECONDS: Final = 600.0  # a list of models
KEEP_ERROR_SECONDS: Final = 30.0
TEST_SECONDS: Final = 45.0
MAX_RESPONSE_BYTES: Final = 8_000_000  # OpenRouter describes hundreds of models at length
MAX_MODELS: Final = 2000
MAX_REPLY_CHARS: Final = 200
_TEST_TOKENS: Final = 200  # some models think before they write
_MAX_QUOTE_CHARS: Final = 500
_NOT_FOR_CHAT: Final = (
    *("embed", "rerank", "moderation", "whisper", "transcribe", "tts", "realtime", "audio", "dall-e", "gpt-image"),
    *("imagen", "sora", "veo"),
)
_DEFAULT_URLS: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}


# Providers that many people use, for a form.
PRESETS: Final[Sequence[ProviderPresetJson]] = (
    *(
        ProviderPresetJson(
            name=name,
            title=KNOWN_PROVIDERS[name].title,
            base_url=None,  # it is known
            needs_key=True,
            key_page=page,
            default_model=KNOWN_PROVIDERS[name].default_model,
        )
        for name, page in (
            ("openai", "https://platform.openai.com/api-keys"),
            ("anthropic", "https://console.anthropic.com/settings/keys"),
            ("google", "https://aistudio.google.com/apikey"),
        )
    ),
    ProviderPresetJson(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        needs_key=True,
        key_page="https://openrouter.ai/keys",
        default_model=None,
    ),
    ProviderPresetJson(
        name=OLLAMA,
        title="Ollama",
        base_url=KNOWN_PROVIDERS[OLLAMA].base_url,
        needs_key=False,
        key_page=None,
        default_model=None,
    ),
)


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """A provider to ask, with the key and address that are given, or else those of the settings."""

    name: str
    provider: Provider

    @property
    def title(self) -> str:
        return get_provider_title(self.name)

    @property
    def base_url(self) -> str:
        return (self.provider.base_url or _DEFAULT_URLS.get(self.name, "")).rstrip("/")

    def make_error(
        self, code: FailureCode, text: str, error_class: type[AgentError] = AgentUnavailable, **facts: object
    ) -> AgentError:
        return error_class(text, code=code, provider=self.name, provider_title=self.title, **facts)


def find_access(
    name: str, profile: AgentProfile, environ: Mapping[str, str], api_key: str | None, base_url: str | None
) -> ProviderAccess:
    """Combine what is given with what is set. A stored key is not sent to an address that was only given."""
    known = add_environment_keys(profile.providers, environ).get(name, Provider())
    is_same_address = base_url is None or base_url == known.base_url
    provider = Provider(
        api_key=api_key or (known.api_key if is_same_address else None), base_url=base_url or known.base_url
    )
    if api_key:
        hide_in_logs([api_key])
    if name not in KNOWN_PROVIDERS and not provider.base_url:
        text = say("provider.no_address", "{name}: set the address of this provider first.", name=name)
        raise InvalidInput(text, provider=name, code=FailureCode.ADDRESS_MISSING)
    if provider.base_url and not is_http_url(provider.base_url):
        raise InvalidInput(
            say(
                "provider.bad_address",
                "{name}: the address is not valid. Enter a URL that begins with http:// or https://.",
                name=name,
            ),
            key="base_url",
            provider=name,
            provider_title=get_provider_title(name),
            code=FailureCode.ADDRESS_INVALID,
        )
    if name in _DEFAULT_URLS and not provider.api_key and not provider.base_url:
        raise InvalidInput(
            f"{name}: enter an API key. {explain_api_key(name)}",
            provider=name,
            provider_title=get_provider_title(name),
            code=FailureCode.KEY_MISSING,
        )
    return ProviderAccess(name, provider)


async def list_models(access: ProviderAccess) -> list[str]:
    """Return the models that a provider offers, those for other purposes last. Raises AgentError with what it said."""
    try:
        async with asyncio.timeout(LIST_SECONDS):
            data = await _fetch_json(access, *_build_request(access))
    except TimeoutError:
        text = f"{access.title} did not answer within {LIST_SECONDS:g} seconds."
        raise access.make_error(FailureCode.TIMED_OUT, text) from None
    items = data.get("data", data.get("models")) if isinstance(data, dict) else data
    names = {_read_name(item) for item in items} - {""} if isinstance(items, list) else set()
    if not names:
        raise access.make_error(FailureCode.NO_MODELS, f"{access.title} has sent no list of models.")
    return sorted(names, key=lambda name: (not _can_chat(name), name))[:MAX_MODELS]


async def run_test(access: ProviderAccess, model: str | None) -> ProviderTestJson:
    """Let a model answer one short question; without a model, the usual one of the provider or its first."""
    started_at = time.monotonic()
    known = KNOWN_PROVIDERS.get(access.name)
    name = model or (known.default_model if known else None)
    reply: str | None = None
    error: PalaverError | None = None
    try:
        async with asyncio.timeout(TEST_SECONDS):
            name = name or next(filter(_can_chat, await list_models(access)), None)
            if name is None:
                raise access.make_error(FailureCode.NO_MODELS, "This provider offers no model that can answer.")
            reply = (await _ask(access, name))[:MAX_REPLY_CHARS]
    except TimeoutError:
        error = access.make_error(FailureCode.TIMED_OUT, f"There was no answer within {TEST_SECONDS:g} seconds.")
    except (AgentError, ConfigError, InvalidInput) as caught:
        error = caught
    facts = {} if error is None else {"code": error.code, **error.facts}
    detail = facts.pop("detail", None)
    return build_json(
        ProviderTestJson,
        None,
        ok=error is None,
        model=name,
        seconds=round(time.monotonic() - started_at, 3),
        reply=reply,
        error=None if error is None else error.text,
        detail=detail if isinstance(detail, str) else None,
        facts=facts,
    )


async def _ask(access: ProviderAccess, model: str) -> str:
    from palaver.agent.base import RetryPolicy
    from palaver.drivers.model import ModelAgent
    from palaver.drivers.providers import Timeouts
    from palaver.drivers.selection import has_provider_packages

    if not has_provider_packages():
        raise _make_packages_error()
    profile = AgentProfile(model=f"{access.name}:{model}", providers={access.name: access.provider})
    timeouts = Timeouts(connect_seconds=5, read_seconds=TEST_SECONDS)
    agent = ModelAgent(profile, {}, timeouts=timeouts, retry=RetryPolicy(max_tries=1))
    request = AgentRequest(
        instructions="Answer with one word.",
        messages=[{"role": "user", "content": "Say hello."}],
        max_tokens=_TEST_TOKENS,
    )
    text: list[str] = []
    try:
        await collect_answer(agent.run(request), text, [])
    finally:
        await agent.close()
    return "".join(text).strip()


def _build_request(access: ProviderAccess) -> tuple[str, dict[str, str]]:
    key = access.provider.api_key
    match access.name:
        case "anthropic":
            return f"{access.base_url}/v1/models?limit=1000", {
                "x-api-key": key or "",
                "anthropic-version": "2023-06-01",
            }
        case "google":
            return f"{access.base_url}/v1beta/models?pageSize=1000", {"x-goog-api-key": key or ""}
        case _:
            return f"{access.base_url}/models", {"Authorization": f"Bearer {key}"} if key else {}


async def _fetch_json(access: ProviderAccess, url: str, headers: dict[str, str]) -> Any:
    try:
        import httpx2
    except ImportError:
        raise _make_packages_error() from None
    body = b""
    try:
        async with (
            httpx2.AsyncClient(timeout=LIST_SECONDS, trust_env=not is_loopback_url(url)) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_RESPONSE_BYTES:
                    raise access.make_error(FailureCode.INVALID_RESPONSE, f"{access.title} has sent too much.")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        text = quote_provider(access.provider, str(error) or type(error).__name__, _MAX_QUOTE_CHARS)
        message = f"Could not connect to {access.title}. {text}"
        raise access.make_error(FailureCode.CANNOT_CONNECT, message, detail=text) from None
    if response.status_code >= 400:
        raise _make_error(access, response.status_code, body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        text = f"{access.title} has not answered with JSON. Is the address right?"
        raise access.make_error(FailureCode.INVALID_RESPONSE, text) from None


def _make_packages_error() -> InvalidInput:
    text = f"Models of providers require additional packages. Install them with {INSTALL_COMMAND}."
    return InvalidInput(text, code=FailureCode.PACKAGES_MISSING, command=INSTALL_COMMAND)


def _make_error(access: ProviderAccess, status: int, body: bytes) -> AgentError:
    detail = quote_provider(access.provider, _read_message(body), _MAX_QUOTE_CHARS)
    if status in (401, 403):
        text = f"{access.title} rejected the API key. {detail}".strip()
        return access.make_error(FailureCode.KEY_REJECTED, text, AgentRejected, status=status, detail=detail)
    text = f"{access.title} answered with HTTP {status}. {detail}".strip()
    return access.make_error(FailureCode.UNAVAILABLE, text, status=status, detail=detail)


def _read_message(body: bytes) -> str:
    """Return the message in the error of a provider, or the beginning of what it has sent."""
    text = body[:4000].decode("utf-8", "replace")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return text
    error = data.get("error", data) if isinstance(data, dict) else data
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else text


def _read_name(item: Any) -> str:
    """Return the name of a model as a provider lists it; one that can't answer in a chat is left out."""
    if not isinstance(item, dict):
        return ""
    methods = item.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return ""
    name = item.get("id") or item.get("name")
    is_usable = isinstance(name, str) and len(name) <= 200 and name.isprintable() and not any(map(str.isspace, name))
    return str(name).removeprefix("models/") if is_usable else ""


def _can_chat(name: str) -> bool:
    """Whether a model answers in words, as far as its name tells; most providers list all their models alike."""
    return not any(part in name.lower() for part in _NOT_FOR_CHAT)


class _Question:
    """A question to a provider; its answer is kept for a while."""

    def __init__(self, access: ProviderAccess) -> None:
        self.task = asyncio.create_task(_load_offered(access), name=f"palaver-models-{access.name}")
        self._asked_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        if not self.task.done():
            return True
        if self.task.cancelled() or self.task.exception() is not None:  # asked again, instead of failing forever
            return False
        keep_seconds = KEEP_SECONDS if self.task.result()["error"] is None else KEEP_ERROR_SECONDS
        return time.monotonic() - self._asked_at < keep_seconds


class ModelCatalog:
    """Asks the providers of the settings, each at most every ten minutes."""

    def __init__(self) -> None:
        self._questions: dict[ProviderAccess, _Question] = {}

    async def list_offered(self, connected: Iterable[ProviderAccess]) -> list[OfferedModelsJson]:
        """List what each of these providers offers. It takes at most 15 seconds."""
        questions = {
            access: question if (question := self._questions.get(access)) and question.is_fresh else _Question(access)
            for access in connected
        }
        self._questions = questions  # without providers that are no longer connected
        return list(await asyncio.gather(*(asyncio.shield(each.task) for each in questions.values())))


def list_connected(profile: AgentProfile, environ: Mapping[str, str], default_model: str) -> list[ProviderAccess]:
    """List the providers that are set up, that have a key in the environment, or whose model is the default."""
    uses_ollama = default_model.startswith(f"{OLLAMA}:")
    return [
        ProviderAccess(name, provider)
        for name, provider in add_environment_keys(profile.providers, environ).items()
        if provider.api_key or name in profile.providers or (name == OLLAMA and uses_ollama)
    ]


async def _load_offered(access: ProviderAccess) -> OfferedModelsJson:
    title = next((preset["title"] for preset in PRESETS if preset["name"] == access.name), access.name)
    offered = OfferedModelsJson(provider=access.name, title=title, models=[], error=None)
    try:
        offered["models"] = [f"{access.name}:{name}" for name in await list_models(access)]
    except (AgentError, InvalidInput) as error:
        offered["error"] = error.text
    return offered
