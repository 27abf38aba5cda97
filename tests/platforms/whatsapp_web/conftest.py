"""Fixtures for WhatsApp Web: a WhatsApp that runs in the test, and adapters with a stand-in for the library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter
from palaver.platforms.whatsapp_web.settings import WhatsAppWebSettings
from palaver.services.platforms.adapter import OutgoingMessage

from .whatsapp_server import ADA, GROUP, WhatsAppServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ADDRESS = Address(Platform.WHATSAPP_WEB, ADA.partition("@")[0])
GROUP_ADDRESS = Address(Platform.WHATSAPP_WEB, GROUP)


class MakeAdapter(Protocol):
    def __call__(self, **settings: Any) -> WhatsAppWebAdapter: ...


def make_adapter_for(server: WhatsAppServer, folder: Path, *, account: str = "", **settings: Any) -> WhatsAppWebAdapter:
    """Return an adapter for the account of the server, whose files are in the folder."""
    values = WhatsAppWebSettings(**{"chats": "all", "child_command": server.child_command, **settings})
    return WhatsAppWebAdapter(values, AccountPlace(account=account, folder=folder, webhook_url=None))


def make_outgoing(body: str = "Hello", **fields: Any) -> OutgoingMessage:
    return OutgoingMessage(**{"key": "d_1.1", "address": ADDRESS, "body": body, **fields})


@pytest.fixture(scope="session")
def library() -> Any:
    """The Python part of the library, with its real protocol buffers. Its Go part belongs into a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPHINX", "1")  # then the library does not load its Go part
        from neonize.proto import Neonize_pb2 as neonize
        from neonize.proto.waE2E import WAWebProtobufsE2E_pb2 as messages

        from palaver.platforms.whatsapp_web import translation
        from palaver.platforms.whatsapp_web.library import NeonizeLibrary
    return SimpleNamespace(neonize=neonize, messages=messages, translation=translation, NeonizeLibrary=NeonizeLibrary)


@pytest.fixture
async def server() -> AsyncIterator[WhatsAppServer]:
    async with WhatsAppServer() as server:
        yield server


@pytest.fixture
async def make_adapter(server: WhatsAppServer, tmp_path: Path) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the account of the server, and closes them after the test."""
    made: list[WhatsAppWebAdapter] = []

    def make(**settings: Any) -> WhatsAppWebAdapter:
        made.append(make_adapter_for(server, tmp_path / "account", **settings))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()
