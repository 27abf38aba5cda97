"""The adapter with the real SDK against a local Slack: signing in, receiving by Socket Mode and HTTP, catching up."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, InvalidInput, SendRetryable
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import GatedLink, connect_adapter

from .conftest import make_outgoing
from .slack_server import (
    ADA,
    APP_TOKEN,
    BAD_GATEWAY,
    BEN,
    BOT_USER,
    CHANNEL,
    DM,
    TOKEN,
    Fault,
    SlackServer,
    limit_rate,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.slack.adapter import SlackAdapter
    from palaver.sessions.inbound import Inbound

    from .conftest import MakeAdapter

MENTION = f"<@{BOT_USER}>"


@asynccontextmanager
async def running(
    adapter: SlackAdapter, inbox: MemoryInbox, link: MemoryLink | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Run an adapter that has signed in."""
    await adapter.probe()
    async with connect_adapter(adapter, inbox, link) as task:
        yield task


# ---- signing in ----------------------------------------------------------------------------------------------


async def test_signing_in_names_the_app_and_its_workspace(make_adapter: MakeAdapter) -> None:
    info = await make_adapter().probe()
    assert (info.user_id, info.name, info.warnings) == (BOT_USER, "@palaver", ())
    assert info.details == ("Workspace: Engines",)


async def test_a_missing_scope_is_named_at_the_start(server: SlackServer, make_adapter: MakeAdapter) -> None:
    server.scopes = server.scopes.replace("files:write,", "")
    [warning] = (await make_adapter().probe()).warnings
    assert "files:write (to send files)" in warning


