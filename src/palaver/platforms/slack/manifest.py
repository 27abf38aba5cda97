"""What Palaver knows of Slack before its SDK is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.slack.capabilities import CAPABILITIES
from palaver.platforms.slack.settings import SlackSettings

MANIFEST = PlatformManifest(
    platform=Platform.SLACK,
    settings=SlackSettings,
    create="palaver.platforms.slack.adapter:create_adapter",
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
