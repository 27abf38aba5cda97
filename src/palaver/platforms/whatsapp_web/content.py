"""Describes in a line of text what people send besides texts and files: places, contacts, polls. Pure.

Imported by the child. It reads messages of the library by the names of their fields, and imports nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_LISTED_ITEMS: Final = 30
MAX_LINE_CHARS: Final = 2000


def describe_content(message: Any, *, names_files: bool = False) -> str:
    """Return a line in brackets, or nothing if the message has no such content.

    `names_files` is for a message whose files are not downloaded, such as one that was replied to.
    """
    descriptions = _DESCRIPTIONS | _FILE_DESCRIPTIONS if names_files else _DESCRIPTIONS
    for field, describe in descriptions.items():
        if message.HasField(field):
            line = " ".join(describe(getattr(message, field)).split())
            return f"[{line[:MAX_LINE_CHARS]}]"
    for field, read in _ANSWERS.items():
        if message.HasField(field):
            return str(read(getattr(message, field)))[:MAX_LINE_CHARS]
    return ""


def _list_items(title: str, items: Sequence[str]) -> str:
    shown = items[:MAX_LISTED_ITEMS]
    more = f"; and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return f"{title}: {'; '.join(shown)}{more}"


def _describe_place(place: Any) -> str:
    position = f"{place.degreesLatitude:.6g}, {place.degreesLongitude:.6g}"
    names = ", ".join(name for name in (place.name, place.address) if name)
    return f"Place: {names} ({position})" if names else f"Location: {position}"


def _describe_live_place(place: Any) -> str:
    return f"Live location: {place.degreesLatitude:.6g}, {place.degreesLongitude:.6g} {place.caption}"


def _describe_contact(contact: Any) -> str:
    """Return the name and the numbers; a number stands in a line of the card such as `TEL;waid=49170:+49 170`."""
    lines = contact.vcard[:20_000].splitlines()
    numbers = [line.rpartition(":")[2].strip() for line in lines if "TEL" in line.partition(":")[0].upper()]
    return ", ".join([f"Contact: {contact.displayName}", *numbers[:MAX_LISTED_ITEMS]])


def _describe_poll(poll: Any) -> str:
    return _list_items(f"Poll: {poll.name}", [option.optionName for option in poll.options])


def _describe_event(event: Any) -> str:
    return ", ".join(filter(None, [f"Event: {event.name}", event.description, event.location.name]))


_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "locationMessage": _describe_place,
    "liveLocationMessage": _describe_live_place,
    "contactMessage": _describe_contact,
    "contactsArrayMessage": lambda array: _list_items("Contacts", [each.displayName for each in array.contacts]),
    "pollCreationMessage": _describe_poll,
    "pollCreationMessageV2": _describe_poll,
    "pollCreationMessageV3": _describe_poll,
    "eventMessage": _describe_event,
    "groupInviteMessage": lambda invite: f"Invitation to the group {invite.groupName}",
}
_FILE_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
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
