"""What Palaver knows of WhatsApp Web before its library is loaded."""

from __future__ import annotations

from palaver.core.source import Platform
from palaver.platforms.manifest import PlatformManifest
from palaver.platforms.whatsapp_web.capabilities import CAPABILITIES
from palaver.platforms.whatsapp_web.settings import WhatsAppWebSettings

MANIFEST = PlatformManifest(
    platform=Platform.WHATSAPP_WEB,
    settings=WhatsAppWebSettings,
    create="palaver.platforms.whatsapp_web.adapter:create_adapter",
    capabilities=CAPABILITIES,
    extra="whatsapp-web",
    modules=("markdown_it",),  # not neonize: it is loaded in a process of its own, never in the server
    environment={
        "WHATSAPP_WEB_CHATS": "chats",
        "WHATSAPP_WEB_PHONE_NUMBER": "phone_number",
        "WHATSAPP_WEB_PROXY_URL": "proxy_url",
    },
    addresses=(),
    summary="Your own WhatsApp account, linked like WhatsApp Web (unofficial)",
)
