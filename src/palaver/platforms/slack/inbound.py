"""Turns what Slack sends into what the gateway accepts. Pure: names are passed in, and files are only described.

The same message arrives as `message` and as `app_mention`, and again after a retry, each time under another event id.
What identifies it is its channel and its `ts`, so these are its chat and its message id.

In a channel, a message to the app starts a thread, and is answered there: the thread is the conversation. In a direct
message only what is written in a thread belongs to one; in Slack's agent view everything is.

Always true: whether a message is for the app is decided by references (`<@U…>`), never by searching its text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.slack.outbound import (
    Names,
    decode_text,
    list_references,
    mentions_others,
    mentions_user,
    read_emoji,
    remove_leading_mention,
)
from palaver.sessions.inbound import (
    AnyUpdate,
    ButtonPressed,
    Inbound,
    InboundFile,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

JSON = Mapping[str, Any]
OpenFile = Callable[[JSON], AsyncIterator[bytes]]

# Messages of people; all other subtypes are notes of Slack itself, such as a new topic.
_MESSAGE_SUBTYPES: Final = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppIdentity:
    """Our app, as events refer to it."""

    user_id: str = ""
    bot_id: str = ""
    team_id: str = ""
    name: str = ""
    commands: frozenset[str] = frozenset()  # the names of our commands


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """Our app, the names behind ids, and a way to open files."""

    app: AppIdentity
    names: Names
    open_file: OpenFile


def is_ts(text: str) -> bool:
    return _TS.fullmatch(text) is not None


def list_named_ids(event: JSON) -> set[str]:
    """Return the ids of the people and channels whose names are needed to read an event."""
    nested = event.get("message")
    message = nested if isinstance(nested, dict) else event
    channel = event.get("channel") or (event.get("item") or {}).get("channel")
    ids = (message.get("user"), event.get("user"), channel)
    return list_references(message.get("text") or "") | {each for each in ids if isinstance(each, str)}


def is_own_message(event: JSON, app: AppIdentity) -> bool:
    return event.get("user") == app.user_id or (bool(app.bot_id) and event.get("bot_id") == app.bot_id)


def parse_event(event: JSON, context: ReadingContext) -> AnyUpdate | None:
    """Return what an event means for the gateway; None for what it has no use for."""
    match event.get("type"):
        case "message":
            return _parse_any_message(event, context)
        case "app_mention":
            return _parse_message(event, context)
        case "reaction_added" | "reaction_removed":
            return _parse_reaction(event, context)
        case "member_joined_channel" | "member_left_channel" | "channel_left" | "group_left":
            return _parse_members(event, context)
        case "agent_session_stopped":
            # The Stop button of Slack's agent view.
            source = _make_source(event, context)
            return Inbound(source=source, content="/stop", message_id=f"stop-{event['event_ts']}")
    return None


# ---- messages ------------------------------------------------------------------------------------------------


def _parse_any_message(event: JSON, context: ReadingContext) -> AnyUpdate | None:
    subtype = event.get("subtype") or ""
    if subtype == "message_changed":
        return _parse_edit(event, context)
    if subtype == "message_deleted":
        return _parse_deletion(event, event.get("previous_message") or {}, event["deleted_ts"], context)
    return _parse_message(event, context) if subtype in _MESSAGE_SUBTYPES else None


def _parse_message(event: JSON, context: ReadingContext) -> Inbound | None:
    app = context.app
    if is_own_message(event, app):
        return None
    files, lines = _read_files(event, context.open_file)
    text = "\n".join(
        part for part in (read_text(event, context), *_read_shared_messages(event, context), *lines) if part
    )
    if not text and not files:
        return None
    is_addressed = _is_addressed(event, app)
    is_in_own_thread = _is_in_own_thread(event, app)
    return Inbound(
        source=_make_source(event, context, starts_thread=is_addressed),
        content=text,
        message_id=event["ts"],
        is_addressed=is_addressed,
        is_in_own_thread=is_in_own_thread and not mentions_user(event.get("text") or "", app.user_id),
        addresses_others=mentions_others(event.get("text") or "", app.user_id),
        replied_message=RepliedMessage(event["thread_ts"], app.name, is_own=True) if is_in_own_thread else None,
        is_from_bot=_is_from_bot(event),
        sent_at=datetime.fromtimestamp(float(event["ts"]), UTC),
        files=files,
    )


def read_text(event: JSON, context: ReadingContext) -> str:
    """Return the text of a message as people read it, without a mention of the app at its beginning.

    Slack keeps texts with a slash for itself, so `!stop` is the command `/stop` too.
    """
    text = remove_leading_mention(event.get("text") or "", context.app.user_id)
    decoded = decode_text(text, context.names).strip()
    if decoded.startswith("!") and _is_command(decoded[1:], context.app):
        return f"/{decoded[1:]}"
    return decoded


def _is_command(text: str, app: AppIdentity) -> bool:
    words = text.split(maxsplit=1)
    return bool(words) and not text[0].isspace() and words[0].lower() in app.commands


def _is_addressed(event: JSON, app: AppIdentity) -> bool:
    if _is_direct(event["channel"]):
        return True
    text = event.get("text") or ""
    # Slack has no slash commands in threads, so our texts there name `!stop`. Outside, it may be for another app.
    is_command = bool(event.get("thread_ts")) and text.startswith("!") and _is_command(text[1:], app)
    return (
        is_command
        or mentions_user(text, app.user_id)
        or (_is_in_own_thread(event, app) and not mentions_others(text, app.user_id))
    )


def _is_in_own_thread(event: JSON, app: AppIdentity) -> bool:
    return event.get("parent_user_id") == app.user_id


def _is_from_bot(event: JSON) -> bool:
    return bool(event.get("bot_id")) or event.get("subtype") == "bot_message" or event.get("user") == "USLACKBOT"


def _read_shared_messages(event: JSON, context: ReadingContext) -> list[str]:
    return [
        f"[Forwarded from {each.get('author_name') or 'unknown'}]\n{decode_text(each['text'], context.names)}"
        for each in event.get("attachments") or ()
        if each.get("is_share") and each.get("text")
    ]


def _read_files(event: JSON, open_file: OpenFile) -> tuple[list[InboundFile], list[str]]:
    """Return the files of a message, and a line for each that Slack does not hand out."""
    files, lines = [], []
    for file in event.get("files") or ():
        is_missing = file.get("mode") in {"external", "tombstone", "hidden_by_limit"}
        if is_missing or not (file.get("url_private") or file.get("file_access") == "check_file_info"):
            place = f", at {file['url_private']}" if file.get("mode") == "external" and file.get("url_private") else ""
            name = file.get("name") or file.get("title") or "without a name"
            lines.append(f"[File that can't be opened: {name}{place}]")
        else:
            duration = file.get("duration_ms")
            files.append(
                InboundFile(
                    name=file.get("name") or file.get("title"),
                    open=partial(open_file, file),
                    media_type=file.get("mimetype") or None,
                    size=file.get("size") or None,
                    is_voice=file.get("subtype") == "slack_audio",
                    duration_seconds=round(duration / 1000) if isinstance(duration, int) else None,
                )
            )
    return files, lines


def _parse_edit(event: JSON, context: ReadingContext) -> AnyUpdate | None:
    message, previous = event["message"], event.get("previous_message") or {}
    if message.get("subtype") == "tombstone":  # deleted, but its replies are still there
        return _parse_deletion(event, previous, message["ts"], context)
    # Slack also reports an edit when a link gets a preview, or a thread a reply.
    if is_own_message(message, context.app) or message.get("text") == previous.get("text"):
        return None
    content = read_text(message, context)
    if not content or _is_from_bot(message):
        return None
    # A mention has started a thread when it was sent, also if the edit removes it.
    versions = [{**each, "channel": event["channel"]} for each in (message, previous)]
    starts_thread = any(_is_addressed(each, context.app) for each in versions)
    source = _make_source(versions[0], context, starts_thread=starts_thread)
    return MessageEdited(source=source, message_id=message["ts"], content=content)


def _parse_deletion(event: JSON, previous: JSON, ts: str, context: ReadingContext) -> AnyUpdate | None:
    if is_own_message(previous, context.app):
        return None
    source = _make_source({**previous, "channel": event["channel"], "user": None}, context)
    return MessageDeleted(source=source, message_id=ts)


# ---- other events --------------------------------------------------------------------------------------------


def _parse_reaction(event: JSON, context: ReadingContext) -> AnyUpdate | None:
    item = event.get("item") or {}
    if event.get("user") == context.app.user_id or item.get("type") != "message":
        return None
    return MessageReaction(
        source=_make_source({"channel": item["channel"], "user": event.get("user")}, context),
        message_id=item["ts"],
        emoji=read_emoji(event["reaction"]),
        is_removed=event["type"] == "reaction_removed",
    )


def _parse_members(event: JSON, context: ReadingContext) -> AnyUpdate | None:
    user_id = event.get("user")
    is_own = user_id == context.app.user_id or event["type"] in {"channel_left", "group_left"}
    name = context.app.name if is_own else context.names.get(user_id or "", user_id or "")
    change = "joined" if event["type"] == "member_joined_channel" else "left"
    return MembersChanged(source=_make_source(event, context), is_own_account=is_own, **{change: (name,)})


def parse_command(command: JSON, context: ReadingContext, *, is_member: bool = True) -> Inbound:
    """Return what a slash command means: `/palaver new`, or a command of ours that the app has under its own name.

    People may call it where the app is no member: in a channel, or in their direct messages with each other.
    """
    name, text = str(command["command"]).removeprefix("/"), str(command.get("text") or "").strip()
    if name.lower() in context.app.commands:
        content = f"/{name.lower()} {text}".rstrip()
    else:
        content = f"/{text}" if _is_command(text, context.app) else decode_text(text, context.names) or "/help"
    event = {"channel": command["channel_id"], "user": command["user_id"]}
    source = _make_source(event, context, user_name=command.get("user_name"))
    return Inbound(
        source=source if is_member else replace(source, chat_type=ChatType.GROUP),
        content=content,
        message_id=f"command-{command['trigger_id']}",
        is_interaction=True,
        can_be_answered=is_member,
    )


def parse_press(payload: JSON, context: ReadingContext) -> AnyUpdate | None:
    """Return which button was pressed; None for other interactions."""
    actions = payload.get("actions") or []
    channel = (payload.get("channel") or {}).get("id")
    message = payload.get("message") or {}
    if payload.get("type") != "block_actions" or not actions or not channel or not message.get("ts"):
        return None
    action, user = actions[0], payload["user"]
    source = _make_source(
        {**message, "channel": channel, "user": user["id"]}, context, user_name=user.get("name") or user.get("username")
    )
    press_id = str(PressId(channel, source.thread_id or "", user["id"], str(action.get("action_ts") or "")))
    data = str(action.get("value") or "")
    return ButtonPressed(source=source, message_id=message["ts"], data=data, press_id=press_id)


class PressId(NamedTuple):
    """Identifies a press of a button, and the place where its answer is shown."""

    channel_id: str
    thread_ts: str
    user_id: str
    action_ts: str

    def __str__(self) -> str:
        return ":".join(self)

    @classmethod
    def parse(cls, text: str) -> PressId:
        return cls(*text.split(":"))


# ---- where, and by whom --------------------------------------------------------------------------------------


def _is_direct(channel_id: str) -> bool:
    return channel_id.startswith("D")


def _make_source(
    event: JSON, context: ReadingContext, *, starts_thread: bool = False, user_name: str | None = None
) -> SessionSource:
    """Return where something happened, and who did it; `event` has the fields of a message, as far as known."""
    channel = event["channel"]
    user_id = event.get("user") or event.get("bot_id")
    is_direct = _is_direct(channel)
    bot_name = (event.get("bot_profile") or {}).get("name") or event.get("username")
    return SessionSource(
        Platform.SLACK,
        channel,
        chat_name=None if is_direct else context.names.get(channel),
        # A message and its mention must be in the same conversation, and only one of them tells which type it has.
        chat_type=ChatType.DM if is_direct else ChatType.GROUP,
        user_id=user_id,
        user_name=context.names.get(user_id or "") or user_name or bot_name,
        thread_id=_find_thread(event, starts_thread=starts_thread and not is_direct),
    )


def _find_thread(event: JSON, *, starts_thread: bool) -> str | None:
    ts, thread_ts = event.get("ts"), event.get("thread_ts")
    if isinstance(assistant_thread := event.get("assistant_thread"), Mapping):  # a message in the agent view
        thread_ts = thread_ts or assistant_thread.get("thread_ts") or ts
        return str(thread_ts) if thread_ts else None
    if thread_ts and thread_ts != ts:
        return str(thread_ts)
    return ts if starts_thread else None  # the first message of a thread names itself
