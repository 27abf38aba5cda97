"""Turns an event of the child into what the gateway accepts. Pure: files are only described, not downloaded.

Always true: a person is named by their number where WhatsApp tells it, else by their LID, and both are given where both
are known. Whether a message in a group is for the agent is decided by mentions and replies, never by its text.

A person has a number (`4917012345678@s.whatsapp.net`) and a LID (`231234567890@lid`), which hides the number; a group
has `120363041234567890@g.us`. Each device of a person adds its number: `4917012345678:3@s.whatsapp.net`.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.common.commands import names_command
from palaver.platforms.common.inbound import MAX_LISTED_ITEMS, describe_place, list_items
from palaver.sessions.inbound import (
    AnyUpdate,
    Inbound,
    InboundFile,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

MAX_LINE_CHARS: Final = 2000
FILE_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "imageMessage": lambda _image: "Photo",
    "videoMessage": lambda _video: "Video",
    "ptvMessage": lambda _video: "Video message",
    "audioMessage": lambda audio: "Voice message" if audio.PTT else "Audio",
    "documentMessage": lambda document: f"File: {document.fileName or document.title}",
    "stickerMessage": lambda _sticker: "Sticker",
}
# What a person has chosen from a message of a business: their answer.
_ANSWERS: Final[dict[str, Callable[[Any], str]]] = {
    "listResponseMessage": lambda answer: answer.title,
    "buttonsResponseMessage": lambda answer: answer.selectedDisplayText,
    "templateButtonReplyMessage": lambda answer: answer.selectedDisplayText,
}

PHONE_SERVER: Final = "s.whatsapp.net"
LID_SERVER: Final = "lid"
GROUP_SERVER: Final = "g.us"

_JID = re.compile(r"(?P<user>[^@:.]+)(?:\.\d+)?(?::\d+)?@(?P<server>[a-z.]+)")
_PHONE_NUMBER = re.compile(r"\+?(?P<digits>[0-9]{5,20})")

JSON = Mapping[str, Any]
OpenFile = Callable[[JSON], AsyncIterator[bytes]]  # what the child says about a file → its content, in chunks

_USUAL_TYPES = {  # if WhatsApp does not say it
    "image": "image/jpeg",
    "sticker": "image/webp",
    "video": "video/mp4",
    "ptv": "video/mp4",
    "audio": "audio/ogg",
}


def describe_content(message: Any, *, names_files: bool = False) -> str:
    """Return a line in brackets, or nothing if the message has no such content.

    `names_files` is for a message whose files are not downloaded, such as one that was replied to.
    """
    descriptions = _DESCRIPTIONS | FILE_DESCRIPTIONS if names_files else _DESCRIPTIONS
    for field, describe in (descriptions | _ANSWERS).items():
        if message.HasField(field):
            text = str(describe(getattr(message, field)))
            return text[:MAX_LINE_CHARS] if field in _ANSWERS else f"[{' '.join(text.split())[:MAX_LINE_CHARS]}]"
    return ""


def _describe_place(place: Any) -> str:
    return describe_place(f"{place.degreesLatitude:.6g}", f"{place.degreesLongitude:.6g}", place.name, place.address)


def _describe_contact(contact: Any) -> str:
    """Return the name and the numbers; a number stands in a line of the card such as `TEL;waid=49170:+49 170`."""
    lines = contact.vcard[:20_000].splitlines()
    numbers = [line.rpartition(":")[2].strip() for line in lines if "TEL" in line.partition(":")[0].upper()]
    return ", ".join([f"Contact: {contact.displayName}", *numbers[:MAX_LISTED_ITEMS]])


def _describe_poll(poll: Any) -> str:
    return list_items(f"Poll: {poll.name}", [option.optionName for option in poll.options])


_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "locationMessage": _describe_place,
    "liveLocationMessage": lambda place: (
        f"Live location: {place.degreesLatitude:.6g}, {place.degreesLongitude:.6g} {place.caption}"
    ),
    "contactMessage": _describe_contact,
    "contactsArrayMessage": lambda array: list_items("Contacts", [each.displayName for each in array.contacts]),
    **dict.fromkeys(("pollCreationMessage", "pollCreationMessageV2", "pollCreationMessageV3"), _describe_poll),
    "eventMessage": lambda event: ", ".join(
        filter(None, [f"Event: {event.name}", event.description, event.location.name])
    ),
    "groupInviteMessage": lambda invite: f"Invitation to the group {invite.groupName}",
}


def strip_device(jid: str | None) -> str | None:
    """Return the address of a person or group without a device; None for what is none."""
    found = _JID.fullmatch(jid or "")
    return f"{found['user']}@{found['server']}" if found else None


def is_group(jid: str) -> bool:
    return jid.endswith(f"@{GROUP_SERVER}")


def is_phone(jid: str) -> bool:
    return jid.endswith(f"@{PHONE_SERVER}")


def shorten_jid(jid: str) -> str:
    """Return an address as Palaver keeps it: a bare number for a person whose number is known."""
    return jid.removesuffix(f"@{PHONE_SERVER}")


def expand_jid(text: str) -> str | None:
    """Return the address that Palaver's form of it stands for; None if it is none."""
    number = _PHONE_NUMBER.fullmatch(text)
    return f"{number['digits']}@{PHONE_SERVER}" if number else strip_device(text)


