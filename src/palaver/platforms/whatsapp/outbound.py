"""Builds the requests of the Cloud API that send something. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import SendRejected, TargetUnreachable
from palaver.core.text import shorten
from palaver.platforms.whatsapp.inbound import is_bsuid, is_number
from palaver.platforms.whatsapp.manifest import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
    from palaver.sessions.delivery import Button

JSON = dict[str, Any]

MAX_REPLY_BUTTONS: Final = 3
MAX_BUTTON_TITLE_CHARS: Final = 20
MAX_BUTTON_BODY_CHARS: Final = 1024
MAX_LIST_ROWS: Final = 10
MAX_ROW_TITLE_CHARS: Final = 24
LIST_LABEL: Final = "Choose"
MAX_FILE_NAME_CHARS: Final = 240
_MEGABYTE: Final = 1024 * 1024
_MAX_BYTES: Final = {
    "image": 5 * _MEGABYTE,
    "audio": 16 * _MEGABYTE,
    "video": 16 * _MEGABYTE,
    "document": MAX_DOCUMENT_BYTES,
}
_KINDS: Final = {
    **dict.fromkeys(("image/jpeg", "image/png"), "image"),
    **dict.fromkeys(("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"), "audio"),
    **dict.fromkeys(("video/mp4", "video/3gpp"), "video"),
    **dict.fromkeys(("text/plain", "application/pdf", "application/msword"), "document"),
    **dict.fromkeys(("application/vnd.ms-excel", "application/vnd.ms-powerpoint"), "document"),
    **{
        f"application/vnd.openxmlformats-officedocument.{kind}": "document"
        for kind in ("presentationml.presentation", "spreadsheetml.sheet", "wordprocessingml.document")
    },
}
# Texts that WhatsApp has no type for: it takes them as plain text, and people see their own name.
_TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript"}
)


def build_address(chat_id: str) -> JSON:
    """Return the field that names the person; a number and a BSUID have different ones."""
    if is_number(chat_id):
        return {"to": chat_id}
    if is_bsuid(chat_id):
        return {"recipient": chat_id}
    raise TargetUnreachable.say(
        "whatsapp.number_of_other",
        "This person's number belongs to another person now, and no other address is known.",
    )


def build_text(message: OutgoingMessage) -> JSON:
    """Return a text, with buttons if there are any: up to three as buttons, more as a list."""
    request = _build_message(message)
    if message.buttons:
        return request | {"type": "interactive", "interactive": _build_interactive(message.body, message.buttons)}
    return request | {"type": "text", "text": {"body": message.body, "preview_url": False}}


def build_media(message: OutgoingMessage, kind: str, media_id: str) -> JSON:
    request = _build_message(message, can_reply=kind != "image")
    media: JSON = {"id": media_id}
    if kind == "document" and message.file is not None:
        media["filename"] = message.file.name[-MAX_FILE_NAME_CHARS:]
    return request | {"type": kind, kind: media}


def build_reaction(chat_id: str, message_id: str, emoji: str) -> JSON:
    """Return a reaction to a message; an empty emoji takes it back."""
    return _build_base(chat_id) | {"type": "reaction", "reaction": {"message_id": message_id, "emoji": emoji}}


def build_reply(chat_id: str, message_id: str, text: str) -> JSON:
    """Return a short text that answers a press."""
    body = {"body": text, "preview_url": False}
    return _build_base(chat_id) | {"context": {"message_id": message_id}, "type": "text", "text": body}


def build_typing(message_id: str) -> JSON:
    """Return the mark that a message was read, with the sign that an answer is being written."""
    read = {"messaging_product": "whatsapp", "status": "read", "message_id": message_id}
    return read | {"typing_indicator": {"type": "text"}}


def choose_media(file: OutgoingFile) -> tuple[str, str]:
    """Return how a file is sent (image, audio, video, document) and the type to upload it with.

    Raises SendRejected for a file that WhatsApp does not take.
    """
    media_type = file.media_type.partition(";")[0].strip().lower()
    if media_type.startswith("text/") or media_type in _TEXT_TYPES:
        media_type = "text/plain"
    kind = _KINDS.get(media_type)
    if kind is None:
        raise SendRejected.say(
            "whatsapp.wrong_file_type",
            "WhatsApp takes no files of the type {type}, so {name} was not sent.",
            type=media_type,
            name=file.name,
        )
    if file.size > _MAX_BYTES[kind]:
        raise SendRejected.say(
            "whatsapp.file_too_large",
            "{name} is too large: WhatsApp takes up to {limit} MB of this type.",
            name=file.name,
            limit=_MAX_BYTES[kind] // _MEGABYTE,
        )
    return kind, media_type


def _build_base(chat_id: str) -> JSON:
    return {"messaging_product": "whatsapp", "recipient_type": "individual", **build_address(chat_id)}


def _build_message(message: OutgoingMessage, *, can_reply: bool = True) -> JSON:
    request = _build_base(message.address.chat_id)
    request["biz_opaque_callback_data"] = message.key  # it comes back in the statuses of the message
    if message.reply_to and can_reply:
        request["context"] = {"message_id": message.reply_to}
    return request


def _build_interactive(body: str, buttons: Sequence[Button]) -> JSON:
    if len(buttons) <= MAX_REPLY_BUTTONS and len(body) <= MAX_BUTTON_BODY_CHARS:
        replies = [
            {"type": "reply", "reply": {"id": each.data, "title": shorten(each.label, MAX_BUTTON_TITLE_CHARS)}}
            for each in buttons
        ]
        return {"type": "button", "body": {"text": body}, "action": {"buttons": replies}}
    rows = [{"id": each.data, "title": shorten(each.label, MAX_ROW_TITLE_CHARS)} for each in buttons[:MAX_LIST_ROWS]]
    return {
        "type": "list",
        "body": {"text": body},
        "action": {"button": LIST_LABEL, "sections": [{"title": LIST_LABEL, "rows": rows}]},
    }
