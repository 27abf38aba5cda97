"""The settings of one Slack app."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import SecretStr, field_validator, model_validator

from palaver.platforms.common.settings_checks import check_api_url
from palaver.platforms.manifest import AccountSettings

DEFAULT_API_URL: Final = "https://slack.com/api"

_TOKEN: Final = re.compile(r"[A-Za-z0-9-]{20,400}")
_SIGNING_SECRET: Final = re.compile(r"[0-9a-fA-F]{16,128}")
_PLACEHOLDER: Final = re.compile(r"your|placeholder|change|example|xxx|\.\.\.|…|[<>$]", re.IGNORECASE)
_BOT_FIX: Final = (
    "Open https://api.slack.com/apps, choose your app and then OAuth & Permissions, and copy the Bot User OAuth Token."
)
_APP_FIX: Final = (
    "Open https://api.slack.com/apps, choose your app and then Basic Information, and copy a token with the scope "
    "connections:write from App-Level Tokens."
)
_SIGNING_FIX: Final = (
    "Open https://api.slack.com/apps, choose your app and then Basic Information, and copy the Signing Secret."
)


class SlackSettings(AccountSettings):
    """One app in one workspace. With an app token it is reached by Socket Mode, without one by HTTP."""

    bot_token: SecretStr
    app_token: SecretStr | None = None  # for the mode socket
    signing_secret: SecretStr | None = None  # for the mode http
    mode: Literal["socket", "http"] = "socket"
    api_url: str = DEFAULT_API_URL

    @field_validator("bot_token")
    @classmethod
    def _check_bot_token(cls, value: SecretStr) -> SecretStr:
        return _check_token(value, "bot token", "xoxb-", _BOT_FIX)

    @field_validator("app_token")
    @classmethod
    def _check_app_token(cls, value: SecretStr | None) -> SecretStr | None:
        return None if value is None else _check_token(value, "app token", "xapp-", _APP_FIX)

    @field_validator("signing_secret")
    @classmethod
    def _check_signing_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        secret = value.get_secret_value().strip()
        if not _SIGNING_SECRET.fullmatch(secret):
            raise ValueError(
                f"This is not a signing secret, which has 32 digits and letters from a to f. {_SIGNING_FIX}"
            )
        return SecretStr(secret)

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return check_api_url(value, "Slack's Web API", DEFAULT_API_URL)

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode == "socket" and self.app_token is None:
            raise ValueError(f"The mode socket needs app_token (or SLACK_APP_TOKEN). {_APP_FIX}")
        if self.mode == "http" and self.signing_secret is None:
            raise ValueError(f"The mode http needs signing_secret (or SLACK_SIGNING_SECRET). {_SIGNING_FIX}")
        return self


def _check_token(value: SecretStr, name: str, prefix: str, fix: str) -> SecretStr:
    token = value.get_secret_value().strip()
    if not token:
        raise ValueError(f"The {name} is empty. {fix}")
    if _PLACEHOLDER.search(token):
        raise ValueError(f"The {name} is still a placeholder. {fix}")
    if not token.startswith(prefix) or not _TOKEN.fullmatch(token):
        raise ValueError(f"This is not a Slack {name}, which starts with {prefix}. {fix}")
    return SecretStr(token)
