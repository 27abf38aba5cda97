"""Signatures of requests, as the specification Standard Webhooks describes them.

| header | contents |
|---|---|
| `webhook-id` | the id of the message: the same one twice is one message |
| `webhook-timestamp` | when it was signed, in seconds since 1970 |
| `webhook-signature` | `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`; or several, with spaces |
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

MAX_CLOCK_DIFFERENCE_SECONDS = 300
MAX_SIGNATURES = 10  # of one request
SECRET_PREFIX = "whsec_"  # noqa: S105  (a secret with it is the base64 of the key)

_MESSAGE_ID = re.compile(r"[!-~]{1,128}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


class SignatureRefused(Exception):
    """A request is not signed with the secret, or not now."""


def read_key(secret: str) -> bytes:
    """Return the key that a secret stands for. Raises ValueError if it has the prefix and is not base64."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def compute_signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """Return the value of the signature header."""
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def sign_request(key: bytes, message_id: str, now: float, body: bytes) -> dict[str, str]:
    """Return the headers of a signed request."""
    timestamp = str(int(now))
    signature = compute_signature(key, message_id, timestamp, body)
    return {ID_HEADER: message_id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: signature}


def verify_request(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> str:
    """Check the signature of a request, and return the id of its message. Raises SignatureRefused.

    A request without an id has an empty one in its signature, which then stands for the id.
    """
    message_id = headers.get(ID_HEADER, "")
    timestamp = headers.get(TIMESTAMP_HEADER, "")
    if message_id and not _MESSAGE_ID.fullmatch(message_id):
        raise SignatureRefused(f"{ID_HEADER} has up to 128 visible characters.")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise SignatureRefused(f"{TIMESTAMP_HEADER} is missing, or not a number of seconds.")
    expected = compute_signature(key, message_id, timestamp, body)
    given = headers.get(SIGNATURE_HEADER, "").split(" ")[:MAX_SIGNATURES]
    if not any(hmac.compare_digest(expected.encode(), each.encode()) for each in given):
        raise SignatureRefused(f"{SIGNATURE_HEADER} is missing, or does not belong to this body, id and timestamp.")
    if abs(now - int(timestamp)) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise SignatureRefused(
            f"{TIMESTAMP_HEADER} is more than {MAX_CLOCK_DIFFERENCE_SECONDS // 60} minutes away. Check both clocks."
        )
    return message_id or expected
