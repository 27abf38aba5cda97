"""Turns what Discord reports into what the gateway accepts. Pure: files are only described, not downloaded.

Always true: whether a message is for the bot is decided by what Discord says who was mentioned, never by searching its
text. A mention of everybody is no mention of the bot.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import parse_locale
from palaver.sessions.inbound import (
    ButtonPressed,
    Inbound,
    InboundFile,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

if TYPE_CHECKING:
    from palaver.platforms.discord.directory import Channel, ChannelDirectory

JSON = Mapping[str, Any]
FindName = Callable[[str, str], str | None]  # `@`, `@&` or `#`, and an id → the name of the person, role or channel
OpenFile = Callable[[str], AsyncIterator[bytes]]  # URL → the content, in chunks

_MARKUP: Final = re.compile(
    r"<(?:(?P<kind>@[!&]?|#)(?P<id>\d{1,20})|a?:(?P<emoji>\w{1,32}):\d{1,20}|/(?P<command>[^<>:]{1,100}):\d{1,20})>"
)

COMMAND_ID_PREFIX: Final = "command:"  # of the id of a message that is a slash command: such a message exists nowhere
COMMAND_INTERACTION: Final = 2
BUTTON_INTERACTION: Final = 3
_MESSAGE_TYPES: Final = frozenset({0, 19, 20, 23})  # texts, replies, answers of bots; the rest are notices of Discord
_ADMINISTRATOR: Final = 1 << 3  # permissions
_VIEW_CHANNEL: Final = 1 << 10
_SEND_MESSAGES: Final = 1 << 11
_SEND_IN_THREADS: Final = 1 << 38
_VOICE_FLAG: Final = 1 << 13
_FORWARD: Final = 1  # the type of a reference
_SNOWFLAKE_EPOCH_MS: Final = 1_420_070_400_000


def replace_markup(text: str, find_name: FindName) -> str:
    """Write names instead of ids: `<@42>` becomes `@Ada`."""

    def replace(match: re.Match[str]) -> str:
        if emoji := match["emoji"]:
            return f":{emoji}:"
        if command := match["command"]:
            return f"/{command}"
        kind = "@" if match["kind"] == "@!" else match["kind"]
        name = find_name(kind, match["id"])
        return f"{kind[0]}{name}" if name else match[0]

    return _MARKUP.sub(replace, text)


def _describe_extras(message: JSON, text: str) -> Iterator[str]:
    for embed in message.get("embeds", ()):
        if not (embed.get("url") and embed["url"] in text):  # else it is the preview of a link that is in the text
            yield _describe_embed(embed)
    for sticker in message.get("sticker_items", ()):
        yield f"[Sticker: {sticker['name']}]"
    if poll := message.get("poll"):
        answers = "; ".join(answer["poll_media"].get("text") or "?" for answer in poll.get("answers", ()))
        yield f"[Poll: {poll['question'].get('text', '')} ({answers})]"


def _describe_embed(embed: JSON) -> str:
    lines = [
        embed.get("author", {}).get("name"),
        embed.get("title"),
        embed.get("url"),
        embed.get("description"),
        *(f"{field['name']}: {field['value']}" for field in embed.get("fields", ())),
        embed.get("image", {}).get("url"),
        embed.get("footer", {}).get("text"),
    ]
    shown = "\n".join(line for line in lines if line)
    return f"[Embed]\n{shown}" if shown else ""


def make_snowflake(moment: datetime) -> int:
    """Return the smallest id that Discord gives to anything at a moment."""
    return max(int(moment.timestamp() * 1000) - _SNOWFLAKE_EPOCH_MS, 0) << 22


# ---- messages ------------------------------------------------------------------------------------------------


def parse_message(message: JSON, channel: Channel, directory: ChannelDirectory, open_file: OpenFile) -> Inbound | None:
    """Return a message that is not our own; None for one that needs no answer and is no context."""
    author = message["author"]
    if message["type"] not in _MESSAGE_TYPES or author["id"] == directory.own_id:
        return None
    text = _read_text(message, channel, directory)
    files = _list_files(message, open_file)
    is_addressed = channel.guild_id is None or _is_mentioned(message, channel, directory)
    if not text and not files:
        return None  # only a mention, or a message that the bot may not read
    return Inbound(
        source=_make_source(channel, directory, author, message.get("member")),
        content=text,
        message_id=message["id"],
        is_addressed=is_addressed,
        addresses_others=_addresses_others(message, directory),
        replied_message=_read_replied_message(message, channel, directory),
        is_from_bot=bool(author.get("bot") or author.get("system") or message.get("webhook_id")),
        sent_at=datetime.fromisoformat(message["timestamp"]),
        files=files,
    )


def parse_edit(message: JSON, channel: Channel, directory: ChannelDirectory) -> MessageEdited | None:
    """Return the change of a message. Discord also reports when it has loaded the preview of a link."""
    if not message.get("edited_timestamp") or message["author"]["id"] == directory.own_id:
        return None
    text = _read_text(message, channel, directory)
    source = _make_source(channel, directory, message["author"], message.get("member"))
    return MessageEdited(source=source, message_id=message["id"], content=text) if text else None


def parse_deletion(message_id: str, channel: Channel, directory: ChannelDirectory) -> MessageDeleted:
    return MessageDeleted(source=_make_source(channel, directory, {}), message_id=message_id)


def parse_reaction(
    reaction: JSON, channel: Channel, directory: ChannelDirectory, is_removed: bool
) -> MessageReaction | None:
    member = reaction.get("member") or {}
    user = {"id": reaction["user_id"], **member.get("user", {})}
    emoji = reaction["emoji"]
    if user["id"] == directory.own_id or user.get("bot") or not emoji.get("name"):
        return None
    return MessageReaction(
        source=_make_source(channel, directory, user, member),
        message_id=reaction["message_id"],
        emoji=f":{emoji['name']}:" if emoji.get("id") else emoji["name"],
        is_removed=is_removed,
    )


# ---- commands and buttons ------------------------------------------------------------------------------------


def parse_interaction(
    interaction: JSON, channel: Channel, directory: ChannelDirectory
) -> Inbound | ButtonPressed | None:
    """Return the command that a person has called, or the button that they have pressed."""
    member = interaction.get("member") or {}
    user = member.get("user") or interaction["user"]
    source = _make_source(channel, directory, user, member)
    data = interaction.get("data") or {}
    if interaction["type"] == COMMAND_INTERACTION:
        values = [str(option["value"]) for option in data.get("options", ()) if "value" in option]
        content = " ".join([f"/{data['name']}", *values])
        return Inbound(
            source=source,
            content=content,
            message_id=f"{COMMAND_ID_PREFIX}{interaction['id']}",
            reported_language=parse_locale(interaction.get("locale")),
            is_interaction=True,
            can_be_answered=channel.guild_id is None or _can_write(interaction, channel),
        )
    if interaction["type"] == BUTTON_INTERACTION:
        return ButtonPressed(
            source=source,
            message_id=interaction["message"]["id"],
            data=data["custom_id"],
            press_id=interaction["id"],
        )
    return None


def _can_write(interaction: JSON, channel: Channel) -> bool:
    """Return whether the bot sees the channel of an interaction, and may write there."""
    granted = int(interaction.get("app_permissions") or _ADMINISTRATOR)  # Discord always says it
    needed = _VIEW_CHANNEL | (_SEND_IN_THREADS if channel.is_thread else _SEND_MESSAGES)
    return bool(granted & _ADMINISTRATOR) or granted & needed == needed


# ---- content -------------------------------------------------------------------------------------------------


def _read_text(message: JSON, channel: Channel, directory: ChannelDirectory) -> str:
    """Return all that people see, without files, and without a mention of the bot at the beginning."""
    content = (message.get("content") or "").lstrip()
    for mention in (f"<@{directory.own_id}>", f"<@!{directory.own_id}>"):
        content = content.removeprefix(mention).lstrip()
    find_name = _build_name_finder(message, channel, directory)
    parts = _list_parts({**message, "content": content}, find_name)
    for snapshot in message.get("message_snapshots", ()):
        parts += ["[Forwarded message]", *_list_parts(snapshot["message"], find_name)]
    return "\n".join(parts).strip()


def _list_parts(message: JSON, find_name: FindName) -> list[str]:
    text = replace_markup(message.get("content") or "", find_name)
    return [part for part in (text, *_describe_extras(message, text)) if part]


def _build_name_finder(message: JSON, channel: Channel, directory: ChannelDirectory) -> FindName:
    people = {user["id"]: _get_name(user, user.get("member")) for user in message.get("mentions", ())}
    guild = directory.find_guild(channel.guild_id)

    def find(kind: str, item_id: str) -> str | None:
        if kind == "@":
            return people.get(item_id)
        if kind == "@&":
            return guild.role_names.get(item_id) if guild else None
        found = directory.find(item_id)
        return found.name if found else None

    return find


def _list_files(message: JSON, open_file: OpenFile) -> list[InboundFile]:
    forwarded = [snapshot["message"] for snapshot in message.get("message_snapshots", ())]
    return [
        InboundFile(
            name=attachment["filename"],
            open=partial(open_file, attachment["url"]),
            media_type=attachment.get("content_type"),
            size=attachment.get("size"),
            is_voice=bool(each.get("flags", 0) & _VOICE_FLAG),
            duration_seconds=None if (duration := attachment.get("duration_secs")) is None else round(duration),
        )
        for each in (message, *forwarded)
        for attachment in each.get("attachments", ())
    ]


def _read_replied_message(message: JSON, channel: Channel, directory: ChannelDirectory) -> RepliedMessage | None:
    reference = message.get("message_reference") or {}
    if reference.get("type", 0) == _FORWARD or not reference.get("message_id"):
        return None
    replied = message.get("referenced_message")
    if not replied:
        return RepliedMessage(message_id=reference["message_id"])  # it was deleted
    names = ", ".join(attachment["filename"] for attachment in replied.get("attachments", ()))
    return RepliedMessage(
        message_id=replied["id"],
        author=_get_name(replied["author"], replied.get("member")),
        text=_read_text(replied, channel, directory) or (f"[Files: {names}]" if names else ""),
        is_own=replied["author"]["id"] == directory.own_id,
    )


# ---- who and where -------------------------------------------------------------------------------------------


def _is_mentioned(message: JSON, channel: Channel, directory: ChannelDirectory) -> bool:
    """Whether the bot or one of its roles was mentioned. A reply mentions who is replied to, unless it is silenced."""
    if any(user["id"] == directory.own_id for user in message.get("mentions", ())):
        return True
    guild = directory.find_guild(channel.guild_id)
    return guild is not None and not guild.own_role_ids.isdisjoint(message.get("mention_roles", ()))


def _addresses_others(message: JSON, directory: ChannelDirectory) -> bool:
    """Whether it mentions other people, roles or everybody, or replies to a message that is not the author's own."""
    own_ids = {directory.own_id, message["author"]["id"]}
    if message.get("mention_everyone") or message.get("mention_roles"):
        return True
    reference = message.get("message_reference") or {}
    is_reply = reference.get("type", 0) != _FORWARD and bool(reference.get("message_id"))
    replied = (message.get("referenced_message") or {}).get("author") or {}
    named = {user["id"] for user in message.get("mentions", ())} - own_ids
    return bool(named) or (is_reply and replied.get("id") not in own_ids)


def _make_source(
    channel: Channel, directory: ChannelDirectory, user: JSON, member: JSON | None = None
) -> SessionSource:
    user_id, user_name = user.get("id"), _get_name(user, member)
    if channel.guild_id is None:
        return SessionSource(Platform.DISCORD, channel.id, chat_name=user_name, user_id=user_id, user_name=user_name)
    parent = directory.find(channel.parent_id) if channel.is_thread and channel.parent_id else None
    guild = directory.find_guild(channel.guild_id)
    named = parent or channel
    names = [guild.name if guild else None, f"#{named.name}" if named.name else None]
    return SessionSource(
        Platform.DISCORD,
        (channel.parent_id or channel.id) if channel.is_thread else channel.id,
        chat_name=" ".join(name for name in names if name) or None,
        chat_type=ChatType.THREAD if channel.is_thread else ChatType.CHANNEL,
        user_id=user_id,
        user_name=user_name,
        thread_id=channel.id if channel.is_thread else None,
        chat_topic=channel.name if channel.is_thread else channel.topic,
    )


def _get_name(user: JSON, member: JSON | None) -> str | None:
    """Return the name that people see here: on this server, else everywhere."""
    return (member or {}).get("nick") or user.get("global_name") or user.get("username")
