"""A mail → a message, or why it is none. Pure.

Who wrote it is decided by `authentication`; what comes from programs is marked, and what must never be answered (our
own mails, automatic replies, reports that a mail was not delivered) is passed over.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.email import headers
from palaver.platforms.email.authentication import find_sender, verify_sender
from palaver.platforms.email.body_text import cut_quotes, cut_text
from palaver.platforms.email.headers import MAX_CHAT_PEOPLE, Mailbox, MailHeader, ThreadState, decode_words
from palaver.sessions.inbound import Inbound, InboundFile, RepliedMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.platforms.email.manifest import EmailSettings

UNREADABLE_TEXT = "[This mail could not be read: its parts are damaged or too many.]"


class MailIgnored(Exception):
    """A mail that must not be answered: our own, or an automatic reply. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(ThreadState):
    """The header of a mail that may be read."""

    sender: Mailbox
    people: frozenset[str]  # who get the answer
    is_addressed: bool
    thread_id: str
    is_from_bot: bool
    replied_id: str | None
    replied_is_own: bool

    @property
    def is_group(self) -> bool:
        return len(self.people) > 1

    @property
    def chat_id(self) -> str:
        return headers.ADDRESS_SEPARATOR.join(sorted(self.people))


def read_envelope(raw_header: bytes, settings: EmailSettings) -> Envelope:
    """Read the header of a mail. Raises MailIgnored and SenderRefused."""
    header = headers.parse_header(raw_header)
    message_id = headers.get_mail_id(header, raw_header)
    sender = find_sender(header)
    if headers.parse_own_id(message_id, settings.address) or _is_own(sender.address, settings):
        raise MailIgnored("It is our own mail.")
    if headers.is_automatic_reply(header):
        raise MailIgnored("A program has replied automatically.")
    if not settings.allow_unverified_senders:
        verify_sender(header, sender.address, settings.authserv_id)
    to = list_addresses(header, "to")
    people = _choose_people(sender.address, {*to, *list_addresses(header, "cc")}, settings)
    replied = headers.find_ids(header.get("in-reply-to")[:2000])
    replied_is_own = any(headers.parse_own_id(each, settings.address) for each in replied)
    return Envelope(
        message_id=message_id,
        sender=sender,
        people=people,
        is_addressed=len(people) == 1 or replied_is_own or any(_is_own(each, settings) for each in to),
        thread_id=headers.find_thread(header, message_id, settings.address),
        subject=decode_words(header.get("subject"), headers.MAX_SUBJECT_CHARS),
        references=tuple(headers.list_references(header)),
        is_from_bot=headers.is_automatic(header, sender.address),
        replied_id=replied[0] if replied else None,
        replied_is_own=replied_is_own,
    )


def _is_own(address: str, settings: EmailSettings) -> bool:
    return address in settings.own_addresses or headers.remove_tag(address) in settings.own_addresses


def list_addresses(header: MailHeader, name: str) -> list[str]:
    """Return the addresses of a field; those beside one that cannot be read are left out with it."""
    return [each.address for value in header.get_all(name) for each in headers.parse_mailboxes(value) or ()]


def _choose_people(sender: str, recipients: set[str], settings: EmailSettings) -> frozenset[str]:
    """Return who gets the answer: everybody, if the mail was visibly sent to us, and to not too many.

    In a mail that we got as a blind copy, others do not know of us: only the sender gets an answer.
    """
    others = {each for each in recipients if not _is_own(each, settings)}
    is_visible = len(others) < len(recipients)
    people = frozenset({sender, *others})
    return people if is_visible and len(people) <= MAX_CHAT_PEOPLE else frozenset({sender})


def make_inbound(
    envelope: Envelope, text: str, *, received_at: int, files: Sequence[InboundFile], settings: EmailSettings
) -> Inbound:
    content = cut_text(cut_quotes(text))
    name = decode_words(envelope.sender.name, headers.MAX_NAME_CHARS) or envelope.sender.address
    is_mentioned = envelope.is_group and settings.address in content.lower()
    source = SessionSource(
        Platform.EMAIL,
        envelope.chat_id,
        chat_name=envelope.chat_id if envelope.is_group else name,
        chat_type=ChatType.GROUP if envelope.is_group else ChatType.DM,
        chat_topic=envelope.subject or None,
        user_id=envelope.sender.address,
        user_name=name,
        thread_id=envelope.thread_id,
    )
    replied = envelope.replied_id
    return Inbound(
        source=source,
        content=content or ("" if files else envelope.subject or "[empty mail]"),
        message_id=envelope.message_id,
        is_addressed=envelope.is_addressed or is_mentioned,
        is_from_bot=envelope.is_from_bot,
        replied_message=RepliedMessage(replied, is_own=envelope.replied_is_own) if replied else None,
        sent_at=datetime.fromtimestamp(received_at, UTC) if received_at > 0 else None,
        files=files,
    )
