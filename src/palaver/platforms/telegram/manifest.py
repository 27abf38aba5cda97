"""What Palaver knows of Telegram before its SDK is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.telegram.capabilities import CAPABILITIES
from palaver.platforms.telegram.settings import TelegramSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: TelegramSettings, place: AccountPlace) -> Adapter:
    from palaver.inbox.registry import COMMANDS
    from palaver.platforms.telegram.adapter import TelegramAdapter

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
