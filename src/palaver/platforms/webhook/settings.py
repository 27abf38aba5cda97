"""The settings of one webhook."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from palaver.core.http_url import is_http_url
from palaver.platforms.manifest import AccountSettings
from palaver.platforms.webhook.signatures import read_key

MIN_KEY_BYTES = 24
MAX_SECRET_CHARS = 512
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class WebhookSettings(AccountSettings):
    """One webhook: who knows its secret may write to the agent."""

    secret: SecretStr  # signs requests in both directions
    url: str | None = None  # where answers are sent; without it they are only stored in the conversation
    user_name: str = Field("Webhook", min_length=1, max_length=100)  # of the caller, as people and the agent see it
    key_lifetime_hours: float = Field(0, ge=0, le=24 * 30)  # how long the receiver takes an id only once

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, value: SecretStr) -> SecretStr:
        secret = value.get_secret_value().strip()
        try:
            key = read_key(secret)
        except ValueError:
            raise ValueError("What follows whsec_ is not base64. Make a new secret: openssl rand -base64 32") from None
        if not MIN_KEY_BYTES <= len(key) <= MAX_SECRET_CHARS:
            raise ValueError(
                f"The secret needs {MIN_KEY_BYTES} to {MAX_SECRET_CHARS} characters. Make one: openssl rand -base64 32"
            )
        return SecretStr(secret)

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not is_http_url(value):
            raise ValueError("this is not an address; write it like https://example.org/palaver")
        parts = urlsplit(value)
        if parts.username or parts.password or parts.fragment:
            raise ValueError("the address has no user name, password or fragment; the receiver checks the signature")
        return value

    @property
    def host(self) -> str:
        """The host that answers are sent to. The rest of the address may be a secret: errors do not show it."""
        return urlsplit(self.url or "").hostname or ""

    @property
    def is_encrypted_or_local(self) -> bool:
        """Whether other people on the network can't read the answers."""
        return self.url is None or urlsplit(self.url).scheme == "https" or self.host in LOCAL_HOSTS

    @property
    def key_lifetime(self) -> timedelta:
        return timedelta(hours=self.key_lifetime_hours)
