"""A mail → a message, or why it is none. Pure.

Who wrote it is decided by `authentication`; what comes from programs is marked, and what must never be answered (our
own mails, automatic replies, reports that a mail was not delivered) is passed over.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.email import headers
from palaver.platforms.email.authentication import find_sender, verify_sender
from palaver.platforms.email.body_text import cut_text
from palaver.platforms.email.headers import MAX_CHAT_PEOPLE, Mailbox, MailHeader, ThreadState, decode_words
from palaver.platforms.email.quotes import MailText, cut_signature, is_forward
from palaver.sessions.inbound import Inbound, InboundFile, RepliedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.platforms.email.manifest import EmailSettings
    from palaver.sessions.inbound import KnownText

MIN_NAME_CHARS = 3
MAX_GREETING_CHARS = 200

# The words before the name of the person to whom a mail speaks.
_GREETING = re.compile(
    r"@|(?:hi|hello|hey|dear|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|guten (?:morgen|tag|abend)|moin|servus"
    r"|bonjour|salut|ch(?:er|ère)|hola|querid[oa]|estimad[oa]|buenos días|ciao|car[oa]|gentile|olá|oi|prezad[oa]|hoi"
    r"|beste|hej|hei|cześć|привет|здравствуйте|добрый день)[ \xa0]@?"
)
_NAME_END = re.compile(r"[ \xa0]{0,3}(?:[,:;!.\n\u2013\u2014-]|$)")
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
    is_follow_up: bool = False  # in its thread there are mails of ours
    other_names: tuple[str, ...] = ()  # of its recipients besides us, in lower case

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
    references = headers.list_references(header)
    is_follow_up = any(headers.parse_own_id(each, settings.address) for each in references)
    return Envelope(
        message_id=message_id,
        sender=sender,
        people=people,
        is_addressed=len(people) == 1 or replied_is_own or any(_is_own(each, settings) for each in to),
        thread_id=headers.find_thread(header, message_id, settings.address),
        subject=decode_words(header.get("subject"), headers.MAX_SUBJECT_CHARS),
        references=tuple(references),
        is_from_bot=headers.is_automatic(header, sender.address),
        replied_id=replied[0] if replied else None,
        replied_is_own=replied_is_own,
        is_follow_up=is_follow_up,
        other_names=tuple(_list_names(header, settings)),
    )


def _is_own(address: str, settings: EmailSettings) -> bool:
    return address in settings.own_addresses or headers.remove_tag(address) in settings.own_addresses


def list_addresses(header: MailHeader, name: str) -> list[str]:
    """Return the addresses of a field; those beside one that cannot be read are left out with it."""
    return [each.address for value in header.get_all(name) for each in headers.parse_mailboxes(value) or ()]


def _list_names(header: MailHeader, settings: EmailSettings) -> Iterator[str]:
    """Yield how the recipients besides us may be spoken to: the whole name, its first word, the part before the @."""
    for value in [*header.get_all("to"), *header.get_all("cc")]:
        for mailbox in headers.parse_mailboxes(value) or ():
            if not _is_own(mailbox.address, settings):
                name = decode_words(mailbox.name, headers.MAX_NAME_CHARS).casefold()
                names = {name, *name.split()[:1], mailbox.address.partition("@")[0]}
                yield from (each for each in names if len(each) >= MIN_NAME_CHARS)


def _is_for_another_person(envelope: Envelope, text: str, settings: EmailSettings) -> bool:
    """Return whether a text begins with the name of another recipient, and does not name us."""
    lower = text.casefold()
    if any(name.casefold() in lower for name in (settings.name, *settings.own_addresses)):
        return False
    start = _GREETING.sub("", lower[:MAX_GREETING_CHARS].lstrip(), count=1)
    return any(start.startswith(name) and _NAME_END.match(start, len(name)) for name in envelope.other_names)


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
    mail = MailText(text)
    is_command = mail.written_text.startswith("/")
    content = cut_text(cut_signature(mail.written_text) if is_command else mail.text)
    can_cut = mail.has_quotes and not is_command and not is_forward(envelope.subject)
    name = decode_words(envelope.sender.name, headers.MAX_NAME_CHARS) or envelope.sender.address
    is_addressed, addresses_others = envelope.is_addressed, None
    if envelope.is_group:
        is_addressed = is_addressed or settings.address in mail.written_text.lower()
        addresses_others = envelope.is_follow_up and _is_for_another_person(envelope, mail.written_text, settings)
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
        is_addressed=(is_addressed or envelope.is_follow_up) and not addresses_others,
        is_in_own_thread=envelope.is_follow_up and not is_addressed,
        addresses_others=addresses_others,
        is_from_bot=envelope.is_from_bot,
        replied_message=RepliedMessage(replied, is_own=envelope.replied_is_own) if replied else None,
        sent_at=datetime.fromtimestamp(received_at, UTC) if received_at > 0 else None,
        files=files,
        cut_quotes=partial(_cut_quotes, mail, settings) if can_cut else None,
        may_be_from_bot=True,
    )


def _cut_quotes(mail: MailText, settings: EmailSettings, known: Sequence[KnownText]) -> str:
    return cut_text(mail.cut_known(known, (*settings.own_addresses, settings.name)))
