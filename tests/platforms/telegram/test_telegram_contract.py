"""The Telegram adapter keeps what every adapter must keep, with the real SDK and a local Bot API server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import LeaseLost
from palaver.core.source import Platform
from palaver.delivery.adapter import WebhookRequest
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage
from support.gateway import wait_until

from .bot_api_server import (
    ADA,
    BAD_GATEWAY,
    CHAT_NOT_FOUND,
    CUT_LINE,
    LOSE_ANSWER,
    PRIVATE,
    TOKEN,
    BotApiServer,
    Fault as ApiFault,
    build_move_fault,
    flood,
    make_message,
)
from .conftest import make_adapter_for

if TYPE_CHECKING:
    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.platforms.telegram.adapter import TelegramAdapter

SEND_FAULTS = {
    Fault.RATE_LIMITED: flood(3),
    Fault.SERVER_ERROR: BAD_GATEWAY,
    Fault.REFUSED: ApiFault(400, "Bad Request: can't parse entities"),
    Fault.CHAT_GONE: CHAT_NOT_FOUND,
    Fault.CHAT_MOVED: build_move_fault(-1001),
    Fault.ANSWER_LOST: LOSE_ANSWER,
}


class TelegramPlatform(ContractPlatform):
    """Ada's private chat with the bot."""

    faults = frozenset(Fault)
    secrets = (TOKEN, TOKEN.partition(":")[2])

    def __init__(self, server: BotApiServer) -> None:
        self.server = server
        self.count = 0
        self.last_update: dict[str, Any] = {}

    @property
    def address(self) -> Address:
        return Address(Platform.TELEGRAM, str(PRIVATE["id"]))

    def make_adapter(self) -> TelegramAdapter:
        return make_adapter_for(self.server)

    def make_message(self, text: str) -> dict[str, Any]:
        self.count += 1
        return make_message(text, message_id=self.count)

    async def say(self, text: str) -> str:
        self.last_update = self.server.push(message=self.make_message(text))
        return str(self.count)

    async def say_with_file(self, name: str, data: bytes) -> str:
        self.server.files["f1"] = data
        document = {"file_id": "f1", "file_unique_id": "f1", "file_name": name, "file_size": len(data)}
        self.count += 1
        self.server.push(message=make_message(None, message_id=self.count, document=document))
        return str(self.count)

    async def repeat_updates(self) -> None:
        self.server.push(message=self.last_update["message"])

    async def say_in_reverse(self, first: str, second: str) -> None:
        update = self.server.make_update(message=self.make_message(first))
        self.server.push(message=self.make_message(second))
        self.server.push(**update)

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(str(message_id), message.get("text", ""), tuple(name for name, _ in message["files"].values()))
            for (_, message_id), message in sorted(self.server.messages.items())
        ]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.is_revoked = True
        elif fault is Fault.UNREACHABLE:
            await self.server.__aexit__()
        elif fault is Fault.CONNECTION_CUT:
            self.server.fail("getUpdates", CUT_LINE)
        else:
            self.server.fail("sendMessage", SEND_FAULTS[fault])

    async def edit_as_person(self, message_id: str, text: str) -> None:
        message = make_message(text, message_id=int(message_id), edit_date=1_790_000_100)
        self.server.push(edited_message=message)

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        reaction = {
            "chat": PRIVATE,
            "message_id": int(message_id),
            "user": ADA,
            "date": 1_790_000_000,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}],
        }
        self.server.push(message_reaction=reaction)

    async def press_button(self, message_id: str, label: str) -> None:
        asked = self.server.messages[PRIVATE["id"], int(message_id)]["asked"]
        keys = [key for row in asked["reply_markup"]["inline_keyboard"] for key in row]
        [data] = [key["callback_data"] for key in keys if key["text"] == label]
        message = {"chat": PRIVATE, "message_id": int(message_id), "date": 0}
        self.server.push(
            callback_query={"id": "77", "from": ADA, "chat_instance": "1", "message": message, "data": data}
        )

    async def is_typing(self) -> bool:
        return bool(self.server.list_requests("sendChatAction"))


class TestTelegramContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: BotApiServer) -> TelegramPlatform:
        return TelegramPlatform(server)


class WebhookPlatform(TelegramPlatform):
    """The same chat, whose updates Telegram sends to our webhook until they are answered with a success."""

    faults = frozenset(Fault) - {Fault.CONNECTION_CUT}
    is_called = True

    def __init__(self, server: BotApiServer) -> None:
        super().__init__(server)
        self.pump: asyncio.Task[None] | None = None

    def make_adapter(self) -> TelegramAdapter:
        return make_adapter_for(self.server, mode="webhook")

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        self.pump = asyncio.create_task(self.send_updates(adapter, link))

    def note_stop(self) -> None:
        if self.pump is not None:
            self.pump.cancel()

    async def send_updates(self, adapter: Adapter, link: AccountLink) -> None:
        while True:
            await wait_until(lambda: self.server.webhook_secret and self.server.pending)
            update = self.server.pending[0]
            headers = {"x-telegram-bot-api-secret-token": self.server.webhook_secret or ""}
            request = WebhookRequest(method="POST", headers=headers, query={}, body=json.dumps(update).encode())
            try:
                response = await adapter.handle_webhook(link, request)
            except LeaseLost:  # the server answers that it is not ready, and Telegram sends the update again
                await asyncio.sleep(0.01)
                continue
            assert response.status == 200
            self.server.pending.remove(update)


class TestTelegramWebhookContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: BotApiServer) -> WebhookPlatform:
        return WebhookPlatform(server)
