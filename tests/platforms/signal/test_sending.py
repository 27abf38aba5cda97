"""What is sent through signal-cli, and what its failures mean."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.signal import receiver as state_module
from palaver.platforms.signal.client import RequestNotSent, hide_people, make_exit_error
from palaver.platforms.signal.inbound import MessageRef
from palaver.platforms.signal.receiver import AdapterState
from palaver.sessions.delivery import Address
from palaver.testing import MemoryInbox
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import connect_adapter

from . import signal_server as faults
from .conftest import ADDRESS, make_outgoing
from .signal_server import ADA, GROUP, OWN_ACI, SignalServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from .conftest import MakeAdapter


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (faults.RATE_LIMITED, SendRetryable, "more slowly"),
        (
            faults.CAPTCHA,
            SendRetryable,
            "/signal-cli --config /.*/config submitRateLimitChallenge --challenge challenge-1",
        ),
        (faults.UNTRUSTED, SendRejected, "safety number .*/signal-cli --config /.*/config trust"),
        (faults.UNREGISTERED, TargetUnreachable, "no longer on Signal"),
        (faults.NO_GROUP, TargetUnreachable, "no longer in this group"),
        (faults.NETWORK_FAILURE, SendUncertain, "connection to Signal broke"),
        (faults.INTERNAL_ERROR, SendUncertain, "error -32603"),
        (faults.Fault(-1, "Attachment not found +491701234567"), SendRejected, "Attachment not found …"),
        (faults.Fault(-32603, "chat.signal.org (UnknownHostException)"), SendRetryable, "can't be reached"),
        (faults.CRASH, SendUncertain, "has ended before it answered"),
    ],
)
async def test_the_failure_of_a_message_is_told_with_its_fix(
    server: SignalServer, make_adapter: MakeAdapter, fault: faults.Fault, error: type[Exception], words: str
) -> None:
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        server.fail("send", fault)
        with pytest.raises(error, match=words) as raised:
            await adapter.send(make_outgoing(adapter))
    if fault in (faults.RATE_LIMITED, faults.CAPTCHA):
        assert isinstance(raised.value, SendRetryable)
        is_captcha = fault is faults.CAPTCHA
        assert raised.value.whole_account is not is_captcha
        assert raised.value.retry_after == (3600 if is_captcha else 3)


def test_why_signal_cli_has_ended_is_told_without_numbers() -> None:
    error = make_exit_error("WARN x\nError while checking account +491701234567: timeout\n", 3)
    assert isinstance(error, ConnectionLost)
    assert str(error) == "signal-cli has ended (exit code 3): Error while checking account …: timeout"
    assert isinstance(make_exit_error("User +491701234567 is not registered.", 1), AccountRefused)
    assert "signal-cli register" in str(make_exit_error("[403] Authorization failed!", 3, is_primary=True))
    assert "no longer accepts this version" in str(make_exit_error("[499] (DeprecatedVersionException)", 3))
    assert hide_people(f"to {ADA} and {GROUP}") == "to … and …"


async def test_a_reply_quotes_the_question_and_goes_to_its_group(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with connect_adapter(adapter, inbox):
        question = server.push_text("What is **this**?", group=GROUP)
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        group = Address(Platform.SIGNAL, GROUP)
        await adapter.send(make_outgoing(adapter, "An _answer_", address=group, reply_to=question))
        await adapter.react(group, question, "👀")
        await adapter.react(group, question, "")
        await adapter.show_typing(group)
        await adapter.stop_typing(group)
    [sent] = server.list_requests("send")
    assert (sent["groupId"], sent["message"], sent["textStyles"]) == (GROUP, "An answer", ["3:6:ITALIC"])
    assert (sent["quoteAuthor"], sent["quoteMessage"]) == (ADA, "What is **this**?")
    assert [each["remove"] for each in server.list_requests("sendReaction")] == [False, True]
    assert [each.get("stop", False) for each in server.list_requests("sendTyping")] == [False, True]


async def test_a_file_is_sent_under_a_safe_name_and_not_kept(server: SignalServer, make_adapter: MakeAdapter) -> None:
    async def read() -> AsyncIterator[bytes]:
        yield b"abc"

    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        file = OutgoingFile("../etc/pass:wd\n.txt", "text/plain", 3, read)
        await adapter.send(make_outgoing(adapter, "", file=file))
    [message] = server.messages
    assert message.files == {"etcpasswd.txt": b"abc"}
    assert list((server.folder / "account" / "outgoing").iterdir()) == []


async def test_a_long_file_name_keeps_its_ending(server: SignalServer, make_adapter: MakeAdapter) -> None:
    async def read() -> AsyncIterator[bytes]:
        yield b"abc"

    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        await adapter.send(make_outgoing(adapter, "", file=OutgoingFile("報" * 120 + ".txt", "text/plain", 3, read)))
    [name] = server.messages[0].files
    assert name.startswith("報")
    assert name.endswith("報.txt")


async def test_a_request_that_could_not_be_written_never_arrives(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        process = adapter._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(RequestNotSent, match="takes no requests"):
            await process.request("send", {"recipient": [ADA], "message": "x" * 2_000_000}, seconds=0.1)
        os.kill(process.pid, signal.SIGCONT)
        with pytest.raises(RequestNotSent, match="not running"):
            await process.request("version", {}, seconds=TIMEOUT_SECONDS)  # behind it, the first one would arrive
    assert server.list_requests("send") == []


async def test_a_refused_message_does_not_stop_an_account_that_signal_accepts(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    adapter, inbox = make_adapter(), MemoryInbox()
    async with connect_adapter(adapter, inbox):
        server.fail("send", faults.Fault(-3, "Failed to send message: [403] Authorization failed!"))
        with pytest.raises(SendRetryable, match="refuses"):
            await adapter.send(make_outgoing(adapter))
        assert len(server.list_requests("listDevices")) == 2
        server.push_text("Still there")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        await adapter.send(make_outgoing(adapter, "Again"))
    assert server.list_texts() == ["Again"]


async def test_edits_name_the_last_one_and_leave_one_for_the_end(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter()
    async with connect_adapter(adapter, MemoryInbox()):
        message_id = await adapter.send(make_outgoing(adapter, "0"))
        for number in range(1, 15):
            await adapter.edit(message_id, make_outgoing(adapter, str(number), is_preview=True))
        assert server.list_texts() == ["8"]
    adapter = make_adapter()  # it remembers what was edited before a restart
    async with connect_adapter(adapter, MemoryInbox()):
        for _ in range(2):
            await adapter.edit(message_id, make_outgoing(adapter, "Ready"))
        with pytest.raises(SendRejected, match="10 edits"):
            await adapter.edit(message_id, make_outgoing(adapter, "Too often"))
    assert server.list_texts() == ["Ready"]


def test_the_memory_of_edits_is_bounded_and_survives_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_REVISIONS", 5)
    path = tmp_path / "state.json"
    state = AdapterState(path)
    for number in range(7):
        state.record_revision(MessageRef(ADA, number * 10), MessageRef(ADA, number * 10 + 1))
    assert state.find_original(MessageRef(ADA, 1)) == MessageRef(ADA, 1)  # forgotten
    again = AdapterState(path)
    assert again.find_original(MessageRef(ADA, 61)) == MessageRef(ADA, 60)
    assert again.list_revisions(MessageRef(ADA, 60)) == [MessageRef(ADA, 61)]
    for damage in ("", "[]", '{"revisions": [[1]], "connected_at": "x"}'):
        path.write_text(damage)
        assert AdapterState(path).connected_at is None


def test_edits_are_remembered_from_several_threads(tmp_path: Path) -> None:
    state = AdapterState(tmp_path / "state.json")

    def note(number: int) -> None:
        state.record_revision(MessageRef(ADA, number * 10), MessageRef(ADA, number * 10 + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(note, range(200)))
    again = AdapterState(tmp_path / "state.json")
    for time in range(0, 2000, 10):
        assert again.list_revisions(MessageRef(ADA, time)) == [MessageRef(ADA, time + 1)]


async def test_an_answer_that_comes_late_confirms_the_message(server: SignalServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with connect_adapter(make_adapter(), inbox):
        late: dict[str, Any] = {"jsonrpc": "2.0", "id": "d_7.1#99.4", "result": {"timestamp": 123, "results": []}}
        server.push_answer(late)
        await inbox.wait_until(lambda: inbox.confirmed, TIMEOUT_SECONDS)
    assert inbox.confirmed == {"d_7.1": f"{OWN_ACI}:123"}


async def test_nothing_is_sent_while_it_is_not_connected(server: SignalServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter()
    with pytest.raises(SendRetryable, match="not connected"):
        await adapter.send(make_outgoing(adapter))
    with pytest.raises(SendRetryable):
        await adapter.show_typing(ADDRESS)
    assert server.requests == []
