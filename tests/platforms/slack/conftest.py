"""Fixtures for Slack: a local server, and adapters that talk to it through the real SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.services.platforms.adapter import OutgoingMessage
from palaver.testing import MemoryInbox, MemoryLink

from .slack_server import APP_TOKEN, DM, SIGNING_SECRET, TOKEN, SlackServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.domain.inbound import Receipt
    from palaver.domain.platform_updates import AnyUpdate, Cursor
    from palaver.platforms.slack.adapter import SlackAdapter

WEBHOOK_URL = "https://chat.example.org/hooks/slack/default"
COMMANDS = ("new", "stop", "help")


class MakeAdapter(Protocol):
    def __call__(self, *, account: str = "", **settings: Any) -> SlackAdapter: ...


def make_adapter_for(
    server: SlackServer, *, account: str = "", timing: dict[str, Any] | None = None, **settings: Any
) -> SlackAdapter:
    """Return an adapter for the app of the server."""
    from palaver.platforms.slack.adapter import SlackAdapter, SlackTiming
    from palaver.platforms.slack.settings import SlackSettings

    values = {"bot_token": TOKEN, "app_token": APP_TOKEN, "signing_secret": SIGNING_SECRET, "api_url": server.api_url}
    place = AccountPlace(account=account, folder=Path("/nowhere"), webhook_url=WEBHOOK_URL)
    return SlackAdapter(
        SlackSettings(**{**values, **settings}),
        place,
        commands=COMMANDS,
        timing=SlackTiming(
            **{"ping": 0.05, "confirmation_delays": (0.05, 0.2), "preview_delays": (0.05,), **(timing or {})}
        ),
    )


class GatedLink(MemoryLink):
    """A gateway whose database is slow."""

    def __init__(self, inbox: MemoryInbox) -> None:
        super().__init__(inbox)
        self.is_asked, self.is_open = asyncio.Event(), asyncio.Event()

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        self.is_asked.set()
        await self.is_open.wait()
        return await super().accept(update, cursor=cursor)


ADDRESS = Address(Platform.SLACK, DM)


def make_outgoing(adapter: SlackAdapter, markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    body = adapter.render(markdown)[0] if markdown else ""
    return OutgoingMessage(**{"key": "d_1.1", "address": ADDRESS, "body": body, **fields})


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    """A local Slack; the test fails if anything did not match the published types."""
    async with SlackServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture
async def make_adapter(server: SlackServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the app of the server, and closes them after the test."""
    made: list[SlackAdapter] = []

    def make(**options: Any) -> SlackAdapter:
        made.append(make_adapter_for(server, **options))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()


@pytest.fixture
async def adapter(make_adapter: MakeAdapter) -> SlackAdapter:
    """An adapter that has signed in."""
    adapter = make_adapter()
    await adapter.probe()
    return adapter
