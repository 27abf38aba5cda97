"""Describes in a line of text what people send besides texts and files: stickers, places, contacts, polls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

JSON = Mapping[str, Any]

MAX_LISTED_ITEMS = 30


def describe_content(message: JSON) -> str:
    """Return a line in brackets, or nothing if the message has no such content."""
    return _describe(message, _DESCRIPTIONS)


def describe_any_content(message: JSON) -> str:
    """Do the same for a message whose files are not downloaded, such as one that was replied to: name them too."""
    return _describe(message, _DESCRIPTIONS | _FILE_DESCRIPTIONS)


def _describe(message: JSON, descriptions: Mapping[str, Callable[[Any], str]]) -> str:
    for field, describe in descriptions.items():
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


def _describe_place(place: JSON) -> str:
    return f"{place['latitude']}, {place['longitude']}"


def _describe_contact(contact: JSON) -> str:
    name = join_words(contact["first_name"], contact.get("last_name"))
    return f"Contact: {name}, {contact['phone_number']}"


def _list_items(title: str, items: list[str]) -> str:
    shown = items[:MAX_LISTED_ITEMS]
    more = f"; and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return f"{title}: {'; '.join(shown)}{more}"


# A venue has a location too, and comes first.
_DESCRIPTIONS: dict[str, Callable[[Any], str]] = {
    "sticker": lambda sticker: join_words("Sticker", sticker.get("emoji")) or "",
    "venue": lambda venue: f"Place: {venue['title']}, {venue['address']} ({_describe_place(venue['location'])})",
    "location": lambda place: f"Location: {_describe_place(place)}",
    "contact": _describe_contact,
    "poll": lambda poll: _list_items(f"Poll: {poll['question']}", [option["text"] for option in poll["options"]]),
    "checklist": lambda checklist: _list_items(
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
