"""Turning providers' exceptions into our own errors, and deciding whether a retry or a fallback may help.

Owns the texts that a person reads. They name the provider and say what to do; they never contain a key. The facts of an
error hold the provider's own message as `detail`, for people who want to know more, and for the log.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelTimeoutError,
    UserError,
)

from palaver.core.dataclass import dataclass
from palaver.core.errors import AgentError, AgentRateLimited, AgentRejected, AgentUnavailable, ContextOverflow
from palaver.core.texts import Text, say, say_count, tell_owner
from palaver.drivers.providers import (
    MODEL_NOT_READY,
    OLLAMA,
    ModelName,
    explain_api_key,
    explain_invalid_address,
    get_provider_title,
    quote_provider,
)
from palaver.sessions.turn import FailureCode

if TYPE_CHECKING:
    from palaver.config.agent_rules import Provider

# pydantic-ai's own exceptions, and what the clients raise for an address that can't be used and for an answer that
# violates the protocol.
PROVIDER_EXCEPTIONS = (
    *(AgentRunError, UserError, httpx2.InvalidURL),
    *(ValueError, TypeError, AttributeError, LookupError),
)

# How servers say that a conversation is too long, where pydantic-ai has no exception for it.
_TOO_LONG_PHRASES = (
    "exceed_context_size",
    "available context size",
    "context length",
    "context_length",
    "context window",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "request too large",
    "request_too_large",
)
_TEMPORARY_STATUS_CODES = frozenset({408, 409, 425})  # besides all from 500 on
_REFUSALS = (ModelRateLimitError, ModelQuotaExceededError, ModelRequestRejectedError, UserError, httpx2.InvalidURL)
_UNCERTAIN_STATUS_CODES = frozenset({408, 502, 504, 520, 522, 524})  # of gateways in front of a provider
_MAX_QUOTE_CHARS = 300
_MAX_DETAIL_CHARS = 1000
_MAX_BODY_CHARS = 4000  # a proxy may answer with a whole page


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a model did not answer, and the remedies."""

    error: AgentError  # to raise if neither a retry nor a fallback helps
    can_retry: bool = False  # the same model may answer the next time
    can_use_fallback: bool = False  # another model may answer
    retry_after_seconds: float | None = None  # how long the provider asks us to wait
    mid_answer_outage: tuple[FailureCode, str] | None = None  # what to say instead if the answer had already started
    cause: BaseException | None = None  # safe to log: without our key


def classify_error(error: BaseException, name: ModelName, provider: Provider) -> Failure:
    """Find out what an exception from a provider's client means."""
    failure = _classify(error, name, provider)
    title = get_provider_title(name.provider)
    failure.error.facts.update(model=str(name), provider=name.provider, provider_title=title)
    if isinstance(error, ModelHTTPError):
        failure.error.facts["status"] = error.status_code
    if detail := _quote_error(error, provider, _MAX_DETAIL_CHARS):
        failure.error.facts["detail"] = detail
    shows_key = provider.api_key is not None and provider.api_key in f"{error} {_get_body_text(error)}"
    return replace(failure, cause=None if shows_key else error)


def _classify(error: BaseException, name: ModelName, provider: Provider) -> Failure:
    title = get_provider_title(name.provider)
    if _is_too_long(error):
        text = say(
            "model.too_long_chat", "This conversation is too long for {model}. Use /compress to shorten it.", model=name
        )
        return Failure(ContextOverflow(text, code=FailureCode.TOO_LONG))
    if isinstance(error, ModelRateLimitError):
        seconds = error.retry_after
        facts = {"retry_after": seconds, "seconds": round(seconds) if seconds else None}
        rate_limited = AgentRateLimited(_describe_rate_limit(title, seconds), code=FailureCode.RATE_LIMITED, **facts)
        return Failure(rate_limited, can_retry=True, can_use_fallback=True, retry_after_seconds=seconds)
    if isinstance(error, ModelQuotaExceededError):
        text = say(
            "model.no_credit", "Your account at {provider} has no credit left. See its billing page.", provider=title
        )
        error_text = tell_owner(text, MODEL_NOT_READY)
        return Failure(AgentRejected(error_text, code=FailureCode.NO_CREDIT), can_use_fallback=True)
    rejection = _find_rejection(error, name, provider)
    if rejection is not None:
        return Failure(rejection)
    code, outage = _describe_outage(error, title, name.provider)
    return Failure(
        AgentUnavailable(outage, code=code),
        can_retry=True,
        can_use_fallback=True,
        mid_answer_outage=_describe_mid_answer_outage(error, title),
    )


