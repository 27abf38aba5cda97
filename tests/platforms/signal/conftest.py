"""Fixtures for Signal: a stand-in for signal-cli, and adapters that start it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.signal.adapter import SignalAdapter, SignalTiming
from palaver.platforms.signal.settings import SignalSettings
from palaver.services.platforms.adapter import OutgoingMessage
from palaver.testing import MemoryInbox, MemoryLink

from .signal_server import ADA, SignalServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUT_SECONDS = 60.0
ADDRESS = Address(Platform.SIGNAL, ADA)


class MakeAdapter(Protocol):
    def __call__(self, **settings: Any) -> SignalAdapter: ...


QUICK_POLLS = SignalTiming(connect_poll=0.005, busy_poll=0.005, idle_poll=0.005)


def make_adapter_for(
    server: SignalServer, *, account: str = "", timing: SignalTiming = QUICK_POLLS, **settings: Any
) -> SignalAdapter:
    """Return an adapter for the account of the server."""
    fields = {"program": str(server.program), "config_folder": str(server.config_folder), "chats": "all", **settings}
    place = AccountPlace(account=account, folder=server.folder / f"account{account}", webhook_url=None)
    return SignalAdapter(SignalSettings(**fields), place, timing=timing)


def make_outgoing(adapter: SignalAdapter, markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    body = adapter.render(markdown)[0] if markdown else ""
    return OutgoingMessage(**{"key": "d_1.1", "address": ADDRESS, "body": body, **fields})


@pytest.fixture
async def server() -> AsyncIterator[SignalServer]:
    """A local Signal; the test fails if anything did not match what signal-cli documents."""
    async with SignalServer() as server:
        yield server
    assert server.problems == []


@pytest.fixture
async def make_adapter(server: SignalServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the account of the server, and closes them after the test."""
    made: list[SignalAdapter] = []

    def make(**settings: Any) -> SignalAdapter:
        made.append(make_adapter_for(server, **settings))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()


@asynccontextmanager
async def run_adapter(adapter: SignalAdapter, inbox: MemoryInbox) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter until it is connected, and cancel it at the end."""
    before = inbox.connected_count
    task = asyncio.create_task(adapter.run(MemoryLink(inbox)))
    waiting = asyncio.create_task(inbox.wait_until(lambda: inbox.connected_count > before, TIMEOUT_SECONDS))
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        await waiting
        yield task
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait({task})
