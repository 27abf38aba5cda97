"""What Palaver knows of Telegram before its SDK is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.telegram.capabilities import CAPABILITIES
from palaver.platforms.telegram.settings import TelegramSettings

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
)
