"""Turns a webhook of the Cloud API into what the gateway accepts. Pure: files are only described, not downloaded.

A person has a phone number, written without `+`, or a BSUID, which belongs to one business.

Always true: who writes is what Meta says in `from`, `from_user_id` and the contact that belongs to them; an entry that
cannot be read is left out, and never stops the others.
"""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.source import Platform, SessionSource
from palaver.platforms.common.inbound import UNREADABLE_ERRORS, describe_place, list_items
from palaver.platforms.whatsapp.client import GraphRefusal
from palaver.sessions.inbound import (
    AnyUpdate,
    ButtonPressed,
    ChatMoved,
    Inbound,
    InboundFile,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

JSON = Mapping[str, Any]

OpenMedia = Callable[[str], AsyncIterator[bytes]]  # the id of a file → its content, in chunks

log = logging.getLogger(__name__)

MAX_FORM_CHARS: Final = 4000
_NUMBER: Final = re.compile(r"[0-9]{5,20}")
_BSUID: Final = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}")
_OWN_BUTTON: Final = re.compile(r"(?:stop|retry|rerun):\S+")
_UNREADABLE: Final = (*UNREADABLE_ERRORS, OSError)  # OSError: a time that does not exist


def describe_content(message: JSON) -> str | None:
    """Return the text of a message without files; None for what is no message to the agent."""
    kind = message.get("type")
    if kind == "text":
        return str(message["text"]["body"])
    if kind in {"system", "request_welcome", "ephemeral", "reaction"}:
        return None
    describe = _DESCRIPTIONS.get(str(kind))
    return describe(message[str(kind)]) if describe else _describe_unsupported(message)


def _describe_place(place: JSON) -> str:
    return f"[{describe_place(place['latitude'], place['longitude'], place.get('name'), place.get('address'))}]"


def _describe_contacts(contacts: list[JSON]) -> str:
    people = []
    for contact in contacts:
        numbers = [str(each.get("phone") or each.get("wa_id") or "") for each in contact.get("phones", [])]
        mails = [str(each.get("email") or "") for each in contact.get("emails", [])]
        name = str(contact.get("name", {}).get("formatted_name") or "unknown")
        people.append(", ".join([name, *filter(None, [*numbers, *mails])]))
    return f"[{list_items('Contact' if len(people) == 1 else 'Contacts', people)}]"


def _describe_order(order: JSON) -> str:
    items = [
        f"{item.get('quantity')} × {item.get('product_retailer_id')} at {item.get('item_price')} {item.get('currency')}"
        for item in order.get("product_items", [])
    ]
    text = str(order.get("text") or "")
    return "\n".join(filter(None, [text, f"[{list_items('Order', items)}]"]))


def _describe_interactive(interactive: JSON) -> str:
    """Return what a person has chosen, where it is no button of ours."""
    kind = str(interactive.get("type"))
    reply = interactive.get(kind) or {}
    if kind == "nfm_reply":
        return f"[Form: {str(reply.get('response_json') or reply.get('body') or '')[:MAX_FORM_CHARS]}]"
    return str(reply.get("title") or "") or f"[A reply of the type {kind}]"


def _describe_unsupported(message: JSON) -> str:
    errors = message.get("errors") or [{}]
    reason = (errors[0].get("error_data") or {}).get("details") or errors[0].get("title") or ""
    kind = str((message.get("unsupported") or {}).get("type") or message.get("type") or "unknown")
    return f"[A message that WhatsApp does not pass on to businesses: {kind}{f'. {reason}' if reason else ''}]"


_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "location": _describe_place,
    "contacts": _describe_contacts,
    "order": _describe_order,
    "interactive": _describe_interactive,
    "button": lambda button: str(button.get("text") or button.get("payload") or ""),
    "sticker": lambda sticker: "[Animated sticker]" if sticker.get("animated") else "[Sticker]",
}


def is_number(text: object) -> bool:
    return isinstance(text, str) and _NUMBER.fullmatch(text) is not None


def is_bsuid(text: object) -> bool:
    return isinstance(text, str) and _BSUID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class MessageStatus:
    """The fate of a message of ours."""

    message_id: str
    key: str  # that it was sent with
    status: str  # sent, delivered, read, played, failed
    error: object = None  # as Meta gives it


