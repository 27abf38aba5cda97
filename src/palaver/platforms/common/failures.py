"""Turns failed requests into Palaver's errors, in the words that all platforms share; imports no HTTP client."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from palaver.core.errors import DeliveryError, SendRetryable, SendUncertain


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
    text = f"{platform} asks to wait {seconds:.0f} seconds."
    return SendRetryable(text, retry_after=seconds, whole_account=whole_account)


def make_outage_error(platform: str, reason: str, *, may_have_arrived: bool) -> SendRetryable | SendUncertain:
    """Return the error of a request that a platform has not answered."""
    if may_have_arrived:
        return SendUncertain(f"{platform} did not confirm the message: {reason}")
    return SendRetryable(f"{platform} can't be reached right now: {reason}")


def make_repeatable(error: DeliveryError) -> DeliveryError:
    """Return the error of a request that does no harm when it is repeated: it is, if the platform may have acted."""
    return SendRetryable(str(error)) if isinstance(error, SendUncertain) else error


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
