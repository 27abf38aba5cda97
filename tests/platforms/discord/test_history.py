"""What came while nothing ran, or could not be received, is read from the history of each channel, once, in order."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from palaver.core.errors import StoreError
from palaver.sessions.inbound import MessageDeleted
from palaver.testing import MemoryInbox, MemoryLink
from palaver.testing.account_link import Death
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.platform_adapters import run_adapter, wait_for_texts

from .conftest import connect, make_adapter_for
from .discord_api import BAD_GATEWAY, CUT_LINE, Fault, limit_rate
from .discord_data import ADA_DM_ID, BEN, BEN_DM_ID, FORUM_ID, GENERAL_ID, GUILD_ID, HIDDEN_ID, make_channel
from .discord_server import MENTION, DiscordServer


def say_in_channel(server: DiscordServer, text: str, channel_id: str = GENERAL_ID, **fields: Any) -> dict[str, Any]:
    return server.say(f"{MENTION} {text}", channel_id=channel_id, **fields)


async def start_once(server: DiscordServer, inbox: MemoryInbox) -> None:
    """Let the account be known, with one direct chat."""
    async with connect(server, inbox):
        server.say("first")
        await wait_for_texts(inbox, "first")


def age(server: DiscordServer, message: dict[str, Any], by: timedelta) -> None:
    """Let a message be older than it is."""
    from palaver.platforms.discord.inbound import make_snowflake

    messages = server.messages[message["channel_id"]]
    del messages[message["id"]]
    message["id"] = str(make_snowflake(datetime.now(UTC) - by))
    messages[message["id"]] = message
    server.channels[message["channel_id"]]["last_message_id"] = message["id"]


@pytest.mark.parametrize("death", list(Death))
async def test_the_first_direct_message_of_a_person_is_not_lost_when_the_process_dies(
    server: DiscordServer, inbox: MemoryInbox, death: Death
) -> None:
    link = MemoryLink(inbox, death=death)
    adapter = make_adapter_for(server)
    async with run_adapter(adapter, link):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        server.say("Do not lose me", channel_id=BEN_DM_ID, author=BEN)
        await asyncio.wait_for(link.reached_death.wait(), TIMEOUT_SECONDS)
    async with connect(server, inbox):
        server.say("And go on", channel_id=BEN_DM_ID, author=BEN)
        await wait_for_texts(inbox, "Do not lose me", "And go on")


async def test_the_first_direct_message_of_a_person_is_not_lost_while_the_server_starts_again(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    await start_once(server, inbox)
    server.say("Do not lose me", channel_id=BEN_DM_ID, author=BEN)
    server.say("Nor me")
    async with connect(server, inbox):
        await inbox.wait_until(lambda: len(inbox.texts) == 3, TIMEOUT_SECONDS)
        server.say("And go on", channel_id=BEN_DM_ID, author=BEN)
        await inbox.wait_until(lambda: len(inbox.texts) == 4, TIMEOUT_SECONDS)
    assert inbox.texts[0] == "first"
    assert sorted(inbox.texts[1:3]) == ["Do not lose me", "Nor me"]
    assert inbox.texts[3] == "And go on"
    assert (server.gateway.identify_count, server.gateway.resume_count) == (2, 1)


@pytest.mark.parametrize("is_resume_refused", [True, False])
async def test_a_first_direct_message_that_discord_no_longer_sends_comes_with_the_next_one(
    server: DiscordServer, inbox: MemoryInbox, *, is_resume_refused: bool
) -> None:
    await start_once(server, inbox)
    server.gateway.forget_sessions()
    server.gateway.closes_resumes = int(is_resume_refused)
    server.say("While nothing ran", channel_id=BEN_DM_ID, author=BEN)
    async with connect(server, inbox):
        server.say("And now", channel_id=BEN_DM_ID, author=BEN)
        await wait_for_texts(inbox, "first", "While nothing ran", "And now")


async def test_everything_missed_is_accepted_once_and_in_order(server: DiscordServer, inbox: MemoryInbox) -> None:
    await start_once(server, inbox)
    texts = [f"number {number}" for number in range(230)]  # more than two pages
    for text in texts:
        say_in_channel(server, text)
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", *texts)
        say_in_channel(server, "live")
        await wait_for_texts(inbox, "first", *texts, "live")
    async with connect(server, inbox):
        server.say("last")
        await wait_for_texts(inbox, "first", *texts, "live", "last")


async def test_a_live_message_waits_for_the_history_of_its_own_channel(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    await start_once(server, inbox)
    server.say("missed")
    server.fail("listMessages", BAD_GATEWAY, CUT_LINE)  # so that the history takes a while
    async with connect(server, inbox):
        server.say("live")
        await wait_for_texts(inbox, "first", "missed", "live")


async def test_a_gap_is_bounded_and_the_newest_messages_are_kept(
    server: DiscordServer, inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palaver.platforms.discord import receiver as history

    monkeypatch.setattr(history, "MAX_GAP_MESSAGES", 200)
    await start_once(server, inbox)
    for number in range(250):
        say_in_channel(server, str(number))
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", *[str(number) for number in range(50, 250)])


async def test_channels_without_news_are_not_asked(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        say_in_channel(server, "hello")
        await wait_for_texts(inbox, "hello")
    server.requests.clear()
    async with connect(server, inbox):
        server.say("next")
        await wait_for_texts(inbox, "hello", "next")
        say_in_channel(server, "again")
        await wait_for_texts(inbox, "hello", "next", "again")
    asked = [request.path for request in server.list_requests("listMessages")]
    assert asked in ([(ADA_DM_ID,)], [(GENERAL_ID,), (ADA_DM_ID,)])


async def test_at_the_very_first_start_only_what_was_just_written_is_read(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    age(server, say_in_channel(server, "long ago"), timedelta(hours=2))
    say_in_channel(server, "while it was set up")
    async with connect(server, inbox):
        await wait_for_texts(inbox, "while it was set up")


async def test_what_was_written_before_the_bot_was_added_is_not_read(
    server: DiscordServer, inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_once(server, inbox)
    say_in_channel(server, "before it was added")
    joined_at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    guilds = [guild | {"joined_at": joined_at} for guild in server.list_guilds()]
    monkeypatch.setattr(server, "list_guilds", lambda: guilds)
    async with connect(server, inbox):
        server.say("live")
        await wait_for_texts(inbox, "first", "live")


async def test_new_channels_threads_and_posts_are_read_too(server: DiscordServer, inbox: MemoryInbox) -> None:
    await start_once(server, inbox)
    server.channels["1200000000000000055"] = make_channel("1200000000000000055", "new")
    say_in_channel(server, "in a new channel", "1200000000000000055")
    say_in_channel(server, "in a post", server.start_thread("Steam", parent_id=FORUM_ID))
    async with connect(server, inbox):
        await inbox.wait_until(lambda: len(inbox.texts) == 3, TIMEOUT_SECONDS)
    sources = {str(message.content): message.source for message in inbox.messages}
    assert sources["in a new channel"].chat_id == "1200000000000000055"
    assert sources["in a post"].chat_id == FORUM_ID


async def test_a_thread_that_was_archived_meanwhile_is_read(server: DiscordServer, inbox: MemoryInbox) -> None:
    thread_id = server.start_thread("Steam")
    async with connect(server, inbox):
        say_in_channel(server, "one", thread_id)
        await wait_for_texts(inbox, "one")
    say_in_channel(server, "two", thread_id)
    server.channels[thread_id]["thread_metadata"]["archived"] = True  # Discord no longer lists it
    async with connect(server, inbox):
        await wait_for_texts(inbox, "one", "two")
    assert inbox.messages[-1].source.thread_id == thread_id
    assert inbox.messages[-1].source.chat_id == GENERAL_ID


async def test_a_channel_that_the_bot_cannot_read_stops_nothing(server: DiscordServer, inbox: MemoryInbox) -> None:
    await start_once(server, inbox)
    say_in_channel(server, "secret", HIDDEN_ID)
    say_in_channel(server, "hello")
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", "hello")


async def test_a_thread_that_was_deleted_is_asked_for_once(server: DiscordServer, inbox: MemoryInbox) -> None:
    thread_id = server.start_thread("Steam")
    async with connect(server, inbox):
        say_in_channel(server, "one", thread_id)
        await wait_for_texts(inbox, "one")
    del server.channels[thread_id]
    for number in range(2):
        server.requests.clear()
        async with connect(server, inbox):
            server.say(f"live {number}")
            await inbox.wait_until(lambda: len(inbox.texts) == number + 2, TIMEOUT_SECONDS)  # noqa: B023
            await wait_until(lambda: number == 1 or inbox.cursors["threads"] == "[]")  # noqa: B023
    assert (thread_id,) not in [request.path for request in server.list_requests("listMessages")]


async def test_the_history_waits_as_long_as_discord_asks(server: DiscordServer, inbox: MemoryInbox) -> None:
    await start_once(server, inbox)
    server.say("missed")
    server.fail("listMessages", limit_rate(0.05), limit_rate(0.05))
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", "missed")


async def test_a_channel_whose_history_discord_does_not_return_stops_no_other(
    server: DiscordServer, inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palaver.platforms.discord import receiver as history

    monkeypatch.setattr(history, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(history, "POSTPONE_SECONDS", 0.01)
    await start_once(server, inbox)
    server.say("missed")
    say_in_channel(server, "missed in the channel")
    server.channels_without_history.add(ADA_DM_ID)
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", "missed in the channel")
        server.say("live")  # it waits for the history
        say_in_channel(server, "live in the channel")
        await wait_for_texts(inbox, "first", "missed in the channel", "live in the channel")
        requests = len(server.list_requests("listMessages"))
        await wait_until(lambda: len(server.list_requests("listMessages")) > requests + history.MAX_ATTEMPTS)
        server.channels_without_history.clear()
        await wait_for_texts(inbox, "first", "missed in the channel", "live in the channel", "missed", "live")
    assert server.gateway.identify_count == 2


async def test_a_refusal_that_is_not_from_discord_itself_loses_no_history(
    server: DiscordServer, inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.discord.receiver.POSTPONE_SECONDS", 0.01)
    monkeypatch.setattr("palaver.platforms.discord.failures.BLOCKED_WAIT_SECONDS", 0.01)
    await start_once(server, inbox)
    server.say("missed")
    server.fail("listMessages", *[Fault(403)] * 5, Fault(404))
    async with connect(server, inbox):
        await wait_for_texts(inbox, "first", "missed")


async def test_a_channel_that_is_not_known_is_asked_for_again(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        message = say_in_channel(server, "one")
        await wait_for_texts(inbox, "one")
        thread_id = server.start_thread("Steam")
        server.dispatch("THREAD_DELETE", {"id": thread_id, "guild_id": GUILD_ID, "parent_id": GENERAL_ID, "type": 11})
        server.fail("getChannel", BAD_GATEWAY, CUT_LINE)
        server.react(message["id"], thread_id, {"id": None, "name": "👍"})
        await inbox.wait_until(lambda: len(inbox.updates) == 2, TIMEOUT_SECONDS)
    assert inbox.updates[-1].source.thread_id == thread_id
    assert server.gateway.identify_count == 1


async def test_a_server_that_comes_back_later_is_read_then(server: DiscordServer, inbox: MemoryInbox) -> None:
    await start_once(server, inbox)
    say_in_channel(server, "missed")
    guilds = server.list_guilds()
    server.gateway.has_outage = True
    async with connect(server, inbox):
        server.say("live")
        await wait_for_texts(inbox, "first", "live")
        server.dispatch("GUILD_CREATE", guilds[0])
        await wait_for_texts(inbox, "first", "live", "missed")
        server.dispatch("GUILD_DELETE", {"id": GUILD_ID, "unavailable": True})
        say_in_channel(server, "goes on")
        await wait_for_texts(inbox, "first", "live", "missed", "goes on")


async def test_no_person_waits_for_another_persons_file_and_nothing_before_it_is_passed_over(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    class SlowLink(MemoryLink):
        """Downloads files before it accepts, as the gateway does."""

        async def accept(self, update: Any, *, cursor: Any = None) -> Any:
            for file in getattr(update, "files", ()):
                assert b"".join([chunk async for chunk in file.open()]) == b"0123"
            return await super().accept(update, cursor=cursor)

    server.sends_files.clear()
    adapter = make_adapter_for(server)
    async with run_adapter(adapter, SlowLink(inbox)):
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        message = server.say("a file", attachments=[server.attach("a.txt", b"0123")])
        server.say("behind it")
        server.say("hello", channel_id=BEN_DM_ID, author=BEN)
        await wait_for_texts(inbox, "hello")
        assert ADA_DM_ID not in inbox.cursors
        server.sends_files.set()
        await wait_for_texts(inbox, "hello", "a file", "behind it")
        await wait_until(lambda: inbox.cursors[ADA_DM_ID] > message["id"])
        await wait_until(lambda: inbox.cursors.get(BEN_DM_ID, "") > message["id"])


async def test_a_message_that_is_not_stored_ends_the_run_also_if_nothing_follows(
    server: DiscordServer, inbox: MemoryInbox
) -> None:
    class BrokenLink(MemoryLink):
        async def accept(self, update: Any, *, cursor: Any = None) -> Any:
            raise StoreError("The database is gone.")

    async with run_adapter(make_adapter_for(server), BrokenLink(inbox)) as task:
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        server.say("a file", attachments=[server.attach("a.txt", b"0123")])
        await asyncio.wait({task}, timeout=TIMEOUT_SECONDS)
        assert task.done()
        assert isinstance(task.exception(), StoreError)
    async with connect(server, inbox):
        await wait_for_texts(inbox, "a file")


async def test_many_deletions_at_once_are_all_reported(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        ids = [say_in_channel(server, text)["id"] for text in ("one", "two")]
        await wait_for_texts(inbox, "one", "two")
        server.dispatch("MESSAGE_DELETE_BULK", {"ids": ids, "channel_id": GENERAL_ID, "guild_id": GUILD_ID})
        await inbox.wait_until(lambda: len(inbox.updates) == 4, TIMEOUT_SECONDS)
    deleted = [update.message_id for update in inbox.updates if isinstance(update, MessageDeleted)]
    assert deleted == ids


async def test_an_event_that_cannot_be_read_does_not_stop_the_rest(server: DiscordServer, inbox: MemoryInbox) -> None:
    async with connect(server, inbox):
        server.say("first")
        await wait_for_texts(inbox, "first")
        broken = server.say("broken", is_sent=False) | {"timestamp": "yesterday"}
        server.send_created(broken)
        server.say("fine")
        await wait_for_texts(inbox, "first", "fine")
