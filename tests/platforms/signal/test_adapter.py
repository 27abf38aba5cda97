"""The adapter runs signal-cli: it reads everything once, notices what goes wrong, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, InvalidInput
from palaver.core.source import Platform
from palaver.platforms.signal import adapter as adapter_module, client as client_module
from palaver.platforms.signal.client import SignalProcess
from palaver.platforms.signal.receiver import MAX_REMEMBERED, MAX_REMEMBERED_CHARS, Memory, Spool
from palaver.sessions.delivery import Address
from palaver.sessions.inbound import MessageEdited
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import connect_adapter

from . import signal_server as faults
from .conftest import QUICK_POLLS, make_adapter_for, make_outgoing
from .signal_server import ADA, OWN_ACI, OWN_NUMBER, SignalServer

if TYPE_CHECKING:
    from .conftest import MakeAdapter


async def test_garbage_is_passed_over_and_not_logged(
    server: SignalServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = MemoryInbox()
    for line in (
        "secret garbage",
        "[1]",
        '{"envelope":{"sourceUuid":1,"dataMessage":7}}',
        '{"envelope":{"sourceUuid":"x","dataMessage":{"timestamp":1e400,"message":"secret"}}}',
        '{"envelope":{"sourceUuid":"x","dataMessage":{"timestamp":9223372036854775807,"message":"secret"}}}',
    ):
        server.push_line(line)
    event = {"exception": {"type": "UntrustedIdentityException", "message": "secret"}}
    server.push(server.make_envelope(ADA, 5), **event)
    server.push_text("Hello")
    with caplog.at_level(logging.INFO):
        async with connect_adapter(make_adapter(), inbox):
            await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
    assert inbox.texts == ["Hello"]
    events = {record.message for record in caplog.records}
    assert {"signal_line_unreadable", "signal_event_unreadable", "signal_sender_untrusted"} <= events
    assert "secret" not in "".join(str(vars(record)) for record in caplog.records)


async def test_a_torn_line_waits_and_one_of_a_dead_process_is_sent_again(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox) as task:
        line = json.dumps({"envelope": {}, "account": OWN_NUMBER})
        server.tear_line(line[:20])
        server.push_line(line[20:])
        server.push_text("After a torn line")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        server.tear_line('{"envelope":{"sour')
        await server.end_programs()
        with pytest.raises(ConnectionLost, match="signal-cli has ended"):
            await task
    async with connect_adapter(make_adapter(), inbox):
        server.push_text("After the crash")
        await inbox.wait_until(lambda: len(inbox.messages) == 2, TIMEOUT_SECONDS)
    assert inbox.texts == ["After a torn line", "After the crash"]


async def test_the_spool_is_deleted_when_it_is_stored(server: SignalServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    spool = Spool(server.folder / "account" / "spool")
    for number in range(3):
        async with connect_adapter(make_adapter(), inbox):
            server.push_text(f"Number {number}")
            await inbox.wait_until(lambda: len(inbox.messages) > number, TIMEOUT_SECONDS)  # noqa: B023
    assert spool.list_numbers() == [3]


async def test_a_long_spool_is_replaced_without_a_gap(
    server: SignalServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_module, "MAX_SPOOL_BYTES", 2000)
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        for number in range(12):
            server.push_text(f"Number {number}")
        await inbox.wait_until(lambda: len(inbox.messages) == 12, TIMEOUT_SECONDS)
        await server.wait_until(lambda: sum("daemon" in each for each in server.starts) >= 2)
        server.push_text("And on")
        await inbox.wait_until(lambda: len(inbox.messages) == 13, TIMEOUT_SECONDS)
    assert inbox.texts == [*(f"Number {number}" for number in range(12)), "And on"]
    assert inbox.duplicate_count == 0
    assert len(Spool(server.folder / "account" / "spool").list_numbers()) == 1


async def test_starts_that_fail_leave_no_files(server: SignalServer, make_adapter: MakeAdapter) -> None:
    server.start_error = ("Error while checking account: timeout", 3)
    for _ in range(3):
        with pytest.raises(ConnectionLost, match="timeout"):
            await make_adapter().run(MemoryLink(MemoryInbox()))
    assert len(Spool(server.folder / "account" / "spool").list_numbers()) == 1


def test_what_is_remembered_is_bounded() -> None:
    memory = Memory()
    for number in range(MAX_REMEMBERED + 5):
        memory.remember(str(number), "x" * 100_000)
    assert list(memory)[:1] == ["5"]
    assert sum(map(len, memory.values())) <= MAX_REMEMBERED * MAX_REMEMBERED_CHARS


async def test_edits_of_edits_belong_to_the_first_message(server: SignalServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        first = server.push_text("One")
        target = int(first.rpartition(":")[2])
        for text in ("Two", "Three"):
            data = server.make_data(text)
            edit = {"targetSentTimestamp": target, "dataMessage": data}
            server.push(server.make_envelope(ADA, data["timestamp"], editMessage=edit))
            target = data["timestamp"]  # the apps name the last edit
        await inbox.wait_until(lambda: len(inbox.updates) == 3, TIMEOUT_SECONDS)
    edits = [each for each in inbox.updates if isinstance(each, MessageEdited)]
    assert [(each.message_id, each.content) for each in edits] == [(first, "Two"), (first, "Three")]


async def test_only_notes_to_self_are_answered_on_a_linked_device_by_default(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter(chats=None)
    async with connect_adapter(adapter, inbox):
        server.push_text("From Ada")
        server.push_sync("To Ada", ADA)
        server.push_sync("Remember this")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        note = Address(Platform.SIGNAL, OWN_ACI)
        message_id = await adapter.send(make_outgoing(adapter, "I will", address=note))
        timestamp = int(message_id.rpartition(":")[2])
        server.push_sync("I will", timestamp=timestamp)  # another device of the owner reports it
        await adapter.show_typing(note)  # not shown: no other person is there
        await adapter.delete(note, message_id)
        server.push_sync("And this")
        await inbox.wait_until(lambda: len(inbox.messages) == 2, TIMEOUT_SECONDS)
    assert inbox.texts == ["Remember this", "And this"]
    [sent] = server.list_requests("send")
    assert (sent["recipient"], sent["notifySelf"]) == ([OWN_NUMBER], True)
    assert server.list_requests("remoteDelete")[0]["noteToSelf"] is True
    assert server.list_requests("sendTyping") == []


async def test_a_registered_number_answers_everybody_by_default(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    server.store_account(device_id=1)
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(chats=None), inbox):
        server.push_text("From Ada")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)


async def test_a_file_that_was_not_stored_is_told(server: SignalServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    good = server.add_file("good.txt", b"good")
    async with connect_adapter(make_adapter(), inbox):
        server.push_text(None, attachments=[good | {"id": "../../data/accounts.json"}, good | {"id": "gone"}, good])
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        *bad, last = inbox.messages[0].files
        for file in bad:
            with pytest.raises(InvalidInput, match="has not stored"):
                [chunk async for chunk in file.open()]
        assert [chunk async for chunk in last.open()] == [b"good"]


async def test_old_files_of_signal_cli_are_deleted_from_our_own_folder(server: SignalServer) -> None:
    adapter = make_adapter_for(server, config_folder=None)
    folder = server.folder / "account" / "signal-cli" / "attachments"
    folder.mkdir(parents=True)
    for name, days in (("old", 8), ("new", 6)):
        (folder / name).write_bytes(b"x")
        time = (datetime.now(UTC) - timedelta(days=days)).timestamp()
        os.utime(folder / name, (time, time))
    spool = Spool(server.folder / "account" / "spool")
    descriptor = spool.create_file()
    os.write(descriptor, b"a message with a file\n")
    os.close(descriptor)
    adapter._prune_attachments(spool)
    assert sorted(path.name for path in folder.iterdir()) == ["new", "old"]  # the message is not stored yet
    assert spool.read_lines()
    adapter._prune_attachments(spool)
    assert [path.name for path in folder.iterdir()] == ["new"]


async def test_a_device_that_is_unlinked_meanwhile_is_refused(server: SignalServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()) as task:
        server.fail("listDevices", faults.UNAUTHORIZED)
        with pytest.raises(AccountRefused, match="scan the new code"):
            await adapter.probe()
        with pytest.raises(AccountRefused, match="scan the new code"):
            await asyncio.wait_for(task, TIMEOUT_SECONDS)


async def test_a_signal_cli_that_closes_its_connection_before_it_ends_says_why(
    server: SignalServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that was unlinked is not reported as a lost connection."""
    monkeypatch.setattr(client_module, "END_SECONDS", TIMEOUT_SECONDS)
    server.fail("listDevices", faults.HANG)
    running = asyncio.create_task(make_adapter().run(MemoryLink(MemoryInbox())))
    await server.wait_until(lambda: server.list_requests("listDevices"))
    server.store_account(is_registered=False)
    server.disconnect()
    await asyncio.wait({running}, timeout=0.3)
    await server.end_programs(code=1)
    with pytest.raises(AccountRefused, match="scan the new code"):
        await asyncio.wait_for(running, TIMEOUT_SECONDS)