def is_refused(error: BaseException) -> bool:
    """Return whether a provider has certainly not worked on a request that gave no answer, so it costs nothing.

    True if the request could not be sent, or was answered with an HTTP error. A gateway that lost or gave up on the
    provider behind it is different: that one may have worked. So are time-outs, dropped connections and cancellations.
    """
    match error:
        case ModelTimeoutError():
            return False
        case ModelConnectionError(phase=phase):
            return phase == "connect"
        case ModelHTTPError(status_code=status):
            return status not in _UNCERTAIN_STATUS_CODES
        case _:
            return isinstance(error, _REFUSALS)


def make_dropped_error(failure: Failure, name: ModelName) -> AgentUnavailable:
    """Make the error for an answer that had already started: its text is kept, and nothing is requested twice."""
    facts: dict[str, object] = {"model": str(name)} | failure.error.facts
    reason: str = say("model.stopped_early", "The answer stopped early. {reason}", reason=failure.error.text)
    if failure.mid_answer_outage is not None:
        facts["code"], reason = failure.mid_answer_outage
    saved = say("model.text_saved", " The text so far is saved. Use /retry to try again.")
    return AgentUnavailable(reason + saved, **facts)


def make_empty_answer_failure(name: ModelName, finish_reason: str | None) -> Failure:
    """Make the failure for a model that ended without any text."""
    if finish_reason == "content_filter":
        title = get_provider_title(name.provider)
        text = say("model.filtered", "The content filter of {provider} blocked the answer.", provider=title)
        facts = {"code": FailureCode.CONTENT_FILTERED, "model": str(name), "provider_title": title}
        return Failure(AgentRejected(text, **facts))
    text = say("model.empty", "{model} gave an empty answer.", model=str(name))
    if finish_reason == "length":
        text += say("model.no_tokens_left", " It used up its tokens before writing any text.")
    text += say("model.rephrase", " Try again or rephrase your message.")
    error = AgentUnavailable(text, code=FailureCode.EMPTY_ANSWER, model=str(name))
    return Failure(error, can_retry=True, can_use_fallback=True)


def _find_rejection(error: BaseException, name: ModelName, provider: Provider) -> AgentRejected | None:
    """Return an error if the provider rejects this request for good, so that a retry cannot help."""
    title = get_provider_title(name.provider)
    others: str = MODEL_NOT_READY
    match error:
        case ModelAuthenticationError() if not provider.api_key:
            code, advice = FailureCode.KEY_MISSING, explain_api_key(name.provider)
            text = say("model.key_missing", "{provider} requires an API key. {advice}", provider=title, advice=advice)
        case ModelAuthenticationError():
            code = FailureCode.KEY_REJECTED
            text = say(
                "model.key_rejected",
                "{provider} rejected the API key, or the key has no access to {model}. {advice}",
                provider=title,
                model=name.model,
                advice=explain_api_key(name.provider),
            )
        case ModelNotFoundError():
            code, model = FailureCode.UNKNOWN_MODEL, repr(name.model)
            text = say(
                "model.unknown",
                "{provider} has no model {model}. {advice}",
                provider=title,
                model=model,
                advice=_advise_on_models(name),
            )
            others = say("model.choose_for_others", "This model isn't available. Choose another one with /model.")
        case httpx2.InvalidURL():
            return AgentRejected(explain_invalid_address(name.provider), code=FailureCode.ADDRESS_INVALID)
        case _ if _is_rejected(error):
            code, reason = FailureCode.REQUEST_REJECTED, _quote_error(error, provider)
            text = say(
                "model.request_rejected", "{provider} rejected the request: {reason}", provider=title, reason=reason
            )
            return AgentRejected(text, code=code)
        case _:
            return None
    return AgentRejected(tell_owner(text, others), code=code)


