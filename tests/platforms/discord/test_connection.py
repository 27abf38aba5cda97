"""The connection to the gateway, with the real SDK: what ends it, what resumes it, and what counts as alive."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.core.logs import remove_secrets
from palaver.platforms.discord.receiver import SESSION
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import run_adapter, wait_for_texts

from .conftest import connect, make_adapter_for, make_outgoing
from .discord_api import BAD_GATEWAY
from .discord_data import BOT_ID, GENERAL_ID, TOKEN
from .discord_server import MENTION, DiscordServer

if TYPE_CHECKING:
    from palaver.sessions.inbound import AnyUpdate, Cursor, Receipt

    from .conftest import MakeAdapter

MESSAGE_CONTENT = 1 << 15


async def run_until_it_fails(server: DiscordServer, inbox: MemoryInbox) -> Exception:
    adapter = make_adapter_for(server)
    try:
        with pytest.raises((AccountRefused, ConnectionLost)) as failed:
            await asyncio.wait_for(adapter.run(MemoryLink(inbox)), TIMEOUT_SECONDS)
    finally:
        await adapter.close()
    assert TOKEN not in str(failed.value)
    return failed.value


async def test_the_account_is_connected_when_the_next_process_could_find_what_it_misses(
    server: DiscordServer, make_adapter: MakeAdapter, inbox: MemoryInbox
) -> None:
    """If the process died earlier, the first direct message of a person would be in no list and behind no cursor."""
    saving, go_on = asyncio.Event(), asyncio.Event()

    class SlowLink(MemoryLink):
        async def save_cursor(self, cursor: Cursor) -> None:
            if cursor.name == SESSION:
                saving.set()
                await go_on.wait()
            await super().save_cursor(cursor)

    adapter = make_adapter()
    running = asyncio.create_task(adapter.run(SlowLink(inbox)))
    await asyncio.wait_for(saving.wait(), TIMEOUT_SECONDS)
    assert inbox.connected_count == 0
    go_on.set()
    await wait_until(lambda: inbox.connected_count)
    running.cancel()
    await asyncio.wait({running})


# ---- signing in ----------------------------------------------------------------------------------------------


async def test_signing_in_names_the_bot(make_adapter: MakeAdapter) -> None:
    info = await make_adapter().probe()
    assert (info.user_id, info.name, info.warnings) == (BOT_ID, "@palaver", ())
    assert info.details[0] == "In 1 server"


async def test_the_connection_can_be_tested_while_the_bot_runs(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox) as adapter:
        assert (await adapter.probe()).name == "@palaver"
        server.say("hello")
        await wait_for_texts(inbox, "hello")


async def test_a_token_that_was_reset_is_refused_with_the_fix(server: DiscordServer, make_adapter: MakeAdapter) -> None:
    server.is_revoked = True
    with pytest.raises(AccountRefused, match="Reset Token") as refused:
        await make_adapter().probe()
    assert remove_secrets(str(refused.value)) == str(refused.value)  # logs show all of it


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4014, "turn on Message Content Intent under Privileged Gateway Intents"),
        (4004, "Reset Token"),
        (4011, "servers"),
    ],
)
async def test_a_connection_that_discord_refuses_says_what_to_do(
    server: DiscordServer, inbox: MemoryInbox, code: int, words: str
) -> None:
    server.gateway.identify_close_code = code
    error = await run_until_it_fails(server, inbox)
    assert isinstance(error, AccountRefused)
    assert words in str(error)


async def test_without_the_intent_it_still_hears_direct_messages_and_mentions(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    server.application |= {"flags": 0, "flags_new": "0"}
    async with connect(server, inbox) as adapter:
        [warning] = (await adapter.probe()).warnings
        assert "Message Content Intent" in warning
        server.say("one")
        server.say("not for you", channel_id=GENERAL_ID)
        server.say(f"{MENTION} two", channel_id=GENERAL_ID)
        await wait_for_texts(inbox, "one", "two")
    [identify] = [payload for payload in server.gateway.received if payload["op"] == 2]
    assert not identify["d"]["intents"] & MESSAGE_CONTENT


async def test_the_intent_takes_effect_when_the_connection_is_tested(server: DiscordServer, inbox: MemoryInbox) -> None:
    allowed = dict(server.application)
    server.application |= {"flags": 0, "flags_new": "0"}
    async with connect(server, inbox) as adapter:
        await adapter.probe()
        server.say("not for you", channel_id=GENERAL_ID)
        server.say("one")
        await wait_for_texts(inbox, "one")
        assert server.gateway.identify_count == 1
        server.application |= allowed
        assert (await adapter.probe()).warnings == ()
        await wait_until(lambda: server.gateway.identify_count == 2 and server.gateway.is_connected)
        server.say("context", channel_id=GENERAL_ID)
        await inbox.wait_until(lambda: "context" in inbox.texts, TIMEOUT_SECONDS)
    identifies = [payload["d"]["intents"] for payload in server.gateway.received if payload["op"] == 2]
    assert [bool(intents & MESSAGE_CONTENT) for intents in identifies] == [False, True]


async def test_a_bot_that_has_connected_too_often_waits(server: DiscordServer, inbox: MemoryInbox) -> None:
    server.session_starts_left = 0
    error = await run_until_it_fails(server, inbox)
    assert isinstance(error, ConnectionLost)
    assert "10 minutes" in str(error)


async def test_the_menu_of_commands_is_set_but_not_needed(server: DiscordServer, inbox: MemoryInbox) -> None:
    server.fail("putCommands", BAD_GATEWAY)
    async with connect(server, inbox):
        server.say("hello")
        await wait_for_texts(inbox, "hello")
    assert server.commands == []
    async with connect(server, inbox):
        assert [command["name"] for command in server.commands] == ["new", "stop", "steer"]


# ---- staying connected ---------------------------------------------------------------------------------------


async def test_a_cut_connection_is_resumed_and_nothing_is_missed(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        server.say("one")
        await wait_for_texts(inbox, "one")
        server.gateway.cut()
        server.say("two")
        await wait_for_texts(inbox, "one", "two")
    assert (server.gateway.identify_count, server.gateway.resume_count) == (1, 1)


async def test_it_connects_again_when_discord_asks_for_it(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        server.gateway.send_to_all("RECONNECT", {"op": 7, "d": None, "s": None, "t": None})
        await wait_until(lambda: server.gateway.resume_count == 1)
        server.say("hello")
        await wait_for_texts(inbox, "hello")
    assert server.gateway.identify_count == 1


async def test_a_session_that_has_ended_is_replaced_and_the_gap_is_closed(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    async with connect(server, inbox):
        server.say("one")
        await wait_for_texts(inbox, "one")
        server.gateway.forget_sessions()
        server.say("two")  # no connection is told
        server.say(f"{MENTION} three", channel_id=GENERAL_ID)
        server.gateway.cut()
        await inbox.wait_until(lambda: len(inbox.texts) == 3, TIMEOUT_SECONDS)
        server.say("four")
        await inbox.wait_until(lambda: len(inbox.texts) == 4, TIMEOUT_SECONDS)
    assert sorted(inbox.texts) == ["four", "one", "three", "two"]
    assert inbox.texts.index("two") < inbox.texts.index("four")
    assert (server.gateway.identify_count, server.gateway.resume_count) == (2, 1)


async def test_after_some_resumes_that_fail_a_new_session_is_started(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        server.say("one")
        await wait_for_texts(inbox, "one")
        server.gateway.closes_resumes = 1_000
        server.gateway.sends_dispatches = False
        server.gateway.cut()
        server.say("two")
        server.gateway.sends_dispatches = True
        await wait_for_texts(inbox, "one", "two")
    assert (server.gateway.identify_count, server.gateway.resume_count) == (2, 4)


async def test_a_connection_that_breaks_again_and_again_ends_the_run(server: DiscordServer, inbox: MemoryInbox) -> None:
    server.gateway.identify_close_code = 4000
    error = await run_until_it_fails(server, inbox)
    assert isinstance(error, ConnectionLost)
    assert server.gateway.identify_count == 3


async def test_a_connection_whose_heartbeats_are_not_answered_is_dead_whatever_else_it_sends(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    server.gateway.heartbeat_ms = 40
    async with connect(server, inbox, beat_grace=0.1):
        await inbox.wait_until(lambda: inbox.connected_count > 3, TIMEOUT_SECONDS)
        server.gateway.answers_heartbeats = False
        count = 0
        while server.gateway.resume_count == 0:
            count += 1
            server.say(f"message {count}")  # it is not silent
            await asyncio.sleep(0.01)
        server.gateway.answers_heartbeats = True
        await inbox.wait_until(lambda: len(inbox.texts) == count, TIMEOUT_SECONDS)
    assert server.gateway.identify_count == 1
    assert inbox.texts == [f"message {number}" for number in range(1, count + 1)]


async def test_only_answered_heartbeats_count_as_alive(server: DiscordServer, inbox: MemoryInbox) -> None:
    server.gateway.answers_heartbeats = False
    async with connect(server, inbox):
        server.say("one")
        server.say("two")
        await wait_for_texts(inbox, "one", "two")
        assert inbox.connected_count == 1  # the greeting


async def test_a_slow_database_holds_the_connection_back_and_loses_nothing(
    server: DiscordServer, inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.discord.receiver.MAX_WAITING_EVENTS", 3)
    is_open = asyncio.Event()

    class SlowLink(MemoryLink):
        async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
            await is_open.wait()
            return await super().accept(update, cursor=cursor)

    async with run_adapter(make_adapter_for(server), SlowLink(inbox)):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        texts = [f"message {number}" for number in range(20)]
        for text in texts:
            server.say(text)
        server.gateway.send_to_all("RECONNECT", {"op": 7, "d": None, "s": None, "t": None})
        await asyncio.sleep(0.05)
        assert server.gateway.resume_count == 0  # it has not read so far
        is_open.set()
        await wait_for_texts(inbox, *texts)
        await wait_until(lambda: server.gateway.resume_count == 1)


async def test_it_says_good_bye_and_discord_keeps_the_session(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        pass
    await wait_until(lambda: server.gateway.close_codes)
    assert server.gateway.close_codes == [4000]


async def test_no_log_shows_a_secret(
    server: DiscordServer, inbox: MemoryInbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="discord")
    caplog.set_level(logging.DEBUG, logger="palaver")
    caplog.set_level(logging.DEBUG, logger="aiohttp")
    async with connect(server, inbox) as adapter:
        interaction = server.call_command("new")
        await inbox.wait_until(lambda: inbox.messages, TIMEOUT_SECONDS)
        await adapter.send(make_outgoing(adapter))
        server.gateway.cut()
        await wait_until(lambda: server.gateway.resume_count)
    secrets = (TOKEN, interaction.fields["token"], *server.gateway.sessions)
    assert [
        record.getMessage() for record in caplog.records if any(each in record.getMessage() for each in secrets)
    ] == []


async def test_a_run_that_ends_closes_everything(server: DiscordServer, inbox: MemoryInbox) -> None:
    adapter = make_adapter_for(server)
    async with run_adapter(adapter, MemoryLink(inbox)):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
    await wait_until(lambda: server.gateway.sockets == [])
    await wait_until(lambda: not [each for each in threading.enumerate() if each.name.startswith("keep-alive")])
