"""The settings of one business number."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator

from palaver.platforms.common.settings_checks import check_api_url
from palaver.platforms.manifest import AccountSettings

DEFAULT_API_URL = "https://graph.facebook.com"
DEFAULT_API_VERSION = "v24.0"

_TOKEN = re.compile(r"[A-Za-z0-9_.|-]{20,1024}")
_APP_SECRET = re.compile(r"[0-9a-f]{32}")
_VERIFY_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{16,128}")
_META_ID = re.compile(r"[0-9]{5,25}")
_API_VERSION = re.compile(r"v[0-9]{1,3}\.[0-9]{1,2}")
_SYSTEM_USER_FIX = (
    "In the Meta Business Suite open Settings, System users, choose yours, then Generate token with the permissions "
    "whatsapp_business_messaging and whatsapp_business_management."
)
_ID_FIX = "It is shown at developers.facebook.com: your app, WhatsApp, API Setup."


class WhatsAppSettings(AccountSettings):
    """One business number of a WhatsApp Business Account."""

    access_token: SecretStr  # of a system user: it does not expire
    app_secret: SecretStr  # signs what Meta sends to the webhook
    verify_token: SecretStr  # chosen by you; Meta sends it once, when the webhook is set up
    phone_number_id: str  # of the number that answers: not the number itself
    business_account_id: str | None = None  # of the WhatsApp Business Account; to check the webhook's subscription
    api_url: str = DEFAULT_API_URL  # of another server that speaks the Graph API
    api_version: str = DEFAULT_API_VERSION

    @field_validator("access_token")
    @classmethod
    def _check_access_token(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value().strip()
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"This is not an access token of Meta. {_SYSTEM_USER_FIX}")
        return SecretStr(token)

    @field_validator("app_secret")
    @classmethod
    def _check_app_secret(cls, value: SecretStr) -> SecretStr:
        secret = value.get_secret_value().strip().lower()
        if not _APP_SECRET.fullmatch(secret):
            raise ValueError(
                "This is not an app secret: it has 32 digits and letters from a to f. It is shown at "
                "developers.facebook.com: your app, App settings, Basic, App secret."
            )
        return SecretStr(secret)

    @field_validator("verify_token")
    @classmethod
    def _check_verify_token(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value().strip()
        if not _VERIFY_TOKEN.fullmatch(token):
            raise ValueError(
                "The verify token needs 16 to 128 letters, digits, '-', '_', '.' or '~'. Make one: openssl rand -hex 16"
            )
        return SecretStr(token)

    @field_validator("phone_number_id", "business_account_id", mode="before")
    @classmethod
    def _check_id(cls, value: object) -> object:
        if value is None:
            return None
        text = str(value).strip()
        if not _META_ID.fullmatch(text):
            raise ValueError(f"This id of Meta is a number with 5 to 25 digits. {_ID_FIX}")
        return text

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return check_api_url(value, "a Graph API server", DEFAULT_API_URL)

    @field_validator("api_version")
    @classmethod
    def _check_api_version(cls, value: str) -> str:
        if not _API_VERSION.fullmatch(value):
            raise ValueError(f"{value!r} is not a version of the Graph API; use one such as {DEFAULT_API_VERSION}.")
        return value

    @property
    def api_host(self) -> str:
        return (urlsplit(self.api_url).hostname or "").lower()
