"""What Palaver knows of WhatsApp before the adapter is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.whatsapp.capabilities import CAPABILITIES
from palaver.platforms.whatsapp.settings import WhatsAppSettings

MANIFEST = PlatformManifest(
    platform=Platform.WHATSAPP,
    settings=WhatsAppSettings,
    create="palaver.platforms.whatsapp.adapter:create_adapter",
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