async def test_a_signal_cli_that_hangs_is_ended(server: SignalServer, make_adapter: MakeAdapter) -> None:
    server.fail("listDevices", faults.HANG)
    adapter = make_adapter(timing=replace(QUICK_POLLS, first_answer=0.05))
    with pytest.raises(ConnectionLost, match="did not answer"):
        await asyncio.wait_for(adapter.run(MemoryLink(MemoryInbox())), TIMEOUT_SECONDS)


async def test_a_signal_cli_that_does_not_start_is_ended(server: SignalServer, make_adapter: MakeAdapter) -> None:
    server.is_locked = True
    adapter = make_adapter(timing=replace(QUICK_POLLS, start=0.05))
    with pytest.raises(ConnectionLost, match="did not start"):
        await asyncio.wait_for(adapter.run(MemoryLink(MemoryInbox())), TIMEOUT_SECONDS)
    await server.wait_until(lambda: not server.has_programs)


async def test_another_program_that_uses_the_account_is_named(server: SignalServer) -> None:
    server.is_locked = True
    arguments = [str(server.program), "--config", str(server.config_folder), "--output", "json", "-a", OWN_NUMBER]
    process = await SignalProcess.start(arguments, os.open(os.devnull, os.O_WRONLY), server.folder / "pid")
    try:
        await wait_until(lambda: process._error_lines)
        with pytest.raises(ConnectionLost, match="in use by another instance"):
            await process.connect(0, 0.005)
    finally:
        await process.stop()


