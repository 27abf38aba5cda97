"""Notifications to browsers while the page is closed: the values. Pure."""

from __future__ import annotations

import binascii
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import field
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError, InvalidInput
from palaver.core.files import create_secret_file

if TYPE_CHECKING:
    from pathlib import Path


MAX_ENDPOINT_CHARS: Final = 2000
PUBLIC_KEY_BYTES: Final = 65  # a point of P-256, uncompressed
AUTH_SECRET_BYTES: Final = 16
MAX_SUBSCRIPTIONS_PER_PERSON: Final = 20
FILE_NAME: Final = "push.key"
KEY_BYTES: Final = 32
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


# ---- the key of this installation -------------------------------------------------------------------------------
# The key with which this installation identifies itself to the push services of browsers (VAPID, RFC 8292).
#
# Owns the file `push.key` in the home folder: a private key of the curve P-256, as its 32 bytes. It is never in the
# database. Browsers are subscribed to this key, so several hosts of one installation need the same file.
#
# Always true: the file is created once, is readable only by its owner, and is either complete or absent.

_CURVE_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def load_push_key(home: Path) -> int:
    """Return the private key from `<home>/push.key`; create the file on first use. Raises ConfigError."""
    path = home / FILE_NAME
    try:
        if not path.exists():
            number = secrets.randbelow(_CURVE_ORDER - 1) + 1
            create_secret_file(path, number.to_bytes(KEY_BYTES, "big"))
        with path.open("rb") as stream:
            key = stream.read(KEY_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path}: can't read or create the key for notifications ({error.strerror}).", file=str(path)
        ) from error
    number = int.from_bytes(key, "big")
    if len(key) != KEY_BYTES or not 1 <= number < _CURVE_ORDER:
        raise ConfigError(
            f"{path}: this is not a key for notifications. Restore the file, or delete it to create a"
            " new one; browsers then subscribe again when their page is opened.",
            file=str(path),
        )
    return number
