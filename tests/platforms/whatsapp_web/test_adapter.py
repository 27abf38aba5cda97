"""One account with the real child process: linking, crashes, garbage, and what is lost or doubled (nothing)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.source import ChatType, Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.platforms.whatsapp_web import adapter as adapter_module
from palaver.sessions.delivery import Address
from palaver.sessions.inbound import MembersChanged, MessageReaction
from palaver.testing import MemoryInbox, MemoryLink
from palaver.testing.contract_platform import read_ten_bytes
from support.gateway import wait_until

from .conftest import ADDRESS, GROUP_ADDRESS, make_outgoing
from .whatsapp_server import ADA, ADA_LID, BEN, GROUP, LID, OWN, PHONE, SendFault, WhatsAppServer, make_media

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter

    from .conftest import MakeAdapter

SECONDS = 60.0


class Runner:
    """Runs adapters as the supervisor does, and keeps what they accept."""

    def __init__(self) -> None:
        self.inbox = MemoryInbox()
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, adapter: WhatsAppWebAdapter) -> asyncio.Task[None]:
        async def run() -> None:
            await adapter.probe()
            await adapter.run(MemoryLink(self.inbox))

        self.tasks.append(asyncio.create_task(run()))
        return self.tasks[-1]

    async def connect(self, adapter: WhatsAppWebAdapter) -> asyncio.Task[None]:
        before = self.inbox.connected_count
        task = self.start(adapter)
        await self.wait(lambda: self.inbox.connected_count > before or task.done())
        return task

    async def wait(self, condition: Callable[[], object]) -> None:
        await wait_until(condition, SECONDS)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    runner = Runner()
    yield runner
    await runner.stop()


async def fail(task: Awaitable[None]) -> Exception:
    """Return why an adapter has ended."""
    with pytest.raises(Exception) as failed:  # noqa: PT011  (the test looks at it)
        await asyncio.wait_for(task, SECONDS)
    return failed.value


# ---- linking -------------------------------------------------------------------------------------------------


async def test_an_account_is_linked_by_a_qr_code_that_changes(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    server.is_linked = False
    adapter = make_adapter(device_name="Home")
    runner.start(adapter)
    await runner.wait(lambda: runner.inbox.linking_prompts)
    server.tell(state="qr_code", code="2@second,key", seconds=20)
    await runner.wait(lambda: len(runner.inbox.linking_prompts) == 2)
    first, second = runner.inbox.linking_prompts
    assert (first.qr_text, second.qr_text, first.code) == ("2@first,key", "2@second,key", None)
    assert "Linked devices" in first.instructions
    assert first.expires_at is not None
    assert server.hellos[0]["device_name"] == "Home"
    with pytest.raises(SendRetryable):
        await adapter.send(make_outgoing())
    info = await adapter.probe()  # a test of the connection while it waits is no error
    assert (info.name, info.is_linked) == (None, False)
    server.connect()
    await runner.wait(lambda: runner.inbox.connected_count)
    info = await adapter.probe()
    assert (info.user_id, info.is_linked) == (PHONE, True)


async def test_with_a_phone_number_a_code_is_typed(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    server.is_linked = False
    runner.start(make_adapter(phone_number="+49 170 0000001"))
    await runner.wait(lambda: runner.inbox.linking_prompts)
    [prompt] = runner.inbox.linking_prompts
    assert (prompt.qr_text, prompt.code) == (None, "ABCD-EFGH")
    assert "Link with phone number instead" in prompt.instructions
    assert server.hellos[0]["phone_number"] == PHONE


async def test_codes_that_are_not_used_are_shown_again_and_then_given_up(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.whatsapp_web.adapter.MAX_LINKING_ROUNDS", 2)
    server.is_linked = False
    task = runner.start(make_adapter())
    prompts = runner.inbox.linking_prompts
    await runner.wait(lambda: len(prompts) == 1)
    server.tell(state="linking_ended")
    await runner.wait(lambda: len(prompts) == 2)
    server.tell(state="linking_ended")
    error = await fail(task)
    assert isinstance(error, AccountRefused)
    assert "Connect now" in str(error)


async def test_a_logged_out_account_is_linked_again_at_once(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, tmp_path: Path
) -> None:
    await runner.connect(make_adapter())
    assert server.hellos[0]["has_session"] is False
    server.is_linked = False
    server.tell(state="logged_out", reason="The link was ended on the phone.")
    await runner.wait(lambda: runner.inbox.linking_prompts)
    assert runner.inbox.linking_prompts[0].instructions.startswith("The link was ended on the phone. On your phone")
    assert server.hellos[1]["has_session"] is False
    assert (tmp_path / "account" / "session.logged-out.db").exists()
    server.connect()
    server.say("I am back")
    await runner.wait(lambda: runner.inbox.texts == ["I am back"])


async def test_links_that_end_again_and_again_are_not_made_for_ever(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    server.refusal = {"state": "logged_out", "reason": "WhatsApp has locked the account."}
    error = await fail(runner.start(make_adapter()))
    assert isinstance(error, ConnectionLost)
    assert "WhatsApp has locked the account." in str(error)


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ({"state": "replaced"}, AccountRefused, "Another program"),
        ({"state": "outdated"}, AccountRefused, "--upgrade neonize"),
        ({"state": "banned", "reason": "Banned until tomorrow."}, AccountRefused, "Banned until tomorrow. Stop this"),
        ({"state": "unavailable", "reason": "WhatsApp refuses."}, ConnectionLost, "WhatsApp refuses."),
        ({"state": "ended", "reason": "The disk is full."}, ConnectionLost, "The disk is full."),
    ],
)
async def test_each_end_of_a_connection_is_told_in_words(
    server: WhatsAppServer,
    make_adapter: MakeAdapter,
    runner: Runner,
    state: dict[str, str],
    kind: type[Exception],
    words: str,
) -> None:
    server.refusal = state
    error = await fail(runner.start(make_adapter()))
    assert type(error) is kind
    assert words in str(error)


# ---- the process ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("panic", "panic: runtime error: invalid memory address"),
        ("crash", "SIGKILL"),
        ("garbage", "can't be read"),
    ],
)
async def test_a_child_that_goes_wrong_ends_one_connection_and_loses_nothing(
    server: WhatsAppServer,
    make_adapter: MakeAdapter,
    runner: Runner,
    how: str,
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    adapter = make_adapter()
    task = await runner.connect(adapter)
    server.say("Before")
    await runner.wait(lambda: runner.inbox.texts)
    server.tell(misbehave=how)
    error = await fail(task)
    assert isinstance(error, ConnectionLost)
    assert words in str(error)
    assert "secret text" not in str(error) + caplog.text
    with pytest.raises(SendRetryable):
        await adapter.send(make_outgoing())
    await adapter.close()
    with pytest.raises(ConnectionLost, match="not connected right now"):
        await adapter.probe()  # it starts no process, which would never be ended
    server.say("Meanwhile")
    await runner.connect(make_adapter())
    await runner.wait(lambda: runner.inbox.texts == ["Before", "Meanwhile"])


@pytest.mark.parametrize(
    "output",
    [
        "'{\"state\":\"' + 'x' * 3_000_000 + '\"}'",
        '\'{"state":"alive"}\\n\' * 20_000',
        '\'{"state":"no such state"}\'',
        "'{\"seq\":1}'",
        '\'{"seq":"1","event":{}}\'',
        "'[]'",
    ],
    ids=["huge line", "flood", "unknown state", "no event", "no number", "no object"],
)
async def test_lines_that_mean_nothing_end_the_process(make_adapter: MakeAdapter, runner: Runner, output: str) -> None:
    program = f'import sys; print(\'{{"state":"ready"}}\'); print({output}, flush=True); sys.stdin.read()'
    adapter = make_adapter(child_command=[sys.executable, "-I", "-S", "-c", program])
    error = await fail(runner.start(adapter))
    assert isinstance(error, ConnectionLost)
    assert "can't be read" in str(error)


async def test_a_program_that_is_no_child_is_ended(make_adapter: MakeAdapter, runner: Runner) -> None:
    silent = make_adapter(child_command=[sys.executable, "-c", "import time; time.sleep(60)"])
    task = runner.start(silent)
    await runner.wait(lambda: silent._child is not None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert silent._child is not None
    process = silent._child._process
    process.kill()  # it does not read its input, so that `close` would wait some seconds for it
    await silent.close()
    assert process.returncode is not None
    missing = make_adapter(child_command=["/no/such/program"])
    with pytest.raises(ConnectionLost, match="can't be started"):
        await missing.probe()


async def test_two_processes_never_run_one_account(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    first = make_adapter()
    await runner.connect(first)
    error = await fail(runner.start(make_adapter()))
    assert isinstance(error, ConnectionLost)
    assert "Another process" in str(error)
    server.say("Still here")
    await runner.wait(lambda: runner.inbox.texts == ["Still here"])


async def test_the_child_ends_with_its_parent_and_keeps_what_it_received(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, tmp_path: Path
) -> None:
    """A parent that is killed can do nothing: the child notices by itself."""
    read_end, write_end = os.pipe()  # the child has it open until it ends
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import subprocess, sys, time\n"
        "pipe = int(sys.argv[2])\n"
        "child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[pipe])\n"
        "child.stdin.write(sys.argv[1].encode() + b'\\n'); child.stdin.flush(); time.sleep(60)",
        json.dumps(
            {"id": 1, "do": "connect", "folder": str(tmp_path / "account"), "chats": "all", "phone_number": None}
        ),
        str(write_end),
        *server.child_command,
        pass_fds=[write_end],
    )
    os.close(write_end)
    server.say("Received, and never stored")
    await runner.wait(lambda: server.is_connected and not server.events)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    with open(read_end, "rb") as pipe:  # noqa: ASYNC230, PTH123  (a pipe)
        assert await asyncio.wait_for(asyncio.to_thread(pipe.read), SECONDS) == b""
    await runner.connect(make_adapter())
    await runner.wait(lambda: runner.inbox.texts == ["Received, and never stored"])


async def test_what_was_sent_while_palaver_died_is_proven_afterwards(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter()
    task = await runner.connect(adapter)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await adapter.send(make_outgoing(key="d_7.1"))  # no task reads the proof
    await adapter.close()
    assert runner.inbox.confirmed == {}
    await runner.connect(make_adapter())
    await runner.wait(lambda: runner.inbox.confirmed == {"d_7.1": server.messages[0].id})


async def test_an_account_that_hears_nothing_reports_nothing(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    before = runner.inbox.connected_count
    await runner.wait(lambda: runner.inbox.connected_count > before + 1)  # without any message
    server.tell(misbehave="deaf")
    server.say("Other traffic")
    await runner.wait(lambda: runner.inbox.texts)
    seen = runner.inbox.connected_count
    server.say("More of it")
    await runner.wait(lambda: len(runner.inbox.texts) == 2)
    assert runner.inbox.connected_count <= seen + 1
    assert (await adapter.probe()).user_id == PHONE  # it was just heard of
    monkeypatch.setattr(adapter_module, "MAX_UNHEARD_SECONDS", 0.0)
    with pytest.raises(ConnectionLost, match="does not answer"):
        await adapter.probe()


# ---- messages ------------------------------------------------------------------------------------------------


async def test_a_note_to_oneself_is_for_the_agent(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter(chats="self")
    await runner.connect(adapter)
    assert server.hellos[0]["chats"] == "self"
    message_id = server.say("Remind me", sender=OWN[0], chat=OWN[1])
    await runner.wait(lambda: runner.inbox.messages)
    [message] = runner.inbox.messages
    assert (message.source.chat_id, message.source.user_id, message.source.user_id_alt) == (PHONE, PHONE, f"{LID}@lid")
    assert message.is_addressed
    await adapter.send(make_outgoing("Done", address=Address(Platform.WHATSAPP_WEB, PHONE), reply_to=message_id))
    [sent] = server.messages
    assert sent.chat == OWN[0]
    assert sent.fields["quoted"] == {"id": message_id, "sender": OWN[0], "text": "Remind me"}


async def test_in_a_group_mentions_and_replies_are_for_the_agent(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    answer_id = await adapter.send(make_outgoing("An answer", address=GROUP_ADDRESS))
    server.say("to everybody", chat=GROUP)
    server.say(f"@{LID} what is this?", chat=GROUP, mentions=[f"{LID}@lid"], sender=BEN)
    server.say("and this?", chat=GROUP, quoted={"id": answer_id, "sender": f"{LID}:7@lid", "text": "An answer"})
    await runner.wait(lambda: len(runner.inbox.messages) == 3)
    everybody, mention, reply = runner.inbox.messages
    assert [each.is_addressed for each in runner.inbox.messages] == [False, True, True]
    assert mention.content == "what is this?"
    assert reply.replied_message is not None
    assert reply.replied_message.is_own
    assert {each.source.chat_name for each in runner.inbox.messages} == {"Engines"}
    assert everybody.source.chat_type is ChatType.GROUP
    await adapter.send(make_outgoing("To Ben", address=GROUP_ADDRESS, reply_to=mention.message_id, key="d_2.1"))
    assert server.messages[-1].fields["quoted"] == {
        "id": mention.message_id,
        "sender": BEN,
        "text": f"@{LID} what is this?",
    }
    await adapter.react(GROUP_ADDRESS, str(mention.message_id), "👀")
    name, fields = server.requests[-1]
    assert (name, fields["sender"], fields["is_own"]) == ("react", BEN, False)
    with pytest.raises(SendRejected, match="too old"):
        await adapter.react(GROUP_ADDRESS, "unknown", "👀")


async def test_a_reaction_that_is_taken_back_is_known_again(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    await runner.connect(make_adapter())
    for emoji in ("👍", "", ""):
        server.push(server.make_event("reaction", target="3EB0", emoji=emoji))
    server.say("Next")
    await runner.wait(lambda: runner.inbox.messages)
    reactions = [each for each in runner.inbox.updates if isinstance(each, MessageReaction)]
    assert [(each.emoji, each.is_removed) for each in reactions] == [("👍", False), ("👍", True)]
    await runner.wait(lambda: not server.events)  # also what means nothing is not sent again


async def test_members_and_the_new_name_of_a_group_are_noticed(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    await runner.connect(make_adapter())
    server.say("one", chat=GROUP)
    await runner.wait(lambda: runner.inbox.messages)
    server.group_name = "Trains"
    members = {"joined": [BEN], "left": [ADA_LID], "is_own": False}
    server.push({"kind": "members", "chat": GROUP, "sender": ADA, **members})
    server.say("two", chat=GROUP)
    await runner.wait(lambda: len(runner.inbox.messages) == 2)
    [change] = [each for each in runner.inbox.updates if isinstance(each, MembersChanged)]
    assert (change.joined, change.left) == (("+491722222222",), ("a member",))
    assert [each.source.chat_name for each in runner.inbox.messages] == ["Engines", "Trains"]


async def test_the_name_of_a_group_that_is_not_told_is_asked_for_once_in_a_connection(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    server.answers_groups = False
    await runner.connect(make_adapter())
    for number in range(3):
        server.say(f"message {number}", chat=GROUP)
    await runner.wait(lambda: len(runner.inbox.messages) == 3)
    assert [name for name, _ in server.requests] == ["group"]  # receiving waits for each answer
    server.answers_groups = True
    server.connect()
    server.say("again", chat=GROUP)
    await runner.wait(lambda: len(runner.inbox.messages) == 4)
    assert runner.inbox.messages[-1].source.chat_name == "Engines"


async def test_files_go_both_ways_and_leave_nothing_behind(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, tmp_path: Path
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    server.files["v1"] = b"OggS" * 100_000
    media = make_media("v1", type="audio", media_type="audio/ogg; codecs=opus", name=None, is_voice=True, seconds=7)
    server.say("", media=media | {"size": 400_000})
    await runner.wait(lambda: runner.inbox.messages)
    [file] = runner.inbox.messages[0].files
    assert (file.is_voice, file.duration_seconds, file.media_type) == (True, 7, "audio/ogg")
    assert b"".join([chunk async for chunk in file.open()]) == server.files["v1"]
    await adapter.send(make_outgoing("", file=OutgoingFile("answer.ogg", "audio/ogg", 10, read_ten_bytes)))
    [sent] = server.messages
    assert (sent.fields["field"], sent.fields["is_voice"]) == ("audioMessage", True)
    assert bytes.fromhex(sent.fields["content"]) == b"0123456789"
    assert [list((tmp_path / "account" / folder).iterdir()) for folder in ("files", "attempts")] == [[], []]


async def test_an_event_that_cannot_be_read_stops_nothing(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, tmp_path: Path
) -> None:
    spool = tmp_path / "account" / "received"
    spool.mkdir(parents=True)
    (spool / "5.json").write_text("{half of")
    (spool / "6.json").write_text('{"kind": "message", "chat": "no fields"}')
    (spool / "7.new").write_text("{never told")
    await runner.connect(make_adapter())
    server.push({"kind": "message", "chat": ADA})
    server.say("From the year 10^300", at=1e300)
    server.say("Good")
    await runner.wait(lambda: runner.inbox.texts == ["Good"])
    await runner.wait(lambda: [path.name for path in spool.iterdir()] == ["5.unreadable"])


# ---- sending -------------------------------------------------------------------------------------------------


async def test_the_outcome_of_a_message_is_told_honestly(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    outcomes: list[tuple[SendFault, type[Exception]]] = [
        (SendFault(error="uncertain", arrives=True), SendUncertain),
        (SendFault(error="too_large"), SendRejected),
        (SendFault(error="unreachable"), TargetUnreachable),
        (SendFault(error="no such kind"), SendUncertain),
        (SendFault(panics=True), SendUncertain),
    ]
    for fault, kind in outcomes:
        server.faults.append(fault)
        with pytest.raises(kind):
            await adapter.send(make_outgoing())


async def test_an_answer_that_does_not_come_is_uncertain(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.whatsapp_web.adapter.SEND_SECONDS", 0.1)
    adapter = make_adapter()
    await runner.connect(adapter)
    server.faults.append(SendFault(is_silent=True))
    with pytest.raises(SendUncertain, match="did not answer"):
        await adapter.send(make_outgoing())
    server.cut()  # otherwise the child waits for it when it ends


async def test_many_requests_at_once_are_bounded(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    server.faults.extend([SendFault(is_silent=True)] * 4)  # as many as work at once
    sends = [asyncio.create_task(adapter.send(make_outgoing(key=f"d_{number}.1"))) for number in range(40)]
    done, waiting = await asyncio.wait(sends, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
    assert {type(task.exception()) for task in done} == {SendRetryable}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*sends, return_exceptions=True)
    server.cut()


async def test_only_chats_of_whatsapp_can_be_addressed(
    server: WhatsAppServer, make_adapter: MakeAdapter, runner: Runner
) -> None:
    adapter = make_adapter()
    await runner.connect(adapter)
    with pytest.raises(TargetUnreachable, match="country code"):
        await adapter.send(make_outgoing(address=Address(Platform.WHATSAPP_WEB, "Ada")))
    await adapter.delete(ADDRESS, "unknown")
    assert server.messages == []
