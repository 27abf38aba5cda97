"""The WhatsApp adapter keeps what every adapter must keep, with a local Graph API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import LeaseLost
from palaver.core.source import Platform
from palaver.delivery.adapter import WebhookRequest
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage

from .conftest import make_adapter_for
from .graph_server import (
    ADAS_NUMBER,
    APP_SECRET,
    BAD_GATEWAY,
    INVALID,
    LOSE_ANSWER,
    NO_WHATSAPP,
    PAIR_RATE,
    TOKEN,
    VERIFY_TOKEN,
    GraphServer,
    find_text,
    make_message,
    make_webhook,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.platforms.whatsapp.adapter import WhatsAppAdapter

SEND_FAULTS = {
    Fault.RATE_LIMITED: PAIR_RATE,
    Fault.SERVER_ERROR: BAD_GATEWAY,
    Fault.REFUSED: INVALID,
    Fault.CHAT_GONE: NO_WHATSAPP,
    Fault.ANSWER_LOST: LOSE_ANSWER,
}


class WhatsAppPlatform(ContractPlatform):
    """Ada's chat with the business number. A number that moves is told by a webhook, and no connection can be cut."""

    faults = frozenset({*SEND_FAULTS, Fault.UNREACHABLE, Fault.REVOKED})
    secrets = (TOKEN, APP_SECRET, VERIFY_TOKEN)
    is_called = True

    def __init__(self, server: GraphServer) -> None:
        self.server = server
        self.count = 0
        self.last_message = make_message("text", "")

    @property
    def address(self) -> Address:
        return Address(Platform.WHATSAPP, ADAS_NUMBER)

    def make_adapter(self) -> WhatsAppAdapter:
        return make_adapter_for(self.server)

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        async def send(body: bytes, headers: Mapping[str, str]) -> int:
            request = WebhookRequest(method="POST", headers=headers, query={}, body=body)
            try:
                return (await adapter.handle_webhook(link, request)).status
            except LeaseLost:
                return 503

        self.server.send_webhook = send

    def note_stop(self) -> None:
        self.server.send_webhook = None

    def push(self, kind: str, content: object) -> str:
        self.count += 1
        self.last_message = make_message(kind, content, message_id=f"wamid.in{self.count}")
        self.server.push(make_webhook(self.last_message))
        return f"wamid.in{self.count}"

    async def say(self, text: str) -> str:
        return self.push("text", text)

    async def say_with_file(self, name: str, data: bytes) -> str:
        media_id = self.server.add_media(data, "text/plain")
        return self.push("document", {"id": media_id, "mime_type": "text/plain", "filename": name})

    async def repeat_updates(self) -> None:
        self.server.push(make_webhook(self.last_message))

    async def say_in_reverse(self, first: str, second: str) -> None:
        self.push("text", second)
        self.push("text", first)

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(each["id"], find_text(each), (each["file"][0],) if each["file"] else ())
            for each in self.server.messages
        ]

    async def edit_as_person(self, message_id: str, text: str) -> None:
        edited = {"type": "text", "text": {"body": text}}
        self.push("edit", {"original_message_id": message_id, "message": edited})

    async def delete_as_person(self, message_id: str) -> None:
        self.push("revoke", {"original_message_id": message_id})

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        self.push("reaction", {"message_id": message_id, "emoji": emoji})

    async def press_button(self, message_id: str, label: str) -> None:
        [sent] = [each for each in self.server.messages if each["id"] == message_id]
        replies = [each["reply"] for each in sent["interactive"]["action"]["buttons"]]
        [reply] = [each for each in replies if each["title"] == label]
        self.count += 1
        message = make_message(
            "interactive",
            {"type": "button_reply", "button_reply": reply},
            message_id=f"wamid.in{self.count}",
            context={"from": "15550001111", "id": message_id},
        )
        self.server.push(make_webhook(message))

    async def is_typing(self) -> bool:
        return bool(self.server.read_ids)

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.is_revoked = True
        elif fault is Fault.UNREACHABLE:
            await self.server.__aexit__()
        else:
            self.server.fail("messages", SEND_FAULTS[fault])


class TestWhatsAppContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: GraphServer) -> WhatsAppPlatform:
        return WhatsAppPlatform(server)