def _is_rejected(error: BaseException) -> bool:
    match error:
        case ModelRequestRejectedError():
            return True
        case ModelHTTPError(status_code=status):
            return status < 500 and status not in _TEMPORARY_STATUS_CODES
        case _:
            return False


def _advise_on_models(name: ModelName) -> Text:
    if name.provider != OLLAMA:
        return say("model.choose_other", "Choose another model with /model or with the setting `model`.")
    return say(
        "model.pull",
        "Run `ollama pull {model}`. Or choose another model with /model or with the setting `model`.",
        model=name.model,
    )


def _describe_outage(error: BaseException, title: str, provider: str) -> tuple[FailureCode, str]:
    match error:
        case ModelTimeoutError():
            return FailureCode.TIMED_OUT, say("model.timed_out", "{provider} did not respond in time.", provider=title)
        case ModelConnectionError(phase="connect"):
            text = say("model.cannot_connect", "Could not connect to {provider}.", provider=title)
            if provider == OLLAMA:
                text = tell_owner(text + say("model.is_ollama_running", " Is Ollama running?"), MODEL_NOT_READY)
            return FailureCode.CANNOT_CONNECT, text
        case ModelConnectionError():
            return FailureCode.CONNECTION_DROPPED, say(
                "model.dropped", "The connection to {provider} dropped.", provider=title
            )
        case ModelHTTPError(status_code=status):
            return FailureCode.UNAVAILABLE, say(
                "model.unavailable",
                "{provider} is unavailable at the moment (HTTP {status}).",
                provider=title,
                status=str(status),
            )
        case _:
            return FailureCode.INVALID_RESPONSE, say(
                "model.invalid", "{provider} sent an incomplete or invalid response.", provider=title
            )


def _describe_mid_answer_outage(error: BaseException, title: str) -> tuple[FailureCode, str]:
    if isinstance(error, ModelTimeoutError):
        return FailureCode.STALLED_MID_ANSWER, say(
            "model.stalled", "{provider} stopped responding mid-answer.", provider=title
        )
    return FailureCode.DROPPED_MID_ANSWER, say(
        "model.dropped_mid_answer", "The connection to {provider} dropped mid-answer.", provider=title
    )


def _describe_rate_limit(title: str, seconds: float | None) -> Text:
    if not seconds:
        return say("model.rate_limited", "Rate limit reached at {provider}. Try again later.", provider=title)
    return say_count(
        "model.rate_limited_for",
        round(seconds),
        "Rate limit reached at {provider}. Try again in {count} second.",
        "Rate limit reached at {provider}. Try again in {count} seconds.",
        provider=title,
    )


def _is_too_long(error: BaseException) -> bool:
    if isinstance(error, ModelContextWindowExceededError):
        return True
    if not isinstance(error, ModelAPIError) or getattr(error, "status_code", 400) not in {400, 413, 422}:
        return False
    body = _get_body_text(error).lower()
    return any(phrase in body for phrase in _TOO_LONG_PHRASES)


def _quote_error(error: BaseException, provider: Provider, limit: int = _MAX_QUOTE_CHARS) -> str:
    """Return the provider's own message in one line, without our key and other secrets."""
    text = (_get_body_text(error) or _describe_cause(error))[:_MAX_BODY_CHARS]
    return quote_provider(provider, text, limit)


def _describe_cause(error: BaseException) -> str:
    """Return the text of an error without a body, with the first cause: "Connection error." alone says too little."""
    root = error
    while (cause := root.__cause__) is not None:
        root = cause
    return str(error) if root is error or str(root) in str(error) else f"{error} ({type(root).__name__}: {root})"


def _get_body_text(error: BaseException) -> str:
    body = error.body if isinstance(error, ModelAPIError) else None
    match body:
        case {"error": {"message": str(text), "type": str(kind)}} | {"message": str(text), "type": str(kind)}:
            return f"{text} ({kind})"
        case {"error": {"message": str(text)}} | {"message": str(text)} | {"error": str(text)} | str(text):
            return text
        case None:
            return ""
        case _:
            return str(body)
