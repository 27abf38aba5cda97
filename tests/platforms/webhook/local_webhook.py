"""Programs on this machine that talk to the agent through its webhook: one for each of two people."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

import httpx2

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, LocalPlatform

from .receiver import SECRET, Reply, run_receiver, sign

if TYPE_CHECKING:
    from pathlib import Path

RETRY_SECONDS = 0.5


class LocalWebhook(LocalPlatform):
    """A program that repeats each request until it was taken, and takes each answer once."""

    platform = Platform.WEBHOOK
    chats = (ADA, BEN)
    faults = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.ANSWER_LOST})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = AsyncExitStack()
        self._numbers = itertools.count(1)
        self._calls: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._receiver = await self._stack.enter_async_context(run_receiver())
        self._http = await self._stack.enter_async_context(httpx2.AsyncClient(timeout=30))
        return self

    async def __aexit__(self, *_: object) -> None:
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._stack.aclose()

    def build_settings(self) -> dict[str, Any]:
        return {"secret": SECRET, "url": self._receiver.url, "key_lifetime_hours": 24}

    async def say(self, person: str, chat: str, text: str) -> None:
        body = json.dumps({"text": text, "conversation": chat}).encode()
        call = asyncio.create_task(self._post(f"message-{next(self._numbers)}", body))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _post(self, message_id: str, body: bytes) -> None:
        while True:
            headers = sign(message_id, int(time.time()), body)
            try:
                response = await self._http.post(self.hook_url, content=body, headers=headers)
            except httpx2.HTTPError:
                pass
            else:
                if response.is_success:
                    return
            await asyncio.sleep(RETRY_SECONDS)

    async def list_answers(self, chat: str) -> list[str]:
        return [fields["text"] for fields in self._receiver.taken.values() if fields["conversation"] == chat]

    async def disturb(self, fault: Fault) -> None:
        replies = {
            Fault.RATE_LIMITED: Reply(429, {"Retry-After": "2"}),
            Fault.SERVER_ERROR: Reply(500),
            Fault.ANSWER_LOST: Reply(is_lost=True),
        }
        self._receiver.replies.append(replies[fault])

    def has_pending_fault(self, fault: Fault) -> bool:
        return bool(self._receiver.replies)
