"""What Discord reports, as the gateway accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import ChatType
from palaver.platforms.discord.directory import Channel, ChannelDirectory
from palaver.platforms.discord.inbound import (
    make_snowflake,
    parse_edit,
    parse_interaction,
    parse_message,
    parse_reaction,
)
from palaver.sessions.inbound import Inbound

from .discord_data import (
    ADA,
    ADA_DM_ID,
    BEN,
    BOT,
    BOT_ID,
    BOT_ROLE_ID,
    FORUM_ID,
    GENERAL_ID,
    GUILD_ID,
    make_attachment,
    make_channel,
    make_guild,
    make_member,
    make_message,
    make_thread,
    make_user,
)
from .discord_schemas import list_problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

POST_ID = "1200000000000000099"
DIRECT = Channel(id=ADA_DM_ID, kind=1)


async def open_nothing(_url: str) -> AsyncIterator[bytes]:
    yield b""


@pytest.fixture(scope="module")
def directory() -> ChannelDirectory:
    directory = ChannelDirectory(BOT_ID)
    channels = [
        make_channel(GENERAL_ID, "general", topic="All about engines"),
        make_channel(FORUM_ID, "ideas", type=15),
    ]
    directory.add_guild(make_guild(channels, [make_thread(POST_ID, "Steam", FORUM_ID)]))
    return directory


def read(directory: ChannelDirectory, content: str, channel_id: str = GENERAL_ID, **fields: Any) -> Inbound:
    """Return what a message of Ada becomes, after checking that it is one that Discord could send."""
    message = make_message("77", channel_id, fields.pop("author", ADA), content, **fields)
    assert list_problems("Message", message) == []
    inbound = parse_message(message, directory.find(channel_id) or DIRECT, directory, open_nothing)
    assert inbound is not None
    return inbound


# ---- where and who -------------------------------------------------------------------------------------------


def test_a_direct_message_is_always_for_the_bot(directory: ChannelDirectory) -> None:
    inbound = read(directory, "hello", ADA_DM_ID)
    assert inbound.is_addressed
    assert inbound.source.chat_type is ChatType.DM
    assert (inbound.source.chat_id, inbound.source.user_id, inbound.source.user_name) == (ADA_DM_ID, ADA["id"], "Ada")
    assert inbound.message_id == "77"
    assert inbound.sent_at is not None


def test_a_message_in_a_channel_names_the_server_and_the_channel(directory: ChannelDirectory) -> None:
    source = read(directory, "hello").source
    assert (source.chat_type, source.chat_id, source.thread_id) == (ChatType.CHANNEL, GENERAL_ID, None)
    assert (source.chat_name, source.chat_topic) == ("Engines #general", "All about engines")


def test_a_post_of_a_forum_is_a_thread_in_it(directory: ChannelDirectory) -> None:
    source = read(directory, "hello", POST_ID).source
    assert (source.chat_type, source.chat_id, source.thread_id) == (ChatType.THREAD, FORUM_ID, POST_ID)
    assert (source.chat_name, source.chat_topic) == ("Engines #ideas", "Steam")


def test_the_name_on_the_server_comes_first(directory: ChannelDirectory) -> None:
    message = make_message("77", GENERAL_ID, ADA, "hi") | {"member": make_member(nick="Countess")}
    channel = directory.find(GENERAL_ID)
    assert channel is not None
    inbound = parse_message(message, channel, directory, open_nothing)
    assert inbound is not None
    assert inbound.source.user_name == "Countess"


# ---- for whom ------------------------------------------------------------------------------------------------


def make_reference(message_id: str) -> dict[str, Any]:
    return {"type": 0, "channel_id": GENERAL_ID, "message_id": message_id, "guild_id": GUILD_ID}


@pytest.mark.parametrize(
    ("fields", "addresses_others"),
    [
        ({}, False),
        ({"mentions": [BOT]}, False),
        ({"mentions": [BEN]}, True),
        ({"mentions": [BOT, BEN]}, True),
        ({"mention_roles": ["9"]}, True),
        ({"mention_everyone": True}, True),
        ({"type": 19, "message_reference": make_reference("1"), "referenced_message": None}, True),
    ],
)
def test_who_else_is_addressed(directory: ChannelDirectory, fields: dict[str, Any], *, addresses_others: bool) -> None:
    assert read(directory, "hello", **fields).addresses_others is addresses_others


@pytest.mark.parametrize(("author", "addresses_others"), [(BOT, False), (ADA, False), (BEN, True)])
def test_a_reply_addresses_the_author_of_what_it_replies_to(
    directory: ChannelDirectory, author: dict[str, Any], *, addresses_others: bool
) -> None:
    replied = make_message("70", GENERAL_ID, author, "earlier")
    fields: dict[str, Any] = {"type": 19, "message_reference": make_reference("70"), "referenced_message": replied}
    assert read(directory, "hello", **fields).addresses_others is addresses_others


@pytest.mark.parametrize(
    ("content", "fields", "is_addressed"),
    [
        ("hello", {}, False),
        ("hello palaver", {}, False),
        (f"<@{BOT_ID}> hello", {"mentions": [BOT]}, True),
        (f"<@{BOT_ID}> in code", {}, False),  # Discord does not say that the bot was mentioned
        (f"<@&{BOT_ROLE_ID}> hello", {"mention_roles": [BOT_ROLE_ID]}, True),
        ("hello", {"mention_roles": ["9"]}, False),
        ("@everyone hello", {"mention_everyone": True}, False),
        ("@everyone hello", {"mention_everyone": True, "mention_roles": [GUILD_ID]}, False),
        ("and you?", {"mentions": [BOT], "type": 19}, True),  # a reply that notifies the bot
        ("and you?", {"mentions": [BEN]}, False),
    ],
)
def test_who_is_meant_is_what_discord_says(
    directory: ChannelDirectory, content: str, fields: dict[str, Any], is_addressed: bool
) -> None:
    assert read(directory, content, **fields).is_addressed is is_addressed


@pytest.mark.parametrize(
    ("author", "fields"),
    [
        (make_user("5", "Robot", bot=True), {}),
        (make_user("6", "Hook"), {"webhook_id": "6"}),
        (make_user("7", "Discord", system=True), {}),
    ],
)
def test_programs_are_told_apart(directory: ChannelDirectory, author: dict[str, Any], fields: dict[str, Any]) -> None:
    assert read(directory, "beep", author=author, **fields).is_from_bot


@pytest.mark.parametrize(
    "message",
    [
        make_message("1", GENERAL_ID, BOT, "my own"),
        make_message("1", GENERAL_ID, ADA, "", type=7),  # has joined
        make_message("1", GENERAL_ID, ADA, "", type=21),  # the start of a thread, again
        make_message("1", GENERAL_ID, ADA, f"<@{BOT_ID}>", mentions=[BOT]),
        make_message("1", GENERAL_ID, ADA, ""),  # the bot may not read it
    ],
)
def test_what_says_nothing_is_no_message(directory: ChannelDirectory, message: dict[str, Any]) -> None:
    channel = directory.find(GENERAL_ID)
    assert channel is not None
    assert parse_message(message, channel, directory, open_nothing) is None


# ---- content -------------------------------------------------------------------------------------------------


def test_ids_in_a_text_become_names(directory: ChannelDirectory) -> None:
    text = f"<@!{BOT_ID}> ask <@{BEN['id']}> in <#{GENERAL_ID}>, <@&{BOT_ROLE_ID}>! <:gear:123> </new:55> <@404>"
    inbound = read(directory, text, mentions=[BOT, BEN])
    assert inbound.content == "ask @Ben in #general, @Agents! :gear: /new <@404>"


def test_nothing_that_people_see_is_invisible(directory: ChannelDirectory) -> None:
    embed = {
        "type": "rich",
        "title": "Deployed",
        "description": "Version 3",
        "fields": [{"name": "Host", "value": "engine-1"}],
        "footer": {"text": "CI"},
    }
    poll = {
        "question": {"text": "Tea?"},
        "answers": [{"answer_id": 1, "poll_media": {"text": "Yes"}}, {"answer_id": 2, "poll_media": {"text": "No"}}],
        "expiry": "2026-11-17T00:00:00+00:00",
        "allow_multiselect": False,
        "layout_type": 1,
    }
    sticker = {"id": "1", "name": "Wave", "format_type": 1}
    inbound = read(directory, "look", embeds=[embed], poll=poll, sticker_items=[sticker])
    assert inbound.content == (
        "look\n[Embed]\nDeployed\nVersion 3\nHost: engine-1\nCI\n[Sticker: Wave]\n[Poll: Tea? (Yes; No)]"
    )


def test_the_preview_of_a_link_is_not_shown_again(directory: ChannelDirectory) -> None:
    url = "https://example.org/a"
    assert read(directory, f"see {url}", embeds=[{"type": "link", "url": url, "title": "A"}]).content == f"see {url}"


def test_a_forwarded_message_is_shown_with_its_files(directory: ChannelDirectory) -> None:
    attachment = make_attachment("1", "plan.pdf", "https://cdn.discordapp.com/plan.pdf", 10)
    inner = make_message("5", GENERAL_ID, BEN, "the plan", attachments=[attachment])
    kept = ("content", "embeds", "attachments", "timestamp", "edited_timestamp", "flags", "mentions")
    snapshot = {"message": {name: inner[name] for name in (*kept, "mention_roles", "type")}}
    reference = {"type": 1, "message_id": "5", "channel_id": GENERAL_ID}
    inbound = read(directory, "", ADA_DM_ID, message_snapshots=[snapshot], message_reference=reference)
    assert inbound.content == "[Forwarded message]\nthe plan"
    assert [file.name for file in inbound.files] == ["plan.pdf"]
    assert inbound.replied_message is None


def test_files_and_voice_messages_are_described(directory: ChannelDirectory) -> None:
    sound = make_attachment("1", "voice-message.ogg", "https://cdn.discordapp.com/v.ogg", 900, content_type="audio/ogg")
    voice = sound | {"duration_secs": 2.6, "waveform": "AAAA"}
    [file] = read(directory, "", ADA_DM_ID, attachments=[voice], flags=1 << 13).files
    assert (file.name, file.media_type, file.size, file.is_voice) == ("voice-message.ogg", "audio/ogg", 900, True)
    assert file.duration_seconds == 3
    [file] = read(directory, "", ADA_DM_ID, attachments=[sound]).files
    assert not file.is_voice


def test_a_reply_quotes_what_it_replies_to(directory: ChannelDirectory) -> None:
    reference = {"message_id": "5", "channel_id": GENERAL_ID}
    mine = make_message("5", GENERAL_ID, BOT, "42")
    replied = read(directory, "why?", type=19, message_reference=reference, referenced_message=mine).replied_message
    assert replied is not None
    assert (replied.message_id, replied.text, replied.is_own) == ("5", "42", True)
    gone = read(directory, "why?", type=19, message_reference=reference, referenced_message=None).replied_message
    assert gone is not None
    assert (gone.message_id, gone.text, gone.is_own) == ("5", "", False)


# ---- other events --------------------------------------------------------------------------------------------


def test_an_edit_is_reported_but_not_the_preview_of_a_link(directory: ChannelDirectory) -> None:
    message = make_message("1", ADA_DM_ID, ADA, "hello")
    assert parse_edit(message, DIRECT, directory) is None
    edit = parse_edit(message | {"edited_timestamp": message["timestamp"]}, DIRECT, directory)
    assert edit is not None
    assert (edit.message_id, edit.content, edit.source.user_id) == ("1", "hello", ADA["id"])


@pytest.mark.parametrize(
    ("emoji", "shown"), [({"id": None, "name": "👍"}, "👍"), ({"id": "9", "name": "gear"}, ":gear:")]
)
def test_a_reaction_is_reported(directory: ChannelDirectory, emoji: dict[str, Any], shown: str) -> None:
    fields = {"user_id": ADA["id"], "message_id": "1", "channel_id": ADA_DM_ID, "emoji": emoji}
    added, removed = (parse_reaction(fields, DIRECT, directory, is_removed) for is_removed in (False, True))
    assert added is not None
    assert removed is not None
    assert (added.emoji, added.is_removed, removed.is_removed) == (shown, False, True)
    assert parse_reaction(fields | {"user_id": BOT_ID}, DIRECT, directory, False) is None
    robot = make_member(make_user("5", "Robot", bot=True))
    assert parse_reaction(fields | {"user_id": "5", "member": robot}, DIRECT, directory, False) is None


def test_a_slash_command_is_what_people_type_elsewhere(directory: ChannelDirectory) -> None:
    channel = directory.find(POST_ID)
    assert channel is not None
    data = {"id": "1", "name": "steer", "type": 1, "options": [{"name": "text", "type": 3, "value": "be brief"}]}
    inbound = parse_interaction({"id": "9", "type": 2, "data": data, "member": make_member(ADA)}, channel, directory)
    assert isinstance(inbound, Inbound)
    assert (inbound.content, inbound.message_id, inbound.is_addressed) == ("/steer be brief", "command:9", True)
    assert (inbound.source.thread_id, inbound.source.user_id) == (POST_ID, ADA["id"])


def test_a_change_of_the_bots_roles_changes_who_is_meant() -> None:
    directory = ChannelDirectory(BOT_ID)
    directory.add_guild(make_guild([make_channel(GENERAL_ID, "general")], []))
    directory.update_member(GUILD_ID, make_member(BOT, roles=["8"]))
    directory.update_member(GUILD_ID, make_member(ADA, roles=["9"]))
    assert read(directory, "hi", mention_roles=["8"]).is_addressed
    assert not read(directory, "hi", mention_roles=["9"]).is_addressed


def test_an_id_begins_with_its_time() -> None:
    from datetime import UTC, datetime

    assert make_snowflake(datetime(2016, 4, 30, 11, 18, 25, 796000, UTC)) == 175928847299117063 >> 22 << 22
