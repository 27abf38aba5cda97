"""The settings and the manifest of webhooks, and the signatures of requests.

Requests are signed as the specification Standard Webhooks says: `webhook-id` is the id of the message, and the same one
twice is one message; `webhook-timestamp` is when it was signed, in seconds since 1970; `webhook-signature` is `v1,` and
the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`, or several of them with spaces.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from palaver.core.http_url import is_http_url
from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.people.model import is_loopback
from palaver.platforms.common.settings import check_text
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

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

MIN_KEY_BYTES = 24
MAX_SECRET_CHARS = 512


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
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def sign_request(key: bytes, message_id: str, now: float, body: bytes) -> dict[str, str]:
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
        raise SignatureRefused(f"{TIMESTAMP_HEADER} is missing, or not a number of seconds. Send the time since 1970.")
    expected = compute_signature(key, message_id, timestamp, body)
    given = headers.get(SIGNATURE_HEADER, "").split(" ")[:MAX_SIGNATURES]
    if not any(hmac.compare_digest(expected.encode(), each.encode()) for each in given):
        raise SignatureRefused(
            f"{SIGNATURE_HEADER} is missing, or does not belong to this body, id and timestamp. Sign exactly what you"
            " send, with the secret of this webhook."
        )
    if abs(now - int(timestamp)) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise SignatureRefused(
            f"{TIMESTAMP_HEADER} is more than {MAX_CLOCK_DIFFERENCE_SECONDS // 60} minutes away. Check both clocks."
        )
    return message_id or expected


_Url = Annotated[
    str,
    check_text(
        is_http_url,
        say("webhook.bad_address", "this is not an address; write it like https://example.org/palaver"),
        clean=str,
    ),
    check_text(
        lambda url: not (urlsplit(url).username or urlsplit(url).password or urlsplit(url).fragment),
        say(
            "webhook.address_has_extras",
            "the address has no user name, password or fragment; the receiver checks the signature",
        ),
        clean=str,
    ),
]


class WebhookSettings(AccountSettings):
    """One webhook: who knows its secret may write to the agent."""

    secret: Annotated[
        SecretStr, FieldHelp("Signs requests in both directions; at least 24 characters.", "Choose it yourself.")
    ]
    url: Annotated[_Url | None, "Where answers are sent; without it they are only stored in the conversation."] = None
    user_name: Annotated[str, "The name of the caller, as people and the agent see it."] = Field(
        "Webhook", min_length=1, max_length=100
    )
    key_lifetime_hours: Annotated[float, "How long the receiver takes an id only once."] = Field(0, ge=0, le=24 * 30)

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, value: SecretStr) -> SecretStr:
        secret = value.get_secret_value().strip()
        try:
            key = read_key(secret)
        except ValueError:
            raise ValueError(
                say(
                    "webhook.secret_not_base64",
                    "What follows whsec_ is not base64. Make a new secret: openssl rand -base64 32",
                )
            ) from None
        if not MIN_KEY_BYTES <= len(key) <= MAX_SECRET_CHARS:
            raise ValueError(
                say(
                    "webhook.bad_secret_length",
                    "The secret needs {minimum} to {maximum} characters. Make one: openssl rand -base64 32",
                    minimum=str(MIN_KEY_BYTES),
                    maximum=str(MAX_SECRET_CHARS),
                )
            )
        return SecretStr(secret)

    @property
    def host(self) -> str:
        """The host that answers are sent to. The rest of the address may be a secret: errors do not show it."""
        return urlsplit(self.url or "").hostname or ""

    @property
    def is_encrypted_or_local(self) -> bool:
        """Whether other people on the network can't read the answers."""
        return self.url is None or urlsplit(self.url).scheme == "https" or is_loopback(self.host)


MANIFEST = PlatformManifest(
    platform=Platform.WEBHOOK,
    settings=WebhookSettings,
    create="palaver.platforms.webhook.adapter:WebhookAdapter",
    extra="webhook",
    modules=("httpx2",),
    environment={"WEBHOOK_SECRET": "secret", "WEBHOOK_URL": "url"},
    addresses=("url",),
    summary="Signed HTTP requests in and out, for your own programs",
    steps=(
        "Choose a secret of at least 24 characters.",
        "Enter the address to which answers are sent, if the other side should get them.",
        "Save it, then let the other program send signed requests to the webhook address of this server.",
    ),
    needs_public_url=True,
)
