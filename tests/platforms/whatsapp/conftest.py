"""Fixtures for WhatsApp: a local Graph API server, and adapters that talk to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.whatsapp.adapter import WhatsAppAdapter
from palaver.platforms.whatsapp.settings import WhatsAppSettings
from palaver.services.platforms.adapter import OutgoingMessage

from .cloud_types import SCHEMA_FILE
from .graph_server import ADAS_NUMBER, GraphServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WEBHOOK_URL = "https://chat.example.org/hooks/whatsapp"
ADDRESS = Address(Platform.WHATSAPP, ADAS_NUMBER)


class MakeAdapter(Protocol):
    def __call__(self, *, webhook_url: str | None = WEBHOOK_URL, **settings: Any) -> WhatsAppAdapter: ...


def make_adapter_for(
    server: GraphServer, *, account: str = "", webhook_url: str | None = WEBHOOK_URL, **settings: Any
) -> WhatsAppAdapter:
    """Return an adapter for the number of the server."""
    values = WhatsAppSettings(**{**server.build_settings(), **settings})
    return WhatsAppAdapter(values, AccountPlace(account=account, folder=Path("/nowhere"), webhook_url=webhook_url))


def make_outgoing(body: str = "Hello", **fields: Any) -> OutgoingMessage:
    return OutgoingMessage(**{"key": "d_1.1", "address": ADDRESS, "body": body, **fields})


@pytest.fixture
async def server() -> AsyncIterator[GraphServer]:
    """A local Graph API server; the test fails if anything did not match the published types."""
    if not SCHEMA_FILE.exists():
        pytest.fail("The schemas of WhatsApp are missing. Run: make build/schemas/.generated")
    async with GraphServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture
async def make_adapter(server: GraphServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the number of the server, and closes them after the test."""
    made: list[WhatsAppAdapter] = []

    def make(**options: Any) -> WhatsAppAdapter:
        made.append(make_adapter_for(server, **options))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()


@pytest.fixture
async def adapter(make_adapter: MakeAdapter) -> WhatsAppAdapter:
    return make_adapter()