def parse_webhook(
    payload: JSON, phone_number_id: str, open_media: OpenMedia
) -> tuple[list[AnyUpdate], list[MessageStatus]]:
    """Return what a request contains, in its order; nothing of other numbers, which have accounts of their own."""
    updates: list[AnyUpdate] = []
    statuses: list[MessageStatus] = []
    changes = [change for entry in _read_list(payload, "entry") for change in _read_list(entry, "changes")]
    for change in changes:
        if not isinstance(change, Mapping) or change.get("field") != "messages" or "value" not in change:
            continue
        value = change["value"]
        try:
            metadata = value["metadata"]
            if metadata["phone_number_id"] != phone_number_id:
                log.warning("whatsapp_other_number", extra={"phone_number_id": str(metadata["phone_number_id"])})
                continue
            own_number = re.sub(r"[^0-9]", "", str(metadata.get("display_phone_number", "")))
            reader = _ValueReader(value, own_number, open_media)
        except _UNREADABLE as error:
            log.warning("whatsapp_entry_unreadable", extra={"reason": repr(error)})
            continue
        updates += reader.read_messages()
        statuses += reader.read_statuses()
    return updates, statuses


def _read_list(fields: object, name: str) -> Sequence[Any]:
    found = fields.get(name) if isinstance(fields, Mapping) else None
    return found if isinstance(found, list) else ()


class _ValueReader:
    def __init__(self, value: JSON, own_number: str, open_media: OpenMedia) -> None:
        self._value = value
        self._own_number = own_number
        self._open_media = open_media
        self._contacts = _index_contacts(_read_list(value, "contacts"))

    def read_messages(self) -> Iterator[AnyUpdate]:
        for error in _read_list(self._value, "errors"):
            refusal = GraphRefusal.from_error(error)
            log.warning("whatsapp_reports_error", extra={"code": refusal.code, "reason": refusal.reason})
        for message in _read_list(self._value, "messages"):
            try:
                update = self._read_message(message)
            except _UNREADABLE as error:
                message_id = message.get("id") if isinstance(message, Mapping) else None
                log.warning("whatsapp_message_unreadable", extra={"message_id": message_id, "reason": repr(error)})
                continue
            if update is not None:
                yield update

    def read_statuses(self) -> Iterator[MessageStatus]:
        for status in _read_list(self._value, "statuses"):
            try:
                error = next(iter(_read_list(status, "errors")), None)
                if key := status.get("biz_opaque_callback_data"):
                    yield MessageStatus(str(status["id"]), str(key), str(status["status"]), error)
            except _UNREADABLE as error:
                log.warning("whatsapp_status_unreadable", extra={"reason": repr(error)})

    def _read_message(self, message: JSON) -> AnyUpdate | None:
        kind = message["type"]
        if kind == "system":
            return _read_system_message(message)
        if message.get("group_id"):
            raise ValueError("it is of a group, and groups are not supported")
        source = self._make_source(message)
        if (change := _read_change(message, source)) is not None:
            return change
        files = self._read_files(message)
        text = str(message[kind].get("caption") or "") if files else describe_content(message)
        if text is None:
            return None
        context = message.get("context") or {}
        if context.get("forwarded") or context.get("frequently_forwarded"):
            text = f"[Forwarded]\n{text}".rstrip()
        return Inbound(
            source=source,
            content=text,
            message_id=str(message["id"]),
            sent_at=datetime.fromtimestamp(int(message["timestamp"]), UTC),
            replied_message=self._read_replied(context),
            files=files,
        )

    def _make_source(self, message: JSON) -> SessionSource:
        number, bsuid = message.get("from") or None, message.get("from_user_id") or None
        if number is not None and is_bsuid(number):
            number, bsuid = None, number
        contact = self._contacts.get(str(number)) or self._contacts.get(str(bsuid)) or {}
        number, bsuid = number or contact.get("wa_id") or None, bsuid or contact.get("user_id") or None
        if (number is not None and not is_number(number)) or (bsuid is not None and not is_bsuid(bsuid)):
            raise ValueError("its sender has an id of an unknown form")
        ids = [each for each in (number, bsuid) if each]
        if not ids:
            raise ValueError("it does not say who wrote it")
        profile = contact.get("profile") or {}
        return SessionSource(
            Platform.WHATSAPP,
            ids[0],
            user_id=ids[0],
            user_id_alt=ids[1] if len(ids) > 1 else None,
            user_name=profile.get("name") or profile.get("username"),
        )

    def _read_files(self, message: JSON) -> tuple[InboundFile, ...]:
        kind = message["type"]
        if kind not in {"image", "video", "audio", "document"}:
            return ()
        media = message[kind]
        media_id = str(media["id"])
        media_type = str(media.get("mime_type") or "").partition(";")[0].strip() or None
        is_voice = kind == "audio" and bool(media.get("voice"))
        name = media.get("filename") or (
            None if is_voice else f"{kind}{mimetypes.guess_extension(media_type or '') or ''}"
        )
        content = partial(self._open_media, media_id)
        return (InboundFile(name=name and str(name), open=content, media_type=media_type, is_voice=is_voice),)

    def _read_replied(self, context: JSON) -> RepliedMessage | None:
        author = str(context.get("from") or "") or None
        is_own = author is not None and author == self._own_number
        return RepliedMessage(str(context["id"]), author=author, is_own=is_own) if context.get("id") else None


