"""What Slack's events mean, each checked against the published types before it is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from palaver.core.source import ChatType
from palaver.platforms.slack.inbound import (
    AppIdentity,
    PressId,
    ReadingContext,
    list_named_ids,
    parse_command,
    parse_event,
    parse_press,
)
from palaver.sessions.inbound import (
    ButtonPressed,
    Inbound,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
)

from .slack_server import ADA, BOT_ID, BOT_USER, CHANNEL, DM, TEAM
from .slack_types import list_event_problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from palaver.sessions.inbound import AnyUpdate

T = TypeVar("T")
TS, PARENT_TS = "1790000000.000200", "1790000000.000100"
APP = AppIdentity(
    user_id=BOT_USER, bot_id=BOT_ID, team_id=TEAM, name="palaver", commands=frozenset({"new", "stop", "help"})
)
NAMES = {ADA: "Ada", "U0BEN": "Ben", BOT_USER: "Palaver", CHANNEL: "engines", "C2": "workshop"}


def open_nothing(_file: Mapping[str, Any]) -> AsyncIterator[bytes]:
    raise AssertionError("Nothing is downloaded while an event is read.")


CONTEXT = ReadingContext(app=APP, names=NAMES, open_file=open_nothing)


def make_message(text: str = "hello", *, channel: str = DM, **fields: Any) -> dict[str, Any]:
    kind = "im" if channel.startswith("D") else "channel"
    return {
        "type": "message",
        "channel": channel,
        "channel_type": kind,
        "user": ADA,
        "text": text,
        "ts": TS,
        "event_ts": TS,
        **fields,
    }


def parse(event: dict[str, Any], *, is_published: bool = True) -> AnyUpdate | None:
    if is_published:
        assert list_event_problems(event) == []
    return parse_event(event, CONTEXT)


def parse_as(kind: type[T], event: dict[str, Any], *, is_published: bool = True) -> T:
    update = parse(event, is_published=is_published)
    assert isinstance(update, kind)
    return update


def read_text(text: str) -> object:
    return parse_as(Inbound, make_message(text)).content


def make_file(**fields: Any) -> dict[str, Any]:
    return {
        "id": "F1",
        "created": 1,
        "name": "notes.txt",
        "title": "Notes",
        "mimetype": "text/plain",
        "filetype": "text",
        "pretty_type": "Plain Text",
        "editable": False,
        "size": 10,
        "mode": "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": False,
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": "https://files.slack.com/F1",
        "permalink": "https://example.slack.com/F1",
        "channels": [],
        "groups": [],
        **fields,
    }


# ---- messages ------------------------------------------------------------------------------------------------


def test_a_direct_message_is_for_the_app() -> None:
    message = parse_as(Inbound, make_message())
    source = message.source
    assert (message.content, message.message_id, message.is_addressed) == ("hello", TS, True)
    assert (source.chat_id, source.chat_type, source.thread_id) == (DM, ChatType.DM, None)
    assert (source.user_id, source.user_name, source.chat_name) == (ADA, "Ada", None)
    assert message.sent_at == datetime.fromtimestamp(1790000000.0002, UTC)


def test_a_thread_in_a_direct_message_is_kept() -> None:
    assert parse_as(Inbound, make_message(thread_ts=PARENT_TS)).source.thread_id == PARENT_TS


@pytest.mark.parametrize(
    ("assistant_thread", "thread_id"), [({"action_token": "1"}, TS), ({"thread_ts": PARENT_TS}, PARENT_TS)]
)
def test_a_message_of_the_agent_view_is_in_a_thread(assistant_thread: dict[str, str], thread_id: str) -> None:
    message = parse_as(Inbound, make_message(assistant_thread=assistant_thread))
    assert message.source.thread_id == thread_id


def test_the_first_message_of_a_thread_is_not_inside_of_it() -> None:
    assert parse_as(Inbound, make_message(thread_ts=TS)).source.thread_id is None


def test_a_mention_in_a_channel_starts_a_thread_and_is_the_same_message_both_times_it_arrives() -> None:
    text = f"<@{BOT_USER}> what is this?"
    as_message = parse_as(Inbound, make_message(text, channel=CHANNEL))
    mention = {"type": "app_mention", "channel": CHANNEL, "user": ADA, "text": text, "ts": TS, "event_ts": TS}
    assert parse_as(Inbound, mention) == as_message
    assert (as_message.content, as_message.is_addressed) == ("what is this?", True)
    assert (as_message.source.chat_type, as_message.source.thread_id) == (ChatType.GROUP, TS)
    assert as_message.source.chat_name == "engines"


def test_a_mention_in_a_thread_stays_in_it() -> None:
    text = f"and you, <@{BOT_USER}>?"
    message = parse_as(Inbound, make_message(text, channel=CHANNEL, thread_ts=PARENT_TS))
    assert (message.source.thread_id, message.is_addressed, message.content) == (PARENT_TS, True, "and you, @Palaver?")


@pytest.mark.parametrize(
    "text", ["palaver, are you there?", "@palaver hi", f"&lt;@{BOT_USER}&gt; in code", "<@U0BEN> hi"]
)
def test_other_messages_in_a_channel_are_not_for_the_app(text: str) -> None:
    message = parse_as(Inbound, make_message(text, channel=CHANNEL))
    assert (message.is_addressed, message.source.thread_id) == (False, None)


def test_a_reply_to_a_message_of_ours_is_for_the_app() -> None:
    event = make_message("thanks", channel=CHANNEL, thread_ts=PARENT_TS, parent_user_id=BOT_USER)
    message = parse_as(Inbound, event)
    assert (message.is_addressed, message.is_in_own_thread) == (True, True)
    assert message.replied_message is not None
    assert (message.replied_message.message_id, message.replied_message.is_own) == (PARENT_TS, True)


@pytest.mark.parametrize(
    ("text", "addresses_others"),
    [
        ("and tomorrow?", False),
        (f"<@{BOT_USER}> and tomorrow?", False),
        ("<@U0BEN> and you?", True),
        ("<@U0BEN|ben> and you?", True),
        ("<!here> who knows?", True),
        ("<!subteam^S1|@team> who knows?", True),
        ("see <#C0ENGINES|engines> and <https://example.org>", False),
        ("&lt;@U0BEN&gt;", False),
    ],
)
def test_who_else_is_addressed(text: str, *, addresses_others: bool) -> None:
    message = parse_as(Inbound, make_message(text, channel=CHANNEL, thread_ts=PARENT_TS, parent_user_id=ADA))
    assert message.addresses_others is addresses_others


def test_a_message_to_another_person_is_not_for_the_app_even_under_a_message_of_ours() -> None:
    fields = {"channel": CHANNEL, "thread_ts": PARENT_TS, "parent_user_id": BOT_USER}
    message = parse_as(Inbound, make_message("<@U0BEN> and you?", **fields))
    assert (message.is_addressed, message.addresses_others) == (False, True)


def test_a_reply_that_is_also_sent_to_the_channel_stays_in_its_thread() -> None:
    root = {**make_message(channel=CHANNEL), "thread_ts": PARENT_TS, "ts": PARENT_TS}
    root |= {"reply_count": 1, "reply_users_count": 1, "latest_reply": TS, "reply_users": [ADA]}
    fields = {"subtype": "thread_broadcast", "root": root, "client_msg_id": "c1", "thread_ts": PARENT_TS}
    assert parse_as(Inbound, make_message(f"<@{BOT_USER}> hi", channel=CHANNEL, **fields)).source.thread_id == PARENT_TS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a &amp;lt; b &lt;i&gt;", "a &lt; b <i>"),
        ("hi <@U0BEN> and <@U9|zoe>", "hi @Ben and @zoe"),
        ("<@U404>", "@U404"),
        ("see <#C2>, <#C3|random> and <#C4|>", "see #workshop, #random and #C4"),
        ("<!here> <!channel|everybody> <!subteam^S1|@team> <!date^1^{date}|today>", "@here everybody @team today"),
        ("<https://example.org>", "https://example.org"),
        ("<https://example.org|example.org>", "https://example.org"),
        ("<https://example.org?a=1&amp;b=2|the page>", "the page (https://example.org?a=1&b=2)"),
        ("<mailto:ada@example.org|ada@example.org>", "ada@example.org"),
        ("1 < 2 and <> stay", "1 < 2 and <> stay"),
    ],
)
def test_references_become_words(text: str, shown: str) -> None:
    assert read_text(text) == shown


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("!stop", "/stop"),
        ("!NEW please", "/NEW please"),
        ("!important", "!important"),
        ("! stop", "! stop"),
        ("!", "!"),
    ],
)
def test_a_command_can_be_written_with_an_exclamation_mark(text: str, content: str) -> None:
    assert read_text(text) == content


def test_names_that_are_needed_are_listed() -> None:
    event = make_message("hi <@U0BEN> in <#C2> and <#C3|random> <|empty>", channel=CHANNEL)
    assert list_named_ids(event) == {ADA, "U0BEN", CHANNEL, "C2"}
    assert list_named_ids(make_message()) == {ADA, DM}


@pytest.mark.parametrize(
    "event",
    [
        make_message(user=BOT_USER),
        make_message(bot_id=BOT_ID, user="U1"),
        make_message(""),
        make_message(subtype="channel_topic", topic="x"),
        {"type": "member_joined", "channel": CHANNEL},
        {
            "type": "assistant_thread_started",
            "assistant_thread": {"user_id": ADA, "context": {}, "channel_id": DM, "thread_ts": TS},
            "event_ts": TS,
        },
        {
            "type": "assistant_thread_context_changed",
            "assistant_thread": {"user_id": ADA, "context": {"channel_id": CHANNEL}, "channel_id": DM, "thread_ts": TS},
            "event_ts": TS,
        },
    ],
)
def test_what_is_of_no_use_is_left_out(event: dict[str, Any]) -> None:
    assert parse(event, is_published=event["type"] != "member_joined") is None


def test_messages_of_other_programs_are_marked() -> None:
    fields = {"subtype": "bot_message", "bot_id": "B2", "username": "ci"}
    message = parse_as(Inbound, make_message("build failed", **fields))
    assert (message.is_from_bot, message.source.user_name) == (True, "Ada")
    del (event := make_message("build failed", **fields))["user"]
    source = parse_as(Inbound, event).source
    assert (source.user_id, source.user_name) == ("B2", "ci")


def test_a_forwarded_message_is_read() -> None:
    shared = {"is_share": True, "author_name": "Ben", "text": "lunch &amp; more", "fallback": "x"}
    preview = {"text": "a page", "from_url": "https://example.org", "fallback": "x"}
    event = make_message("look", attachments=[shared, preview])
    message = parse_as(Inbound, event, is_published=False)
    assert message.content == "look\n[Forwarded from Ben]\nlunch & more"


# ---- files ---------------------------------------------------------------------------------------------------


def test_files_are_described() -> None:
    event = make_message("", subtype="file_share", files=[make_file()])
    [file] = parse_as(Inbound, event).files
    assert (file.name, file.media_type, file.size, file.is_voice) == ("notes.txt", "text/plain", 10, False)


def test_a_voice_clip_is_recognized() -> None:
    clip = make_file(name="audio.m4a", mimetype="audio/mp4", subtype="slack_audio", duration_ms=4200)
    [file] = parse_as(Inbound, make_message("", subtype="file_share", files=[clip]), is_published=False).files
    assert (file.is_voice, file.duration_seconds, file.media_type) == (True, 4, "audio/mp4")


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (make_file(mode="external", name="plan", url_private="https://d.example"), "plan, at https://d.example"),
        ({"id": "F1", "mode": "hidden_by_limit"}, "without a name"),
        ({"id": "F1", "mode": "tombstone", "name": "old.txt"}, "old.txt"),
    ],
)
def test_a_file_that_slack_does_not_hand_out_is_named(file: dict[str, Any], line: str) -> None:
    event = make_message("see", subtype="file_share", files=[file])
    message = parse_as(Inbound, event, is_published=file["mode"] == "external")
    assert (message.files, message.content) == ([], f"see\n[File that can't be opened: {line}]")


# ---- edits, deletions, reactions, members --------------------------------------------------------------------


def make_change(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    change = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": DM, "channel_type": "im"}
    return {**change, "ts": TS, "event_ts": TS, "message": after, "previous_message": before}


def test_an_edit_is_read() -> None:
    edit = parse_as(MessageEdited, make_change(make_message("helo"), make_message("hello <@U0BEN>")))
    assert (edit.message_id, edit.content, edit.source.user_id) == (TS, "hello @Ben", ADA)


@pytest.mark.parametrize(
    ("before", "after", "thread"),
    [
        (f"<@{BOT_USER}> when?", f"<@{BOT_USER}> where?", TS),
        (f"<@{BOT_USER}> when?", "when?", TS),
        ("when?", "where?", None),
    ],
)
def test_an_edited_mention_is_still_in_the_thread_that_it_has_started(
    before: str, after: str, thread: str | None
) -> None:
    changed = make_change(make_message(before, channel=CHANNEL), make_message(after, channel=CHANNEL, thread_ts=TS))
    edit = parse_as(MessageEdited, {**changed, "channel": CHANNEL, "channel_type": "channel"})
    assert edit.source.thread_id == thread


def test_a_preview_of_a_link_and_our_own_edits_are_no_edits() -> None:
    assert parse(make_change(make_message("same"), make_message("same"))) is None
    own = make_message("done", user=BOT_USER)
    assert parse(make_change(make_message("…", user=BOT_USER), own)) is None


def test_a_deletion_is_read() -> None:
    change = {"type": "message", "subtype": "message_deleted", "hidden": True, "channel": DM, "channel_type": "im"}
    event = {**change, "ts": TS, "event_ts": TS, "deleted_ts": PARENT_TS, "previous_message": make_message()}
    assert parse_as(MessageDeleted, event).message_id == PARENT_TS
    event["previous_message"] = make_message(user=BOT_USER)
    assert parse(event) is None


def test_a_deleted_message_with_replies_is_a_deletion() -> None:
    gone = {"type": "message", "subtype": "tombstone", "ts": TS, "user": "USLACKBOT", "text": "This was deleted."}
    deletion = parse_as(MessageDeleted, make_change(make_message(), gone), is_published=False)
    assert deletion.message_id == TS


@pytest.mark.parametrize(
    ("name", "emoji"),
    [("+1", "👍"), ("thumbsup::skin-tone-3", "👍"), ("eyes", "👀"), ("party_parrot", ":party_parrot:")],
)
def test_a_reaction_is_read(name: str, emoji: str) -> None:
    item = {"type": "message", "channel": DM, "ts": TS}
    event = {"type": "reaction_added", "user": ADA, "reaction": name, "item_user": BOT_USER, "item": item}
    reaction = parse_as(MessageReaction, {**event, "event_ts": TS})
    assert (reaction.message_id, reaction.emoji, reaction.is_removed) == (TS, emoji, False)
    removed = parse_as(MessageReaction, {**event, "type": "reaction_removed", "event_ts": TS})
    assert removed.is_removed
    assert parse({**event, "user": BOT_USER, "event_ts": TS}) is None


@pytest.mark.parametrize(("user", "name", "is_own"), [(BOT_USER, "palaver", True), (ADA, "Ada", False)])
def test_members_are_read(user: str, name: str, *, is_own: bool) -> None:
    event = {"type": "member_joined_channel", "user": user, "channel": CHANNEL, "channel_type": "C", "team": TEAM}
    joined = parse_as(MembersChanged, {**event, "event_ts": TS})
    assert (joined.joined, joined.left, joined.is_own_account) == ((name,), (), is_own)
    left = parse_as(MembersChanged, {**event, "type": "member_left_channel", "event_ts": TS})
    assert (left.joined, left.left, left.is_own_account) == ((), (name,), is_own)


def test_the_stop_button_of_the_agent_view_is_the_command() -> None:
    event = {"type": "agent_session_stopped", "channel": DM, "user": ADA, "thread_ts": PARENT_TS}
    message = parse_as(Inbound, {**event, "streaming_message_ts": [TS], "event_ts": TS})
    assert (message.content, message.source.thread_id, message.source.user_id) == ("/stop", PARENT_TS, ADA)


# ---- commands and buttons ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "text", "content"),
    [
        ("/palaver", "new", "/new"),
        ("/palaver", "stop now", "/stop now"),
        ("/palaver", "what &amp; why?", "what & why?"),
        ("/palaver", "", "/help"),
        ("/new", "", "/new"),
        ("/stop", "now", "/stop now"),
    ],
)
def test_a_slash_command_is_read(command: str, text: str, content: str) -> None:
    fields = {"command": command, "text": text, "user_id": "U7", "user_name": "zoe", "channel_id": CHANNEL}
    message = parse_command({**fields, "trigger_id": "1.2.3"}, CONTEXT)
    assert isinstance(message, Inbound)
    assert (message.content, message.message_id, message.is_addressed) == (content, "command-1.2.3", True)
    assert (message.source.user_id, message.source.user_name, message.source.chat_id) == ("U7", "zoe", CHANNEL)


def make_press(**fields: Any) -> dict[str, Any]:
    message = {"ts": TS, "thread_ts": PARENT_TS, "user": BOT_USER}
    action = {"type": "button", "action_id": "palaver_1", "value": "stop:t_1", "action_ts": "1790000001.5"}
    user = {"id": ADA, "username": "ada"}
    payload = {"type": "block_actions", "user": user, "channel": {"id": CHANNEL}, "message": message}
    return {**payload, "actions": [action], **fields}


def test_a_press_names_the_message_its_thread_and_the_person() -> None:
    press = parse_press(make_press(), CONTEXT)
    assert isinstance(press, ButtonPressed)
    assert (press.message_id, press.data, press.source.user_id) == (TS, "stop:t_1", ADA)
    assert PressId.parse(press.press_id) == PressId(CHANNEL, PARENT_TS, ADA, "1790000001.5")


@pytest.mark.parametrize("fields", [{"type": "view_submission"}, {"actions": []}, {"message": None}, {"channel": None}])
def test_other_interactions_are_left_out(fields: dict[str, Any]) -> None:
    assert parse_press(make_press(**fields), CONTEXT) is None
