"""Fixtures for e-mail: a local mail server, and adapters that use it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from palaver.domain.delivery import Address
from palaver.domain.source import Platform
from palaver.platforms.email.adapter import EmailAdapter
from palaver.platforms.email.settings import EmailSettings
from palaver.platforms.manifest import AccountPlace
from palaver.services.platforms.adapter import OutgoingMessage
from palaver.testing import MemoryInbox, MemoryLink

from .mail_server import ADDRESS, ANNA, AUTHSERV_ID, PASSWORD, MailServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


TIMEOUT_SECONDS = 60.0


class MakeAdapter(Protocol):
    def __call__(self, *, account: str = "", **settings: Any) -> EmailAdapter: ...


def make_settings(server: MailServer | None = None, **settings: Any) -> EmailSettings:
    values = {
        "address": ADDRESS,
        "password": PASSWORD,
        "imap_host": "127.0.0.1",
        "imap_port": server.imap.port if server else 993,
        "imap_security": "none",
        "smtp_host": "127.0.0.1",
        "smtp_port": server.smtp.port if server else 465,
        "smtp_security": "none",
        "authserv_id": AUTHSERV_ID,
        "sent_folder": None,
        "save_sent": False,
    }
    return EmailSettings(**{**values, **settings})


def make_adapter_for(server: MailServer, *, account: str = "", **settings: Any) -> EmailAdapter:
    """Return an adapter for the mailbox of the server."""
    place = AccountPlace(account=account, folder=Path("/nowhere"), webhook_url=None)
    return EmailAdapter(make_settings(server, **settings), place)


def make_outgoing(markdown: str = "Hello", **fields: Any) -> OutgoingMessage:
    address = Address(Platform.EMAIL, ANNA)
    return OutgoingMessage(**{"key": "d_1.1", "address": address, "body": markdown, **fields})


@asynccontextmanager
async def running(adapter: EmailAdapter, inbox: MemoryInbox) -> AsyncIterator[EmailAdapter]:
    """Let an adapter run, until the end of the block."""
    before = inbox.connected_count
    task = asyncio.create_task(adapter.run(MemoryLink(inbox)))
    try:
        waiting = asyncio.create_task(inbox.wait_until(lambda: inbox.connected_count > before, TIMEOUT_SECONDS))
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            await task
        await waiting
        yield adapter
    finally:
        task.cancel()
        await asyncio.wait({task})
        await adapter.close()


async def wait_for_texts(inbox: MemoryInbox, *texts: str) -> None:
    await inbox.wait_until(lambda: len(inbox.texts) >= len(texts), TIMEOUT_SECONDS)
    assert inbox.texts == list(texts)


def reply_to(inbox: MemoryInbox, number: int = -1, **fields: Any) -> OutgoingMessage:
    """Return an answer to a message that was accepted."""
    message = inbox.messages[number]
    return make_outgoing(address=Address.from_source(message.source), reply_to=message.message_id, **fields)


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as server:
        yield server


@pytest.fixture
async def make_adapter(server: MailServer) -> AsyncIterator[MakeAdapter]:
    """Makes adapters for the mailbox, and closes them after the test."""
    made: list[EmailAdapter] = []

    def make(**options: Any) -> EmailAdapter:
        made.append(make_adapter_for(server, **options))
        return made[-1]

    yield make
    for adapter in made:
        await adapter.close()
