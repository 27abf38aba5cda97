"""Turns failed requests into Palaver's errors, in the words that all platforms share; imports no HTTP client."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from palaver.core.errors import DeliveryError, SendRetryable, SendUncertain
from palaver.core.texts import say


class RequestError(Exception):
    """A request to a platform has failed, or was refused. `may_have_arrived`: the platform may have acted."""

    may_have_arrived = False


class RequestFailed(RequestError):
    """The platform has not answered."""

    def __init__(self, reason: str, *, may_have_arrived: bool) -> None:
        super().__init__(reason)
        self.may_have_arrived = may_have_arrived


def make_wait_error(platform: str, seconds: float, *, whole_account: bool = False) -> SendRetryable:
    """Return the error of a message that a platform has not taken because too many came."""
    text = say(
        "platform.asks_wait_seconds",
        "{platform} asks to wait {seconds} seconds.",
        platform=platform,
        seconds=f"{seconds:.0f}",
    )
    return SendRetryable(text, retry_after=seconds, whole_account=whole_account)


def make_outage_error(platform: str, reason: str, *, may_have_arrived: bool) -> SendRetryable | SendUncertain:
    """Return the error of a request that a platform has not answered."""
    if may_have_arrived:
        return SendUncertain(
            say(
                "platform.not_confirm_message",
                "{platform} did not confirm the message: {reason}",
                platform=platform,
                reason=reason,
            )
        )
    return SendRetryable(
        say(
            "platform.cant_reached_right_now",
            "{platform} can't be reached right now: {reason}",
            platform=platform,
            reason=reason,
        )
    )


def make_unreachable_error(host: str, error: Exception) -> SendRetryable:
    """Return the error of a message for a server that no connection can be made to."""
    return SendRetryable(
        say("email.cant_reached", "{host} can't be reached ({error}).", host=host, error=type(error).__name__)
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
