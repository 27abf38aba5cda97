"""The adapter keeps what every adapter must keep, with the real lines, spool and process and a stand-in library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage
from support.gateway import wait_until

from .conftest import ADDRESS, make_adapter_for
from .whatsapp_server import ADA, PHONE, SendFault, WhatsAppServer, make_media

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.sessions.delivery import Address
    from palaver.testing import MemoryInbox

SEND_FAULTS = {
    Fault.RATE_LIMITED: SendFault(error="rate_limited"),
    Fault.SERVER_ERROR: SendFault(error="not_sent"),
    Fault.REFUSED: SendFault(error="refused"),
    Fault.CHAT_GONE: SendFault(error="unreachable"),
    Fault.ANSWER_LOST: SendFault(arrives=True, is_cut=True),
}
PROXY_PASSWORD = "hunter2-and-more"


class WhatsAppWebPlatform(ContractPlatform):
    """Ada's chat with the account."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED}
    secrets = (PROXY_PASSWORD,)

    def __init__(self, server: WhatsAppServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.last: dict[str, object] = {}
        self.adapter: WhatsAppWebAdapter | None = None  # that runs

    @property
    def address(self) -> Address:
        return ADDRESS

    def make_adapter(self) -> WhatsAppWebAdapter:
        proxy = f"socks5://ada:{PROXY_PASSWORD}@127.0.0.1:1"
        return make_adapter_for(self.server, self.folder, proxy_url=proxy)

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        assert isinstance(adapter, WhatsAppWebAdapter)
        self.adapter = adapter

    async def say(self, text: str) -> str:
        self.last = self.server.push(self.server.make_event("message", text=text))
        return str(self.last["id"])

    async def repeat_updates(self) -> None:
        self.server.push(dict(self.last))

    async def say_in_reverse(self, first: str, second: str) -> None:
        event = self.server.make_event("message", text=first)
        self.server.say(second)
        self.server.push(event)

    async def say_with_file(self, name: str, data: bytes) -> str:
        self.server.files["r1"] = data
        return self.server.say("", media=make_media("r1", type="document", size=len(data), name=name))

    async def edit_as_person(self, message_id: str, text: str) -> None:
        self.server.push(self.server.make_event("edit", target=message_id, text=text))

    async def delete_as_person(self, message_id: str) -> None:
        self.server.push(self.server.make_event("delete", target=message_id))

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        self.server.push(self.server.make_event("reaction", target=message_id, emoji=emoji))

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(message.id, message.text, (message.file_name,) if message.file_name else ())
            for message in self.server.messages
            if message.chat == ADA
        ]

    async def is_typing(self) -> bool:
        return any(name == "typing" and fields["is_typing"] for name, fields in self.server.requests)

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.refusal = {"state": "banned", "reason": "WhatsApp has banned this number for a while."}
        elif fault is Fault.UNREACHABLE:
            await self.server.stop()
            await wait_until(lambda: self.adapter is not None and not self.adapter._is_connected)
        elif fault is Fault.CONNECTION_CUT:
            self.server.cut()
        else:
            self.server.faults.append(SEND_FAULTS[fault])


class TestWhatsAppWebContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: WhatsAppServer, tmp_path: Path) -> WhatsAppWebPlatform:
        return WhatsAppWebPlatform(server, tmp_path / "account")

    async def test_what_is_kept_is_private_and_nothing_stays_behind(
        self, platform: WhatsAppWebPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox) as adapter:
            await platform.say("Hello")
            await self._wait_for_texts(inbox, ["Hello"])
            await self._send(platform, adapter, "Hi")
            await inbox.wait_until(lambda: inbox.confirmed, self.timeout_seconds)
        assert inbox.confirmed == {"d_contract.1": platform.server.messages[0].id}
        modes = {path.name: path.stat().st_mode & 0o077 for path in platform.folder.iterdir() if path.is_dir()}
        assert modes == {"received": 0, "files": 0}
        assert list((platform.folder / "files").iterdir()) == []

    async def test_the_account_is_named_after_it_was_connected(
        self, platform: WhatsAppWebPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox) as adapter:
            assert (await adapter.probe()).user_id == PHONE
        adapter = platform.make_adapter()
        try:
            info = await adapter.probe()
        finally:
            await adapter.close()
        assert (info.user_id, info.name, info.details) == (PHONE, "Palaver", ("stand-in 1",))
