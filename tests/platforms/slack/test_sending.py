"""Sending with the real SDK: threads, streams that end in time, files, reactions, and proof after a lost answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.core.source import Platform
from palaver.delivery.adapter import OutgoingFile
from palaver.sessions.delivery import Address, Button
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until

from .conftest import ADDRESS, make_outgoing
from .slack_server import (
    BAD_GATEWAY,
    BOT_USER,
    CHANNEL,
    DM,
    INTERNAL_ERROR,
    LOSE_ANSWER,
    Fault,
    SlackServer,
    get_shown_text,
    limit_rate,
)
from .slack_types import list_event_problems, list_request_problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.slack.adapter import SlackAdapter

    from .conftest import MakeAdapter


@asynccontextmanager
async def run_connected(adapter: SlackAdapter, inbox: MemoryInbox) -> AsyncIterator[None]:
    link = MemoryLink(inbox)
    task = asyncio.create_task(adapter.run(link))
    try:
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task
        link.end()


async def read_notes() -> AsyncIterator[bytes]:
    yield b"01234"
    yield b"56789"


NOTES = OutgoingFile("notes.txt", "text/plain", 10, read_notes)


# ---- the server checks what it is sent -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("chat.postMessage", {"channel": "C1", "text": "x", "client_msg_id": "1"}),
        ("chat.postMessage", {"channel": "C1", "blocks": [{"type": "markdwn", "text": "x"}]}),
        ("chat.startStream", {"channel": "C1", "markdown_text": "x"}),
        ("chat.update", {"channel": "C1", "text": "x"}),
        ("files.completeUploadExternal", {"files": [{"id": "F1"}], "thread_ts": "1.1"}),
        ("auth.test", {"user": "U1"}),
        ("chat.unknown", {}),
    ],
)
def test_requests_that_slack_does_not_know_are_found(method: str, parameters: dict[str, Any]) -> None:
    assert list_request_problems(method, parameters)


def test_events_that_slack_does_not_send_are_found() -> None:
    assert list_event_problems({"type": "message", "channel": "D1", "text": "x", "ts": "1.1"})
    assert list_event_problems({"type": "nothing"})


# ---- messages ------------------------------------------------------------------------------------------------


async def test_an_answer_goes_to_its_thread_with_blocks_text_and_metadata(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    thread = server.say("hello", channel=CHANNEL)
    address = Address(Platform.SLACK, CHANNEL, thread)
    await adapter.send(
        make_outgoing(adapter, "Good **morning**", address=address, buttons=[Button("Retry", "retry:t_1")])
    )
    [request] = server.list_requests("chat.postMessage")
    asked = request.parameters
    assert (asked["channel"], asked["thread_ts"], asked["text"]) == (CHANNEL, thread, "Good morning")
    assert [block["type"] for block in asked["blocks"]] == ["markdown", "actions"]
    assert asked["metadata"]["event_payload"] == {"key": "d_1.1"}
    assert not asked["unfurl_links"]


async def test_an_edit_removes_the_buttons(server: SlackServer, adapter: SlackAdapter) -> None:
    message_id = await adapter.send(make_outgoing(adapter, "…", buttons=[Button("Stop", "stop:t_1")]))
    assert message_id
    await adapter.edit(message_id, make_outgoing(adapter, "Done"))
    [message] = server.list_own_messages()
    assert message["blocks"] == [{"type": "markdown", "text": "Done"}]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("not_in_channel", TargetUnreachable),
        ("is_archived", TargetUnreachable),
        ("missing_scope", SendRejected),
        ("fatal_error", SendUncertain),
    ],
)
async def test_a_refusal_says_what_it_means(
    server: SlackServer, adapter: SlackAdapter, code: str, kind: type[Exception]
) -> None:
    server.fail("chat.postMessage", Fault(error=code, needed="chat:write"))
    with pytest.raises(kind):
        await adapter.send(make_outgoing(adapter))


async def test_a_rate_limit_is_for_one_chat_and_names_the_seconds(server: SlackServer, adapter: SlackAdapter) -> None:
    server.fail("chat.postMessage", limit_rate(17))
    with pytest.raises(SendRetryable) as limited:
        await adapter.send(make_outgoing(adapter))
    assert (limited.value.retry_after, limited.value.whole_account) == (17.0, False)
    assert len(server.list_requests("chat.postMessage")) == 1  # the SDK repeats nothing


async def test_an_edit_that_got_no_answer_can_be_repeated(server: SlackServer, adapter: SlackAdapter) -> None:
    message_id = await adapter.send(make_outgoing(adapter, "One"))
    assert message_id
    for fault in (LOSE_ANSWER, INTERNAL_ERROR, BAD_GATEWAY):
        server.fail("chat.update", fault)
        with pytest.raises(SendRetryable):
            await adapter.edit(message_id, make_outgoing(adapter, "Two"))


async def test_a_message_that_is_gone_can_not_be_edited_but_deleted(server: SlackServer, adapter: SlackAdapter) -> None:
    with pytest.raises(SendRejected):
        await adapter.edit("1790000000.000100", make_outgoing(adapter))
    await adapter.delete(ADDRESS, "1790000000.000100")


# ---- reactions and typing ------------------------------------------------------------------------------------


async def test_a_reaction_is_set_and_only_ours_is_taken_back(server: SlackServer, adapter: SlackAdapter) -> None:
    ts = server.say("hello")
    server.reactions[DM, ts].append(("tada", "U0ADA"))
    for _ in range(2):  # a second time is no error
        await adapter.react(ADDRESS, ts, "👀")
    assert server.reactions[DM, ts] == [("tada", "U0ADA"), ("eyes", BOT_USER)]
    for _ in range(2):
        await adapter.react(ADDRESS, ts, "")
    assert server.reactions[DM, ts] == [("tada", "U0ADA")]


@pytest.mark.parametrize(("message_id", "emoji"), [("command-1.2", "👀"), ("1790000000.000100", "🦜")])
async def test_what_cannot_be_reacted_to_or_with_is_rejected(
    adapter: SlackAdapter, message_id: str, emoji: str
) -> None:
    with pytest.raises(SendRejected):
        await adapter.react(ADDRESS, message_id, emoji)


async def test_the_status_of_a_thread_is_the_sign_for_typing(server: SlackServer, adapter: SlackAdapter) -> None:
    thread = server.say("hello", channel=CHANNEL)
    address = Address(Platform.SLACK, CHANNEL, thread)
    await adapter.show_typing(address)
    assert server.statuses[CHANNEL, thread] == "is thinking…"
    await adapter.stop_typing(address)
    assert server.statuses[CHANNEL, thread] == ""
    with pytest.raises(SendRejected):  # then the message gets a reaction
        await adapter.show_typing(ADDRESS)
    await adapter.stop_typing(ADDRESS)


# ---- streams -------------------------------------------------------------------------------------------------


class Growth:
    """A growing message in a thread of the agent view."""

    def __init__(self, server: SlackServer, adapter: SlackAdapter, address: Address) -> None:
        self.server = server
        self.adapter = adapter
        self.address = address
        self.message_id = ""

    def build(self, text: str, **fields: Any) -> Any:
        return make_outgoing(
            self.adapter, text, **{"address": self.address, "key": "t_1.p", "is_preview": True, **fields}
        )

    async def start(self, text: str) -> None:
        self.message_id = await self.adapter.send(self.build(text)) or ""

    async def grow(self, text: str) -> None:
        await self.adapter.edit(self.message_id, self.build(text))

    async def finish(self, text: str) -> None:
        await self.adapter.edit(self.message_id, self.build(text, key="d_1.1", is_preview=False))

    @property
    def message(self) -> dict[str, Any]:
        [message] = [
            each for each in self.server.list_own_messages(self.address.chat_id) if each["ts"] == self.message_id
        ]
        return message

    @property
    def methods(self) -> list[str]:
        return [each.method for each in self.server.requests if each.method.startswith("chat.")]


@pytest.fixture
def clock() -> list[float]:
    return [1000.0]


@pytest.fixture
async def growth(server: SlackServer, make_adapter: MakeAdapter, clock: list[float]) -> Growth:
    adapter = make_adapter(timing={"get_time": lambda: clock[0]})
    await adapter.probe()
    thread = server.say("hello")
    return Growth(server, adapter, Address(Platform.SLACK, DM, thread))


async def test_an_answer_grows_as_a_stream_and_ends_as_the_same_message(growth: Growth) -> None:
    await growth.start("Once")
    await growth.grow("Once upon")
    await growth.grow("Once upon")
    assert growth.message["streaming_state"] == "in_progress"
    await growth.finish("Once upon a **time**.")
    assert growth.methods == ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update"]
    assert get_shown_text(growth.message) == "Once upon a **time**."
    assert growth.message["metadata"]["event_payload"] == {"key": "d_1.1"}
    assert len(growth.server.list_own_messages()) == 1


async def test_a_stream_is_stopped_before_it_expires_and_goes_on_by_edits(growth: Growth, clock: list[float]) -> None:
    await growth.start("Once")
    clock[0] += 239
    await growth.grow("Once upon")
    clock[0] += 1
    await growth.grow("Once upon a")
    await growth.grow("Once upon a time")
    assert growth.methods[1:] == ["chat.appendStream", "chat.stopStream", "chat.update", "chat.update"]
    await growth.finish("Once upon a time.")
    assert growth.methods.count("chat.stopStream") == 1
    assert get_shown_text(growth.message) == "Once upon a time."


async def test_a_text_that_changes_otherwise_than_by_growing_ends_the_stream(growth: Growth) -> None:
    await growth.start("*Using look…*")
    await growth.grow("I see")
    assert growth.methods == ["chat.startStream", "chat.stopStream", "chat.update"]
    assert get_shown_text(growth.message) == "I see"


async def test_a_stream_that_slack_has_ended_goes_on_by_edits(growth: Growth) -> None:
    await growth.start("Once")
    growth.server.expire_streams()
    await growth.grow("Once upon")
    await growth.finish("Once upon a time.")
    assert get_shown_text(growth.message) == "Once upon a time."


async def test_the_stream_of_a_process_that_has_died_is_completed_or_deleted_by_the_next(
    growth: Growth, make_adapter: MakeAdapter
) -> None:
    for ending in ("finish", "delete"):
        growth.server.messages = {key: each for key, each in growth.server.messages.items() if each["user"] != BOT_USER}
        await growth.start("Once")
        growth.adapter = make_adapter()
        await growth.adapter.probe()
        if ending == "finish":
            await growth.finish("Done.")
            assert get_shown_text(growth.message) == "Done."
        else:
            await growth.adapter.delete(growth.address, growth.message_id)
            assert growth.server.list_own_messages() == []


async def test_where_streams_are_refused_a_message_is_edited(growth: Growth) -> None:
    growth.server.fail("chat.startStream", Fault(error="not_allowed"))
    await growth.start("Once")
    await growth.grow("Once upon")
    await growth.start("Again")  # it is not tried again in this chat
    assert growth.methods == ["chat.startStream", "chat.postMessage", "chat.update", "chat.postMessage"]


async def test_a_stream_in_a_channel_is_for_the_person_who_wrote_last(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    adapter, inbox = make_adapter(), MemoryInbox()
    await adapter.probe()
    async with run_connected(adapter, inbox):
        thread = server.say(f"<@{BOT_USER}> hi", channel=CHANNEL)
        growth = Growth(server, adapter, Address(Platform.SLACK, CHANNEL, thread))
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        await growth.start("Once")
        [request] = server.list_requests("chat.startStream")
        assert (request.parameters["recipient_user_id"], request.parameters["recipient_team_id"]) == ("U0ADA", "T0TEAM")
    unknown = Growth(server, make_adapter(), Address(Platform.SLACK, CHANNEL, thread))
    await unknown.adapter.probe()
    await unknown.start("Again")
    assert len(server.list_requests("chat.startStream")) == 1  # after a restart it is unknown for whom it is


async def test_outside_of_threads_a_preview_is_an_ordinary_message(server: SlackServer, adapter: SlackAdapter) -> None:
    await adapter.send(make_outgoing(adapter, is_preview=True))
    assert [each.method for each in server.requests[-1:]] == ["chat.postMessage"]


# ---- files ---------------------------------------------------------------------------------------------------


async def test_a_file_is_uploaded_and_shared_in_the_thread(server: SlackServer, adapter: SlackAdapter) -> None:
    thread = server.say("hello", channel=CHANNEL)
    address = Address(Platform.SLACK, CHANNEL, thread)
    ts = await adapter.send(make_outgoing(adapter, "", file=NOTES, address=address))
    [message] = server.list_own_messages(CHANNEL)
    assert (message["ts"], message["thread_ts"]) == (ts, thread)
    assert server.contents[message["files"][0]["id"]] == b"0123456789"


@pytest.mark.parametrize(
    ("method", "fault"), [("files.getUploadURLExternal", BAD_GATEWAY), ("upload", Fault(500, "x"))]
)
async def test_a_file_that_was_never_shown_can_be_sent_again(
    server: SlackServer, adapter: SlackAdapter, method: str, fault: Fault
) -> None:
    server.fail(method, fault)
    with pytest.raises(SendRetryable):
        await adapter.send(make_outgoing(adapter, "", file=NOTES))
    assert server.list_own_messages() == []
    await adapter.send(make_outgoing(adapter, "", file=NOTES))
    assert len(server.list_own_messages()) == 1


# ---- proof ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["chat", "thread", "file"])
async def test_a_message_whose_answer_was_lost_is_found_in_the_history(
    server: SlackServer, make_adapter: MakeAdapter, place: str
) -> None:
    adapter, inbox = make_adapter(), MemoryInbox()
    await adapter.probe()
    thread = server.say("hello", sends_event=False)
    address = ADDRESS if place == "chat" else Address(Platform.SLACK, DM, thread)
    fields: dict[str, Any] = {"address": address}
    if place == "file":
        fields |= {"file": NOTES, "markdown": ""}
    method = "files.completeUploadExternal" if place == "file" else "chat.postMessage"
    async with run_connected(adapter, inbox):
        await adapter.send(make_outgoing(adapter, "An older one", address=address, key="d_0.1"))
        server.fail(method, LOSE_ANSWER)
        with pytest.raises(SendUncertain):
            await adapter.send(make_outgoing(adapter, **fields))
        await wait_until(lambda: inbox.confirmed)
    assert inbox.confirmed == {"d_1.1": server.list_own_messages()[-1]["ts"]}
    assert len(server.list_own_messages()) == 2


@pytest.mark.parametrize("place", ["chat", "thread"])
async def test_a_growing_message_whose_answer_was_lost_is_found_at_once_and_grows_on(
    server: SlackServer, adapter: SlackAdapter, place: str
) -> None:
    thread = server.say("hello")
    growth = Growth(server, adapter, ADDRESS if place == "chat" else Address(Platform.SLACK, DM, thread))
    server.fail("chat.postMessage" if place == "chat" else "chat.startStream", LOSE_ANSWER)
    await growth.start("Once")
    await growth.grow("Once upon")
    await growth.finish("Once upon a time.")
    assert server.list_texts() == ["Once upon a time."]


async def test_a_search_that_takes_too_long_goes_on_in_the_background(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    adapter, inbox = make_adapter(timing={"preview_delays": (600.0,)}), MemoryInbox()
    await adapter.probe()
    async with run_connected(adapter, inbox):
        server.fail("chat.postMessage", LOSE_ANSWER)
        sending = asyncio.create_task(adapter.send(make_outgoing(adapter, key="t_1.p", is_preview=True)))
        await wait_until(server.list_own_messages)
        done, _ = await asyncio.wait({sending}, timeout=0.1)
        assert not done
        sending.cancel()
        await wait_until(lambda: inbox.confirmed)
    assert inbox.confirmed == {"t_1.p": server.list_own_messages()[-1]["ts"]}


async def test_of_several_streams_without_an_owner_none_is_taken(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    thread = server.say("hello")
    address = Address(Platform.SLACK, DM, thread)
    before = make_adapter()
    await before.probe()
    await before.send(make_outgoing(before, "Of another process", address=address, is_preview=True))
    adapter = make_adapter()
    await adapter.probe()
    server.fail("chat.startStream", LOSE_ANSWER)
    with pytest.raises(SendUncertain):
        await adapter.send(make_outgoing(adapter, "Once", address=address, key="t_1.p", is_preview=True))


async def test_a_growing_message_that_did_not_arrive_is_uncertain(server: SlackServer, adapter: SlackAdapter) -> None:
    server.fail("chat.postMessage", BAD_GATEWAY)
    with pytest.raises(SendUncertain):
        await adapter.send(make_outgoing(adapter, is_preview=True))


async def test_a_message_that_did_not_arrive_stays_uncertain(server: SlackServer, make_adapter: MakeAdapter) -> None:
    adapter, inbox = make_adapter(), MemoryInbox()
    await adapter.probe()
    async with run_connected(adapter, inbox):
        server.fail("chat.postMessage", BAD_GATEWAY)
        with pytest.raises(SendUncertain):
            await adapter.send(make_outgoing(adapter))
        await wait_until(lambda: len(server.list_requests("conversations.history")) == 2)
    assert inbox.confirmed == {}


async def test_what_a_process_that_died_has_sent_is_confirmed_by_the_next(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    first, inbox = make_adapter(), MemoryInbox()
    await first.probe()
    async with run_connected(first, inbox):
        thread = server.say("hello")
        await wait_until(lambda: not server.unacknowledged)
        ts = await first.send(make_outgoing(first, address=Address(Platform.SLACK, DM, thread)))
    second, inbox.connected_count = make_adapter(), 0
    async with run_connected(second, inbox):
        await wait_until(lambda: inbox.confirmed == {"d_1.1": ts})
