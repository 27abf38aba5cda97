"""What is WhatsApp Web's own: a WhatsApp that runs in the test, and adapters with a stand-in for the library."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter
from palaver.platforms.whatsapp_web.manifest import WhatsAppWebSettings
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, build_message, make_place

from .whatsapp_server import ADA, GROUP, WhatsAppServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[WhatsAppWebAdapter]

ADDRESS = Address(Platform.WHATSAPP_WEB, ADA.partition("@")[0])
GROUP_ADDRESS = Address(Platform.WHATSAPP_WEB, GROUP)
make_outgoing = partial(build_message, ADDRESS)


def make_adapter_for(server: WhatsAppServer, folder: Path, *, account: str = "", **settings: Any) -> WhatsAppWebAdapter:
    """Return an adapter for the account of the server, whose files are in the folder."""
    values = WhatsAppWebSettings(**{"chats": "all", "child_command": server.child_command, **settings})
    return WhatsAppWebAdapter(values, make_place(account, folder=folder, webhook_url=None))


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
def parts(tmp_path: Path) -> PlatformParts:
    def build(server: WhatsAppServer, **options: Any) -> WhatsAppWebAdapter:
        return make_adapter_for(server, tmp_path / "account", **options)

    return PlatformParts(WhatsAppServer, build, ADDRESS)
