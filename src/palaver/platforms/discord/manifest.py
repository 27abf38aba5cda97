"""What Palaver knows of Discord before its SDK is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.discord.capabilities import CAPABILITIES
from palaver.platforms.discord.settings import DiscordSettings
from palaver.platforms.manifest import PlatformManifest

MANIFEST = PlatformManifest(
    platform=Platform.DISCORD,
    settings=DiscordSettings,
    create="palaver.platforms.discord.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="discord",
    modules=("discord", "httpx2"),
    environment={"DISCORD_BOT_TOKEN": "bot_token", "DISCORD_API_URL": "api_url"},
    addresses=("api_url",),
    summary="A Discord bot: direct messages, channels, threads and forum posts",
)
