"""Discord on this machine, with two people on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from .discord_api import BAD_GATEWAY, LOSE_ANSWER, limit_rate
from .discord_data import ADA as ADA_USER, ADA_DM_ID, BEN as BEN_USER, BEN_DM_ID, GENERAL_ID, TOKEN
from .discord_server import MENTION, DiscordServer

if TYPE_CHECKING:
    from pathlib import Path

USERS = {ADA: ADA_USER, BEN: BEN_USER}
CHANNELS = {ADA: ADA_DM_ID, BEN: BEN_DM_ID, GROUP: GENERAL_ID}


class LocalDiscord(LocalPlatform):
    """A bot, and a local Discord server."""

    platform = Platform.DISCORD
    faults = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.ANSWER_LOST, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = DiscordServer()

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def build_settings(self) -> dict[str, Any]:
        return {"bot_token": TOKEN, "api_url": self.server.url}

    async def say(self, person: str, chat: str, text: str) -> None:
        shown = text if chat == person else f"{MENTION} {text}"
        self.server.say(shown, channel_id=CHANNELS[chat], author=USERS[person])

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(CHANNELS[chat])

    async def disturb(self, fault: Fault) -> None:
        match fault:
            case Fault.RATE_LIMITED:
                self.server.fail("createMessage", limit_rate(2))
            case Fault.SERVER_ERROR:
                self.server.fail("createMessage", BAD_GATEWAY)
            case Fault.ANSWER_LOST:
                self.server.fail("createMessage", LOSE_ANSWER)
            case _:
                self.server.gateway.cut()

    def has_pending_fault(self, fault: Fault) -> bool:
        return fault is not Fault.CONNECTION_CUT and self.server.has_pending_fault("createMessage")

    def list_problems(self) -> list[str]:
        return self.server.problems
