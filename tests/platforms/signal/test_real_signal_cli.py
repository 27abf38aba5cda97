"""The real signal-cli, with Signal's own mock server: linking, both directions, and nothing lost when processes die.

What it prints and answers is compared with `signal_cli_record.json`, by which `test_stand_in.py` checks the stand-in.
`RECORD_SIGNAL_CLI=1 pytest --soak` with this file writes the record again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused
from palaver.core.source import ChatType, Platform
from palaver.delivery.adapter import OutgoingMessage
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.signal import client
from palaver.platforms.signal.adapter import SignalAdapter
from palaver.platforms.signal.inbound import EventParser, build_target
from palaver.platforms.signal.linking import read_account
from palaver.platforms.signal.manifest import SignalSettings
from palaver.platforms.signal.receiver import Spool
from palaver.sessions.delivery import Address
from palaver.testing import MemoryInbox, MemoryLink

from .real_signal import RealSignal
from .signal_cli_record import SignalCliRecord, describe_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.soak  # Java takes half a minute; `test_stand_in.py` checks the stand-in by what was recorded

TIMEOUT_SECONDS = 120.0  # Java on a busy machine
# Receives like a gateway that hangs before it has stored anything, until it is killed.
HANGING_GATEWAY = """
import asyncio, sys
from pathlib import Path
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.signal.adapter import SignalAdapter
from palaver.platforms.signal import client, receiver
from palaver.platforms.signal.manifest import SignalSettings

# signal-cli does not even get the chance to end properly.
client.GUARD_SCRIPT = client.GUARD_SCRIPT.replace("sleep 10", "sleep 1").replace("-TERM", "-KILL")

class Link:
    async def load_cursor(self, name=""): return sys.argv[3] or None
    async def save_cursor(self, cursor): pass
    def report_connected(self): print("connected", flush=True)
    async def accept(self, update, *, cursor=None):
        await asyncio.Event().wait()

