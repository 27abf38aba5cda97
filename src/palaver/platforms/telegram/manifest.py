"""What Palaver knows of Telegram before its SDK is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.telegram.capabilities import CAPABILITIES
from palaver.platforms.telegram.settings import TelegramSettings

if TYPE_CHECKING:
    from palaver.platforms.manifest import AccountPlace
    from palaver.services.platforms.adapter import Adapter


def _create(settings: TelegramSettings, place: AccountPlace) -> Adapter:
    from palaver.platforms.telegram.adapter import TelegramAdapter
    from palaver.services.commands.registry import COMMANDS

    return TelegramAdapter(settings, place, commands=[(command.name, command.summary) for command in COMMANDS])


MANIFEST = PlatformManifest(
    platform=Platform.TELEGRAM,
    settings=TelegramSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="telegram",
    modules=("telegram", "telegramify_markdown"),
    environment={"TELEGRAM_BOT_TOKEN": "bot_token", "TELEGRAM_API_URL": "api_url"},
    addresses=("api_url",),
    summary="A Telegram bot: private chats, groups, topics and channels",
)
