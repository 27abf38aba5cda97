"""Signal on this machine, with two people on it; a small program stands for signal-cli."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from . import signal_server
from .signal_server import OWN_ACI, SignalServer

if TYPE_CHECKING:
    from pathlib import Path

ACIS = {ADA: signal_server.ADA, BEN: signal_server.BEN}
CHATS = {**ACIS, GROUP: signal_server.GROUP}
SEND_FAULTS = {
    Fault.SERVER_ERROR: signal_server.INTERNAL_ERROR,
    Fault.ANSWER_LOST: signal_server.LOSE_ANSWER,
}
MENTION = "\ufffc"


class LocalSignal(LocalPlatform):
    """An account that answers everybody who writes to it."""

    platform = Platform.SIGNAL
    faults = frozenset({*SEND_FAULTS, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = SignalServer()

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    def build_settings(self) -> dict[str, Any]:
        return {
            "program": str(self.server.program),
            "config_folder": str(self.server.config_folder),
            "chats": "all",
        }

    async def say(self, person: str, chat: str, text: str) -> None:
        if chat == person:
            self.server.push_text(text, ACIS[person])
            return
        mention = {"name": "Palaver", "number": None, "uuid": OWN_ACI, "start": 0, "length": 1}
        self.server.push_text(f"{MENTION} {text}", ACIS[person], group=CHATS[chat], mentions=[mention])

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(CHATS[chat])

    async def disturb(self, fault: Fault) -> None:
        if fault is Fault.CONNECTION_CUT:
            await self.server.end_programs()
        else:
            self.server.fail("send", SEND_FAULTS[fault])

    def has_pending_fault(self, fault: Fault) -> bool:
        return fault is not Fault.CONNECTION_CUT and self.server.has_pending_fault("send")

    def list_problems(self) -> list[str]:
        return self.server.problems
