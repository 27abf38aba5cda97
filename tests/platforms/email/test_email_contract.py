"""The e-mail adapter keeps what every adapter must keep, with a real IMAP server and a real SMTP server."""

from __future__ import annotations

from email.utils import make_msgid
from typing import TYPE_CHECKING

import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, MemoryInbox, PlatformContract, ShownMessage

from .conftest import make_adapter_for
from .mail_server import ANNA, PASSWORD, MailServer

if TYPE_CHECKING:
    from palaver.platforms.email.adapter import EmailAdapter

ANSWERS = {
    Fault.RATE_LIMITED: "450 4.7.1 Too many mails, try again later",
    Fault.SERVER_ERROR: "451 4.3.0 Local error in processing",
    Fault.REFUSED: "554 5.6.0 This looks like spam",
}


class EmailPlatform(ContractPlatform):
    """Anna's mails with the agent."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED}
    secrets = (PASSWORD,)

    def __init__(self, server: MailServer) -> None:
        self.server = server
        self.last_mail = b""

    @property
    def address(self) -> Address:
        return Address(Platform.EMAIL, ANNA)

    def make_adapter(self) -> EmailAdapter:
        return make_adapter_for(self.server)

    async def say(self, text: str) -> str:
        message_id = make_msgid(domain="mail.example").strip("<>")
        self.last_mail = self.server.make_mail(text, message_id=message_id)
        await self.server.deliver(self.last_mail)
        return message_id

    async def say_with_file(self, name: str, data: bytes) -> str:
        return await self.server.say("", subject="", files=[(name, data)])

    async def repeat_updates(self) -> None:
        await self.server.deliver(self.last_mail)

    async def list_messages(self) -> list[ShownMessage]:
        return [ShownMessage(mail.message_id, mail.text, mail.file_names) for mail in self.server.mails]

    async def break_platform(self, fault: Fault) -> None:
        match fault:
            case Fault.REVOKED:
                self.server.revoke()
            case Fault.UNREACHABLE:
                await self.server.smtp.stop()
            case Fault.CONNECTION_CUT:
                await self.server.imap.cut()
            case Fault.CHAT_GONE:
                self.server.faults.recipients[ANNA] = "550 5.1.1 No such person here"
            case Fault.ANSWER_LOST:
                self.server.faults.loses_answer = True
            case _:
                self.server.faults.next_answers.append(ANSWERS[fault])


class TestEmailContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: MailServer) -> EmailPlatform:
        return EmailPlatform(server)

    async def test_it_stops_when_another_process_runs_the_account(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox):
            pass  # the first start reads no old mails
        await super().test_it_stops_when_another_process_runs_the_account(platform, inbox)
