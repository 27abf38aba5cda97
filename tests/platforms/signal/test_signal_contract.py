"""The Signal adapter keeps what every adapter must keep, with a stand-in for signal-cli."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage

from . import signal_server as faults
from .conftest import ADDRESS, make_adapter_for
from .signal_server import ADA, OWN_ACI, SignalServer

if TYPE_CHECKING:
    from palaver.platforms.signal.adapter import SignalAdapter
    from palaver.sessions.delivery import Address

SEND_FAULTS = {
    Fault.RATE_LIMITED: faults.RATE_LIMITED,
    Fault.SERVER_ERROR: faults.INTERNAL_ERROR,
    Fault.REFUSED: faults.UNTRUSTED,
    Fault.CHAT_GONE: faults.UNREGISTERED,
    Fault.ANSWER_LOST: faults.LOSE_ANSWER,
}


class SignalPlatform(ContractPlatform):
    """Ada's chat with the account."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED}

    def __init__(self, server: SignalServer) -> None:
        self.server = server
        self.last_line = ""

    @property
    def address(self) -> Address:
        return ADDRESS

    def make_adapter(self) -> SignalAdapter:
        return make_adapter_for(self.server)

    async def say(self, text: str) -> str:
        data = self.server.make_data(text)
        self.last_line = self.server.push(self.server.make_envelope(ADA, data["timestamp"], dataMessage=data))
        return f"{ADA}:{data['timestamp']}"

    async def say_with_file(self, name: str, data: bytes) -> str:
        return self.server.push_text(None, attachments=[self.server.add_file(name, data)])

    async def repeat_updates(self) -> None:
        self.server.push_line(self.last_line)

    async def say_in_reverse(self, first: str, second: str) -> None:
        early = self.server.make_data(first)
        self.server.push_text(second)
        self.server.push(self.server.make_envelope(ADA, early["timestamp"], dataMessage=early))

    async def list_messages(self) -> list[ShownMessage]:
        return [ShownMessage(each.id, each.text, tuple(each.files)) for each in self.server.messages]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.is_revoked = True
        elif fault is Fault.UNREACHABLE:
            await self.server.go_down()
        elif fault is Fault.CONNECTION_CUT:
            await self.server.end_programs()
        else:
            self.server.fail("send", SEND_FAULTS[fault])

    async def edit_as_person(self, message_id: str, text: str) -> None:
        data = self.server.make_data(text)
        edit = {"targetSentTimestamp": int(message_id.rpartition(":")[2]), "dataMessage": data}
        self.server.push(self.server.make_envelope(ADA, data["timestamp"], editMessage=edit))

    async def delete_as_person(self, message_id: str) -> None:
        timestamp = int(message_id.rpartition(":")[2])
        self.server.push_text(None, remoteDelete={"timestamp": timestamp})

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        reaction = {
            "emoji": emoji,
            "targetAuthor": OWN_ACI,
            "targetAuthorNumber": None,
            "targetAuthorUuid": OWN_ACI,
            "targetSentTimestamp": int(message_id.rpartition(":")[2]),
            "isRemove": False,
        }
        self.server.push_text(None, reaction=reaction)

    async def is_typing(self) -> bool:
        return bool(self.server.list_requests("sendTyping"))


class TestSignalContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: SignalServer) -> SignalPlatform:
        return SignalPlatform(server)
