"""What Palaver knows of Discord before its SDK is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.discord.capabilities import CAPABILITIES
from palaver.platforms.discord.settings import DiscordSettings
from palaver.platforms.manifest import PlatformManifest

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: DiscordSettings, place: AccountPlace) -> Adapter:
    from palaver.inbox.registry import COMMANDS
    from palaver.platforms.discord.adapter import DiscordAdapter

    return DiscordAdapter(settings, place, commands=COMMANDS)


MANIFEST = PlatformManifest(
    platform=Platform.DISCORD,
    settings=DiscordSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="discord",
    modules=("discord", "httpx2"),
    environment={"DISCORD_BOT_TOKEN": "bot_token", "DISCORD_API_URL": "api_url"},
    addresses=("api_url",),
    summary="A Discord bot: direct messages, channels, threads and forum posts",
)
