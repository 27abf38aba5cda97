"""What is Telegram's own: a local Bot API server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, make_place, render_message

from .bot_api_server import PRIVATE, TOKEN, BotApiServer

if TYPE_CHECKING:
    from palaver.platforms.telegram.adapter import TelegramAdapter
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[TelegramAdapter]

ADDRESS = Address(Platform.TELEGRAM, str(PRIVATE["id"]))
make_outgoing = partial(render_message, ADDRESS)


def make_adapter_for(
    server: BotApiServer, *, account: str = "", poll_seconds: int = 20, **settings: Any
) -> TelegramAdapter:
    """Return an adapter for the bot of the server."""
    from palaver.platforms.telegram.adapter import TelegramAdapter
    from palaver.platforms.telegram.client import TelegramClient
    from palaver.platforms.telegram.manifest import TelegramSettings

    values = TelegramSettings(**{"bot_token": TOKEN, "api_url": server.url, **settings})
    client = TelegramClient(values, poll_seconds=poll_seconds)
    commands = [("new", "Start a new conversation"), ("stop", "Stop the answer"), ("not-allowed", "Has a dash")]
    return TelegramAdapter(values, make_place(account), commands=commands, client=client)


@pytest.fixture
def parts() -> PlatformParts:
    return PlatformParts(BotApiServer, make_adapter_for, ADDRESS)
