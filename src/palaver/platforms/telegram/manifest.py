"""The settings, capabilities and manifest of Telegram bots; it loads no SDK."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Final, Literal

from pydantic import SecretStr  # noqa: TC002  (read at run time)

from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, LengthUnit, Pace
from palaver.platforms.common.settings import check_api_url, check_text, check_token
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

CAPABILITIES: Final = Capabilities(
    max_length=4096,
    length_unit=LengthUnit.UTF16,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=5.0,
    max_buttons=8,
    max_file_bytes=50 * 1024 * 1024,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    has_native_stream=True,
    pace_per_chat=Pace(1.0),
    pace_per_account=Pace(1 / 30, burst=30),
    edit_pace=Pace(3.0),  # a group allows 20 messages and edits a minute; private chats have drafts
)

DEFAULT_API_URL = "https://api.telegram.org"
_CHECK_TOKEN = check_token(
    say("platform.bot_token", "bot token"),
    r"(?!.*ABC-DEF)[0-9]{5,20}:[A-Za-z0-9_-]{30,64}",
    say(
        "telegram.not_bot_token",
        "This is not a bot token: a token is a number, a colon and about 35 letters, digits, '-' or"
        " '_', without spaces.",
    ),
    say(
        "telegram.copy_token_again",
        "Send /mybots to @BotFather on Telegram, choose your bot and then API Token, and copy all of it.",
    ),
)
_CHECK_WEBHOOK_SECRET = check_text(
    r"[A-Za-z0-9_-]{16,256}",
    say("telegram.bad_webhook_secret", "The webhook secret needs 16 to 256 letters, digits, '-' or '_'."),
)


class TelegramSettings(AccountSettings):
    """One bot. Only the token is needed."""

    bot_token: Annotated[SecretStr, _CHECK_TOKEN]
    api_url: Annotated[str, check_api_url("a Bot API server", DEFAULT_API_URL)] = DEFAULT_API_URL
    mode: Literal["polling", "webhook"] = "polling"
    webhook_secret: Annotated[SecretStr, _CHECK_WEBHOOK_SECRET] | None = None
    rich_messages: bool = False  # send tables, headings and formulas as rich messages

    def get_webhook_secret(self) -> str:
        """Return what Telegram sends with every request to the webhook; it survives a restart."""
        if self.webhook_secret is not None:
            return self.webhook_secret.get_secret_value()
        token = self.bot_token.get_secret_value().encode()
        return hmac.new(token, b"palaver webhook secret", hashlib.sha256).hexdigest()


MANIFEST = PlatformManifest(
    platform=Platform.TELEGRAM,
    settings=TelegramSettings,
    create="palaver.platforms.telegram.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="telegram",
    modules=("telegram", "telegramify_markdown"),
    environment={"TELEGRAM_BOT_TOKEN": "bot_token", "TELEGRAM_API_URL": "api_url"},
    addresses=("api_url",),
    summary="A Telegram bot: private chats, groups, topics and channels",
    steps=(
        "Open a chat with @BotFather on Telegram and send /newbot.",
        "Choose a name and a user name for your bot.",
        "Copy the token that BotFather sends, and paste it here.",
        "Test it, save it, then write to your bot.",
    ),
    help={
        "bot_token": FieldHelp(
            "The token of the bot.", "Send /mybots to @BotFather on Telegram, choose your bot, then API Token."
        ),
        "api_url": FieldHelp.for_own_server("The address of the Bot API."),
        "mode": FieldHelp("How messages arrive: the bot asks for them, or Telegram calls this server."),
        "webhook_secret": FieldHelp("Signs what Telegram sends to the webhook; without it one is made."),
        "rich_messages": FieldHelp("Send tables, headings and formulas as rich messages."),
    },
)
