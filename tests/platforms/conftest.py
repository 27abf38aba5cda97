"""What the tests of all platforms share. A platform declares what is its own by the fixture `parts` in its folder."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from palaver.delivery import preview_stream
from palaver.testing import MemoryInbox
from support.platform_gateway import GatewayStarter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.delivery.adapter import Adapter
    from support.platform_adapters import AdapterMaker, PlatformParts


@pytest.fixture
def inbox() -> MemoryInbox:
    """What stands for the gateway's database."""
    return MemoryInbox()


@pytest.fixture
async def server(parts: PlatformParts) -> AsyncIterator[Any]:
    """A local server; the test fails if anything did not match the published types of the platform."""
    async with parts.start_server() as server:
        yield server
    assert getattr(server, "problems", []) == []


@pytest.fixture
async def make_adapter(server: Any, parts: PlatformParts) -> AsyncIterator[AdapterMaker[Adapter]]:
    """Makes adapters for the account of the server, and closes them after the test."""
    async with AsyncExitStack() as stack:

        def make(**options: Any) -> Adapter:
            adapter = parts.build_adapter(server, **options)
            stack.push_async_callback(adapter.close)
            return adapter

        yield make


@pytest.fixture
async def adapter(make_adapter: AdapterMaker[Adapter]) -> Adapter:
    """An adapter that has signed in."""
    adapter = make_adapter()
    await adapter.probe()
    return adapter


@pytest.fixture
async def starter(tmp_path: Path, parts: PlatformParts, server: Any) -> AsyncIterator[GatewayStarter]:
    """Starts gateways that are connected to the server."""
    async with AsyncExitStack() as stack:
        yield GatewayStarter(tmp_path, stack, parts, server)


@pytest.fixture
def instant_previews(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show an answer while it is being written, however short that takes."""
    monkeypatch.setattr(preview_stream, "PREVIEW_DELAY_SECONDS", 0.0)
