"""What is e-mail's own: a local mail server, and adapters that use it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.platforms.email.adapter import EmailAdapter
from palaver.platforms.email.manifest import EmailSettings
from palaver.sessions.delivery import Address
from support.platform_adapters import PlatformParts, build_message, make_place

from .mail_server import ADDRESS, ANNA, AUTHSERV_ID, PASSWORD, MailServer

if TYPE_CHECKING:
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.testing import MemoryInbox
    from support.platform_adapters import AdapterMaker

    MakeAdapter = AdapterMaker[EmailAdapter]

make_outgoing = partial(build_message, Address(Platform.EMAIL, ANNA))


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
    return EmailAdapter(make_settings(server, **settings), make_place(account, webhook_url=None))


def reply_to(inbox: MemoryInbox, number: int = -1, **fields: Any) -> OutgoingMessage:
    """Return an answer to a message that was accepted."""
    message = inbox.messages[number]
    return make_outgoing(address=Address.from_source(message.source), reply_to=message.message_id, **fields)


@pytest.fixture
def parts() -> PlatformParts:
    return PlatformParts(MailServer, make_adapter_for, Address(Platform.EMAIL, ANNA))
