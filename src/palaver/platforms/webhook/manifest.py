"""What Palaver knows of webhooks before the adapter is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.webhook.capabilities import CAPABILITIES
from palaver.platforms.webhook.settings import WebhookSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: WebhookSettings, place: AccountPlace) -> Adapter:
    from palaver.platforms.webhook.adapter import WebhookAdapter

    return WebhookAdapter(settings, place)


MANIFEST = PlatformManifest(
    platform=Platform.WEBHOOK,
    settings=WebhookSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="webhook",
    modules=("httpx2",),
    environment={"WEBHOOK_SECRET": "secret", "WEBHOOK_URL": "url"},
    addresses=("url",),
    summary="Signed HTTP requests in and out, for your own programs",
)
