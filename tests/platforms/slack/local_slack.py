"""Slack on this machine, with two people on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from .slack_server import (
    ADA as ADA_USER,
    APP_TOKEN,
    BAD_GATEWAY,
    BEN as BEN_USER,
    BEN_DM,
    BOT_USER,
    CHANNEL,
    DM,
    LOSE_ANSWER,
    SIGNING_SECRET,
    TOKEN,
    SlackServer,
    limit_rate,
)

if TYPE_CHECKING:
    from pathlib import Path

USERS = {ADA: ADA_USER, BEN: BEN_USER}
CHANNELS = {ADA: DM, BEN: BEN_DM, GROUP: CHANNEL}
SEND_FAULTS = {
    Fault.RATE_LIMITED: limit_rate(2),
    Fault.SERVER_ERROR: BAD_GATEWAY,
    Fault.ANSWER_LOST: LOSE_ANSWER,
}


class LocalSlack(LocalPlatform):
    """An app in Socket Mode. In the channel each person writes in a thread of their own."""

    platform = Platform.SLACK
    faults = frozenset({*SEND_FAULTS, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = SlackServer()
        self._threads: dict[str, str] = {}  # person → thread in the channel

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()

    def build_settings(self) -> dict[str, Any]:
        return {
            "bot_token": TOKEN,
            "app_token": APP_TOKEN,
            "signing_secret": SIGNING_SECRET,
            "api_url": self.server.api_url,
        }

    async def say(self, person: str, chat: str, text: str) -> None:
        if chat == person:
            self.server.say(text, user=USERS[person], channel=CHANNELS[chat])
            return
        thread = self._threads.get(person)
        mention = f"<@{BOT_USER}> {text}"
        ts = self.server.say(mention, user=USERS[person], channel=CHANNELS[chat], thread_ts=thread)
        self._threads.setdefault(person, ts)

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(CHANNELS[chat])

    async def disturb(self, fault: Fault) -> None:
        if fault is Fault.CONNECTION_CUT:
            await self.server.cut_sockets()
        else:
            self.server.fail("chat.postMessage", SEND_FAULTS[fault])

    def has_pending_fault(self, fault: Fault) -> bool:
        return fault is not Fault.CONNECTION_CUT and self.server.has_pending_fault("chat.postMessage")

    def list_problems(self) -> list[str]:
        return self.server.problems
