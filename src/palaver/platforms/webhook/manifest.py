"""What Palaver knows of webhooks before the adapter is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.webhook.capabilities import CAPABILITIES
from palaver.platforms.webhook.settings import WebhookSettings

if TYPE_CHECKING:
    from palaver.platforms.manifest import AccountPlace
    from palaver.services.platforms.adapter import Adapter


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