def _index_contacts(contacts: Sequence[object]) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for contact in contacts:
        if isinstance(contact, Mapping):
            ids = (contact.get("wa_id"), contact.get("user_id"))
            found |= {each: contact for each in ids if isinstance(each, str) and each not in found}
    return found


def _read_change(message: JSON, source: SessionSource) -> AnyUpdate | None:
    """Return what a person has done with a message that exists; None for a new message."""
    match message["type"]:
        case "reaction":
            emoji = str(message["reaction"].get("emoji") or "")
            message_id = str(message["reaction"]["message_id"])
            return MessageReaction(source=source, message_id=message_id, emoji=emoji, is_removed=not emoji)
        case "edit":
            edited = message["edit"]["message"]
            text = edited.get(edited["type"], {}).get("caption") or describe_content(edited)
            original_id = str(message["edit"]["original_message_id"])
            return MessageEdited(source=source, message_id=original_id, content=text or "")
        case "revoke":
            return MessageDeleted(source=source, message_id=str(message["revoke"]["original_message_id"]))
        case _:
            return _read_press(message, source)


def _read_press(message: JSON, source: SessionSource) -> ButtonPressed | None:
    """Return the press of a button that we have sent; any other choice is a message."""
    interactive = message.get("interactive")
    kind = interactive.get("type") if isinstance(interactive, Mapping) else None
    if interactive is None or kind not in {"button_reply", "list_reply"}:
        return None
    data = str(interactive[kind].get("id") or "")
    if not _OWN_BUTTON.fullmatch(data):
        return None
    pressed_id = str((message.get("context") or {}).get("id") or "")
    return ButtonPressed(source=source, message_id=pressed_id, data=data, press_id=str(message["id"]))


def _read_system_message(message: JSON) -> ChatMoved | None:
    """Return the new address of a person who has changed their number. Meta gives them a new BSUID then, too."""
    system = message["system"]
    if system.get("type") not in {"user_changed_number", "user_changed_user_id"}:
        return None
    new_ids = [each for each in (system.get("wa_id") or system.get("new_wa_id"), system.get("user_id")) if each]
    old_number = None if system["type"] == "user_changed_user_id" else message.get("from")
    old_ids = [each for each in (old_number, system.get("previous_user_id")) if each]
    if not new_ids or not old_ids or not all(is_number(each) or is_bsuid(each) for each in (*new_ids, *old_ids)):
        raise ValueError("it does not say which ids the person had and has")
    old_source = SessionSource(
        Platform.WHATSAPP, old_ids[0], user_id=old_ids[0], user_id_alt=old_ids[1] if len(old_ids) > 1 else None
    )
    return ChatMoved(source=old_source, new_chat_id=new_ids[0], new_user_ids=tuple(new_ids))
