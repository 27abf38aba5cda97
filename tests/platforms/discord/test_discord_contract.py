"""The Discord adapter keeps what every adapter must keep, with the real SDK and a local Discord server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, MemoryInbox, PlatformContract, ShownMessage

from .conftest import make_adapter_for
from .discord_api import BAD_GATEWAY, INVALID_BODY, LOSE_ANSWER, UNKNOWN_CHANNEL, limit_rate
from .discord_data import ADA, ADA_DM_ID, GENERAL_ID, TOKEN
from .discord_server import MENTION, DiscordServer

if TYPE_CHECKING:
    from palaver.platforms.discord.adapter import DiscordAdapter

SEND_FAULTS = {
    Fault.RATE_LIMITED: limit_rate(3),
    Fault.SERVER_ERROR: BAD_GATEWAY,
    Fault.REFUSED: INVALID_BODY,
    Fault.CHAT_GONE: UNKNOWN_CHANNEL,
    Fault.ANSWER_LOST: LOSE_ANSWER,
}


class DiscordPlatform(ContractPlatform):
    """A channel of a server, in which people mention the bot."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED}
    secrets = (TOKEN, TOKEN.rpartition(".")[2])

    channel_id = GENERAL_ID
    mention = f"{MENTION} "

    def __init__(self, server: DiscordServer) -> None:
        self.server = server

    @property
    def address(self) -> Address:
        return Address(Platform.DISCORD, self.channel_id)

    def make_adapter(self) -> DiscordAdapter:
        return make_adapter_for(self.server)

    async def say(self, text: str) -> str:
        return str(self.server.say(f"{self.mention}{text}", channel_id=self.channel_id)["id"])

    async def say_with_file(self, name: str, data: bytes) -> str:
        attachment = self.server.attach(name, data, content_type="text/plain")
        return str(self.server.say(self.mention, channel_id=self.channel_id, attachments=[attachment])["id"])

    async def repeat_updates(self) -> None:
        self.server.send_created(list(self.server.messages[self.channel_id].values())[-1])

    async def say_in_reverse(self, first: str, second: str) -> None:
        messages = [
            self.server.say(f"{self.mention}{text}", channel_id=self.channel_id, is_sent=False)
            for text in (first, second)
        ]
        for message in reversed(messages):
            self.server.send_created(message)

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(message["id"], message["content"], tuple(each["filename"] for each in message["attachments"]))
            for message in self.server.list_own(self.channel_id)
        ]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.is_revoked = True
        elif fault is Fault.UNREACHABLE:
            await self.server.__aexit__()
        elif fault is Fault.CONNECTION_CUT:
            self.server.gateway.cut()
        else:
            self.server.fail("createMessage", SEND_FAULTS[fault])

    async def edit_as_person(self, message_id: str, text: str) -> None:
        self.server.edit(self.server.messages[self.channel_id][message_id], f"{self.mention}{text}")

    async def delete_as_person(self, message_id: str) -> None:
        self.server.delete(self.server.messages[self.channel_id][message_id])

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        self.server.react(message_id, self.channel_id, {"id": None, "name": emoji}, user=ADA)

    async def press_button(self, message_id: str, label: str) -> None:
        self.server.press(message_id, label, channel_id=self.channel_id)

    async def is_typing(self) -> bool:
        return self.channel_id in self.server.typing


class TestDiscordContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: DiscordServer) -> DiscordPlatform:
        return DiscordPlatform(server)


class DirectPlatform(DiscordPlatform):
    """Ada's direct messages with the bot. She has written to it before: only then Discord lets it find them."""

    channel_id = ADA_DM_ID
    mention = ""


class TestDiscordDirectContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: DiscordServer) -> DirectPlatform:
        return DirectPlatform(server)

    @pytest.fixture
    def inbox(self, server: DiscordServer) -> MemoryInbox:
        inbox = MemoryInbox()
        inbox.cursors = {"": server.make_id(), "direct chats": json.dumps([ADA_DM_ID]), ADA_DM_ID: server.make_id()}
        return inbox
