"""Fixtures for Discord: a local server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.services.platforms.adapter import OutgoingMessage
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS

from .discord_data import ADA_DM_ID, GENERAL_ID, TOKEN
from .discord_server import DiscordServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.discord.adapter import DiscordAdapter

DIRECT = Address(Platform.DISCORD, ADA_DM_ID)
GENERAL = Address(Platform.DISCORD, GENERAL_ID)


class MakeAdapter(Protocol):
    def __call__(self, *, account: str = "") -> DiscordAdapter: ...


def make_adapter_for(server: DiscordServer, *, account: str = "", beat_grace: float = 5.0) -> DiscordAdapter:
    """Return an adapter for the bot of the server."""
    from palaver.platforms.discord.adapter import DiscordAdapter
    from palaver.platforms.discord.gateway import GatewayTiming
    from palaver.platforms.discord.settings import DiscordSettings
    from palaver.services.commands.registry import COMMANDS

    commands = [command for command in COMMANDS if command.name in {"new", "stop", "steer"}]
    settings = DiscordSettings.model_validate({"bot_token": TOKEN, "api_url": server.url})
    place = AccountPlace(account=account, folder=Path("/nowhere"), webhook_url=None)
    timing = GatewayTiming(first_pause=0.01, max_pause=0.02, beat_grace=beat_grace)
    return DiscordAdapter(settings, place, commands=commands, timing=timing)


def make_outgoing(adapter: DiscordAdapter, markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    body = adapter.render(markdown)[0] if markdown else ""
    return OutgoingMessage(**{"key": "d_1.1", "address": DIRECT, "body": body, **fields})


@asynccontextmanager
async def run_adapter(adapter: DiscordAdapter, link: MemoryLink) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter, and cancel it at the end as the supervisor does."""
    task = asyncio.create_task(adapter.run(link))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
        link.end()
        await adapter.close()


@asynccontextmanager
async def connect(server: DiscordServer, inbox: MemoryInbox, **options: Any) -> AsyncIterator[DiscordAdapter]:
    """Run an adapter that has signed in and receives."""
    adapter = make_adapter_for(server, **options)
    before = inbox.connected_count
    async with run_adapter(adapter, MemoryLink(inbox)) as task:
        waiting = asyncio.create_task(inbox.wait_until(lambda: inbox.connected_count > before, TIMEOUT_SECONDS))
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            task.result()
        await waiting
        yield adapter


async def wait_for_texts(inbox: MemoryInbox, *texts: str) -> None:
    """Wait for the messages that must have been accepted, in this order; there may be no others."""
    with suppress(TimeoutError):
        await inbox.wait_until(lambda: len(inbox.texts) >= len(texts), TIMEOUT_SECONDS)
    assert inbox.texts == list(texts)


@pytest.fixture
def inbox() -> MemoryInbox:
    return MemoryInbox()


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    """A local Discord; the test fails if anything did not match the published types."""
    async with DiscordServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture
async def make_adapter(server: DiscordServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the bot of the server, and closes them after the test."""
    made: list[DiscordAdapter] = []

    def make(*, account: str = "") -> DiscordAdapter:
        made.append(make_adapter_for(server, account=account))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()


@pytest.fixture
async def adapter(make_adapter: MakeAdapter) -> DiscordAdapter:
    """An adapter that has signed in."""
    adapter = make_adapter()
    await adapter.probe()
    return adapter
