"""The settings of one Discord bot."""

from __future__ import annotations

import re

from pydantic import SecretStr, field_validator

from palaver.platforms.common.settings_checks import check_api_url
from palaver.platforms.manifest import AccountSettings

DEFAULT_API_URL = "https://discord.com/api/v10"

_TOKEN = re.compile(r"[A-Za-z0-9_-]{18,40}\.[A-Za-z0-9_-]{5,10}\.[A-Za-z0-9_-]{25,110}")
_PLACEHOLDER = re.compile(r"your|token|placeholder|change|example|xxx|\.\.\.|…|[<>$]", re.IGNORECASE)
_FIX = (
    "Open https://discord.com/developers/applications, choose your application, then Bot, press Reset Token, and copy "
    "all of it."
)


class DiscordSettings(AccountSettings):
    """One bot. Only the token is needed."""

    bot_token: SecretStr
    api_url: str = DEFAULT_API_URL  # of another server that speaks Discord's API, such as a proxy that you run

    @field_validator("bot_token")
    @classmethod
    def _check_token(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value().strip().removeprefix("Bot ").strip()
        if not token:
            raise ValueError(f"The bot token is empty. {_FIX}")
        if _TOKEN.fullmatch(token):
            return SecretStr(token)
        if _PLACEHOLDER.search(token):
            raise ValueError(f"The bot token is still a placeholder. {_FIX}")
        raise ValueError(
            "This is not a bot token. A token has three parts of letters, digits, '-' or '_' with dots between them, "
            "about 70 characters. The client secret, the public key and the application ID are something else. "
            f"{_FIX}"
        )

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return check_api_url(value, "Discord's API", DEFAULT_API_URL)
