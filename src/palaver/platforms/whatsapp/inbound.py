"""Turns a webhook of the Cloud API into what the gateway accepts. Pure: files are only described, not downloaded.

Always true: who writes is what Meta says in `from`, `from_user_id` and the contact that belongs to them; an entry that
cannot be read is left out, and never stops the others.
"""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform, SessionSource
from palaver.platforms.whatsapp.addresses import is_bsuid, is_number
from palaver.platforms.whatsapp.content import describe_content
from palaver.platforms.whatsapp.failures import GraphRefusal
from palaver.sessions.inbound import Inbound, InboundFile, RepliedMessage
from palaver.sessions.platform_updates import ButtonPressed, ChatMoved, MessageDeleted, MessageEdited, MessageReaction

if TYPE_CHECKING:
    from palaver.sessions.platform_updates import AnyUpdate

JSON = Mapping[str, Any]
OpenMedia = Callable[[str], AsyncIterator[bytes]]  # the id of a file → its content, in chunks

log = logging.getLogger(__name__)

_FILE_TYPES: Final = ("image", "video", "audio", "document")
_OWN_BUTTON: Final = re.compile(r"(?:stop|retry|rerun):\S+")
_NUMBER_CHANGES: Final = frozenset({"user_changed_number", "user_changed_user_id"})
# OSError and OverflowError: a time that does not exist
_UNREADABLE: Final = (AttributeError, KeyError, IndexError, TypeError, ValueError, OSError, OverflowError, InvalidInput)


@dataclass(frozen=True, slots=True)
class MessageStatus:
    """What became of a message of ours."""

    message_id: str
    key: str | None  # that it was sent with
    status: str  # sent, delivered, read, played, failed
    error: object = None  # as Meta gives it


@dataclass(slots=True)
class WebhookContent:
    """What one request of Meta contains for our number, in its order."""

    updates: list[AnyUpdate] = field(default_factory=list)
    statuses: list[MessageStatus] = field(default_factory=list)


def parse_webhook(payload: JSON, phone_number_id: str, open_media: OpenMedia) -> WebhookContent:
    """Return what a request contains; nothing of other numbers, which have accounts of their own."""
    content = WebhookContent()
    for value in _list_values(payload):
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
        content.updates += reader.read_messages()
        content.statuses += reader.read_statuses()
    return content


def _list_values(payload: JSON) -> Iterator[JSON]:
    for entry in _read_list(payload, "entry"):
        for change in _read_list(entry, "changes"):
            if isinstance(change, Mapping) and change.get("field") == "messages" and "value" in change:
                yield change["value"]


def _read_list(fields: object, name: str) -> Sequence[Any]:
    found = fields.get(name) if isinstance(fields, Mapping) else None
    return found if isinstance(found, list) else ()


class _ValueReader:
    """Reads the messages and statuses of one change."""

    def __init__(self, value: JSON, own_number: str, open_media: OpenMedia) -> None:
        self._value = value
        self._own_number = own_number
        self._open_media = open_media
        self._contacts = _index_contacts(_read_list(value, "contacts"))

    def read_messages(self) -> Iterator[AnyUpdate]:
        for error in _read_list(self._value, "errors"):
            refusal = GraphRefusal.from_error(error)
            log.warning("whatsapp_reports_error", extra={"code": refusal.code, "reason": refusal.text})
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
                errors = _read_list(status, "errors")
                key = status.get("biz_opaque_callback_data")
                yield MessageStatus(
                    str(status["id"]), str(key) if key else None, str(status["status"]), errors[0] if errors else None
                )
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
        if kind not in _FILE_TYPES:
            return ()
        media = message[kind]
        media_id = str(media["id"])
        media_type = str(media.get("mime_type") or "").partition(";")[0].strip() or None
        is_voice = kind == "audio" and bool(media.get("voice"))
        name = media.get("filename") or (
            None if is_voice else f"{kind}{mimetypes.guess_extension(media_type or '') or ''}"
        )
        return (
            InboundFile(
                name=name and str(name),
                open=lambda: self._open_media(media_id),
                media_type=media_type,
                is_voice=is_voice,
            ),
        )

    def _read_replied(self, context: JSON) -> RepliedMessage | None:
        message_id = context.get("id")
        if not message_id:
            return None
        author = str(context.get("from") or "")
        return RepliedMessage(
            str(message_id), author=author or None, is_own=bool(author) and author == self._own_number
        )


def _index_contacts(contacts: Sequence[object]) -> dict[str, JSON]:
    """Return the contacts by each of their ids."""
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
    if system.get("type") not in _NUMBER_CHANGES:
        return None
    new_ids = [each for each in (system.get("wa_id") or system.get("new_wa_id"), system.get("user_id")) if each]
    old_ids = [each for each in (message.get("from"), system.get("previous_user_id")) if each]
    if system["type"] == "user_changed_user_id":
        old_ids = [each for each in (system.get("previous_user_id"),) if each]
    if not new_ids or not old_ids or not all(is_number(each) or is_bsuid(each) for each in (*new_ids, *old_ids)):
        raise ValueError("it does not say which ids the person had and has")
    old_source = SessionSource(
        Platform.WHATSAPP, old_ids[0], user_id=old_ids[0], user_id_alt=old_ids[1] if len(old_ids) > 1 else None
    )
    return ChatMoved(source=old_source, new_chat_id=new_ids[0], new_user_ids=tuple(new_ids))
