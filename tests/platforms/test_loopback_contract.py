"""The in-process platform keeps what every adapter must keep."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import (
    AccountRefused,
    ChatMovedAway,
    ConnectionLost,
    LeaseLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.delivery.model import Capabilities
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.delivery import Address
from palaver.sessions.inbound import ButtonPressed, Inbound, InboundFile, MessageDeleted, MessageEdited, MessageReaction
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.core.source import SessionSource
    from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage
    from palaver.sessions.inbound import AnyUpdate

CAPABILITIES = Capabilities(
    max_length=500,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=5,
    max_buttons=3,
    max_file_bytes=1000,
    has_native_stream=True,
    key_lifetime=timedelta(minutes=5),
)
ERRORS = {
    Fault.RATE_LIMITED: SendRetryable("Slow down.", retry_after=3),
    Fault.SERVER_ERROR: SendRetryable("Internal error."),
    Fault.REFUSED: SendRejected("Not like this."),
    Fault.CHAT_GONE: TargetUnreachable("The chat is gone."),
    Fault.CHAT_MOVED: ChatMovedAway("They are elsewhere.", new_chat_id="ada-2"),
    Fault.UNREACHABLE: SendRetryable("Nothing listens there."),
}


class RefusedLoopback(LoopbackAdapter):
    async def probe(self) -> AccountInfo:
        raise AccountRefused("The token was revoked.")


class LoopbackPlatform(ContractPlatform):
    """Keeps updates until an adapter has accepted them, and messages while adapters come and go."""

    faults = frozenset(Fault)

    def __init__(self) -> None:
        self.pending: deque[AnyUpdate] = deque()  # what no adapter has accepted yet
        self.has_pending = asyncio.Event()
        self.last_message: AnyUpdate | None = None
        self.shown: dict[str, OutgoingMessage] = {}
        self.keys: dict[str, str] = {}
        self.fault: Fault | None = None
        self.count = 0
        self.adapter: LoopbackAdapter | None = None
        self.pump: asyncio.Task[None] | None = None

    @property
    def address(self) -> Address:
        return Address(LOOPBACK, "ada")

    def make_adapter(self) -> LoopbackAdapter:
        adapter_class = RefusedLoopback if self.fault is Fault.REVOKED else LoopbackAdapter
        adapter = adapter_class(self.transport, capabilities=CAPABILITIES)
        adapter.messages = self.shown
        return adapter

    async def transport(self, message: OutgoingMessage) -> str | None:
        fault, self.fault = self.fault, None
        if fault in ERRORS:
            raise ERRORS[fault]
        message_id = self.keys.setdefault(message.key, f"out-{len(self.keys)}")
        if fault is Fault.ANSWER_LOST:
            self.shown[message_id] = message
            raise SendUncertain
        return message_id

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        assert isinstance(adapter, LoopbackAdapter)
        self.adapter = adapter
        self.pump = asyncio.create_task(self.pass_updates(adapter))

    def note_stop(self) -> None:
        if self.pump is not None:
            self.pump.cancel()

    async def pass_updates(self, adapter: LoopbackAdapter) -> None:
        with suppress(LeaseLost):
            while True:
                while self.pending:
                    await adapter.receive(self.pending[0])
                    self.pending.popleft()
                self.has_pending.clear()
                await self.has_pending.wait()

    def push(self, *updates: AnyUpdate) -> None:
        self.pending.extend(updates)
        self.has_pending.set()

    @property
    def source(self) -> SessionSource:
        return LoopbackAdapter().get_source("ada")

    def make_message(self, text: str, *files: InboundFile) -> Inbound:
        self.count += 1
        return Inbound(source=self.source, content=text, message_id=f"in-{self.count}", files=files)

    async def say(self, text: str) -> str:
        self.last_message = message = self.make_message(text)
        self.push(message)
        return message.message_id or ""

    async def say_in_reverse(self, first: str, second: str) -> None:
        messages = self.make_message(first), self.make_message(second)
        self.push(*reversed(messages))

    async def say_with_file(self, name: str, data: bytes) -> str:
        async def download() -> AsyncIterator[bytes]:
            yield data

        message = self.make_message("", InboundFile(name, download))
        self.push(message)
        return message.message_id or ""

    async def repeat_updates(self) -> None:
        assert self.last_message is not None
        self.push(self.last_message)

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(message_id, message.body, (message.file.name,) if message.file else ())
            for message_id, message in self.shown.items()
        ]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.CONNECTION_CUT:
            assert self.adapter is not None
            self.adapter.disconnect(ConnectionLost())
        else:
            self.fault = fault

    async def edit_as_person(self, message_id: str, text: str) -> None:
        self.push(MessageEdited(source=self.source, message_id=message_id, content=text))

    async def delete_as_person(self, message_id: str) -> None:
        self.push(MessageDeleted(source=self.source, message_id=message_id))

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        self.push(MessageReaction(source=self.source, message_id=message_id, emoji=emoji))

    async def press_button(self, message_id: str, label: str) -> None:
        [data] = [button.data for button in self.shown[message_id].buttons if button.label == label]
        self.push(ButtonPressed(source=self.source, message_id=message_id, data=data, press_id="p1"))

    async def is_typing(self) -> bool:
        return self.adapter is not None and bool(self.adapter.typing)


class TestLoopbackContract(PlatformContract):
    @pytest.fixture
    def platform(self) -> LoopbackPlatform:
        return LoopbackPlatform()
