"""Mail on this machine, with two people who write to the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from .mail_server import ADDRESS, AUTHSERV_ID, PASSWORD, MailServer

if TYPE_CHECKING:
    from pathlib import Path

ADDRESSES = {ADA: "ada@example.com", BEN: "ben@example.net"}
ANSWERS = {
    Fault.RATE_LIMITED: "450 4.7.1 Too many mails, try again later",
    Fault.SERVER_ERROR: "451 4.3.0 Local error in processing",
}


class LocalEmail(LocalPlatform):
    """Each chat is one thread of mails; in the group a person writes to the agent and to the other person."""

    platform = Platform.EMAIL
    faults = frozenset({*ANSWERS, Fault.ANSWER_LOST, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = MailServer()
        self._threads: dict[str, list[str]] = {}  # chat → the ids of its mails from people

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    def build_settings(self) -> dict[str, Any]:
        return {
            "address": ADDRESS,
            "password": PASSWORD,
            "imap_host": "127.0.0.1",
            "imap_port": self.server.imap.port,
            "imap_security": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.server.smtp.port,
            "smtp_security": "none",
            "authserv_id": AUTHSERV_ID,
            "save_sent": False,
        }

    async def say(self, person: str, chat: str, text: str) -> None:
        thread = self._threads.setdefault(chat, [])
        others = [ADDRESSES[each] for each in (ADA, BEN) if chat == GROUP and each != person]
        message_id = await self.server.say(
            text,
            sender=ADDRESSES[person],
            to=[ADDRESS, *others],
            subject=f"About {chat}",
            references=[*thread[:1], *thread[1:][-9:]],
        )
        thread.append(message_id)

    async def list_answers(self, chat: str) -> list[str]:
        return [mail.text for mail in self.server.mails if f"About {chat}" in str(mail.message["Subject"])]

    async def disturb(self, fault: Fault) -> None:
        match fault:
            case Fault.CONNECTION_CUT:
                await self.server.imap.cut()
            case Fault.ANSWER_LOST:
                self.server.faults.loses_answer = True
            case _:
                self.server.faults.next_answers.append(ANSWERS[fault])

    def has_pending_fault(self, fault: Fault) -> bool:
        faults = self.server.faults
        return fault is not Fault.CONNECTION_CUT and (faults.loses_answer or bool(faults.next_answers))
