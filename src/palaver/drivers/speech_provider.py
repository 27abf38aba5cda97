"""Speech through a provider with OpenAI's audio API: `/audio/transcriptions` and `/audio/speech`."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import httpx2

from palaver.agent.base import CallMeter, HeldCall, ModelCall
from palaver.config.budget_rules import MIN_MAX_TOKENS
from palaver.core.errors import AgentError, AgentRateLimited, AgentRejected, AgentUnavailable
from palaver.core.text import make_storable
from palaver.core.texts import tell_owner
from palaver.drivers.model_clients import make_http_client
from palaver.drivers.providers import (
    MODEL_NOT_READY,
    ModelName,
    ModelPrices,
    explain_api_key,
    explain_invalid_address,
    get_provider_title,
    quote_provider,
)
from palaver.sessions.speech import (
    MAX_TRANSCRIPT_CHARS,
    TOKENS_PER_AUDIO_SECOND,
    TOKENS_PER_SPOKEN_CHAR,
    Recording,
    SpokenAudio,
    estimate_audio_tokens,
)
from palaver.sessions.turn import FailureCode
from palaver.sessions.usage import TurnUsage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.config.agent_rules import Provider, SpeechRules

OPENAI_URL: Final = "https://api.openai.com/v1"
CONNECT_SECONDS: Final = 10.0
READ_SECONDS: Final = 120.0
MAX_JSON_BYTES: Final = 2_000_000
MAX_AUDIO_BYTES: Final = 10_000_000  # of one spoken piece
DEFAULT_VOICE: Final = "alloy"
SPOKEN_FORMAT: Final = "mp3"
MAX_QUOTE_CHARS: Final = 300
_AUDIO_TYPES: Final = frozenset(
    {"audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac", "audio/aac"}
)
_RATE_LIMITED: Final = 429
_SERVER_ERROR: Final = 500
_REJECTED_KEY: Final = frozenset({401, 403})


class ProviderSpeech:
    def __init__(self, name: ModelName, provider: Provider, prices: ModelPrices, rules: SpeechRules) -> None:
        self.description = str(name)
        self._name = name
        self._provider = provider
        self._prices = prices
        self._rules = rules
        self._client: httpx2.AsyncClient | None = None

    async def transcribe(self, recording: Recording, meter: CallMeter) -> str:
        tokens = estimate_audio_tokens(recording.size)
        held = await self._hold(meter, tokens, min(tokens // 2 + 1, MIN_MAX_TOKENS))
        fields = {"model": self._name.model, "response_format": "json"}
        if self._rules.language:
            fields["language"] = self._rules.language
        with recording.path.open("rb") as stream:
            files = {"file": (recording.name, stream, recording.media_type)}
            async with self._send(held, "audio/transcriptions", data=fields, files=files) as response:
                body = await _read(response, MAX_JSON_BYTES)
        answer = _parse_answer(body)
        if answer is None:
            await held.settle(None)
            raise self._make_failure(f"{self._title} sent an answer that is not a transcript.")
        await held.settle(self._make_usage(_count_tokens(answer.get("usage"), recording)))
        return make_storable(str(answer["text"])).strip()[:MAX_TRANSCRIPT_CHARS]

    async def speak(self, text: str, meter: CallMeter) -> SpokenAudio:
        tokens = len(text) * TOKENS_PER_SPOKEN_CHAR
        held = await self._hold(meter, tokens, 1)
        fields = {
            "model": self._name.model,
            "input": text,
            "voice": self._rules.voice or DEFAULT_VOICE,
            "response_format": SPOKEN_FORMAT,
        }
        async with self._send(held, "audio/speech", json=fields) as response:
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            data = await _read(response, MAX_AUDIO_BYTES)
        await held.settle(self._make_usage((tokens, 0)))
        if media_type not in _AUDIO_TYPES or not data:
            raise self._make_failure(f"{self._title} sent no audio ({media_type or 'unknown type'}).")
        return SpokenAudio(data, media_type)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @property
    def _title(self) -> str:
        return get_provider_title(self._name.provider)

    async def _hold(self, meter: CallMeter, tokens: int, output_tokens: int) -> HeldCall:
        price = await self._prices.find_price(self._name)
        call = ModelCall(
            model=str(self._name),
            provider=self._name.provider,
            input_tokens=tokens,
            max_tokens=output_tokens,  # so few that a limit never shortens them: that is not possible here
            price=price,
        )
        return await meter.hold(call)

    @asynccontextmanager
    async def _send(self, held: HeldCall, path: str, **options: Any) -> AsyncIterator[httpx2.Response]:
        """Send a request, and end what is held for it unless it succeeds."""
        is_sent = False
        try:
            url = f"{(self._provider.base_url or OPENAI_URL).rstrip('/')}/{path}"
            request = self._get_client().build_request("POST", url, **options)
            response = await self._get_client().send(request, stream=True)
            is_sent = True
            try:
                if response.status_code != httpx2.codes.OK:
                    body = await _read(response, MAX_JSON_BYTES)
                    await held.release()
                    raise self._explain_status(response.status_code, body, response.headers.get("retry-after"))
                yield response
            finally:
                await response.aclose()
        except httpx2.InvalidURL:
            await held.release()
            text = explain_invalid_address(self._name.provider)
            raise AgentRejected(text, code=FailureCode.ADDRESS_INVALID, model=str(self._name)) from None
        except (httpx2.HTTPError, OSError) as error:
            await (held.settle(None) if is_sent or isinstance(error, httpx2.ReadTimeout) else held.release())
            is_late = isinstance(error, httpx2.TimeoutException)
            problem = "did not answer in time" if is_late else "can't be reached"
            raise self._make_failure(f"{self._title} {problem}.") from None
        except BaseException:
            await held.settle(None)  # does nothing if it has ended
            raise

    def _get_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
            headers = {"Authorization": f"Bearer {self._provider.api_key}"} if self._provider.api_key else {}
            self._client = make_http_client(self._provider, timeout, headers=headers)
        return self._client

    def _make_usage(self, tokens: tuple[int, int]) -> TurnUsage:
        """Make the usage; its cost is added by the price with which it was held."""
        return TurnUsage(
            model=self._name.model, provider=self._name.provider, input_tokens=tokens[0], output_tokens=tokens[1]
        )

    def _explain_status(self, status: int, body: bytes, retry_after: str | None) -> AgentError:
        detail = self._quote(body)
        facts: dict[str, Any] = {"model": str(self._name), "status": status, "detail": detail}
        if status in _REJECTED_KEY:
            text = f"{self._title} rejects the API key. {explain_api_key(self._name.provider)}"
            return AgentRejected(tell_owner(text, MODEL_NOT_READY), code=FailureCode.KEY_REJECTED, **facts)
        if status == _RATE_LIMITED:
            seconds = float(retry_after) if retry_after and retry_after.isdigit() and len(retry_after) < 7 else None
            text = f"Rate limit reached at {self._title}. Try again later."
            return AgentRateLimited(text, retry_after=seconds, code=FailureCode.RATE_LIMITED, **facts)
        quoted = f": {detail}" if detail else "."
        if status >= _SERVER_ERROR:
            return AgentUnavailable(f"{self._title} has a problem ({status}){quoted}", **facts)
        return AgentRejected(f"{self._title} refused it ({status}){quoted}", **facts)

    def _make_failure(self, text: str) -> AgentError:
        return AgentUnavailable(text, model=str(self._name))

    def _quote(self, body: bytes) -> str:
        """Return the provider's own words about an error, without our key."""
        try:
            error = json.loads(body)["error"]
            message = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, LookupError, TypeError):
            return ""
        return make_storable(quote_provider(self._provider, message, MAX_QUOTE_CHARS))


def _parse_answer(body: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get("text"), str) else None


def _count_tokens(usage: object, recording: Recording) -> tuple[int, int]:
    """Return what a transcription has used: as the provider says, by its length, or estimated by its size."""
    fields = usage if isinstance(usage, dict) else {}
    tokens = [fields.get("input_tokens"), fields.get("output_tokens")]
    if all(type(each) is int and 0 <= each < 10**9 for each in tokens):
        return tokens[0], tokens[1]  # type: ignore[return-value]
    seconds = fields.get("seconds")
    if isinstance(seconds, int | float) and 0 <= seconds < 10**6:
        return ceil(seconds * TOKENS_PER_AUDIO_SECOND), 0
    return estimate_audio_tokens(recording.size), 0


async def _read(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read a body; one that is too long is an error of the connection."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise httpx2.ReadError("the answer is too long")
    return bytes(body)
