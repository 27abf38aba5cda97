"""Turns failed requests into Palaver's errors, in the words that all platforms share; imports no HTTP client."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.texts import Text, say


class RequestError(Exception):
    """A request to a platform has failed, or was refused. `may_have_arrived`: the platform may have acted."""

    may_have_arrived = False
    outage_text: str | None = None  # what people are told if the platform can't be reached; None: the usual words


class RequestFailed(RequestError):
    """The platform has not answered."""

    def __init__(self, reason: str, *, may_have_arrived: bool) -> None:
        super().__init__(reason)
        self.may_have_arrived = may_have_arrived


class Refusal(RequestError):
    """The platform has answered that it did not do it; each platform fills in what its own codes mean."""

    reason: str  # as the platform says it
    account_reason: str | None = None  # what an operator has to fix: it is about our account
    account_wait_seconds: float | None = None  # before a message is tried again then
    wait_seconds: float | None = None  # that the platform asks to wait
    is_for_account: bool = False  # it asks the whole account to wait, not only for this chat
    chat_reason: str | None = None  # why nothing at all can be sent to the chat
    message_reason: str | None = None  # why this message is not taken, where the platform's own words do not say it


def make_platform_error(platform: str, error: RequestError) -> PlatformError:
    """Return what a request that is not about a chat has failed with."""
    if isinstance(error, Refusal):
        if error.account_reason is not None:
            return AccountRefused(error.account_reason)
        if error.wait_seconds is not None:
            return ConnectionLost(_describe_wait(platform, error.wait_seconds))
    return ConnectionLost(describe_outage(platform, error))


def make_delivery_error(platform: str, error: RequestError, *, is_repeatable: bool = False) -> DeliveryError:
    """Return what a request about a chat has failed with.

    If the platform may have acted on a request that does no harm when it is repeated, it can be retried.
    """
    if isinstance(error, Refusal):
        if error.account_reason is not None:
            return SendRetryable(error.account_reason, retry_after=error.account_wait_seconds, whole_account=True)
        if (seconds := error.wait_seconds) is not None:
            text = _describe_wait(platform, seconds)
            return SendRetryable(text, retry_after=seconds, whole_account=error.is_for_account)
        if error.chat_reason is not None:
            return TargetUnreachable(error.chat_reason)
        if not error.may_have_arrived:
            return SendRejected(
                error.message_reason
                or say(
                    "platform.message_refused",
                    "{platform} has refused the message: {reason}",
                    platform=platform,
                    reason=error.reason,
                )
            )
    if error.may_have_arrived and not is_repeatable:
        return SendUncertain.say(
            "platform.not_confirmed",
            "{platform} did not confirm the message: {reason}",
            platform=platform,
            reason=error,
        )
    return SendRetryable(describe_outage(platform, error))


def describe_outage(platform: str, error: RequestError) -> str:
    return error.outage_text or say(
        "platform.not_reachable", "{platform} can't be reached right now: {reason}", platform=platform, reason=error
    )


def describe_forbidden(platform: str, reason: str) -> Text:
    return say(
        "platform.bot_cannot_write",
        "{platform} does not let the bot write here: {reason}",
        platform=platform,
        reason=reason,
    )


def _describe_wait(platform: str, seconds: float) -> Text:
    return say(
        "platform.asks_wait_seconds",
        "{platform} asks to wait {seconds} seconds.",
        platform=platform,
        seconds=f"{seconds:.0f}",
    )


def make_unreachable_error(host: str, error: Exception) -> SendRetryable:
    """Return the error of a message for a server that no connection can be made to."""
    return SendRetryable.say(
        "email.cant_reached", "{host} can't be reached ({error}).", host=host, error=type(error).__name__
    )


def make_repeatable(error: DeliveryError) -> DeliveryError:
    """Return the error of a request that does no harm when it is repeated: it is, if the platform may have acted."""
    return SendRetryable(error.text) if isinstance(error, SendUncertain) else error


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds to wait that a `Retry-After` header names, as a number or as a date; None if it names none."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
