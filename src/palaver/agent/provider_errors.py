"""What went wrong with a provider, in our own errors, and whether trying again or elsewhere may help.

Owns the words a person reads. They name the provider and how to mend it; they never hold a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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

from palaver.agent.providers import OLLAMA, how_to_give_a_key, title_of
from palaver.domain.errors import AgentBusy, AgentError, AgentRefused, AgentUnavailable, ContextOverflow

if TYPE_CHECKING:
    from palaver.agent.providers import ModelName
    from palaver.domain.profile import Provider

# What the clients raise for an answer that is not what the protocol promises; beside what pydantic-ai has named.
CAUGHT = (AgentRunError, UserError, ValueError, TypeError, AttributeError, LookupError)

# How servers say that a conversation is too long, where pydantic-ai has no name for it.
_TOO_LONG = (
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
_PASSING = frozenset({408, 409, 425})  # HTTP states that may be gone the next time, beside those above 500
_LONGEST_QUOTE = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a model did not answer."""

    error: AgentError  # to be raised when nothing helps
    again: bool = False  # the same model may answer the next time
    elsewhere: bool = False  # another model may answer
    asked: float | None = None  # seconds the provider wants us to wait
    cause: BaseException | None = None  # fit for a log: without our key

    @property
    def reason(self) -> str:
        """Why, in words."""
        return str(self.error)


def understood(error: BaseException, name: ModelName, provider: Provider) -> Failure:
    """What an error of a provider means."""
    shows_key = provider.api_key is not None and provider.api_key in f"{error} {_body(error)}"
    return replace(_meaning(error, name, provider), cause=None if shows_key else error)


def _meaning(error: BaseException, name: ModelName, provider: Provider) -> Failure:
    title = title_of(name.provider)
    if _is_too_long(error):
        long = f"This conversation is longer than {name} can take; /compress shortens it."
        return Failure(ContextOverflow(long, model=str(name)))
    if isinstance(error, ModelRateLimitError):
        asked = error.retry_after
        later = f" in {asked:.0f} seconds" if asked else " later"
        busy = AgentBusy(f"{title} asks us to slow down; try again{later}.", retry_after=asked, model=str(name))
        return Failure(busy, again=True, elsewhere=True, asked=asked)
    if isinstance(error, ModelQuotaExceededError):
        broke = AgentRefused(f"The account at {title} has no credit left; see its billing page.", model=str(name))
        return Failure(broke, elsewhere=True)
    refusal = _refusal(error, name, provider)
    if refusal is not None:
        return Failure(refusal)
    gone = AgentUnavailable(f"{title} cannot answer at the moment ({_why(error, name)}).", model=str(name))
    return Failure(gone, again=True, elsewhere=True)


def broken_off(failure: Failure, name: ModelName) -> AgentUnavailable:
    """The answer had begun: what was said is kept, and nothing is asked twice."""
    return AgentUnavailable(
        f"The answer broke off: {failure.reason} What was said so far is kept; /retry asks again.", model=str(name)
    )


def empty(name: ModelName, finish: str | None) -> Failure:
    """The model ended without a word."""
    if finish == "content_filter":
        return Failure(
            AgentRefused(f"The content filter of {title_of(name.provider)} stopped the answer.", model=str(name))
        )
    why = " It used up all its tokens before the first word." if finish == "length" else ""
    error = AgentUnavailable(f"{name} gave an empty answer.{why} Try again, or say it in other words.", model=str(name))
    return Failure(error, again=True, elsewhere=True)


def _key_refused(name: ModelName, provider: Provider) -> AgentRefused:
    title = title_of(name.provider)
    if not provider.api_key:
        return AgentRefused(f"{title} wants a key: {how_to_give_a_key(name.provider)}.", model=str(name))
    return AgentRefused(
        f"{title} does not accept the key, or the key may not use {name.model}: {how_to_give_a_key(name.provider)}.",
        model=str(name),
    )


def _unknown_model(name: ModelName) -> AgentRefused:
    mend = "choose another one with /model, or with the key `model` of config.yaml"
    if name.provider == OLLAMA:
        mend = f"run `ollama pull {name.model}`, or {mend}"
    return AgentRefused(f"{title_of(name.provider)} has no model {name.model!r} for us: {mend}.", model=str(name))


def _refusal(error: BaseException, name: ModelName, provider: Provider) -> AgentRefused | None:
    """The provider does not want this request, now or ever."""
    match error:
        case ModelAuthenticationError():
            return _key_refused(name, provider)
        case ModelNotFoundError():
            return _unknown_model(name)
        case ModelRequestRejectedError():
            pass
        case ModelHTTPError(status_code=status) if status < 500 and status not in _PASSING:
            pass
        case _:
            return None
    return AgentRefused(f"{title_of(name.provider)} refused the request: {_quoted(error, provider)}", model=str(name))


def _why(error: BaseException, name: ModelName) -> str:
    match error:
        case ModelTimeoutError():
            return "it did not answer in time"
        case ModelConnectionError(phase="connect"):
            return "no connection; is Ollama running?" if name.provider == OLLAMA else "no connection"
        case ModelConnectionError():
            return "the connection was cut"
        case ModelHTTPError(status_code=status):
            return f"HTTP {status}"
        case _:
            return "its answer was cut, or could not be read"


def _is_too_long(error: BaseException) -> bool:
    if isinstance(error, ModelContextWindowExceededError):
        return True
    if isinstance(error, ModelHTTPError) and error.status_code not in {400, 413, 422}:
        return False
    return isinstance(error, ModelAPIError) and any(phrase in _body(error).lower() for phrase in _TOO_LONG)


def _quoted(error: BaseException, provider: Provider) -> str:
    """The provider's own words, without our key."""
    text = _body(error) or str(error)
    if provider.api_key:
        text = text.replace(provider.api_key, "…")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def _body(error: BaseException) -> str:
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
