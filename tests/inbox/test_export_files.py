"""`/export` in a chat: the reply carries a file where the platform takes files, and says how to get it elsewhere."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.engines.base import Read
from palaver.delivery.model import Capabilities
from palaver.inbox import files as export_files
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.sessions.inbound import Outcome
from palaver.testing import set_crash_hook
from support.gateway import make_member, wait_until
from support.platform_gateway import GatewayStarter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.delivery.adapter import OutgoingMessage
    from palaver.gateway.gateway import Gateway


class FileChat:
    """A chat on a platform that takes files, whose files are kept."""

    def __init__(self, max_file_bytes: int) -> None:
        self.files: list[tuple[str, bytes]] = []
        self.loopback = LoopbackAdapter(self._send, capabilities=Capabilities(max_file_bytes=max_file_bytes))

    async def _send(self, message: OutgoingMessage) -> str | None:
        if message.file is not None:
            content = b"".join([chunk async for chunk in message.file.read()])
            self.files.append((message.file.name, content))
        return None

    async def start(self, starter: GatewayStarter) -> Gateway:
        gateway, _ = await starter.start_with(LOOPBACK, lambda: self.loopback)
        await make_member(gateway.store, self.loopback.get_source())
        return gateway

    async def talk(self, text: str = "hello <b>you</b>") -> None:
        await self.loopback.say(text, message_id="first")
        await wait_until(lambda: self.loopback.sent)

    async def export(self, command: str, message_id: str = "export") -> str:
        """Send the command; return the text of the reply."""
        before = len(self.loopback.sent)
        receipt = await self.loopback.say(command, message_id=message_id)
        assert receipt.outcome is Outcome.COMMAND
        await wait_until(lambda: len(self.loopback.sent) > before)
        return self.loopback.sent[before].body


@pytest.fixture
async def starter(tmp_path: Path) -> AsyncIterator[GatewayStarter]:
    async with AsyncExitStack() as stack:
        yield GatewayStarter(tmp_path, stack)


def count_files(gateway: Gateway) -> int:
    rows = gateway.store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM attachment")))
    return len(rows)


@pytest.mark.parametrize(
    ("command", "suffix", "expected"),
    [
        ("/export", ".md", "## agent"),
        ("/export html", ".html", "hello &lt;b&gt;you&lt;/b&gt;"),
        ("/export jsonl", ".jsonl", '"palaver.export/1"'),
        ("/export json", ".jsonl", '"palaver.export/1"'),
    ],
)
async def test_the_reply_carries_the_file(starter: GatewayStarter, command: str, suffix: str, expected: str) -> None:
    chat = FileChat(1_000_000)
    await chat.start(starter)
    await chat.talk()
    reply = await chat.export(command)
    assert reply.startswith("Exported as ")
    name, content = await wait_until(lambda: chat.files and chat.files[0])
    assert name.endswith(suffix)
    assert expected in content.decode()
    assert "You said: hello" in content.decode()


async def test_a_file_that_is_too_large_for_the_platform_is_not_sent(starter: GatewayStarter) -> None:
    chat = FileChat(2_000)
    gateway = await chat.start(starter)
    await chat.talk("x" * 3_000)
    reply = await chat.export("/export html")
    assert "too large to send here" in reply
    assert "sessions export" in reply
    assert chat.files == []
    assert count_files(gateway) == 0


async def test_a_platform_without_files_gets_the_text(starter: GatewayStarter) -> None:
    chat = FileChat(0)
    await chat.start(starter)
    await chat.talk()
    assert "## agent" in await chat.export("/export")
    assert "HTML exports can't be sent to this chat" in await chat.export("/export html", "again")
    assert chat.files == []


async def test_an_export_that_takes_too_long_says_how_to_get_it(
    starter: GatewayStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_files, "MAX_EXPORT_SECONDS", -1.0)
    chat = FileChat(1_000_000)
    await chat.start(starter)
    await chat.talk()
    assert "Export it on the web page" in await chat.export("/export")


async def test_the_same_message_twice_sends_one_file(starter: GatewayStarter) -> None:
    chat = FileChat(1_000_000)
    await chat.start(starter)
    await chat.talk()
    await chat.export("/export")
    await wait_until(lambda: chat.files)
    again = await chat.loopback.say("/export", message_id="export")
    assert again.outcome is Outcome.DUPLICATE
    await chat.export("/status", "later")
    assert len(chat.files) == 1


async def test_a_crash_before_the_reply_is_stored_sends_one_file_in_the_end(starter: GatewayStarter) -> None:
    chat = FileChat(1_000_000)
    gateway = await chat.start(starter)
    await chat.talk()

    class Crash(BaseException):
        pass

    def crash(name: str) -> None:
        if name == "inbox.before_accept" and count_files(gateway):
            raise Crash

    set_crash_hook(crash)
    try:
        with pytest.raises(Crash):
            await chat.loopback.say("/export", message_id="export")
    finally:
        set_crash_hook(None)
    assert chat.files == []
    await chat.export("/export")
    await wait_until(lambda: chat.files)
    assert len(chat.files) == 1


async def test_a_jsonl_file_of_a_shared_conversation_has_no_accounts_of_the_others(starter: GatewayStarter) -> None:
    chat = FileChat(1_000_000)
    gateway, _ = await starter.start_with(LOOPBACK, lambda: chat.loopback)
    config = replace(gateway.store.config, group_sessions_per_user=False)
    gateway.store._config = config
    gateway.store.aio._config = config
    for user in ("ada", "bob"):
        await make_member(gateway.store, chat.loopback.get_source(user))
        await chat.loopback.say(f"{user} was here", user=user, chat="club", message_id=user)
    await wait_until(lambda: len(chat.loopback.sent) >= 2)
    receipt = await chat.loopback.say("/export jsonl", user="ada", chat="club", message_id="export")
    assert receipt.outcome is Outcome.COMMAND, receipt
    _, content = await wait_until(lambda: chat.files and chat.files[0])
    records: list[dict[str, Any]] = [json.loads(line) for line in content.decode().splitlines()]
    people = {record["name"]: record for record in records if record["type"] == "person"}
    assert {"Ada", "Bob"} <= people.keys()
    assert "accounts" in people["Ada"]
    assert "accounts" not in people["Bob"]
    assert "bob was here" in content.decode()
