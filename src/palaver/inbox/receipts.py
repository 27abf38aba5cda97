"""Receipts: stored with each message that has an id, so that the same message twice is handled once.

Always true: under an id that the sender chose, a receipt is kept only for what was done. What was refused leaves none,
so sending it again tries again. A platform sends a message again only until we have it, so there a refusal is kept:
the chat gets its notice once.

Two programs that answer each other would never stop. Messages of our own accounts never get here: adapters drop them.
Messages of other programs are answered only where the operator allows it, and even then only a few in a minute.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.clock import format_time
from palaver.core.errors import InvalidMessage, SessionNotFound
from palaver.core.ids import SessionId
from palaver.core.texts import translate
from palaver.delivery import table as deliveries
from palaver.delivery.notices import send_notice_to_address
from palaver.people import table as people
from palaver.sessions import inbound_table as inbound_messages, table as sessions
from palaver.sessions.inbound import SECRET_FACT, Inbound, Outcome, Receipt
from palaver.sessions.message import Message, check_message_parts, join_text_parts
from palaver.sessions.message_edits import MessagePlace
from palaver.sessions.quoted_messages import CONTEXT_KEY, REPLIED_MESSAGE_KEY, build_replied_message
from palaver.sessions.speech import find_attachment_ids

if TYPE_CHECKING:
    from palaver.agent.profiles import CurrentSettings
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.sessions.delivery import AccountKey


_STORED_FIELDS = ("session_id", "session_key", "turn_id", "seq", "reply")
ERROR_KEY: Final = "error"  # in a stored receipt: the code of why the message was refused
_SENDER_KEY = "sender"  # in a stored receipt: the account that sent the message
MAX_ANSWERS_PER_MINUTE: Final = 6  # to programs, for each account
_WINDOW_SECONDS: Final = 60.0


def find_duplicate(tx: Transaction, inbound: Inbound) -> Receipt | None:
    """Return the receipt of a message that came before; None if it is new."""
    stored = inbound_messages.find_receipt(tx, inbound)
    if stored is None or (inbound.can_be_repeated and stored["outcome"] == Outcome.REJECTED):
        return None  # earlier versions kept refusals everywhere
    fields: dict[str, Any] = {name: stored.get(name) for name in _STORED_FIELDS}
    return Receipt(outcome=Outcome.DUPLICATE, facts={"first": stored["outcome"]}, **fields)


def translate_receipt(receipt: Receipt, language: str) -> Receipt:
    """Return a receipt whose texts are in the language of the person, before it is stored or sent."""
    if receipt.reply is None:
        return receipt
    export = receipt.export
    if export is not None:
        export = replace(export, fallback_reply=translate(export.fallback_reply, language))
    return replace(receipt, reply=translate(receipt.reply, language), export=export)


def record_receipt_once(tx: Transaction, inbound: Inbound, receipt: Receipt, now: int) -> Receipt:
    """Record a receipt that was built in an earlier transaction, unless the message was recorded meanwhile."""
    return find_duplicate(tx, inbound) or record_receipt(tx, inbound, receipt, now)


def record_receipt(tx: Transaction, inbound: Inbound, receipt: Receipt, now: int) -> Receipt:
    """Store the receipt, so that the message is known when it comes again, and queue the delivery of the reply.

    The sender of a request reads a refusal in the response alone. It may have been refused because the same message
    was just accepted, by a request at the same time.
    """
    if receipt.outcome is Outcome.REJECTED and inbound.can_be_repeated:
        return find_duplicate(tx, inbound) or receipt
    save_receipt(tx, inbound, receipt, now)
    answer_address = inbound.answer_address
    if answer_address is not None:
        address = str(answer_address)
        deliveries.mark_target_alive(tx, address)
        if receipt.reply:
            send_notice_to_address(
                tx,
                address,
                receipt.reply,
                now,
                session_no=_find_session_no(tx, receipt.session_id),
                reply_to=inbound.message_id,
                attachment_ids=receipt.attachment_ids,
            )
    return receipt


def save_receipt(tx: Transaction, inbound: Inbound, receipt: Receipt, now: int) -> None:
    fields: dict[str, Any] = {name: value for name in _STORED_FIELDS if (value := getattr(receipt, name)) is not None}
    if receipt.facts and receipt.facts.get(SECRET_FACT):
        fields.pop("reply", None)
    if receipt.outcome is Outcome.REJECTED and receipt.facts and "error" in receipt.facts:
        fields[ERROR_KEY] = receipt.facts["error"]
    if receipt.is_stored and inbound.answer_address is not None:
        fields[_SENDER_KEY] = find_sender(inbound.source)
    inbound_messages.save_receipt(tx, inbound, {"outcome": receipt.outcome.value, **fields}, now)


class ReceivedMessage(NamedTuple):
    """A message of a platform that was stored, and the account that sent it."""

    session_id: SessionId
    place: MessagePlace
    sender: str | None


def find_received(tx: Transaction, source: SessionSource, message_id: str) -> ReceivedMessage | None:
    """Find a stored message by the platform's id of it; None if there is none in this chat."""
    stored = inbound_messages.find_platform_receipt(tx, source, message_id)
    if stored is None or "session_id" not in stored or "seq" not in stored:
        return None
    session_id = SessionId(stored["session_id"])
    session_no = _find_session_no(tx, session_id)
    if session_no is None:
        return None
    return ReceivedMessage(session_id, MessagePlace(session_no, stored["seq"]), stored.get(_SENDER_KEY))


