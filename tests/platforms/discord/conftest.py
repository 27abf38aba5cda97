"""What is Discord's own: a local server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, connect_adapter, make_place, render_message

from .discord_data import ADA_DM_ID, GENERAL_ID, TOKEN
from .discord_server import DiscordServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.discord.adapter import DiscordAdapter
    from palaver.testing import MemoryInbox
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[DiscordAdapter]

DIRECT = Address(Platform.DISCORD, ADA_DM_ID)
GENERAL = Address(Platform.DISCORD, GENERAL_ID)
make_outgoing = partial(render_message, DIRECT)


def make_adapter_for(server: DiscordServer, *, account: str = "", beat_grace: float = 5.0) -> DiscordAdapter:
    """Return an adapter for the bot of the server."""
    from palaver.inbox.registry import COMMANDS
    from palaver.platforms.discord.adapter import DiscordAdapter
    from palaver.platforms.discord.gateway import GatewayTiming
    from palaver.platforms.discord.manifest import DiscordSettings

    commands = [command for command in COMMANDS if command.name in {"new", "stop", "steer"}]
    settings = DiscordSettings.model_validate({"bot_token": TOKEN, "api_url": server.url})
    timing = GatewayTiming(first_pause=0.01, max_pause=0.02, beat_grace=beat_grace)
    return DiscordAdapter(settings, make_place(account, webhook_url=None), commands=commands, timing=timing)


@asynccontextmanager
async def connect(server: DiscordServer, inbox: MemoryInbox, **options: Any) -> AsyncIterator[DiscordAdapter]:
    """Run an adapter that has signed in and receives."""
    adapter = make_adapter_for(server, **options)
    async with connect_adapter(adapter, inbox):
        yield adapter


@pytest.fixture
def parts() -> PlatformParts:
    return PlatformParts(DiscordServer, make_adapter_for, DIRECT)
