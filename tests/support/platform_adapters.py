"""Adapters in the tests of their platforms: how they are built, run, and given messages."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from palaver.delivery.adapter import OutgoingMessage
from palaver.platforms.manifest import AccountPlace
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from palaver.delivery.adapter import Adapter
    from palaver.sessions.delivery import Address
    from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, Receipt

WEBHOOK_URL = "https://chat.example.org/hooks/platform/default"

_AdapterT_co = TypeVar("_AdapterT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class PlatformParts:
    """What a platform declares for its tests."""

    start_server: Callable[[], AbstractAsyncContextManager[Any]]  # what stands for the platform
    build_adapter: Callable[..., Adapter]  # from such a server, and options of the platform
    address: Address  # where messages are sent


class AdapterMaker(Protocol[_AdapterT_co]):
    """Makes adapters for the account of the test's server; the options are those of the platform."""

    def __call__(self, **options: Any) -> _AdapterT_co: ...


def make_place(account: str = "", *, folder: Path | None = None, webhook_url: str | None = WEBHOOK_URL) -> AccountPlace:
    """Return the place of an account that keeps no files."""
    return AccountPlace(account=account, folder=folder or Path("/nowhere"), webhook_url=webhook_url)


def build_message(default_address: Address, body: str = "Hello", /, **fields: Any) -> OutgoingMessage:
    """Return a message with a body as the adapter renders it."""
    return OutgoingMessage(**{"key": "d_1.1", "address": default_address, "body": body, **fields})


def render_message(
    default_address: Address, adapter: Adapter, /, markdown: str = "Hello", **fields: Any
) -> OutgoingMessage:
    """Return the first message that a text becomes."""
    return build_message(default_address, adapter.render(markdown)[0] if markdown else "", **fields)


@asynccontextmanager
async def run_adapter(adapter: Adapter, link: MemoryLink) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter inside the block; then cancel and close it as the supervisor does."""
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
async def connect_adapter(
    adapter: Adapter, inbox: MemoryInbox, link: MemoryLink | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter, which receives when the block starts. Raises why it can't."""
    before = inbox.connected_count
    async with run_adapter(adapter, link or MemoryLink(inbox)) as task:
        waiting = asyncio.create_task(inbox.wait_until(lambda: inbox.connected_count > before, TIMEOUT_SECONDS))
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not waiting.done():
                await task
            await waiting
        finally:
            waiting.cancel()
        yield task


async def wait_for_texts(inbox: MemoryInbox, *texts: str) -> Sequence[Inbound]:
    """Wait for the messages that must have been accepted, in this order; there may be no others."""
    with suppress(TimeoutError):
        await inbox.wait_until(lambda: len(inbox.texts) >= len(texts), TIMEOUT_SECONDS)
    assert inbox.texts == list(texts)
    return inbox.messages


class GatedLink(MemoryLink):
    """A gateway whose database is slow: it stores nothing until the test opens it."""

    def __init__(self, inbox: MemoryInbox) -> None:
        super().__init__(inbox)
        self.is_asked, self.is_open = asyncio.Event(), asyncio.Event()

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        self.is_asked.set()
        await self.is_open.wait()
        return await super().accept(update, cursor=cursor)
