"""The Slack adapter keeps what every adapter must keep, with the real SDK and a local Slack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import Platform
from palaver.delivery.adapter import WebhookRequest
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage

from .conftest import make_adapter_for
from .slack_server import (
    APP_TOKEN,
    BAD_GATEWAY,
    CHANNEL,
    DM,
    LOSE_ANSWER,
    SIGNING_SECRET,
    TOKEN,
    Fault as ApiFault,
    SlackServer,
    get_shown_text,
    limit_rate,
)

if TYPE_CHECKING:
    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.platforms.slack.adapter import SlackAdapter

SEND_FAULTS = {
    Fault.RATE_LIMITED: limit_rate(3),
    Fault.SERVER_ERROR: BAD_GATEWAY,
    Fault.REFUSED: ApiFault(error="invalid_blocks"),
    Fault.CHAT_GONE: ApiFault(error="channel_not_found"),
    Fault.ANSWER_LOST: LOSE_ANSWER,
}


class SlackPlatform(ContractPlatform):
    """A thread of Ada's with the app, in the agent view."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED}
    secrets = (TOKEN, APP_TOKEN, SIGNING_SECRET)
    channel = DM

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.thread: str | None = server.say("New chat", channel=self.channel, user="U0PALAVER", sends_event=False)
        self.last_event: dict[str, Any] = {}

    @property
    def address(self) -> Address:
        return Address(Platform.SLACK, self.channel, self.thread)

    def make_adapter(self) -> SlackAdapter:
        return make_adapter_for(self.server)

    async def say(self, text: str) -> str:
        ts = self.server.say(text, channel=self.channel, thread_ts=self.thread)
        self.last_event = self.server.unacknowledged[next(reversed(self.server.unacknowledged))]["payload"]["event"]
        return ts

    async def say_with_file(self, name: str, data: bytes) -> str:
        return self.server.say("", channel=self.channel, thread_ts=self.thread, file=(name, data))

    async def repeat_updates(self) -> None:
        self.server.repeat(self.last_event)

    async def say_in_reverse(self, first: str, second: str) -> None:
        earlier = self.server.say(first, channel=self.channel, thread_ts=self.thread, sends_event=False)
        self.server.say(second, channel=self.channel, thread_ts=self.thread)
        self.server.push_message(self.channel, earlier)

    async def list_messages(self) -> list[ShownMessage]:
        return [
            ShownMessage(each["ts"], get_shown_text(each), tuple(file["name"] for file in each.get("files", [])))
            for each in self.server.list_own_messages(self.channel)
            if each["ts"] != self.thread
        ]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.is_revoked = True
        elif fault is Fault.UNREACHABLE:
            await self.server.stop()
        elif fault is Fault.CONNECTION_CUT:
            await self.server.cut_sockets()
        else:
            self.server.fail("chat.postMessage", SEND_FAULTS[fault])

    async def edit_as_person(self, message_id: str, text: str) -> None:
        self.server.edit(self.channel, message_id, text)

    async def delete_as_person(self, message_id: str) -> None:
        self.server.delete(self.channel, message_id)

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        self.server.react(self.channel, message_id, {"👍": "+1"}[emoji])

    async def press_button(self, message_id: str, label: str) -> None:
        self.server.press(self.channel, message_id, label)

    async def is_typing(self) -> bool:
        return any(self.server.statuses.values())


class TestSlackContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: SlackServer) -> SlackPlatform:
        return SlackPlatform(server)


class HttpPlatform(SlackPlatform):
    """A thread under a message of ours in a channel, whose events Slack sends to our webhook until they succeed."""

    faults = frozenset(Fault) - {Fault.CHAT_MOVED, Fault.CONNECTION_CUT}
    channel = CHANNEL
    is_called = True

    def make_adapter(self) -> SlackAdapter:
        return make_adapter_for(self.server, mode="http", app_token=None)

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:
        async def call(headers: dict[str, str], body: bytes) -> int:
            request = WebhookRequest(method="POST", headers=headers, query={}, body=body)
            return (await adapter.handle_webhook(link, request)).status

        self.server.http = call
        self.server._changed.set()

    def note_stop(self) -> None:
        self.server.http = None


class TestSlackHttpContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: SlackServer) -> HttpPlatform:
        return HttpPlatform(server)
