"""What Palaver knows of webhooks before the adapter is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.webhook.capabilities import CAPABILITIES
from palaver.platforms.webhook.settings import WebhookSettings

MANIFEST = PlatformManifest(
    platform=Platform.WEBHOOK,
    settings=WebhookSettings,
    create="palaver.platforms.webhook.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="webhook",
    modules=("httpx2",),
    environment={"WEBHOOK_SECRET": "secret", "WEBHOOK_URL": "url"},
    addresses=("url",),
    summary="Signed HTTP requests in and out, for your own programs",
)
