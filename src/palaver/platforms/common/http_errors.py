"""What the failure of an HTTP request says about a message: whether it may have arrived, and when to try again."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2

# With these the request has not left this machine. After any other error it may have arrived.
NOT_SENT_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
)


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
