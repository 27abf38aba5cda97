"""WhatsApp on this machine, with two people who write to a business number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import httpx2

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, LocalPlatform

from .graph_server import (
    ADAS_NUMBER,
    BAD_GATEWAY,
    BENS_NUMBER,
    BSUIDS,
    LOSE_ANSWER,
    PAIR_RATE,
    GraphServer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NUMBERS = {ADA: ADAS_NUMBER, BEN: BENS_NUMBER}


class LocalWhatsApp(LocalPlatform):
    """A business number, and a local Graph API server that calls our webhook. The Cloud API has no groups for it."""

    platform = Platform.WHATSAPP
    chats = (ADA, BEN)
    faults = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.ANSWER_LOST})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = GraphServer()
        self._http = httpx2.AsyncClient(timeout=60)

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        self.server.send_webhook = self._post
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()
        await self._http.aclose()

    def build_settings(self) -> dict[str, Any]:
        return self.server.build_settings()

    async def say(self, person: str, chat: str, text: str) -> None:
        number = NUMBERS[person]
        self.server.push_text(text, number=number, bsuid=BSUIDS[number])

    async def list_answers(self, chat: str) -> list[str]:
        return self.server.list_texts(NUMBERS[chat])

    async def disturb(self, fault: Fault) -> None:
        faults = {Fault.RATE_LIMITED: PAIR_RATE, Fault.SERVER_ERROR: BAD_GATEWAY}
        self.server.fail("messages", faults.get(fault, LOSE_ANSWER))

    def has_pending_fault(self, fault: Fault) -> bool:
        return self.server.has_pending_fault("messages")

    def list_problems(self) -> list[str]:
        return self.server.problems

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> int:
        response = await self._http.post(self.hook_url, content=body, headers=dict(headers))
        return response.status_code
