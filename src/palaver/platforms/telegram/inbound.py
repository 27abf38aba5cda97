"""Turns an update of the Bot API into what the gateway accepts. Pure: files are only described, not downloaded.

An update is JSON as Telegram sends it. Most become one value, some none (service messages), and a changed reaction
two. Entities count in UTF-16 code units, so texts are cut as UTF-16.

Always true: whether a message is for the bot is decided by entities, commands and replies, never by searching its text.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.common.inbound import describe_place, list_items
from palaver.sessions.inbound import (
    AnyUpdate,
    ButtonPressed,
    ChatMoved,
    Inbound,
    InboundFile,
    MembersChanged,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

JSON = Mapping[str, Any]
# File id, size as Telegram says → the content, in chunks.
OpenFile = Callable[[str, int | None], AsyncIterator[bytes]]

# What the bot asks Telegram for; the rest is not sent to it.
ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "message_reaction",
    "callback_query",
    "my_chat_member",
)

GENERAL_TOPIC_ID = 1  # sending to it by its id fails: it has to be left out
_CHAT_TYPES = {"private": ChatType.DM, "channel": ChatType.CHANNEL}
_COMMAND = re.compile(r"/([A-Za-z0-9_]+)(?:@([A-Za-z0-9_]+))?")
# The field of a message, the media type if Telegram does not say it, and the ending of a made-up name.
_FILE_FIELDS = (
    ("animation", "video/mp4", "mp4"),
    ("document", None, ""),
    ("audio", "audio/mpeg", "mp3"),
    ("voice", "audio/ogg", "ogg"),
    ("video", "video/mp4", "mp4"),
    ("video_note", "video/mp4", "mp4"),
    ("live_photo", "video/mp4", "mp4"),
)


def describe_content(message: JSON, *, names_files: bool = False) -> str:
    """Return a line in brackets, or nothing if the message has no such content.

    `names_files` is for a message whose files are not downloaded, such as one that was replied to.
    """
    for field, describe in (_DESCRIPTIONS | _FILE_DESCRIPTIONS if names_files else _DESCRIPTIONS).items():
        if content := message.get(field):
            return f"[{describe(content)}]"
    return ""


def describe_origin(origin: JSON) -> str:
    """Return who wrote a message that was forwarded, or replied to in another chat."""
    user = origin.get("sender_user", {})
    chat = origin.get("sender_chat") or origin.get("chat") or {}
    name = (
        join_words(user.get("first_name"), user.get("last_name"))
        or chat.get("title")
        or join_words(origin.get("sender_user_name"))
        or user.get("username")
        or "unknown"
    )
    return " ".join(str(name).split())


def join_words(*words: str | None) -> str | None:
    """Join the words that there are; None if there are none."""
    return " ".join(word for word in words if word) or None


def _describe_place(place: JSON, *names: str) -> str:
    return describe_place(place["latitude"], place["longitude"], *names)


# A venue has a location too, and comes first.
_DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "sticker": lambda sticker: join_words("Sticker", sticker.get("emoji")) or "",
    "venue": lambda venue: _describe_place(venue["location"], venue["title"], venue["address"]),
    "location": _describe_place,
    "contact": lambda contact: f"Contact: {_format_name(contact)}, {contact['phone_number']}",
    "poll": lambda poll: list_items(f"Poll: {poll['question']}", [option["text"] for option in poll["options"]]),
    "checklist": lambda checklist: list_items(
        f"Checklist: {checklist['title']}", [task["text"] for task in checklist["tasks"]]
    ),
    "dice": lambda dice: f"{dice['emoji']} {dice['value']}",
    "story": lambda _story: "Story",
    "game": lambda game: f"Game: {game['title']}",
}
_FILE_DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "photo": lambda _photo: "Photo",
    "voice": lambda _voice: "Voice message",
    "animation": lambda _animation: "Animation",
    "video": lambda _video: "Video",
    "video_note": lambda _video: "Video message",
    "audio": lambda audio: join_words("Audio:", audio.get("title") or audio.get("file_name")) or "",
    "document": lambda document: join_words("File:", document.get("file_name")) or "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BotIdentity:
    """Our bot, as updates refer to it."""

    id: int
    username: str
    commands: frozenset[str] = frozenset()  # the names of our commands: in a group only they are for us


def parse_update(update: JSON, bot: BotIdentity, open_file: OpenFile) -> list[AnyUpdate]:
    """Return what an update means for the gateway; nothing for what it has no use for."""
    if message := update.get("message") or update.get("channel_post"):
        return _parse_message(message, bot, open_file)
    if message := update.get("edited_message") or update.get("edited_channel_post"):
        return _parse_edit(message, bot)
    if reaction := update.get("message_reaction"):
        return _parse_reaction(reaction, bot)
    if press := update.get("callback_query"):
        return _parse_press(press)
    if member := update.get("my_chat_member"):
        return _parse_own_membership(member, bot)
    return []


# ---- messages ------------------------------------------------------------------------------------------------


def _parse_message(message: JSON, bot: BotIdentity, open_file: OpenFile) -> list[AnyUpdate]:
    if service := _parse_service_message(message, bot):
        return service
    if _is_own(message, bot):
        return []
    files = _list_files(message, open_file)
    text = read_text(message, bot)
    if not text and not files:
        return []  # a pinned message, a new title, a gift: nothing to answer
    origin = message.get("forward_origin")
    if origin:
        text = f"[Forwarded from {describe_origin(origin)}]\n{text}".rstrip()
    source = _make_source(message["chat"], message)
    replied = _read_replied_message(message, bot)
    return [
        Inbound(
            source=source,
            content=text,
            message_id=str(message["message_id"]),
            is_addressed=_is_addressed(message, bot, source, replied),
            replied_message=replied,
            # People who write as a chat have a bot of Telegram's own as their sender.
            is_from_bot="sender_chat" not in message and bool(message.get("from", {}).get("is_bot")),
            sent_at=datetime.fromtimestamp(message["date"], UTC),
            files=files,
            album_id=message.get("media_group_id"),
        )
    ]


def _parse_service_message(message: JSON, bot: BotIdentity) -> list[AnyUpdate]:
    chat = message["chat"]
    if new_id := message.get("migrate_to_chat_id"):
        return [ChatMoved(source=_make_source(chat, message), new_chat_id=str(new_id))]
    if old_id := message.get("migrate_from_chat_id"):
        return [ChatMoved(source=_make_source({**chat, "id": old_id}, message), new_chat_id=str(chat["id"]))]
    # Our own account is reported by `my_chat_member`.
    joined = _list_names(message.get("new_chat_members", ()), bot)
    left = _list_names([message["left_chat_member"]] if "left_chat_member" in message else (), bot)
    if joined or left:
        return [MembersChanged(source=_make_source(chat, message), joined=joined, left=left)]
    return []


def _parse_edit(message: JSON, bot: BotIdentity) -> list[AnyUpdate]:
    # Telegram reports every step of a shared live location as an edit.
    text = read_text(message, bot)
    if _is_own(message, bot) or not text or "location" in message:
        return []
    source = _make_source(message["chat"], message)
    return [MessageEdited(source=source, message_id=str(message["message_id"]), content=text)]


def read_text(message: JSON, bot: BotIdentity) -> str:
    """Return the text of a message: what was written, or a line that describes a sticker, a place or a poll.

    Hidden addresses of links are written out, and a mention of the bot at the beginning is left out.
    """
    text = message.get("text") or message.get("caption")
    if not text:
        return describe_content(message)
    units = text.encode("utf-16-le", "surrogatepass")
    pieces: list[bytes] = []
    position = 0
    for entity, start, end, label in _read_entities(message, units):
        if start < position:
            continue  # inside of another one
        if entity["type"] == "text_link" and entity.get("url") and entity["url"] != label:
            pieces += units[position:end], f" ({entity['url']})".encode("utf-16-le")
            position = end
        elif not units[:start].decode("utf-16-le", "replace").strip() and _is_mention(entity, label, bot):
            position = end
    pieces.append(units[position:])
    return b"".join(pieces).decode("utf-16-le", "replace").strip()


def _read_entities(message: JSON, units: bytes) -> Iterator[tuple[JSON, int, int, str]]:
    """Yield each entity in the order of the text, where it starts and ends in its bytes, and what it is over."""
    entities = message.get("entities") or message.get("caption_entities") or []
    for entity in sorted(entities, key=lambda entity: entity["offset"]):
        start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        yield entity, start, end, units[start:end].decode("utf-16-le", "replace")


def _list_files(message: JSON, open_file: OpenFile) -> list[InboundFile]:
    if sizes := message.get("photo"):
        photo = max(sizes, key=lambda size: size["width"] * size["height"])
        return [_describe_file(photo, f"photo-{photo['file_unique_id']}.jpg", "image/jpeg", open_file)]
    for field, usual_type, ending in _FILE_FIELDS:
        if file := message.get(field):
            name = file.get("file_name") or (f"{field}-{file['file_unique_id']}.{ending}" if ending else None)
            media_type = file.get("mime_type") or usual_type
            return [_describe_file(file, name, media_type, open_file, is_voice=field == "voice")]
    return []


def _describe_file(
    file: JSON, name: str | None, media_type: str | None, open_file: OpenFile, *, is_voice: bool = False
) -> InboundFile:
    file_id, size = file["file_id"], file.get("file_size")
    return InboundFile(
        name=name,
        open=lambda: open_file(file_id, size),
        media_type=media_type,
        size=size,
        is_voice=is_voice,
        duration_seconds=file.get("duration"),
    )


def _read_replied_message(message: JSON, bot: BotIdentity) -> RepliedMessage | None:
    quote = message.get("quote", {}).get("text")
    replied = message.get("reply_to_message")
    if replied and not _is_topic_start(message, replied):
        return RepliedMessage(
            message_id=str(replied["message_id"]),
            author=_get_sender_name(replied),
            text=quote or replied.get("text") or replied.get("caption") or describe_content(replied, names_files=True),
            is_own=_is_own(replied, bot),
        )
    if external := message.get("external_reply"):
        return RepliedMessage(
            message_id=str(external.get("message_id", "")),
            author=describe_origin(external["origin"]),
            text=quote or describe_content(external, names_files=True),
        )
    return None


def _is_topic_start(message: JSON, replied: JSON) -> bool:
    """Return whether a "reply" only says in which topic the message is: Telegram sends one with every message there."""
    is_root = replied["message_id"] == message.get("message_thread_id")
    return "forum_topic_created" in replied or (message.get("is_topic_message", False) and is_root)


# ---- who is meant --------------------------------------------------------------------------------------------


def _is_addressed(message: JSON, bot: BotIdentity, source: SessionSource, replied: RepliedMessage | None) -> bool:
    if source.chat_type is ChatType.DM:
        return True
    if message.get("is_automatic_forward"):
        return False  # a post of a channel in the group for its comments: it is answered in the channel
    units = (message.get("text") or message.get("caption") or "").encode("utf-16-le", "surrogatepass")
    is_mentioned = False
    for entity, start, _, label in _read_entities(message, units):
        if entity["type"] == "bot_command" and start == 0 and (command := _COMMAND.fullmatch(label)):
            name, target = command[1].lower(), command[2]
            # A command is for the bot that it names; without a name it is for every bot that has it.
            return target.lower() == bot.username.lower() if target else name in bot.commands
        is_mentioned = is_mentioned or _is_mention(entity, label, bot)
    return is_mentioned or (replied is not None and replied.is_own)


def _is_mention(entity: JSON, label: str, bot: BotIdentity) -> bool:
    if entity["type"] == "text_mention":
        return bool(entity["user"]["id"] == bot.id)
    return entity["type"] == "mention" and label.lower() == f"@{bot.username.lower()}"


def _is_own(message: JSON, bot: BotIdentity) -> bool:
    return bool(message.get("from", {}).get("id") == bot.id)


# ---- other updates -------------------------------------------------------------------------------------------


def _parse_reaction(reaction: JSON, bot: BotIdentity) -> list[AnyUpdate]:
    if reaction.get("user", {}).get("id") == bot.id:
        return []
    source = _make_source(reaction["chat"], {"from": reaction.get("user"), "sender_chat": reaction.get("actor_chat")})
    old, new = (
        [each["emoji"] for each in reaction[field] if each["type"] == "emoji"]
        for field in ("old_reaction", "new_reaction")
    )
    changed = [emoji for emoji in (*old, *new) if (emoji in old) != (emoji in new)]
    message_id = str(reaction["message_id"])
    return [
        MessageReaction(source=source, message_id=message_id, emoji=emoji, is_removed=emoji in old) for emoji in changed
    ]


def _parse_press(press: JSON) -> list[AnyUpdate]:
    message, data = press.get("message"), press.get("data")
    if message is None or data is None:
        return []
    source = _make_source(message["chat"], {**message, "from": press["from"], "sender_chat": None})
    return [ButtonPressed(source=source, message_id=str(message["message_id"]), data=data, press_id=str(press["id"]))]


def _parse_own_membership(member: JSON, bot: BotIdentity) -> list[AnyUpdate]:
    def is_member(state: JSON) -> bool:
        return state["status"] in {"creator", "administrator", "member"} or bool(state.get("is_member"))

    was, now = is_member(member["old_chat_member"]), is_member(member["new_chat_member"])
    if was == now:
        return []
    source = _make_source(member["chat"], member)
    own_name = (f"@{bot.username}",)
    return [
        MembersChanged(source=source, joined=own_name if now else (), left=() if now else own_name, is_own_account=True)
    ]


# ---- where, and by whom --------------------------------------------------------------------------------------


def _make_source(chat: JSON, message: JSON) -> SessionSource:
    """Return where a message was written, and by whom; `message` has the fields of one, as far as they are known."""
    sender = message.get("sender_chat") or message.get("from") or {}
    topic = message.get("message_thread_id")
    return SessionSource(
        Platform.TELEGRAM,
        chat["id"],
        chat_name=chat.get("title") or _format_name(chat),
        chat_type=_CHAT_TYPES.get(chat["type"], ChatType.GROUP),
        user_id=sender.get("id"),
        user_name=_get_sender_name(message),
        # In groups without topics the field is the root of a chain of replies, which is no place.
        thread_id=topic if message.get("is_topic_message") and topic != GENERAL_TOPIC_ID else None,
        chat_topic=message.get("reply_to_message", {}).get("forum_topic_created", {}).get("name"),
    )


def _get_sender_name(message: JSON) -> str | None:
    chat = message.get("sender_chat")
    if not chat:
        return _format_name(message.get("from") or {})
    # An anonymous administrator writes as the group; the signature is their title.
    name, signature = chat.get("title") or _format_name(chat), message.get("author_signature")
    return f"{name} ({signature})" if name and signature else name


def _format_name(user: JSON) -> str | None:
    """Return the name that people see; without one, the user name."""
    return join_words(user.get("first_name"), user.get("last_name")) or user.get("username")


def _list_names(users: Sequence[JSON], bot: BotIdentity) -> tuple[str, ...]:
    return tuple(_format_name(user) or str(user["id"]) for user in users if user["id"] != bot.id)
