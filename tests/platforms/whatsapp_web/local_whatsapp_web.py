"""A linked WhatsApp account on this machine, with two people who write to it; a stand-in replaces the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from . import whatsapp_server
from .whatsapp_server import OWN, SendFault, WhatsAppServer

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE = {ADA: whatsapp_server.ADA, BEN: whatsapp_server.BEN}
CHATS = {**PEOPLE, GROUP: whatsapp_server.GROUP}
SEND_FAULTS = {
    Fault.RATE_LIMITED: SendFault(error="rate_limited"),
    Fault.SERVER_ERROR: SendFault(error="not_sent"),
    Fault.ANSWER_LOST: SendFault(arrives=True, is_cut=True),
}


class LocalWhatsAppWeb(LocalPlatform):
    """An account that answers everybody who writes to it."""

    platform = Platform.WHATSAPP_WEB
    faults = frozenset({*SEND_FAULTS, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = WhatsAppServer()

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    def build_settings(self) -> dict[str, Any]:
        return {"chats": "all", "child_command": self.server.child_command}

    async def say(self, person: str, chat: str, text: str) -> None:
        mentions = [] if chat == person else [OWN[0]]
        self.server.say(text, sender=PEOPLE[person], chat=CHATS[chat], mentions=mentions)

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(CHATS[chat])

    async def disturb(self, fault: Fault) -> None:
        if fault is Fault.CONNECTION_CUT:
            self.server.cut()
        else:
            self.server.faults.append(SEND_FAULTS[fault])

    def has_pending_fault(self, fault: Fault) -> bool:
        return fault is not Fault.CONNECTION_CUT and bool(self.server.faults)
