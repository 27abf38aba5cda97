"""What Palaver knows of Slack before its SDK is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.slack.capabilities import CAPABILITIES
from palaver.platforms.slack.settings import SlackSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: SlackSettings, place: AccountPlace) -> Adapter:
    from palaver.inbox.registry import COMMANDS
    from palaver.platforms.slack.adapter import SlackAdapter

    return SlackAdapter(settings, place, commands=[command.name for command in COMMANDS])


MANIFEST = PlatformManifest(
    platform=Platform.SLACK,
    settings=SlackSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="slack",
    modules=("slack_sdk", "aiohttp", "httpx2"),
    environment={
        "SLACK_BOT_TOKEN": "bot_token",
        "SLACK_APP_TOKEN": "app_token",
        "SLACK_SIGNING_SECRET": "signing_secret",
        "SLACK_API_URL": "api_url",
    },
    addresses=("api_url",),
    summary="A Slack app: channels, threads, direct messages and the agent view",
)
