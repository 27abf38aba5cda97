"""Telegram on this machine, with two people on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, LocalPlatform

from .bot_api_server import (
    ADA as ADA_USER,
    BAD_GATEWAY,
    CUT_LINE,
    GROUP,
    LOSE_ANSWER,
    PRIVATE,
    TOKEN,
    BotApiServer,
    flood,
)

if TYPE_CHECKING:
    from pathlib import Path

USERS = {ADA: ADA_USER, BEN: {"id": 77, "is_bot": False, "first_name": "Ben", "username": "ben"}}
CHATS = {
    ADA: PRIVATE,
    BEN: {"id": 77, "type": "private", "first_name": "Ben", "username": "ben"},
    "group": GROUP,
}
MENTION = "@palaver_bot"


class LocalTelegram(LocalPlatform):
    """A bot, and a local Bot API server."""

    platform = Platform.TELEGRAM
    faults = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.ANSWER_LOST, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = BotApiServer()
        self._message_id = 0

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def build_settings(self) -> dict[str, Any]:
        return {"bot_token": TOKEN, "api_url": self.server.url}

    async def say(self, person: str, chat: str, text: str) -> None:
        self._message_id += 1
        fields: dict[str, Any] = {"chat": CHATS[chat], "sender": USERS[person]}
        if chat != person:
            fields["entities"] = [{"type": "mention", "offset": 0, "length": len(MENTION)}]
            text = f"{MENTION} {text}"
        self.server.push_text(text, message_id=self._message_id, **fields)

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(int(CHATS[chat]["id"]))

    async def disturb(self, fault: Fault) -> None:
        match fault:
            case Fault.RATE_LIMITED:
                self.server.fail("sendMessage", flood(2))
            case Fault.SERVER_ERROR:
                self.server.fail("sendMessage", BAD_GATEWAY)
            case Fault.ANSWER_LOST:
                self.server.fail("sendMessage", LOSE_ANSWER)
            case _:
                self.server.fail("getUpdates", CUT_LINE)

    def has_pending_fault(self, fault: Fault) -> bool:
        return self.server.has_pending_fault("getUpdates" if fault is Fault.CONNECTION_CUT else "sendMessage")

    def list_problems(self) -> list[str]:
        return self.server.problems
