"""The webhook adapter keeps what every adapter must keep; answers go to a real HTTP server."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import LeaseLost
from palaver.core.source import Platform
from palaver.delivery.adapter import WebhookRequest
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.webhook.adapter import WebhookAdapter
from palaver.platforms.webhook.manifest import WebhookSettings
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage

from .receiver import SECRET, Reply, run_receiver, sign

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.delivery.adapter import AccountLink, Adapter

    from .receiver import Receiver

REPLIES = {
    Fault.RATE_LIMITED: Reply(429, {"Retry-After": "7"}),
    Fault.SERVER_ERROR: Reply(500),
    Fault.REFUSED: Reply(400),
    Fault.CHAT_GONE: Reply(410),
    Fault.ANSWER_LOST: Reply(is_lost=True),
}


class WebhookPlatform(ContractPlatform):
    """A program that sends each request again until it was taken."""

    faults = frozenset({*REPLIES, Fault.UNREACHABLE})
    secrets = (SECRET,)
    is_called = True

    def __init__(self, receiver: Receiver, key_lifetime_hours: float) -> None:
        self.receiver = receiver
        self.key_lifetime_hours = key_lifetime_hours
        self.pending: deque[WebhookRequest] = deque()
        self.has_pending = asyncio.Event()
        self.last_request: WebhookRequest | None = None
        self.numbers = itertools.count(1)
        self.calling: asyncio.Task[None] | None = None

    @property
    def address(self) -> Address:
        return Address(Platform.WEBHOOK, "reports", account="ci")

    def make_adapter(self) -> WebhookAdapter:
        settings = WebhookSettings.model_validate(
            {"secret": SECRET, "url": self.receiver.url, "key_lifetime_hours": self.key_lifetime_hours}
        )
        place = AccountPlace(account="ci", folder=Path("/nonexistent"), webhook_url=None)
        return WebhookAdapter(settings, place)

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        self.calling = asyncio.create_task(self.call(adapter, link))

    def note_stop(self) -> None:
        if self.calling is not None:
            self.calling.cancel()

    async def call(self, adapter: Adapter, link: AccountLink) -> None:
        with suppress(LeaseLost):
            while True:
                while self.pending:
                    response = await adapter.handle_webhook(link, self.pending[0])
                    assert response.status == 202, response.body
                    self.pending.popleft()
                self.has_pending.clear()
                await self.has_pending.wait()

    def make_request(self, text: str) -> tuple[str, WebhookRequest]:
        message_id = f"message-{next(self.numbers)}"
        body = json.dumps({"text": text, "conversation": "reports"}).encode()
        headers = sign(message_id, int(time.time()), body)
        return message_id, WebhookRequest(method="POST", headers=headers, query={}, body=body)

    def push(self, *requests: WebhookRequest) -> None:
        self.pending.extend(requests)
        self.has_pending.set()

    async def say(self, text: str) -> str:
        message_id, self.last_request = self.make_request(text)
        self.push(self.last_request)
        return message_id

    async def repeat_updates(self) -> None:
        assert self.last_request is not None
        self.push(self.last_request)

    async def say_in_reverse(self, first: str, second: str) -> None:
        requests = self.make_request(first)[1], self.make_request(second)[1]
        self.push(*reversed(requests))

    async def list_messages(self) -> list[ShownMessage]:
        return [ShownMessage(message_id, fields["text"]) for message_id, fields in self.receiver.taken.items()]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.UNREACHABLE:
            self.receiver.stop_listening()
        else:
            self.receiver.replies.append(REPLIES[fault])


class TestWebhookContract(PlatformContract):
    @pytest.fixture(params=[0, 24], ids=["without keys", "with keys"])
    async def platform(self, request: pytest.FixtureRequest) -> AsyncIterator[WebhookPlatform]:
        async with run_receiver() as receiver:
            yield WebhookPlatform(receiver, request.param)
