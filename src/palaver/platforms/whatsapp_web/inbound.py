"""Turns an event of the child into what the gateway accepts. Pure: files are only described, not downloaded.

Always true: a person is named by their number where WhatsApp tells it, else by their LID, and both are given where both
are known. Whether a message in a group is for the agent is decided by mentions and replies, never by its text.
"""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator, Callable, Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.whatsapp_web.jids import is_phone, order_jids, shorten_jid, strip_device
from palaver.sessions.inbound import Inbound, InboundFile, RepliedMessage
from palaver.sessions.platform_updates import MembersChanged, MessageDeleted, MessageEdited, MessageReaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.platform_updates import AnyUpdate

JSON = Mapping[str, Any]
OpenFile = Callable[[JSON], AsyncIterator[bytes]]  # what the child says about a file → its content, in chunks

_USUAL_TYPES = {  # if WhatsApp does not say it
    "image": "image/jpeg",
    "sticker": "image/webp",
    "video": "video/mp4",
    "ptv": "video/mp4",
    "audio": "audio/ogg",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """What is known besides an event itself."""

    open_file: OpenFile
    sent_ids: Container[str] = ()  # of messages that Palaver has sent lately
    group_name: str | None = None
    removed_emoji: str | None = None  # that a person takes back: WhatsApp does not say which


def parse_event(event: JSON, context: EventContext) -> AnyUpdate | None:
    """Return what an event means for the gateway; None for what it has no use for."""
    match event["kind"]:
        case "message":
            return _parse_message(event, context)
        case "edit":
            text = str(event["text"])
            edited = MessageEdited(source=_make_source(event, context), message_id=event["target"], content=text)
            return edited if text else None
        case "delete":
            source = _make_source(event, context)  # WhatsApp checks only the deletions of a group's admins
            return MessageDeleted(source=source, message_id=event["target"], is_by_author=not event.get("is_admin"))
        case "reaction":
            return _parse_reaction(event, context)
        case "members":
            return _parse_members(event, context)
        case _:
            return None


def _parse_message(event: JSON, context: EventContext) -> Inbound:
    text = _remove_own_mention(str(event["text"]), event)
    if event["is_forwarded"]:
        text = f"[Forwarded]\n{text}".rstrip()
    replied = _read_replied_message(event, context)
    return Inbound(
        source=_make_source(event, context),
        content=text,
        message_id=event["id"],
        is_addressed=_is_addressed(event, replied),
        replied_message=replied,
        sent_at=datetime.fromtimestamp(event["at"], UTC) if event["at"] > 0 else None,
        files=_list_files(event, context.open_file),
        album_id=event["album"],
    )


def _is_addressed(event: JSON, replied: RepliedMessage | None) -> bool:
    if not event["is_group"]:
        return True
    return not set(map(strip_device, event["mentions"])).isdisjoint(event["own"]) or (
        replied is not None and replied.is_own
    )


def _remove_own_mention(text: str, event: JSON) -> str:
    """Leave out a mention of our account at the beginning: WhatsApp writes it as a number."""
    mentioned = {strip_device(jid) for jid in event["mentions"]}
    for jid in event["own"]:
        mention = f"@{jid.partition('@')[0]}"
        if jid in mentioned and text.lstrip().startswith(mention):
            return text.lstrip().removeprefix(mention).lstrip()
    return text


def _read_replied_message(event: JSON, context: EventContext) -> RepliedMessage | None:
    quoted = event["quoted"]
    if not quoted:
        return None
    sender = strip_device(quoted["sender"])
    # In the chat with oneself, the owner and the agent have the same number.
    is_own = quoted["id"] in context.sent_ids or (sender in event["own"] and not event["is_self"])
    return RepliedMessage(
        message_id=quoted["id"], author=_format_number(sender), text=str(quoted["text"]), is_own=is_own
    )


def _list_files(event: JSON, open_file: OpenFile) -> list[InboundFile]:
    media = event["media"]
    if not media:
        return []
    media_type = (media["media_type"] or _USUAL_TYPES.get(media["type"], "")).partition(";")[0].strip() or None
    ending = mimetypes.guess_extension(media_type or "") or ""
    return [
        InboundFile(
            name=media["name"] or f"{media['type']}-{str(event['id'])[-8:]}{ending}",
            open=lambda: open_file(media),
            media_type=media_type,
            size=media["size"] or None,
            is_voice=media["is_voice"],
            duration_seconds=media["seconds"],
        )
    ]


def _parse_reaction(event: JSON, context: EventContext) -> MessageReaction | None:
    emoji = event["emoji"] or context.removed_emoji
    if not emoji:
        return None
    is_removed = not event["emoji"]
    source = _make_source(event, context)
    return MessageReaction(source=source, message_id=event["target"], emoji=emoji, is_removed=is_removed)


def _parse_members(event: JSON, context: EventContext) -> MembersChanged | None:
    joined, left = _list_names(event["joined"]), _list_names(event["left"])
    if not joined and not left and not event["is_own"]:
        return None
    source = SessionSource(Platform.WHATSAPP_WEB, event["chat"], chat_type=ChatType.GROUP, chat_name=context.group_name)
    return MembersChanged(source=source, joined=joined, left=left, is_own_account=event["is_own"])


# ---- where, and by whom --------------------------------------------------------------------------------------


def _make_source(event: JSON, context: EventContext) -> SessionSource:
    """Return where something was written, and by whom."""
    people = order_jids(event["sender"], event["sender_alt"])
    if event["is_self"]:
        people = order_jids(*event["own"])
    if event["is_group"]:
        chats, chat_type = [event["chat"]], ChatType.GROUP
    else:
        chats, chat_type = people if event["is_self"] else order_jids(event["chat"], event["chat_alt"]), ChatType.DM
    chat_id, chat_id_alt = _take_two(chats)
    user_id, user_id_alt = _take_two(people)
    name = event["name"] or _format_number(people[0] if people else None)
    return SessionSource(
        Platform.WHATSAPP_WEB,
        chat_id,
        chat_id_alt=chat_id_alt,
        chat_type=chat_type,
        chat_name=context.group_name if event["is_group"] else name,
        user_id=user_id,
        user_id_alt=user_id_alt,
        user_name=name,
    )


def _take_two(jids: Sequence[str]) -> tuple[str | None, str | None]:
    first, second = [*map(shorten_jid, jids[:2]), None, None][:2]
    return first, second


def _list_names(jids: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(name for jid in jids if (name := _format_number(jid)))


def _format_number(jid: str | None) -> str | None:
    """Return what people see instead of a missing name: the number, but never a LID, which means nothing to them."""
    if jid is None:
        return None
    return f"+{shorten_jid(jid)}" if is_phone(jid) else "a member" if jid else None
