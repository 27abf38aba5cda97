"""Turns what signal-cli receives into what the gateway accepts. Pure: files are only described, not read.

An event is the JSON that signal-cli prints for an envelope. A message of a person is a `dataMessage`. What the owner of
the account writes on another device is a `syncMessage`: a note to self is a question to the agent, a message in a group
is context, and a message to another person is not for the agent.

Always true: people are named by their ACI, and whether a message in a group is for the agent is decided by mentions and
quotes, never by searching its text. Mentions count in UTF-16 units.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.core.errors import SendRejected
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.common.commands import names_command
from palaver.platforms.common.inbound import list_items
from palaver.sessions.inbound import (
    AnyUpdate,
    Inbound,
    InboundFile,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

if TYPE_CHECKING:
    from palaver.platforms.signal.linking import LinkedAccount
    from palaver.sessions.delivery import Address

JSON = Mapping[str, Any]
OpenFile = Callable[[str], AsyncIterator[bytes]]  # signal-cli's id of an attachment → its content, in chunks

MAX_LISTED_ITEMS: Final = 12
LONG_TEXT_TYPE: Final = "text/x-signal-plain"  # the whole text of a message that is too long for one
_ACI = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"\+[1-9][0-9]{4,14}")
_GROUP_ID_BYTES = (16, 32)  # of groups of the first and of the second kind


class MessageRef(NamedTuple):
    """A message on Signal, by its author and time."""

    author: str
    timestamp: int  # milliseconds

    @property
    def id(self) -> str:
        return f"{self.author}:{self.timestamp}"


def parse_message_id(message_id: str) -> MessageRef:
    """Read the id of a message. Raises SendRejected for what is none."""
    author, _, timestamp = message_id.rpartition(":")
    if not author or not (timestamp.isascii() and timestamp.isdigit()):
        raise SendRejected("This is not the id of a message on Signal.")
    return MessageRef(author, int(timestamp))


def is_person(chat_id: str) -> bool:
    """Return whether a chat is the one with a single person."""
    return bool(_ACI.fullmatch(chat_id) or _NUMBER.fullmatch(chat_id))


def build_target(address: Address) -> dict[str, Any]:
    """Return the parameters that name a chat to signal-cli. Raises SendRejected for what is no chat."""
    chat_id = address.chat_id.removeprefix("group:")
    if is_person(chat_id):
        return {"recipient": [chat_id]}
    with contextlib.suppress(ValueError):
        if len(base64.b64decode(chat_id, validate=True)) in _GROUP_ID_BYTES:
            return {"groupId": chat_id}
    raise SendRejected.say(
        "signal.bad_chat",
        "This is not a chat on Signal: use a phone number such as +491701234567, the id of a person or"
        " the id of a group.",
    )


class _Sender(NamedTuple):
    id: str
    name: str  # never empty
    is_owner: bool  # of our account, on another device


@dataclass(frozen=True, slots=True, kw_only=True)
class EventParser:
    """Reads the events of one account."""

    own: LinkedAccount
    answers_everybody: bool = True  # False: only notes to self are for the agent
    find_name: Callable[[str], str | None]  # of a person's id, in earlier events
    find_original: Callable[[MessageRef], MessageRef]  # the message that an edited one belongs to
    open_file: OpenFile

    def parse(self, event: JSON) -> list[AnyUpdate]:
        """Return what an event means for the gateway; nothing for what it has no use for."""
        found = self._find_content(event)
        source = self._find_source(*found) if found is not None else None
        if found is None or source is None:
            return []
        sender, content = found
        if edit := content.get("editMessage"):
            update: AnyUpdate | None = self._parse_edit(edit, sender, source)
        elif reaction := content.get("reaction"):
            update = self._parse_reaction(reaction, source)
        elif (deleted := _find_deleted(content, sender)) is not None:
            update = MessageDeleted(source=source, message_id=self.find_original(deleted).id)
        else:
            server_time = (event.get("envelope") or {}).get("serverReceivedTimestamp")
            update = self._parse_message(content, sender, source, server_time)
        return [update] if update is not None else []

    def find_revision(self, event: JSON) -> tuple[MessageRef, MessageRef] | None:
        """Return the message that an edit replaces, and the edited one: a later edit may name either of them."""
        found = self._find_content(event)
        if found is None or not (edit := found[1].get("editMessage")):
            return None
        replaced = MessageRef(found[0].id, int(edit["targetSentTimestamp"]))
        return replaced, replaced._replace(timestamp=int(edit["dataMessage"]["timestamp"]))

    # ---- who, and where --------------------------------------------------------------------------------------

    def _find_content(self, event: JSON) -> tuple[_Sender, JSON] | None:
        """Return the sender of a message and the message itself; None for receipts, typing, calls and our own echo."""
        own = self.own
        envelope = event.get("envelope") or {}
        person = envelope.get("sourceUuid") or envelope.get("sourceNumber") or envelope.get("source")
        if not person:
            return None
        is_owner = own.aci in {person, envelope.get("sourceUuid")} or (own.number is not None and person == own.number)
        if is_owner and envelope.get("sourceDevice") == own.device_id:
            return None  # what this device has sent
        sender_id = own.aci if is_owner else person
        name = read_profile_name(envelope.get("sourceName"))
        sender = _Sender(sender_id, name or self._name_person(sender_id, envelope.get("sourceNumber")), is_owner)
        if is_owner and (sync := envelope.get("syncMessage")):
            sent = sync.get("sentMessage")
            return (sender, sent) if sent else None
        content = envelope.get("dataMessage")
        if edit := envelope.get("editMessage"):
            content = {"editMessage": edit, "groupInfo": edit["dataMessage"].get("groupInfo")}
        return (sender, content) if content else None

    def _name_person(self, person: str, number: str | None) -> str:
        """Return the name of a person; without one, as new profiles often are, the number or the start of the id."""
        return self.find_name(person) or number or person.partition("-")[0] or "unknown"

    def _find_source(self, sender: _Sender, content: JSON) -> SessionSource | None:
        """Return where a message was written; None if it is not for the agent."""
        inner = (content.get("editMessage") or {}).get("dataMessage") or content
        group = inner.get("groupInfo") or content.get("groupInfo")
        is_note_to_self = not group and sender.is_owner and self._is_to_owner(content)
        if not (is_note_to_self or (self.answers_everybody and (group or not sender.is_owner))):
            return None
        return SessionSource(
            Platform.SIGNAL,
            group["groupId"] if group else sender.id,
            chat_name=(group.get("groupName") or None) if group else sender.name,
            chat_type=ChatType.GROUP if group else ChatType.DM,
            user_id=sender.id,
            user_name=sender.name,
        )

    def _is_to_owner(self, content: JSON) -> bool:
        """Return whether the owner is the recipient; a message that is no sync message names none."""
        destination = content.get("destinationUuid") or content.get("destinationNumber") or content.get("destination")
        return destination is None or destination in {self.own.aci, self.own.number}

    # ---- messages --------------------------------------------------------------------------------------------

    def _parse_message(
        self, content: JSON, sender: _Sender, source: SessionSource, server_time: int | None
    ) -> Inbound | None:
        files = [_describe_file(each, self.open_file) for each in content.get("attachments") or () if each.get("id")]
        text = self._read_text(content) or _describe_content(content)
        if not text and not files:
            return None  # a new title, another timer, a call: nothing to answer
        replied = self._read_quote(content)
        timestamp = int(content["timestamp"])
        return Inbound(
            source=source,
            content=text,
            message_id=MessageRef(sender.id, timestamp).id,
            is_addressed=self._is_addressed(content, sender, source, replied),
            replied_message=replied,
            # The other time is what the sender's device says.
            sent_at=datetime.fromtimestamp((server_time or timestamp) / 1000, UTC),
            is_sent_at_reliable=bool(server_time),
            files=files,
        )

    def _parse_edit(self, edit: JSON, sender: _Sender, source: SessionSource) -> MessageEdited | None:
        text = self._read_text(edit["dataMessage"])
        original = self.find_original(MessageRef(sender.id, int(edit["targetSentTimestamp"])))
        return MessageEdited(source=source, message_id=original.id, content=text) if text else None

    def _parse_reaction(self, reaction: JSON, source: SessionSource) -> MessageReaction:
        author = reaction.get("targetAuthorUuid") or reaction.get("targetAuthorNumber") or reaction.get("targetAuthor")
        target = self.find_original(MessageRef(str(author), int(reaction["targetSentTimestamp"])))
        return MessageReaction(
            source=source,
            message_id=target.id,
            emoji=str(reaction["emoji"]),
            is_removed=bool(reaction.get("isRemove")),
        )

    def _read_text(self, content: JSON) -> str:
        """Return the text of a message with the names of the people it mentions.

        In a group, a mention of our account at the beginning is left out.
        """
        text = content.get("message") or ""
        units = text.encode("utf-16-le", "surrogatepass")
        pieces: list[bytes] = []
        position = 0
        has_text = False
        for mention in sorted(content.get("mentions") or (), key=lambda each: int(each["start"])):
            start, end = int(mention["start"]) * 2, (int(mention["start"]) + int(mention["length"])) * 2
            if not position <= start <= end <= len(units):
                continue
            person = mention.get("uuid") or mention.get("number") or mention.get("name") or ""
            before = units[position:start]
            has_text = has_text or bool(before.decode("utf-16-le", "replace").strip())
            is_shown = has_text or person != self.own.aci
            name = f"@{self._name_person(person, mention.get('number'))}" if is_shown else ""
            has_text = is_shown
            pieces += before, name.encode("utf-16-le", "surrogatepass")
            position = end
        pieces.append(units[position:])
        return b"".join(pieces).decode("utf-16-le", "replace").strip()

    def _read_quote(self, content: JSON) -> RepliedMessage | None:
        quote = content.get("quote")
        if not quote:
            return None
        author = str(quote.get("authorUuid") or quote.get("authorNumber") or quote.get("author") or "")
        is_own = author in {self.own.aci, self.own.number}
        files = [each.get("filename") or each.get("contentType") or "file" for each in quote.get("attachments") or ()]
        text = quote.get("text") or (list_items("Files", files, MAX_LISTED_ITEMS) if files else "")
        ref = self.find_original(MessageRef(self.own.aci if is_own else author, int(quote["id"])))
        name = None if is_own else self._name_person(author, quote.get("authorNumber"))
        return RepliedMessage(message_id=ref.id, author=name, text=text, is_own=is_own)

    def _is_addressed(
        self, content: JSON, sender: _Sender, source: SessionSource, replied: RepliedMessage | None
    ) -> bool:
        if source.chat_type is ChatType.DM:
            return True
        if sender.is_owner:
            return False  # the owner writes to the people in the group, and the agent writes in their name there
        is_mentioned = any(self.own.aci == each.get("uuid") for each in content.get("mentions") or ())
        text = content.get("message") or ""
        is_command = text.startswith("/") and names_command(text)
        return is_mentioned or is_command or (replied is not None and replied.is_own)


def read_sender_name(event: JSON) -> tuple[str, str] | None:
    """Return the id and the name of the person who has sent an event, if both are known."""
    envelope = event.get("envelope") or {}
    person, name = envelope.get("sourceUuid"), read_profile_name(envelope.get("sourceName"))
    return (str(person), name) if person and name else None


def read_profile_name(text: object) -> str | None:
    """Return a profile name as one line; None if there is nothing to see in it."""
    name = " ".join(str(text or "").split())
    return name if any(character.isprintable() for character in name.replace(" ", "")) else None


def _find_deleted(content: JSON, sender: _Sender) -> MessageRef | None:
    """Return the message that its author or an admin has deleted; None if this is no deletion."""
    if own := content.get("remoteDelete"):
        return MessageRef(sender.id, int(own["timestamp"]))
    if by_admin := content.get("adminDelete"):
        author = by_admin.get("targetAuthorUuid") or by_admin.get("targetAuthor")
        return MessageRef(str(author), int(by_admin["targetSentTimestamp"]))
    return None


# ---- files and other content ---------------------------------------------------------------------------------


def _describe_file(attachment: JSON, open_file: OpenFile) -> InboundFile:
    file_id = str(attachment["id"])
    media_type, name = attachment.get("contentType") or None, attachment.get("filename") or None
    is_voice = name is None and bool(media_type) and str(media_type).startswith("audio/")
    if media_type == LONG_TEXT_TYPE:
        media_type, name = "text/plain", "message.txt"
    return InboundFile(
        name=name or (None if is_voice else file_id),
        open=lambda: open_file(file_id),
        media_type=media_type,
        size=attachment.get("size"),
        is_voice=is_voice,
    )


def _describe_content(content: JSON) -> str:
    if content.get("sticker"):
        return "[Sticker]"
    if contacts := content.get("contacts"):
        return f"[{list_items('Contacts', [_describe_contact(each) for each in contacts], MAX_LISTED_ITEMS)}]"
    if poll := content.get("pollCreate"):
        options = [str(each.get("text", each) if isinstance(each, Mapping) else each) for each in poll["options"]]
        return f"[{list_items('Poll: ' + str(poll.get('question', '')), options, MAX_LISTED_ITEMS)}]"
    return ""


def _describe_contact(contact: JSON) -> str:
    names = contact.get("name") or {}
    name = names.get("display") or " ".join(filter(None, (names.get("given"), names.get("family"))))
    numbers = [str(each.get("value")) for each in contact.get("phone") or ()]
    return ", ".join(filter(None, (name or contact.get("organization"), *numbers)))