async def test_an_app_token_without_its_scope_is_refused_with_the_fix(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    server.has_socket_scope = False
    with pytest.raises(AccountRefused, match="connections:write") as refused:
        await make_adapter().probe()
    assert APP_TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bot_token": f"{TOKEN}1"}, "bot_token"),
        ({"app_token": f"{APP_TOKEN}1"}, "app_token"),
    ],
)
async def test_a_wrong_token_is_refused_by_its_name(
    make_adapter: MakeAdapter, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(AccountRefused, match=words):
        await make_adapter(**settings).probe()


async def test_a_token_that_is_revoked_while_the_app_runs_ends_it(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter()
    async with running(adapter, MemoryInbox()) as task:
        server.is_revoked = True
        with pytest.raises(SendRetryable, match="bot_token") as refused:
            await adapter.send(make_outgoing(adapter))
        assert refused.value.whole_account
        with pytest.raises(AccountRefused):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)


async def test_slack_itself_tells_that_the_app_was_removed(server: SlackServer, make_adapter: MakeAdapter) -> None:
    async with running(make_adapter(), MemoryInbox()) as task:
        server.push({"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}})
        await wait_until(lambda: not server.unacknowledged)
        assert not task.done()  # the token still works
        server.is_revoked = True
        server.push({"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}})
        with pytest.raises(AccountRefused):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)


async def test_testing_the_connection_opens_no_second_one(server: SlackServer, make_adapter: MakeAdapter) -> None:
    adapter, inbox = make_adapter(), MemoryInbox()
    async with running(adapter, inbox):
        await adapter.probe()
        server.say("still here")
        await inbox.wait_until(lambda: inbox.texts == ["still here"], TIMEOUT_SECONDS)
    assert server.socket_count == len(server.list_requests("apps.connections.open")) == 1


# ---- Socket Mode ---------------------------------------------------------------------------------------------


async def test_an_envelope_is_acknowledged_only_after_it_was_accepted(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    link = GatedLink(inbox)
    async with running(make_adapter(), inbox, link):
        server.say("hello")
        await asyncio.wait_for(link.is_asked.wait(), TIMEOUT_SECONDS)
        await inbox.wait_until(lambda: inbox.connected_count >= 3, TIMEOUT_SECONDS)  # other frames come and go
        assert len(server.unacknowledged) == 1
        link.is_open.set()
        await wait_until(lambda: not server.unacknowledged)
    assert inbox.texts == ["hello"]


async def test_a_mention_that_arrives_as_two_events_and_again_is_one_message(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        ts = server.say(f"{MENTION} hello", channel=CHANNEL)
        server.push_message(CHANNEL, ts)
        await wait_until(lambda: not server.unacknowledged)
    [message] = inbox.messages
    assert (message.content, message.source.thread_id, message.source.chat_name) == ("hello", ts, "engines")
    assert len({each["payload"]["event_id"] for each in server.sent_envelopes}) == 4
    assert inbox.duplicate_count == 3


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_new_connection_is_opened_before_the_old_one_is_closed(
    server: SlackServer, make_adapter: MakeAdapter, reason: str
) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox) as task:
        server.say("one")
        await inbox.wait_until(lambda: len(inbox.texts) == 1, TIMEOUT_SECONDS)
        await server.ask_to_reconnect(reason)
        await wait_until(lambda: server.socket_count == 2 and server.open_sockets == 1)
        server.say("two")
        await inbox.wait_until(lambda: inbox.texts == ["one", "two"], TIMEOUT_SECONDS)
        assert not task.done()
        assert server.open_sockets == 1
    await wait_until(lambda: server.open_sockets == 0)


async def test_socket_mode_that_is_turned_off_is_said(server: SlackServer, make_adapter: MakeAdapter) -> None:
    async with running(make_adapter(), MemoryInbox()) as task:
        await server.ask_to_reconnect("link_disabled")
        with pytest.raises(AccountRefused, match="Enable Socket Mode"):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)


async def test_another_program_with_the_same_token_is_noticed(
    server: SlackServer, make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(make_adapter(), MemoryInbox()):
        assert "slack_other_connections" not in caplog.text
        async with running(make_adapter(), MemoryInbox()):
            assert "slack_other_connections" in caplog.text


async def test_a_cut_socket_ends_the_run(server: SlackServer, make_adapter: MakeAdapter) -> None:
    async with running(make_adapter(), MemoryInbox()) as task:
        await server.cut_sockets()
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(asyncio.shield(task), TIMEOUT_SECONDS)


async def test_progress_is_reported_by_pongs_and_not_for_a_silent_socket(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    adapter = make_adapter()
    async with running(adapter, inbox):
        await inbox.wait_until(lambda: inbox.connected_count >= 3, TIMEOUT_SECONDS)
        server.is_silent = True
        async with asyncio.timeout(TIMEOUT_SECONDS):
            before = -1
            while inbox.connected_count != before:  # until what was on its way has arrived
                before = inbox.connected_count
                await adapter.probe()  # other requests are answered
                await asyncio.sleep(0.2)


async def test_a_failure_to_open_a_connection_is_tried_again_by_the_supervisor(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    adapter = make_adapter()
    server.fail("apps.connections.open", limit_rate(30))
    with pytest.raises(ConnectionLost, match="30 seconds"):
        await adapter.probe()
    server.fail("apps.connections.open", BAD_GATEWAY)
    with pytest.raises(ConnectionLost):
        await adapter.probe()


async def test_an_event_that_cannot_be_read_does_not_stop_the_others(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        server._queue("events_api", {"type": "event_callback", "event": {"type": "message", "text": 5}})
        server._queue("events_api", {"type": "app_rate_limited"})
        far = {"type": "message", "channel": DM, "user": ADA, "text": "far", "ts": "9" * 400 + ".1"}
        server._queue("events_api", {"type": "event_callback", "event": far})
        server._queue("something_new", {"a": 1})
        server.say("after")
        await inbox.wait_until(lambda: inbox.texts == ["after"], TIMEOUT_SECONDS)
        await wait_until(lambda: not server.unacknowledged)


async def test_a_name_that_cannot_be_found_is_no_error(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    server.fail("users.info", BAD_GATEWAY)
    server.fail("conversations.info", Fault(error="missing_scope", needed="channels:read"))
    async with running(make_adapter(), inbox):
        server.say(f"{MENTION} hi", channel=CHANNEL)
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
    source = inbox.messages[0].source
    assert (source.user_id, source.user_name, source.chat_name) == (ADA, None, None)


async def test_names_are_looked_up_once(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        server.say(f"hi <@{BEN}>")
        server.say(f"hi again <@{BEN}>")
        await inbox.wait_until(lambda: inbox.texts == ["hi @Ben", "hi again @Ben"], TIMEOUT_SECONDS)
    assert len(server.list_requests("users.info")) == 2  # Ada and Ben


async def test_a_slash_command_is_accepted_once(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        server.send_command("/palaver", "new")
        await inbox.wait_until(lambda: inbox.texts == ["/new"], TIMEOUT_SECONDS)
        await wait_until(lambda: not server.unacknowledged)


async def test_the_person_who_presses_a_button_is_answered_in_the_thread(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    await adapter.answer_press(f"{CHANNEL}:17.1:{ADA}:18.2", "Stopped.")
    await adapter.answer_press(f"{DM}::{ADA}:18.2", "Stopped.")
    await adapter.answer_press(f"{DM}::{ADA}:18.2", None)
    assert [each.get("thread_ts") for each in server.ephemeral] == ["17.1", None]
    assert {each["user"] for each in server.ephemeral} == {ADA}


async def test_what_a_button_has_done_is_shown_with_its_markup_and_without_notifications(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    await adapter.answer_press(f"{DM}::{ADA}:18.2", "**Stopped.** <!channel> Use /retry.")
    [shown] = server.ephemeral
    assert shown["blocks"] == [{"type": "markdown", "text": "**Stopped.** <\u200b!channel> Use /retry."}]
    assert shown["text"] == "Stopped. &lt;!channel&gt; Use /retry."


# ---- files ---------------------------------------------------------------------------------------------------


async def read_file(message: Inbound) -> bytes:
    return b"".join([chunk for file in message.files async for chunk in file.open()])


async def test_the_token_goes_to_slacks_own_hosts_only(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox), SlackServer() as other:
        name = other.add_file("x.bin", b"data")["id"]
        elsewhere = other.url.replace("127.0.0.1", "localhost") + f"/files/{name}"
        file = server.add_file("x.bin", b"data", url_private=elsewhere, url_private_download=elsewhere)
        server.say("", files=[file], subtype="file_share")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        with pytest.raises(InvalidInput, match="private network"):  # not a host of Slack's: no token, and guarded
            await read_file(inbox.messages[0])


async def test_a_page_to_sign_in_is_not_taken_for_the_file(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        file = server.add_file("photo.png", b"<!DOCTYPE html><title>Sign in</title>", mimetype="image/png")
        server.say("", files=[file], subtype="file_share")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        with pytest.raises(InvalidInput, match="files:read"):
            await read_file(inbox.messages[0])


# ---- catching up ---------------------------------------------------------------------------------------------


async def test_what_slack_no_longer_repeats_is_read_from_the_history(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        thread = server.say(f"{MENTION} start", channel=CHANNEL)
        await wait_until(lambda: not server.unacknowledged)
    server.say("in the channel", channel=CHANNEL, user=BEN, sends_event=False)
    server.say(f"{MENTION} in the thread", channel=CHANNEL, thread_ts=thread, sends_event=False)
    server.say("in a new direct message", channel="D0BEN", user=BEN, sends_event=False)
    async with running(make_adapter(), inbox):
        await inbox.wait_until(lambda: len(inbox.messages) == 4, TIMEOUT_SECONDS)
        server.say("live again")
        await inbox.wait_until(lambda: len(inbox.messages) == 5, TIMEOUT_SECONDS)
    found = {message.content: (message.source.thread_id, message.is_addressed) for message in inbox.messages}
    assert found == {
        "start": (thread, True),
        "in the channel": (None, False),
        "in the thread": (thread, True),
        "in a new direct message": (None, True),
        "live again": (None, True),
    }
    assert inbox.texts[-1] == "live again"


async def test_nothing_is_read_before_the_first_message(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    server.say("long ago", sends_event=False)
    async with running(make_adapter(), inbox):
        server.say("now")
        await inbox.wait_until(lambda: inbox.texts == ["now"], TIMEOUT_SECONDS)
    assert server.list_requests("users.conversations") == []


async def test_catching_up_waits_where_slack_asks_and_goes_on_without_a_scope(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    inbox.cursors[""] = server.make_ts()
    server.say("can't be read", sends_event=False)
    server.say(f"{MENTION} missed", channel=CHANNEL, sends_event=False)
    server.fail("users.conversations", limit_rate(0))
    server.fail("conversations.history", Fault(error="missing_scope", needed="im:history"))
    async with running(make_adapter(), inbox):
        await inbox.wait_until(lambda: inbox.texts == ["missed"], TIMEOUT_SECONDS)


async def test_what_could_not_be_read_is_read_again_although_newer_messages_were_accepted(
    server: SlackServer, make_adapter: MakeAdapter
) -> None:
    inbox = MemoryInbox()
    inbox.cursors[""] = before = f"{time.time() - 3600:.6f}"
    missed = f"{time.time() - 1800:.6f}"
    server.messages[CHANNEL, missed] = {"type": "message", "user": ADA, "text": f"{MENTION} missed", "ts": missed}
    server.fail("conversations.history", *[limit_rate(0), None, BAD_GATEWAY] * 2)
    server.say("live")
    async with running(make_adapter(timing={"catch_up": 0.01, "catch_up_retry": 600.0}), inbox):
        await inbox.wait_until(lambda: inbox.texts == ["live"], TIMEOUT_SECONDS)
        await wait_until(lambda: len(server.list_requests("conversations.history")) == 3)
        server.say("live again")  # one channel whose history can't be read does not stop the rest
        await inbox.wait_until(lambda: inbox.texts == ["live", "live again"], TIMEOUT_SECONDS)
    assert inbox.cursors == {"": before}
    async with running(make_adapter(timing={"catch_up_retry": 0.01}), inbox):
        await inbox.wait_until(lambda: sorted(inbox.texts) == ["live", "live again", "missed"], TIMEOUT_SECONDS)
        await wait_until(lambda: inbox.cursors[""] > before)


async def test_old_messages_are_not_answered_any_more(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    inbox.cursors[""] = f"{time.time() - 7 * 24 * 3600:.6f}"
    old = f"{time.time() - 2 * 24 * 3600:.6f}"
    server.messages[DM, old] = {"type": "message", "user": ADA, "text": "two days ago", "ts": old}
    server.say("just now", sends_event=False)
    async with running(make_adapter(), inbox):
        await inbox.wait_until(lambda: inbox.texts == ["just now"], TIMEOUT_SECONDS)


async def test_the_cursor_never_goes_back(server: SlackServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    async with running(make_adapter(), inbox):
        earlier = server.say("earlier", sends_event=False)
        later = server.say("later")
        await inbox.wait_until(lambda: len(inbox.texts) == 1, TIMEOUT_SECONDS)
        server.push_message(DM, earlier)
        await inbox.wait_until(lambda: len(inbox.texts) == 2, TIMEOUT_SECONDS)
    assert inbox.cursors == {"": later}
