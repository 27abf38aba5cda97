"""Updates of the Bot API, and what they become. Every update is checked against the published types first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.telegram.inbound import ALLOWED_UPDATES, BotIdentity, parse_update
from palaver.sessions.inbound import (
    ButtonPressed,
    ChatMoved,
    Inbound,
    MembersChanged,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

from .bot_api_server import ADA, BOT, FORUM, GROUP, PRIVATE, list_problems, make_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.sessions.inbound import AnyUpdate

IDENTITY = BotIdentity(id=BOT["id"], username=BOT["username"], commands=frozenset({"new", "stop"}))
BOT_USER = {name: BOT[name] for name in ("id", "is_bot", "first_name", "username")}
BOB = {"id": 43, "is_bot": False, "first_name": "Bob"}
CHANNEL = {"id": -1005550001111, "type": "channel", "title": "News"}
BASIC_GROUP = {"id": -4001, "type": "group", "title": "Engines"}
TOPIC = {"name": "Gears", "icon_color": 7322096}
PHOTOS = [
    {"file_id": f"photo{side}", "file_unique_id": f"u{side}", "width": side, "height": side, "file_size": side}
    for side in (90, 1280, 320)
]


async def open_nothing(file_id: str, size: int | None) -> AsyncIterator[bytes]:
    yield f"{file_id}:{size}".encode()


def parse(**fields: Any) -> list[AnyUpdate]:
    update = {"update_id": 1, **fields}
    assert list_problems("TelegramUpdate", update) == []
    return parse_update(update, IDENTITY, open_nothing)


def parse_message(text: str | None = "hello", **fields: Any) -> Inbound:
    [inbound] = parse(message=make_message(text, **fields))
    assert isinstance(inbound, Inbound)
    return inbound


def mark(text: str, part: str, kind: str, **fields: Any) -> dict[str, Any]:
    """Return an entity over a part of a text, counted in UTF-16 as Telegram does."""
    offset = len(text[: text.index(part)].encode("utf-16-le")) // 2
    return {"type": kind, "offset": offset, "length": len(part.encode("utf-16-le")) // 2, **fields}


# ---- where and who -------------------------------------------------------------------------------------------


def test_a_private_message() -> None:
    assert parse(message=make_message("hello", message_id=7)) == [
        Inbound(
            source=SessionSource(
                Platform.TELEGRAM,
                "42",
                chat_name="Ada Lovelace",
                chat_type=ChatType.DM,
                user_id="42",
                user_name="Ada Lovelace",
            ),
            content="hello",
            message_id="7",
            is_addressed=True,
            sent_at=datetime.fromtimestamp(1_790_000_000, UTC),
            files=[],
        )
    ]


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"chat": FORUM, "message_thread_id": 17, "is_topic_message": True}, "17"),
        ({"chat": FORUM, "message_thread_id": 1, "is_topic_message": True}, None),  # General
        ({"chat": FORUM}, None),
        ({"chat": GROUP, "message_thread_id": 99}, None),  # a chain of replies in a group without topics
        ({"chat": PRIVATE, "message_thread_id": 5, "is_topic_message": True}, "5"),
    ],
)
def test_a_topic_is_a_thread_except_general(fields: dict[str, Any], thread: str | None) -> None:
    source = parse_message(**fields).source
    assert source.thread_id == thread
    assert source.chat_type is (ChatType.DM if fields["chat"] is PRIVATE else ChatType.GROUP)


def test_a_message_in_a_topic_is_no_reply_to_the_start_of_the_topic() -> None:
    start = make_message(None, chat=FORUM, message_id=17, sender=BOT_USER, forum_topic_created=TOPIC)
    inbound = parse_message(
        "gears?", chat=FORUM, message_thread_id=17, is_topic_message=True, message_id=18, reply_to_message=start
    )
    assert (inbound.replied_message, inbound.is_addressed) == (None, False)
    assert inbound.source.chat_topic == "Gears"


def test_people_who_write_as_a_chat_are_that_chat_and_no_bot() -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    inbound = parse_message("order!", chat=GROUP, sender=anonymous, sender_chat=GROUP, author_signature="Chair")
    assert (inbound.source.user_id, inbound.source.user_name) == (str(GROUP["id"]), "Engines (Chair)")
    assert not inbound.is_from_bot


def test_other_bots_are_flagged_and_our_own_messages_are_dropped() -> None:
    other = {"id": 99, "is_bot": True, "first_name": "Other", "username": "other_bot"}
    assert parse_message("beep", chat=GROUP, sender=other).is_from_bot
    assert parse(message=make_message("mine", chat=GROUP, sender=BOT_USER)) == []


def test_a_channel_post_comes_from_the_channel() -> None:
    [inbound] = parse(
        channel_post=make_message("news", chat=CHANNEL, sender=None, sender_chat=CHANNEL, author_signature="Ada")
    )
    assert isinstance(inbound, Inbound)
    assert inbound.source.chat_type is ChatType.CHANNEL
    assert (inbound.source.user_id, inbound.is_addressed) == (str(CHANNEL["id"]), False)


# ---- who is meant --------------------------------------------------------------------------------------------

OWN_MESSAGE = make_message("My answer", chat=GROUP, message_id=500, sender=BOT_USER)
MENTIONED = "🎉 hi @Palaver_Bot!"
CAPTION = {"caption": "@palaver_bot look", "caption_entities": [mark("@palaver_bot look", "@palaver_bot", "mention")]}


@pytest.mark.parametrize(
    ("text", "fields", "is_addressed"),
    [
        ("hello all", {}, False),
        ("palaver_bot is nice, @palaver_bot too", {}, False),  # no entity: the bot was not mentioned
        (MENTIONED, {"entities": [mark(MENTIONED, "@Palaver_Bot", "mention")]}, True),
        ("hi @other_bot", {"entities": [mark("hi @other_bot", "@other_bot", "mention")]}, False),
        ("Palaver, hi", {"entities": [mark("Palaver, hi", "Palaver", "text_mention", user=BOT_USER)]}, True),
        ("Bob, hi", {"entities": [mark("Bob, hi", "Bob", "text_mention", user=BOB)]}, False),
        (None, {"photo": PHOTOS, **CAPTION}, True),
        ("/new", {"entities": [mark("/new", "/new", "bot_command")]}, True),
        ("/weather", {"entities": [mark("/weather", "/weather", "bot_command")]}, False),
        ("/new@palaver_bot", {"entities": [mark("/new@palaver_bot", "/new@palaver_bot", "bot_command")]}, True),
        ("/new@other_bot", {"entities": [mark("/new@other_bot", "/new@other_bot", "bot_command")]}, False),
        ("see /new", {"entities": [mark("see /new", "/new", "bot_command")]}, False),
        ("thanks", {"reply_to_message": OWN_MESSAGE}, True),
        ("thanks", {"reply_to_message": make_message("x", chat=GROUP, sender=BOB)}, False),
    ],
)  # fmt: skip
def test_in_a_group_a_message_is_for_the_bot_by_entity_command_or_reply(
    text: str | None, fields: dict[str, Any], is_addressed: bool
) -> None:
    assert parse_message(text, chat=GROUP, **fields).is_addressed is is_addressed


def test_in_a_private_chat_every_message_is_for_the_bot() -> None:
    text = "/weather@other_bot"
    assert parse_message(text, entities=[mark(text, text, "bot_command")]).is_addressed


# ---- texts ---------------------------------------------------------------------------------------------------

LINKED = "👩‍👩‍👧 see the docs, and this"


@pytest.mark.parametrize(
    ("text", "entities", "content"),
    [
        ("  plain  ", [], "plain"),
        ("@palaver_bot what?", [mark("@palaver_bot what?", "@palaver_bot", "mention")], "what?"),
        ("ਠ @palaver_bot x", [mark("ਠ @palaver_bot x", "@palaver_bot", "mention")], "ਠ @palaver_bot x"),
        (
            LINKED,
            [mark(LINKED, "the docs", "text_link", url="https://e.org/a"), mark(LINKED, "this", "bold")],
            "👩‍👩‍👧 see the docs (https://e.org/a), and this",
        ),
        ("https://e.org", [mark("https://e.org", "https://e.org", "text_link", url="https://e.org")], "https://e.org"),
    ],
)
def test_text_keeps_hidden_links_and_drops_the_mention_at_its_beginning(
    text: str, entities: list[dict[str, Any]], content: str
) -> None:
    assert parse_message(text, entities=entities).content == content


PLACE = {"latitude": 52.5, "longitude": 13.4}
POLL = {
    "id": "1",
    "question": "Tea?",
    "options": [{"text": text, "voter_count": 0, "persistent_id": text} for text in ("yes", "no")],
    "total_voter_count": 0,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": False,
    "members_only": False,
}
STICKER = {
    "file_id": "s",
    "file_unique_id": "s",
    "type": "regular",
    "width": 512,
    "height": 512,
    "is_animated": False,
    "is_video": False,
    "emoji": "🎉",
}


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"sticker": STICKER}, "[Sticker 🎉]"),
        ({"location": PLACE}, "[Location: 52.5, 13.4]"),
        (
            {"venue": {"location": PLACE, "title": "Café", "address": "Street 1"}, "location": PLACE},
            "[Place: Café, Street 1 (52.5, 13.4)]",
        ),
        (
            {"contact": {"phone_number": "+491234", "first_name": "Bob", "last_name": "B"}},
            "[Contact: Bob B, +491234]",
        ),
        ({"poll": POLL}, "[Poll: Tea?: yes; no]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 4]"),
    ],
)
def test_other_content_becomes_a_line_of_text(fields: dict[str, Any], content: str) -> None:
    inbound = parse_message(None, **fields)
    assert (inbound.content, list(inbound.files)) == (content, [])


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"type": "user", "date": 1, "sender_user": BOB}, "Bob"),
        ({"type": "hidden_user", "date": 1, "sender_user_name": "Some\nbody"}, "Some body"),
        ({"type": "channel", "date": 1, "chat": CHANNEL, "message_id": 3}, "News"),
    ],
)
def test_a_forwarded_message_says_so(origin: dict[str, Any], name: str) -> None:
    assert parse_message("words", forward_origin=origin).content == f"[Forwarded from {name}]\nwords"


# ---- files ---------------------------------------------------------------------------------------------------

FILE = {"file_id": "f", "file_unique_id": "u", "file_size": 5}


@pytest.mark.parametrize(
    ("fields", "name", "media_type", "is_voice"),
    [
        ({"photo": PHOTOS}, "photo-u1280.jpg", "image/jpeg", False),
        (
            {"document": {**FILE, "file_name": "a.pdf", "mime_type": "application/pdf"}},
            "a.pdf",
            "application/pdf",
            False,
        ),
        ({"voice": {**FILE, "duration": 3}}, "voice-u.ogg", "audio/ogg", True),
        ({"audio": {**FILE, "duration": 3, "file_name": "song.mp3"}}, "song.mp3", "audio/mpeg", False),
        ({"video": {**FILE, "duration": 3, "width": 1, "height": 1}}, "video-u.mp4", "video/mp4", False),
        ({"video_note": {**FILE, "duration": 3, "length": 1}}, "video_note-u.mp4", "video/mp4", False),
        (
            {
                "animation": {**FILE, "duration": 3, "width": 1, "height": 1, "file_name": "cat.mp4"},
                "document": {**FILE, "file_name": "cat.mp4"},
            },
            "cat.mp4",
            "video/mp4",
            False,
        ),
    ],
)
async def test_a_file_is_described_and_opened_later(
    fields: dict[str, Any], name: str, media_type: str, is_voice: bool
) -> None:
    inbound = parse_message(None, caption="see", **fields)
    [file] = inbound.files
    assert (file.name, file.media_type, file.is_voice, inbound.content) == (name, media_type, is_voice, "see")
    assert file.duration_seconds == (None if next(iter(fields)) in {"photo", "document"} else 3)
    content = b"".join([chunk async for chunk in file.open()])
    assert content == (b"photo1280:1280" if "photo" in fields else b"f:5")


def test_the_parts_of_an_album_share_an_id() -> None:
    album = [parse_message(None, photo=PHOTOS, media_group_id="g1", message_id=number) for number in (1, 2)]
    assert [(part.album_id, part.message_id) for part in album] == [("g1", "1"), ("g1", "2")]


# ---- replies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "replied"),
    [
        (
            {"reply_to_message": make_message("Whole text", message_id=3, sender=BOB)},
            RepliedMessage("3", "Bob", "Whole text"),
        ),
        (
            {
                "reply_to_message": make_message("Whole text", message_id=3, sender=BOT_USER),
                "quote": {"text": "text", "position": 6},
            },
            RepliedMessage("3", "Palaver", "text", is_own=True),
        ),
        (
            {"reply_to_message": make_message(None, message_id=3, photo=PHOTOS, caption="Look")},
            RepliedMessage("3", "Ada Lovelace", "Look"),
        ),
        (
            {"reply_to_message": make_message(None, message_id=3, voice={**FILE, "duration": 3})},
            RepliedMessage("3", "Ada Lovelace", "[Voice message]"),
        ),
        (
            {
                "external_reply": {"origin": {"type": "user", "date": 1, "sender_user": BOB}, "message_id": 9},
                "quote": {"text": "elsewhere", "position": 0},
            },
            RepliedMessage("9", "Bob", "elsewhere"),
        ),
    ],
)
def test_a_reply_carries_what_it_replies_to(fields: dict[str, Any], replied: RepliedMessage) -> None:
    assert parse_message("and?", message_id=4, **fields).replied_message == replied


# ---- other updates -------------------------------------------------------------------------------------------


def test_an_edit() -> None:
    [edit] = parse(edited_message=make_message("fixed", message_id=7, edit_date=1_790_000_009))
    assert isinstance(edit, MessageEdited)
    assert (edit.message_id, edit.content, edit.source.chat_id) == ("7", "fixed", "42")
    live = {**PLACE, "live_period": 900}
    assert parse(edited_message=make_message(None, message_id=8, edit_date=1, location=live)) == []


def test_a_changed_reaction_is_one_removed_and_one_added() -> None:
    reaction = {
        "chat": GROUP,
        "message_id": 9,
        "user": ADA,
        "date": 1,
        "old_reaction": [{"type": "emoji", "emoji": "👍"}, {"type": "emoji", "emoji": "🔥"}],
        "new_reaction": [{"type": "emoji", "emoji": "🔥"}, {"type": "emoji", "emoji": "❤"}],
    }
    updates = parse(message_reaction=reaction)
    found = [
        (update.emoji, update.is_removed, update.source.user_id)
        for update in updates
        if isinstance(update, MessageReaction)
    ]
    assert found == [("👍", True, "42"), ("❤", False, "42")]


@pytest.mark.parametrize("is_old", [False, True])
def test_a_pressed_button_names_the_person_and_the_topic(is_old: bool) -> None:
    message = make_message(
        "Answer", chat=FORUM, message_id=70, sender=BOT_USER, message_thread_id=17, is_topic_message=True
    )
    if is_old:  # Telegram then sends only where it is
        message = {"chat": FORUM, "message_id": 70, "date": 0}
    [press] = parse(
        callback_query={"id": "55", "from": ADA, "chat_instance": "c", "message": message, "data": "stop:t_1"}
    )
    assert isinstance(press, ButtonPressed)
    assert (press.press_id, press.message_id, press.data) == ("55", "70", "stop:t_1")
    assert (press.source.user_id, press.source.thread_id) == ("42", None if is_old else "17")


def test_a_group_that_becomes_a_supergroup_has_moved() -> None:
    expected = (str(BASIC_GROUP["id"]), str(GROUP["id"]))
    for message in (
        make_message(None, chat=BASIC_GROUP, migrate_to_chat_id=GROUP["id"]),
        make_message(None, chat=GROUP, migrate_from_chat_id=BASIC_GROUP["id"]),
    ):
        [moved] = parse(message=message)
        assert isinstance(moved, ChatMoved)
        assert (moved.source.chat_id, moved.new_chat_id) == expected


def test_members_who_come_and_go() -> None:
    [joined] = parse(message=make_message(None, chat=GROUP, new_chat_members=[BOB, BOT_USER]))
    [left] = parse(message=make_message(None, chat=GROUP, left_chat_member=BOB))
    assert isinstance(joined, MembersChanged)
    assert isinstance(left, MembersChanged)
    assert (joined.joined, joined.left, joined.is_own_account) == (("Bob",), (), False)
    assert (left.joined, left.left) == ((), ("Bob",))
    assert parse(message=make_message(None, chat=GROUP, left_chat_member=BOT_USER)) == []


@pytest.mark.parametrize(
    ("old", "new", "joined", "left"),
    [
        ("left", "member", ("@palaver_bot",), ()),
        ("member", "kicked", (), ("@palaver_bot",)),
        ("member", "member", None, None),
    ],
)
def test_our_own_membership(old: str, new: str, joined: tuple[str, ...] | None, left: tuple[str, ...] | None) -> None:
    def make_member(status: str) -> dict[str, Any]:
        return {"status": status, "user": BOT_USER, **({"until_date": 0} if status == "kicked" else {})}

    member = {
        "chat": PRIVATE,
        "from": ADA,
        "date": 1,
        "old_chat_member": make_member(old),
        "new_chat_member": make_member(new),
    }
    updates = parse(my_chat_member=member)
    if joined is None:
        assert updates == []
        return
    [change] = updates
    assert isinstance(change, MembersChanged)
    assert (change.joined, change.left, change.is_own_account) == (joined, left, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"new_chat_title": "New title"},
        {"forum_topic_created": TOPIC},
        {"pinned_message": make_message("old", chat=GROUP)},
        {"group_chat_created": True},
    ],
)
def test_service_messages_are_left_out(fields: dict[str, Any]) -> None:
    assert parse(message=make_message(None, chat=GROUP, **fields)) == []


def test_kinds_of_updates_that_were_not_asked_for_are_left_out() -> None:
    assert "inline_query" not in ALLOWED_UPDATES
    assert parse(inline_query={"id": "1", "from": ADA, "query": "x", "offset": ""}) == []


@pytest.mark.parametrize(("code", "language"), [("de", "de"), ("de-AT", "de"), ("en", "en"), ("pt-br", None)])
def test_the_language_of_a_persons_app_is_reported(code: str, language: str | None) -> None:
    sender = {"id": 7, "is_bot": False, "first_name": "Ada", "language_code": code}
    fields: dict[str, Any] = {"from": sender}
    assert parse_message(**fields).reported_language == language
