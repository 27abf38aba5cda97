"""The settings of one Telegram bot."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Literal

from pydantic import SecretStr, field_validator

from palaver.platforms.common.settings_checks import check_api_url
from palaver.platforms.manifest import AccountSettings

DEFAULT_API_URL = "https://api.telegram.org"

_TOKEN = re.compile(r"[0-9]{5,20}:[A-Za-z0-9_-]{30,64}")
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
# The example of Telegram's documentation, and what people leave in templates.
_PLACEHOLDER = re.compile(r"ABC-DEF|your|token|placeholder|change|example|xxx|\.\.\.|…|[<>$]", re.IGNORECASE)
_FIX = "Send /mybots to @BotFather on Telegram, choose your bot and then API Token, and copy all of it."


class TelegramSettings(AccountSettings):
    """One bot. Only the token is needed."""

    bot_token: SecretStr
    api_url: str = DEFAULT_API_URL  # of another Bot API server, such as one that you run yourself
    mode: Literal["polling", "webhook"] = "polling"
    webhook_secret: SecretStr | None = None  # without it, one is derived from the token
    rich_messages: bool = False  # send tables, headings and formulas as rich messages

    @field_validator("bot_token")
    @classmethod
    def _check_token(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value().strip()
        if not token:
            raise ValueError(f"The bot token is empty. {_FIX}")
        if _TOKEN.fullmatch(token) and "ABC-DEF" not in token:
            return SecretStr(token)
        if _PLACEHOLDER.search(token):
            raise ValueError(f"The bot token is still a placeholder. {_FIX}")
        raise ValueError(
            "This is not a bot token: a token is a number, a colon and about 35 letters, digits, '-' or '_', without "
            f"spaces. {_FIX}"
        )

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        return check_api_url(value, "a Bot API server", DEFAULT_API_URL)

    @field_validator("webhook_secret")
    @classmethod
    def _check_webhook_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _WEBHOOK_SECRET.fullmatch(value.get_secret_value()):
            raise ValueError("The webhook secret needs 16 to 256 letters, digits, '-' or '_'.")
        return value

    def get_webhook_secret(self) -> str:
        """Return what Telegram sends with every request to the webhook; it survives a restart."""
        if self.webhook_secret is not None:
            return self.webhook_secret.get_secret_value()
        token = self.bot_token.get_secret_value().encode()
        return hmac.new(token, b"palaver webhook secret", hashlib.sha256).hexdigest()
