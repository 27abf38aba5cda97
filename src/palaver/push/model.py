"""Notifications to browsers while the page is closed: the values. Pure."""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Final

from palaver.core.errors import InvalidInput

MAX_ENDPOINT_CHARS: Final = 2000
PUBLIC_KEY_BYTES: Final = 65  # a point of P-256, uncompressed
AUTH_SECRET_BYTES: Final = 16
MAX_SUBSCRIPTIONS_PER_PERSON: Final = 20
_BASE64URL = re.compile(r"[A-Za-z0-9_-]{1,200}={0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    """A browser that shows notifications. Who knows the endpoint and the keys could send to it."""

    id: str
    endpoint: str = field(repr=False)
    public_key: str = field(repr=False)  # base64url
    auth_secret: str = field(repr=False)  # base64url
    server_key: str = ""  # our public key when the browser subscribed


def encode_base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64url(text: str, name: str, size: int) -> bytes:
    """Return the bytes of a key that a browser has sent. Raises InvalidInput."""
    try:
        data = urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        data = b""
    if _BASE64URL.fullmatch(text) is None or len(data) != size:
        raise InvalidInput(f"{name}: this is not {size} bytes in base64url. Send the key as it is.", key=name)
    return data
