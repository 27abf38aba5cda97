"""What is WhatsApp's own: a local Graph API server, and adapters that talk to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.platforms.whatsapp.adapter import WhatsAppAdapter
from palaver.platforms.whatsapp.manifest import WhatsAppSettings
from palaver.sessions.delivery import Address
from support.platform_adapters import WEBHOOK_URL, PlatformParts, build_message, make_place

from .cloud_types import SCHEMA_FILE
from .graph_server import ADAS_NUMBER, GraphServer

if TYPE_CHECKING:
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[WhatsAppAdapter]

ADDRESS = Address(Platform.WHATSAPP, ADAS_NUMBER)
make_outgoing = partial(build_message, ADDRESS)


def make_adapter_for(
    server: GraphServer, *, account: str = "", webhook_url: str | None = WEBHOOK_URL, **settings: Any
) -> WhatsAppAdapter:
    """Return an adapter for the number of the server."""
    values = WhatsAppSettings(**{**server.build_settings(), **settings})
    return WhatsAppAdapter(values, make_place(account, webhook_url=webhook_url))


@pytest.fixture
def parts() -> PlatformParts:
    if not SCHEMA_FILE.exists():
        pytest.fail("The schemas of WhatsApp are missing. Run: make build/schemas/.generated")
    return PlatformParts(GraphServer, make_adapter_for, ADDRESS)


@pytest.fixture
def adapter(make_adapter: MakeAdapter) -> WhatsAppAdapter:
    """An adapter that has made no request yet: it needs not sign in."""
    return make_adapter()