def order_jids(*jids: str | None) -> list[str]:
    """Return the different addresses of one person without devices, a number before a LID."""
    known = dict.fromkeys(filter(None, map(strip_device, jids)))
    return sorted(known, key=lambda jid: not is_phone(jid))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """The state of the account that an event is read with."""

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
    is_mentioned = not set(map(strip_device, event["mentions"])).isdisjoint(event["own"])
    is_command = event["text"].startswith("/") and names_command(event["text"])
    return not event["is_group"] or is_mentioned or is_command or (replied is not None and replied.is_own)


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
    return RepliedMessage(quoted["id"], author=_format_number(sender), text=str(quoted["text"]), is_own=is_own)


def _list_files(event: JSON, open_file: OpenFile) -> list[InboundFile]:
    if not (media := event["media"]):
        return []
    media_type = (media["media_type"] or _USUAL_TYPES.get(media["type"], "")).partition(";")[0].strip() or None
    ending = mimetypes.guess_extension(media_type or "") or ""
    return [
        InboundFile(
            name=media["name"] or f"{media['type']}-{str(event['id'])[-8:]}{ending}",
            open=partial(open_file, media),
            media_type=media_type,
            size=media["size"] or None,
            is_voice=media["is_voice"],
            duration_seconds=media["seconds"],
        )
    ]


def _parse_reaction(event: JSON, context: EventContext) -> MessageReaction | None:
    if not (emoji := event["emoji"] or context.removed_emoji):
        return None
    source, is_removed = _make_source(event, context), not event["emoji"]
    return MessageReaction(source=source, message_id=event["target"], emoji=emoji, is_removed=is_removed)


def _parse_members(event: JSON, context: EventContext) -> MembersChanged | None:
    joined, left = _list_names(event["joined"]), _list_names(event["left"])
    if not joined and not left and not event["is_own"]:
        return None
    source = SessionSource(Platform.WHATSAPP_WEB, event["chat"], chat_type=ChatType.GROUP, chat_name=context.group_name)
    return MembersChanged(source=source, joined=joined, left=left, is_own_account=event["is_own"])


# ---- where, and by whom --------------------------------------------------------------------------------------


def _make_source(event: JSON, context: EventContext) -> SessionSource:
    people = order_jids(*(event["own"] if event["is_self"] else (event["sender"], event["sender_alt"])))
    chats = people if event["is_self"] else order_jids(event["chat"], event["chat_alt"])
    chat_id, chat_id_alt = _take_two([event["chat"]] if event["is_group"] else chats)
    user_id, user_id_alt = _take_two(people)
    name = event["name"] or _format_number(people[0] if people else None)
    return SessionSource(
        Platform.WHATSAPP_WEB,
        chat_id,
        chat_id_alt=chat_id_alt,
        chat_type=ChatType.GROUP if event["is_group"] else ChatType.DM,
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
