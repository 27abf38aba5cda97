"""Fixtures for Telegram: a local Bot API server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.services.platforms.adapter import OutgoingMessage

from .bot_api_server import PRIVATE, TOKEN, BotApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.telegram.adapter import TelegramAdapter

WEBHOOK_URL = "https://chat.example.org/hooks/telegram/default"


class MakeAdapter(Protocol):
    def __call__(self, *, account: str = "", poll_seconds: int = 20, **settings: Any) -> TelegramAdapter: ...


def make_adapter_for(
    server: BotApiServer, *, account: str = "", poll_seconds: int = 20, **settings: Any
) -> TelegramAdapter:
    """Return an adapter for the bot of the server."""
    from palaver.platforms.telegram.adapter import TelegramAdapter
    from palaver.platforms.telegram.client import TelegramClient
    from palaver.platforms.telegram.settings import TelegramSettings

    values = TelegramSettings(**{"bot_token": TOKEN, "api_url": server.url, **settings})
    place = AccountPlace(account=account, folder=Path("/nowhere"), webhook_url=WEBHOOK_URL)
    client = TelegramClient(values, poll_seconds=poll_seconds)
    commands = [("new", "Start a new conversation"), ("stop", "Stop the answer"), ("not-allowed", "Has a dash")]
    return TelegramAdapter(values, place, commands=commands, client=client)


ADDRESS = Address(Platform.TELEGRAM, str(PRIVATE["id"]))


def make_outgoing(adapter: TelegramAdapter, markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    body = adapter.render(markdown)[0] if markdown else ""
    return OutgoingMessage(**{"key": "d_1.1", "address": ADDRESS, "body": body, **fields})


@pytest.fixture
async def server() -> AsyncIterator[BotApiServer]:
    """A local Bot API server; the test fails if anything did not match the published types."""
    async with BotApiServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture
async def make_adapter(server: BotApiServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the bot of the server, and closes them after the test."""
    made: list[TelegramAdapter] = []

    def make(**options: Any) -> TelegramAdapter:
        made.append(make_adapter_for(server, **options))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()


@pytest.fixture
async def adapter(make_adapter: MakeAdapter) -> TelegramAdapter:
    """An adapter that has signed in."""
    adapter = make_adapter()
    await adapter.probe()
    return adapter