async def test_a_server_that_cannot_be_reached_is_no_connection(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    server.fail("listDevices", *[faults.Fault(-3, "Failed to get linked devices: timeout")] * 2)
    async with connect_adapter(make_adapter(timing=replace(QUICK_POLLS, ping=0.05)), inbox):
        await server.wait_until(lambda: len(server.list_requests("version")) > 1)
    assert len(server.list_requests("listDevices")) == 3
    assert inbox.connected_count >= 2


async def test_nothing_is_received_while_the_disk_is_full(
    server: SignalServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(timing=replace(QUICK_POLLS, ping=0.05)), inbox) as task:
        monkeypatch.setattr(adapter_module, "MIN_FREE_BYTES", 10**18)
        with pytest.raises(ConnectionLost, match="disk is almost full"):
            await asyncio.wait_for(task, TIMEOUT_SECONDS)
    server.push_text("Kept by Signal")
    with pytest.raises(ConnectionLost, match="disk is almost full"):
        await make_adapter().run(MemoryLink(inbox))
    monkeypatch.setattr(adapter_module, "MIN_FREE_BYTES", 0)
    async with connect_adapter(make_adapter(), inbox):
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)


async def test_a_connection_test_asks_signal_itself(server: SignalServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        server.fail("listDevices", faults.Fault(-3, "Failed to get linked devices: timeout"))
        with pytest.raises(ConnectionLost, match="can't be reached"):
            await adapter.probe()
        await adapter.probe()


async def test_no_signal_cli_is_left_running(
    server: SignalServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "END_SECONDS", 0.2)
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        assert adapter._process is not None
        pid = adapter._process.pid
        os.kill(pid, signal.SIGSTOP)  # it reads neither the end of its input nor a signal, except for SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_stop_that_is_canceled_is_finished_when_the_adapter_is_closed(
    server: SignalServer, make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "END_SECONDS", 0.2)
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()) as task:
        assert adapter._process is not None
        process = adapter._process
        os.kill(process.pid, signal.SIGSTOP)  # stopping it takes a while
        task.cancel()
        while process._stopping is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    await adapter.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert not process._socket_folder.exists()


async def test_a_signal_cli_of_a_dead_process_is_ended_first(server: SignalServer, make_adapter: MakeAdapter) -> None:
    folder = server.folder / "account"
    descriptor = Spool(folder / "spool").create_file()
    leftover = await asyncio.create_subprocess_exec("sleep", "60", stdout=descriptor)
    os.close(descriptor)
    (folder / "signal-cli.pid").write_text(str(leftover.pid))
    async with connect_adapter(make_adapter(timing=replace(QUICK_POLLS, leftover=0)), MemoryInbox()):
        assert await asyncio.wait_for(leftover.wait(), TIMEOUT_SECONDS) == -signal.SIGKILL


async def test_only_the_process_that_writes_into_the_spool_is_killed(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter(timing=replace(QUICK_POLLS, leftover=0, leftover_kill=0))
    folder = server.folder / "account"
    descriptor = Spool(folder / "spool").create_file()
    stranger = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        (folder / "signal-cli.pid").write_text(str(stranger.pid))  # the number was given to another process
        with pytest.raises(ConnectionLost, match="still writes"):
            await asyncio.wait_for(adapter.run(MemoryLink(MemoryInbox())), TIMEOUT_SECONDS)
        assert stranger.returncode is None
    finally:
        os.close(descriptor)
        stranger.kill()
        assert await stranger.wait() == -signal.SIGKILL
