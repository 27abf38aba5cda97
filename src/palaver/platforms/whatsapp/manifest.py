"""What Palaver knows of WhatsApp before the adapter is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.whatsapp.capabilities import CAPABILITIES
from palaver.platforms.whatsapp.settings import WhatsAppSettings

if TYPE_CHECKING:
    from palaver.delivery.adapter import Adapter
    from palaver.platforms.manifest import AccountPlace


def _create(settings: WhatsAppSettings, place: AccountPlace) -> Adapter:
    from palaver.platforms.whatsapp.adapter import WhatsAppAdapter

    return WhatsAppAdapter(settings, place)


MANIFEST = PlatformManifest(
    platform=Platform.WHATSAPP,
    settings=WhatsAppSettings,
    create=_create,
    capabilities=CAPABILITIES,
    extra="whatsapp",
    modules=("httpx2", "markdown_it"),
    environment={
        "WHATSAPP_ACCESS_TOKEN": "access_token",
        "WHATSAPP_APP_SECRET": "app_secret",
        "WHATSAPP_VERIFY_TOKEN": "verify_token",
        "WHATSAPP_PHONE_NUMBER_ID": "phone_number_id",
        "WHATSAPP_BUSINESS_ACCOUNT_ID": "business_account_id",
        "WHATSAPP_API_URL": "api_url",
    },
    addresses=("api_url",),
    summary="A WhatsApp business number through Meta's Cloud API: direct messages",
)