place = AccountPlace(account="", folder=Path(sys.argv[2]), webhook_url=None)
asyncio.run(SignalAdapter(SignalSettings(program=sys.argv[1], chats="all"), place).run(Link()))
"""


class Account:
    """An account that outlives its adapters."""

    def __init__(self, world: RealSignal) -> None:
        self.world = world
        self.folder = world.folder / "account"
        self.inbox = MemoryInbox()

    def make_adapter(self) -> SignalAdapter:
        settings = SignalSettings(program=str(self.world.program), chats="all")
        return SignalAdapter(settings, AccountPlace(account="", folder=self.folder, webhook_url=None))

    @asynccontextmanager
    async def run(self) -> AsyncIterator[tuple[SignalAdapter, asyncio.Task[None]]]:
        adapter = self.make_adapter()
        running = asyncio.create_task(adapter.run(MemoryLink(self.inbox)))
        try:
            yield adapter, running
        finally:
            running.cancel()
            await asyncio.wait({running})
            await adapter.close()

    async def wait(self, condition: Callable[[], object], running: asyncio.Task[None]) -> None:
        """Wait for what happens in the inbox, unless the adapter ends."""
        waiting = asyncio.create_task(self.inbox.wait_until(condition, TIMEOUT_SECONDS))
        await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            await running
        await waiting

    async def wait_for_text(self, text: str, running: asyncio.Task[None]) -> None:
        await self.wait(lambda: text in self.inbox.texts, running)

    def make_message(self, adapter: SignalAdapter, markdown: str, person: str, **fields: Any) -> OutgoingMessage:
        address = Address(Platform.SIGNAL, person)
        return OutgoingMessage(key="d_1.1", address=address, body=adapter.render(markdown)[0], **fields)


def record_exchange(monkeypatch: pytest.MonkeyPatch) -> SignalCliRecord:
    """Record what signal-cli prints and answers from now on."""
    record = SignalCliRecord()
    original_request = client.SignalProcess.request

    original_parse = EventParser.parse

    def parse(self: EventParser, event: Any) -> Any:
        record.add_event(event)
        return original_parse(self, event)

    async def request(self: client.SignalProcess, method: str, parameters: Any, **options: Any) -> Any:
        result = await original_request(self, method, parameters, **options)
        record.add_answer(method, parameters, result)
        return result

    monkeypatch.setattr(EventParser, "parse", parse)
    monkeypatch.setattr(client.SignalProcess, "request", request)
    return record


async def test_linking_both_directions_deaths_and_unlinking(monkeypatch: pytest.MonkeyPatch) -> None:
    """One story, because each start of Java takes seconds."""
    record = record_exchange(monkeypatch)
    monkeypatch.setattr(client, "END_SECONDS", TIMEOUT_SECONDS)
    monkeypatch.setattr(client, "VERSION_SECONDS", TIMEOUT_SECONDS)
    world = RealSignal()
    try:
        await world.start()
        account = Account(world)
        async with account.run() as (adapter, running):
            await link(account, running)
            await check_messages(account, adapter, running)
            await check_notes(account, adapter, running)
            await check_a_group(account, running)
            saying = world.begin("say", text="While it stops")
        await check_a_killed_gateway(account)
        async with account.run() as (_, running):
            await account.wait_for_text("While nothing runs", running)
            await saying
            await world.call("unlink")
            with pytest.raises(AccountRefused, match=r"Connect now on the page, .* scan the new code"):
                await asyncio.wait_for(running, TIMEOUT_SECONDS)
        stored = read_account(account.folder / "signal-cli", None)
        assert stored is not None
        assert not stored.is_registered  # so the next start shows a code
    finally:
        await world.stop()
    assert account.inbox.texts == [
        *("Hello 👋", "Remember the milk", "hello group", "While it stops"),
        *("Into the spool", "While nothing runs"),
    ]
    assert account.inbox.duplicate_count == 0
    if "RECORD_SIGNAL_CLI" in os.environ:
        record.save()
    assert describe_record(record) == describe_record(SignalCliRecord.load())


async def link(account: Account, running: asyncio.Task[None]) -> None:
    """Link by the code that is shown."""
    await account.wait(lambda: account.inbox.linking_prompts, running)
    await account.world.call("scan", url=account.inbox.linking_prompts[0].qr_text)
    await account.wait(lambda: account.inbox.connected_count, running)


async def check_messages(account: Account, adapter: SignalAdapter, running: asyncio.Task[None]) -> None:
    world, inbox = account.world, account.inbox
    info = await adapter.probe()
    assert (info.user_id, info.name) == (world.owner["aci"], world.owner["number"])
    assert info.details == ("signal-cli 0.13.19", "Linked device 2")

    sent = await world.call("say", text="Hello 👋")
    await account.wait_for_text("Hello 👋", running)
    [question] = inbox.messages
    assert question.source.user_id == world.alice["aci"]
    assert question.message_id == f"{world.alice['aci']}:{sent['timestamp']}"

    arriving = world.begin("next")
    answer = account.make_message(adapter, "Good **morning**", world.alice["aci"], reply_to=question.message_id)
    message_id = await adapter.send(answer)
    shown = await asyncio.wait_for(arriving, TIMEOUT_SECONDS)
    assert (shown["body"], shown["source"]) == ("Good morning", world.owner["aci"])
    assert message_id == f"{world.owner['aci']}:{shown['timestamp']}"
    assert shown["styles"] == [{"start": 5, "length": 7, "style": 1}]
    assert shown["quote"] == {"id": sent["timestamp"], "text": "Hello 👋"}

    for text in ("Good evening", "Good night"):
        arriving = world.begin("nextEdit")
        await adapter.edit(message_id, account.make_message(adapter, text, world.alice["aci"]))
        assert (await asyncio.wait_for(arriving, TIMEOUT_SECONDS))["body"] == text
    await adapter.react(answer.address, str(question.message_id), "👀")


async def check_notes(account: Account, adapter: SignalAdapter, running: asyncio.Task[None]) -> None:
    world = account.world
    await world.call("note", text="Remember the milk")
    await account.wait_for_text("Remember the milk", running)
    assert account.inbox.messages[-1].source.chat_id == world.owner["aci"]
    arriving = world.begin("nextNote")
    await adapter.send(account.make_message(adapter, "I will", world.owner["aci"]))
    assert (await asyncio.wait_for(arriving, TIMEOUT_SECONDS))["body"] == "I will"


async def check_a_group(account: Account, running: asyncio.Task[None]) -> None:
    """Receive in a group. The mock does not give signal-cli what it needs to send there."""
    await account.world.call("sayInGroup", text="\ufffc hello group")
    await account.wait_for_text("hello group", running)
    message = account.inbox.messages[-1]
    assert (message.source.chat_type, message.is_addressed) == (ChatType.GROUP, True)
    assert build_target(Address.from_source(message.source)) == {"groupId": message.source.chat_id}


async def check_a_killed_gateway(account: Account) -> None:
    """Kill a gateway after it has received a message, and before it has stored it."""
    cursor = account.inbox.cursors.get("", "")
    arguments = [sys.executable, "-c", HANGING_GATEWAY, str(account.world.program), str(account.folder), cursor]
    gateway = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    spool = Spool(account.folder / "spool")
    try:
        assert gateway.stdout is not None
        async with asyncio.timeout(TIMEOUT_SECONDS):
            assert await gateway.stdout.readline() == b"connected\n"
            await account.world.call("say", text="Into the spool")
            while not any(b"Into the spool" in line.content for line in spool.read_lines()):  # noqa: ASYNC110  (another process)
                await asyncio.sleep(0.05)
    finally:
        gateway.kill()
        await gateway.wait()
    account.world.begin("say", text="While nothing runs")  # sent when signal-cli has received it
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while any(map(spool.has_writer, spool.list_numbers())):  # noqa: ASYNC110  (another process)
            await asyncio.sleep(0.05)  # the guard kills signal-cli