def find_sender(source: SessionSource) -> str | None:
    """Return the account of the person at a source; None if the platform does not say who it is."""
    account = people.find_account(source)
    return account[1] if account else None


def _find_session_no(tx: Transaction, session_id: SessionId | None) -> int | None:
    with suppress(SessionNotFound):  # it may have been deleted after a command has read it
        return None if session_id is None else sessions.get_no(tx, session_id)
    return None


def check_content(content: str | Sequence[Any], attachment_ids: Sequence[str] = ()) -> None:
    """Raise InvalidMessage for a message that is empty or has parts that people can't send."""
    is_empty = not content.strip() if isinstance(content, str) else not (isinstance(content, Sequence) and content)
    if is_empty and not attachment_ids:
        raise InvalidMessage.say("message.empty", "content: the message is empty")
    check_message_parts(content)


def get_text(inbound: Inbound) -> str:
    return inbound.content if isinstance(inbound.content, str) else join_text_parts(inbound.content)


def get_written_text(inbound: Inbound) -> str:
    """Return the text of a message without the words of its recordings: a spoken word is never a command."""
    if isinstance(inbound.content, str):
        return inbound.content
    return join_text_parts([part for part in inbound.content if not find_attachment_ids([part])])


def add_lines(content: str | Sequence[Any], lines: Sequence[str]) -> str | Sequence[Any]:
    """Return the content with lines of data below its text."""
    if not lines:
        return content
    added = "\n".join(lines)
    if isinstance(content, str):
        return f"{content}\n\n{added}" if content.strip() else added
    return [*content, {"type": "text", "text": added}]


def build_message(
    inbound: Inbound, content: str | Sequence[Any], context: Sequence[dict[str, str]], now: datetime
) -> Message:
    """Build the message to store, with what it replies to and what was said in the group before."""
    fields: dict[str, Any] = {"role": "user", "content": content, "platform_message_id": inbound.message_id}
    if context:
        fields[CONTEXT_KEY] = list(context)
    if inbound.replied_message is not None:
        fields[REPLIED_MESSAGE_KEY] = build_replied_message(inbound.replied_message)
    sent_at = inbound.sent_at
    if sent_at is not None and sent_at.tzinfo is not None and sent_at <= now:
        fields["sent_at"] = format_time(sent_at.astimezone(UTC))
    return Message.from_dict(fields)


class BotLimit:
    """Counts how often programs were answered lately, for each account in this process."""

    def __init__(self, settings: CurrentSettings, get_seconds: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._get_seconds = get_seconds
        self._answer_times: dict[AccountKey, deque[float]] = {}

    def allows_answer(self, source: SessionSource) -> bool:
        """Return whether the message of a program may be answered now; if so, it counts as answered."""
        if source.platform not in self._settings.rules.bot_platforms:
            return False
        now = self._get_seconds()
        key = source.platform, source.account
        times = self._answer_times.setdefault(key, deque(maxlen=MAX_ANSWERS_PER_MINUTE))
        if len(times) == MAX_ANSWERS_PER_MINUTE and times[0] > now - _WINDOW_SECONDS:
            return False
        times.append(now)
        return True
