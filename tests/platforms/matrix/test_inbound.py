"""Recorded events of a room → updates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import ChatType
from palaver.platforms.matrix.inbound import (
    FileReference,
    Reader,
    Room,
    SeenEvent,
    VerificationRequest,
    describe_event,
    find_references,
    read_event,
    read_file_reference,
    read_verification_request,
)
from palaver.sessions.inbound import (
    ChatMoved,
    Inbound,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOT = "@palaver:example.org"
ADA = "@ada:example.org"
BEN = "@ben:example.org"


async def open_nothing(file: FileReference) -> AsyncIterator[bytes]:
    yield b""


READER = Reader(BOT, "Palaver", open_nothing)
SEEN = {
    "$own": SeenEvent(BOT, "I said this"),
    "$ada": SeenEvent(ADA, "Ada said this"),
    "$ben": SeenEvent("@ben:example.org", "Ben said this"),
    "$reaction": SeenEvent(ADA, "", "$own", "👍"),
}


def make_room(members: int = 2) -> Room:
    return Room("!room:example.org", name="Club", joined_count=members, member_names={ADA: "Ada"})


def make_event(content: dict[str, Any], event_type: str = "m.room.message", **fields: Any) -> dict[str, Any]:
    """Make an event with the fields that Synapse sends."""
    return {
        "type": event_type,
        "sender": ADA,
        "content": content,
        "event_id": "$event",
        "origin_server_ts": 1_760_000_000_000,
        "unsigned": {"age": 12, "membership": "join"},
        **fields,
    }


def text(text: str, **content: Any) -> dict[str, Any]:
    return make_event({"msgtype": "m.text", "body": text, **content})


def read(event: dict[str, Any], members: int = 2) -> Any:
    return read_event(event, make_room(members), READER, SEEN)


def test_a_text() -> None:
    message = read(text("Hello", **{"m.mentions": {}}))
    assert isinstance(message, Inbound)
    assert (message.content, message.message_id, message.is_addressed) == ("Hello", "$event", True)
    assert message.sent_at == datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
    assert (message.source.chat_id, message.source.user_id, message.source.user_name) == (
        *("!room:example.org", ADA, "Ada"),
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"msgtype": "m.emote", "body": "waves"}, "* Ada waves"),
        ({"msgtype": "m.text", "body": "> <@ben:example.org> Old\n> text\n\nNew", "m.relates_to": "reply"}, "New"),
        ({"msgtype": "m.text", "body": "> a quote of mine\n\nNew"}, "> a quote of mine\n\nNew"),
        ({"msgtype": "m.text", "body": "Palaver: /stop", "m.mentions": {"user_ids": [BOT]}}, "/stop"),
        ({"msgtype": "m.text", "body": f"{BOT} hi", "m.mentions": {"user_ids": [BOT]}}, "hi"),
        ({"msgtype": "m.text", "body": "Palavers are talks", "m.mentions": {"user_ids": [BOT]}}, "Palavers are talks"),
        ({"msgtype": "m.text", "body": "Palaver", "m.mentions": {"user_ids": [BOT]}}, "Palaver"),
        ({"msgtype": "m.text", "body": "Palaver: hi", "m.mentions": {}}, "Palaver: hi"),
        ({"msgtype": "m.text", "body": "Palaver: /new"}, "/new"),  # of an old client
        (
            {"msgtype": "m.location", "body": "Big Ben,\nLondon", "geo_uri": "geo:51,0"},
            "[Place: Big Ben, London (51, 0)]",
        ),
        (
            {"msgtype": "m.location", "body": "Location geo:51.5,-0.1;u=9", "geo_uri": "geo:51.5,-0.1;u=9"},
            "[Location: 51.5, -0.1]",
        ),
        (
            {
                "msgtype": "m.location",
                "body": "Location at geo:1,2",
                "geo_uri": "geo:1,2",
                "org.matrix.msc3488.location": {"uri": "geo:51,0", "description": "Harbor"},
            },
            "[Place: Harbor (51, 0)]",
        ),
        ({"msgtype": "m.location", "body": "The harbor", "geo_uri": "geo:nowhere"}, "The harbor"),
        ({"msgtype": "m.location", "body": "The harbor", "geo_uri": 5, "m.location": "x"}, "The harbor"),
    ],
)
def test_what_a_message_says(content: dict[str, Any], expected: str) -> None:
    if content.get("m.relates_to") == "reply":
        content = {**content, "m.relates_to": {"m.in_reply_to": {"event_id": "$ben"}}}
    assert read(make_event(content)).content == expected


PILL = '<a href="https://matrix.to/#/%40palaver%3Aexample.org">Palaver</a>: hi'


@pytest.mark.parametrize(
    ("content", "is_addressed"),
    [
        ({}, False),
        ({"m.mentions": {"user_ids": [BOT]}}, True),
        ({"m.mentions": {"user_ids": [ADA]}}, False),
        ({"m.mentions": {"room": True}}, False),
        ({"m.mentions": {"user_ids": "nonsense"}}, False),
        ({"formatted_body": PILL}, True),
        ({"formatted_body": PILL, "m.mentions": {}}, False),
        ({"formatted_body": PILL.replace("palaver", "palaver2")}, False),
        ({"body": "palaver: hi"}, True),
        ({"body": "hi (Palaver)."}, True),
        ({"body": "what do you think, @palaver?"}, True),
        ({"body": "@Palaver: hi"}, True),
        ({"body": f"hi {BOT}."}, True),
        ({"body": "palaver: hi", "m.mentions": {}}, False),  # a client that knows mentions says who is meant
        ({"body": "Palaver: hi", "formatted_body": PILL.replace("palaver", "palaver2")}, False),
        ({"body": "palavers, palaver-bot, palaver.org and mypalaver"}, False),
        ({"body": "ask @palaver:other.org or x@palaver or @palaver:example.org:8448"}, False),
        (
            {
                "body": f"> <{BOT}> I said this\n\nwell",
                "formatted_body": f'<mx-reply><a href="https://matrix.to/#/{BOT}">x</a></mx-reply>well',
                "m.relates_to": {"m.in_reply_to": {"event_id": "$ada"}},
            },
            False,
        ),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$own"}}}, True),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$ada"}}}, False),
        ({"m.relates_to": {"rel_type": "m.thread", "event_id": "$own", "is_falling_back": True}}, True),
        ({"m.relates_to": {"rel_type": "m.thread", "event_id": "$ada", "is_falling_back": True}}, False),
    ],
)
def test_who_is_addressed_in_a_group(content: dict[str, Any], is_addressed: bool) -> None:
    event = text("hi", **content)
    assert read(event, members=3).is_addressed is is_addressed
    assert read(event, members=2).is_addressed, "everything in a direct chat is for us"


@pytest.mark.parametrize(
    ("body", "content", "is_addressed"),
    [
        ("!retry", "/retry", True),  # as our texts name it: Element keeps what begins with a slash
        ("!Title My trip", "/Title My trip", True),
        ("/retry", "/retry", True),
        ("!roll 2d6", "!roll 2d6", False),  # for another bot
        ("! retry", "! retry", False),
        ("!", "!", False),
    ],
)
def test_a_command_is_written_with_an_exclamation_mark(body: str, content: str, is_addressed: bool) -> None:
    message = read(text(body), members=3)
    assert (message.content, message.is_addressed) == (content, is_addressed)


THREAD = {"rel_type": "m.thread", "event_id": "$own", "is_falling_back": True}


@pytest.mark.parametrize(
    ("content", "addresses_others"),
    [
        ({}, False),
        ({"m.mentions": {"user_ids": [BOT]}}, False),
        ({"m.mentions": {"user_ids": [BOT, BEN]}}, True),
        ({"m.mentions": {"user_ids": [{}, 7]}}, False),
        ({"m.mentions": {"room": True}}, True),
        ({"formatted_body": PILL}, False),
        ({"formatted_body": PILL.replace("palaver", "ben")}, True),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$own"}}}, False),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$ada"}}}, False),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$ben"}}}, True),
        ({"m.relates_to": {"m.in_reply_to": {"event_id": "$unknown"}}}, True),
        ({"m.relates_to": THREAD | {"m.in_reply_to": {"event_id": "$ben"}}}, False),
    ],
)
def test_who_else_is_addressed(content: dict[str, Any], *, addresses_others: bool) -> None:
    assert read(text("hi", **content), members=3).addresses_others is addresses_others


def test_a_thread_under_a_message_of_ours_needs_no_mention_except_after_others_are_addressed() -> None:
    plain = read(text("hi", **{"m.relates_to": THREAD}), members=3)
    assert (plain.is_addressed, plain.is_in_own_thread) == (True, True)
    to_ben = read(text("hi", **{"m.relates_to": THREAD, "m.mentions": {"user_ids": [BEN]}}), members=3)
    assert to_ben.is_addressed is False
    to_us = read(text("hi", **{"m.relates_to": THREAD, "m.mentions": {"user_ids": [BOT]}}), members=3)
    assert (to_us.is_addressed, to_us.is_in_own_thread) == (True, False)


def test_only_our_own_server_can_be_trusted_with_the_time_of_a_message() -> None:
    assert read(text("hi"), members=3).is_sent_at_reliable
    assert not read(text("hi") | {"sender": "@ada:elsewhere.org"}, members=3).is_sent_at_reliable


def test_replies_and_threads() -> None:
    reply = read(text("Yes", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$own"}}}))
    assert reply.replied_message == RepliedMessage("$own", "palaver", "I said this", is_own=True)
    unknown = read(text("Yes", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$gone"}}}))
    assert unknown.replied_message == RepliedMessage("$gone")
    thread = {"rel_type": "m.thread", "event_id": "$ada", "m.in_reply_to": {"event_id": "$ben"}}
    fallback = read(text("Yes", **{"m.relates_to": {**thread, "is_falling_back": True}}))
    assert (fallback.source.thread_id, fallback.replied_message) == ("$ada", None)
    real = read(text("Yes", **{"m.relates_to": {**thread, "is_falling_back": False}}))
    assert (real.source.thread_id, real.replied_message) == ("$ada", RepliedMessage("$ben", "ben", "Ben said this"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (text("Hello"), []),
        (text("Hello", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$a"}}}), ["$a"]),
        (text("* Hello", **{"m.relates_to": {"rel_type": "m.replace", "event_id": "$a"}}), ["$a"]),
        (
            text(
                "Hello",
                **{"m.relates_to": {"rel_type": "m.thread", "event_id": "$a", "m.in_reply_to": {"event_id": "$b"}}},
            ),
            ["$b", "$a"],
        ),
    ],
)
def test_what_must_be_looked_up_first(event: dict[str, Any], expected: list[str]) -> None:
    assert find_references(event) == expected


IMAGE = {"msgtype": "m.image", "body": "cat.png", "url": "mxc://example.org/abc", "info": {"size": 7}}


def test_files() -> None:
    message = read(make_event(IMAGE))
    [file] = message.files
    assert (message.content, file.name, file.size, file.is_voice) == ("", "cat.png", 7, False)
    captioned = read(make_event({**IMAGE, "filename": "cat.png", "body": "My cat"}))
    assert (captioned.content, captioned.files[0].name) == ("My cat", "cat.png")
    sticker = read(make_event({"body": "Wave", "url": "mxc://example.org/abc"}, "m.sticker"))
    assert [file.name for file in sticker.files] == ["Wave"]


@pytest.mark.parametrize(
    "url", ["https://example.org/abc", "mxc://example.org/../admin", "mxc://example.org/a/b", "mxc://a b/c", None, 7]
)
def test_a_file_elsewhere_is_not_fetched(url: object) -> None:
    assert read_file_reference({**IMAGE, "url": url}) is None
    assert read(make_event({**IMAGE, "url": url})) is None


def test_an_encrypted_file_has_its_keys() -> None:
    file = {"url": "mxc://example.org/abc", "key": {"k": "K"}, "iv": "I", "hashes": {"sha256": "H"}, "v": "v2"}
    reference = read_file_reference({"msgtype": "m.file", "file": file})
    assert reference == FileReference("example.org", "abc", None, {"key": "K", "iv": "I", "sha256": "H"})
    assert read_file_reference({"msgtype": "m.file", "file": {**file, "iv": None}}) is None


def make_edit(sender: str = ADA, **new_content: Any) -> dict[str, Any]:
    content = {
        "m.new_content": {"msgtype": "m.text", "body": "New", **new_content},
        "msgtype": "m.text",
        "body": "* New",
    }
    return make_event({**content, "m.relates_to": {"rel_type": "m.replace", "event_id": "$ada"}}, sender=sender)


def test_an_edit_counts_only_if_its_sender_wrote_the_original() -> None:
    edit = read(make_edit())
    assert isinstance(edit, MessageEdited)
    assert (edit.message_id, edit.content, edit.source.user_id) == ("$ada", "New", ADA)
    assert read(make_edit(sender="@ben:example.org")) is None
    assert read(make_edit(msgtype="m.notice")) is None


def test_a_reaction_and_what_takes_it_back() -> None:
    content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$own", "key": "👍"}}
    reaction = read(make_event(content, "m.reaction"))
    assert isinstance(reaction, MessageReaction)
    assert (reaction.message_id, reaction.emoji, reaction.is_removed) == ("$own", "👍", False)
    removal = read(make_event({"redacts": "$reaction"}, "m.room.redaction"))
    assert isinstance(removal, MessageReaction)
    assert (removal.message_id, removal.emoji, removal.is_removed) == ("$own", "👍", True)


@pytest.mark.parametrize(
    "event", [make_event({}, "m.room.redaction", redacts="$ada"), make_event({"redacts": "$ada"}, "m.room.redaction")]
)
def test_a_deletion_in_older_and_newer_rooms(event: dict[str, Any]) -> None:
    deletion = read(event)
    assert isinstance(deletion, MessageDeleted)
    assert deletion.message_id == "$ada"


def make_member(membership: str, previous: str | None, user_id: str = ADA, name: str = "Ada") -> dict[str, Any]:
    unsigned = {"prev_content": {"membership": previous, "displayname": name}} if previous else {}
    return make_event(
        {"membership": membership, "displayname": name}, "m.room.member", state_key=user_id, unsigned=unsigned
    )


@pytest.mark.parametrize(
    ("event", "joined", "left"),
    [
        (make_member("join", None), ("Ada",), ()),
        (make_member("join", "invite"), ("Ada",), ()),
        (make_member("leave", "join"), (), ("Ada",)),
        (make_member("ban", "join"), (), ("Ada",)),
    ],
)
def test_members(event: dict[str, Any], joined: tuple[str, ...], left: tuple[str, ...]) -> None:
    change = read(event)
    assert isinstance(change, MembersChanged)
    assert (change.joined, change.left, change.is_own_account) == (joined, left, False)


def test_our_own_account_is_added() -> None:
    change = read(make_member("join", "invite", BOT, "Palaver"))
    assert (change.joined, change.is_own_account) == (("Palaver",), True)


def test_a_replaced_room() -> None:
    moved = read(
        make_event({"body": "Replaced", "replacement_room": "!new:example.org"}, "m.room.tombstone", state_key="")
    )
    assert isinstance(moved, ChatMoved)
    assert (moved.source.chat_id, moved.new_chat_id) == ("!room:example.org", "!new:example.org")


@pytest.mark.parametrize(
    "event",
    [
        make_event({"msgtype": "m.notice", "body": "Another bot"}),
        make_event({"msgtype": "m.text", "body": "Our own"}, sender=BOT),
        make_event({"msgtype": "m.key.verification.request", "body": "Verify"}),
        make_event({}),  # it was deleted
        make_event({"msgtype": "m.text", "body": ""}),
        make_event({"msgtype": "m.text", "body": ["no", "text"]}),
        make_event({"msgtype": 7, "body": "Odd"}),
        make_event("no object"),  # type: ignore[arg-type]
        {"type": "m.room.message", "content": {"msgtype": "m.text", "body": "No sender"}, "event_id": "$x"},
        make_event({"m.relates_to": "nonsense"}, "m.reaction"),
        make_event({"name": "New name"}, "m.room.name", state_key=""),
        make_member("join", "join"),  # a new picture
        make_member("invite", None),
        make_member("leave", "invite"),
        make_event({}, "m.room.tombstone", state_key=""),
        make_event({}, "m.room.redaction"),
        make_event({"x": 1}, "org.example.unknown"),
    ],
)
def test_what_says_nothing_to_the_agent(event: dict[str, Any]) -> None:
    assert read(event) is None


def test_an_event_is_described_for_later_ones() -> None:
    assert describe_event(text("Hello")) == SeenEvent(ADA, "Hello")
    content = {"m.relates_to": {"rel_type": "m.annotation", "event_id": "$own", "key": "👍"}}
    assert describe_event(make_event(content, "m.reaction")) == SeenEvent(ADA, "", "$own", "👍")
    assert describe_event(make_event({}, "m.room.name")) is None


@pytest.mark.parametrize(
    ("joined", "invited", "is_marked_direct", "expected"),
    [
        (2, 0, False, ChatType.DM),
        (1, 1, False, ChatType.DM),
        (2, None, False, ChatType.DM),
        (2, 1, True, ChatType.GROUP),  # a third person reads along
        (3, 0, True, ChatType.GROUP),
        (None, None, True, ChatType.DM),
        (None, None, False, ChatType.GROUP),
    ],
)
def test_direct_chats_and_groups(
    joined: int | None, invited: int | None, is_marked_direct: bool, expected: ChatType
) -> None:
    room = Room("!room", joined_count=joined, invited_count=invited, is_marked_direct=is_marked_direct)
    assert room.chat_type is expected


NOW = 1_760_000_000.0


def ask_in_room(**content: Any) -> dict[str, Any]:
    request = {"msgtype": "m.key.verification.request", "to": BOT, "from_device": "PHONE", "methods": [], **content}
    return make_event({"body": "Verify me", **request})


def ask_device(event_type: str = "m.key.verification.request", **content: Any) -> dict[str, Any]:
    fields = {"from_device": "PHONE", "transaction_id": "t1", "timestamp": int(NOW * 1000), **content}
    return {"type": event_type, "sender": ADA, "content": fields}


@pytest.mark.parametrize(
    ("event", "request_id", "device_id"),
    [
        (ask_in_room(), "$event", None),
        (ask_device(), "t1", "PHONE"),
        (ask_device("m.key.verification.start"), "t1", "PHONE"),
    ],
)
def test_requests_to_verify_our_device(event: dict[str, Any], request_id: str, device_id: str | None) -> None:
    request = read_verification_request(event, BOT, NOW)
    assert request == VerificationRequest(ADA, request_id, device_id)
    assert read_verification_request(event, BOT, NOW + 601) is None or "start" in event["type"]
    assert read(event) is None, "it says nothing to the agent"


@pytest.mark.parametrize(
    "event",
    [
        ask_in_room(to="@ben:example.org"),
        ask_in_room(msgtype="m.text"),
        ask_device("m.key.verification.cancel"),
        ask_device(from_device=None),
        ask_device(transaction_id=5),
        ask_device(timestamp="now"),
        ask_device(timestamp=0),
        {**ask_device(), "sender": None},
    ],
)
def test_what_asks_for_no_verification(event: dict[str, Any]) -> None:
    assert read_verification_request(event, BOT, NOW) is None
