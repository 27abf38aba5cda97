"""Receipts: stored with each message that has an id, so that the same message twice is handled once.

Always true: under an id that the sender chose, a receipt is kept only for what was done. What was refused leaves none,
so sending it again tries again. A platform sends a message again only until we have it, so there a refusal is kept:
the chat gets its notice once.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.core.errors import SessionNotFound
from palaver.core.ids import SessionId, SessionKey, TurnId
from palaver.delivery import table as deliveries
from palaver.people import table as people
from palaver.sessions import inbound_table as inbound_messages, table as sessions
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import SECRET_FACT, Outcome, Receipt
from palaver.sessions.message_edits import MessagePlace

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.sessions.inbound import Inbound

_STORED_FIELDS = ("session_id", "session_key", "turn_id", "seq", "reply")
_SENDER_KEY = "sender"  # in a stored receipt: the account that sent the message


def find_duplicate(tx: Transaction, inbound: Inbound) -> Receipt | None:
    """Return the receipt of a message that came before; None if it is new."""
    stored = inbound_messages.find_receipt(tx, inbound)
    if stored is None or (inbound.can_be_repeated and stored["outcome"] == Outcome.REJECTED):
        return None  # earlier versions kept refusals everywhere
    return Receipt(
        outcome=Outcome.DUPLICATE,
        session_id=SessionId(stored["session_id"]) if "session_id" in stored else None,
        session_key=SessionKey(stored["session_key"]) if "session_key" in stored else None,
        turn_id=TurnId(stored["turn_id"]) if "turn_id" in stored else None,
        seq=stored.get("seq"),
        reply=stored.get("reply"),
        facts={"first": stored["outcome"]},
    )


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
    if inbound.answer_address is not None:
        address = str(inbound.answer_address)
        deliveries.mark_target_alive(tx, address)
        if receipt.reply:
            session_no = _find_session_no(tx, receipt.session_id)
            delivery = deliveries.NewDelivery(
                address=address,
                content=receipt.reply,
                kind=DeliveryKind.NOTICE,
                session_no=session_no,
                reply_to=inbound.message_id,
                attachment_ids=receipt.attachment_ids,
            )
            deliveries.enqueue(tx, delivery, now)
    return receipt


def save_receipt(tx: Transaction, inbound: Inbound, receipt: Receipt, now: int) -> None:
    """Store the receipt, so that the message is known when it comes again."""
    fields: dict[str, Any] = {name: value for name in _STORED_FIELDS if (value := getattr(receipt, name)) is not None}
    if receipt.facts and receipt.facts.get(SECRET_FACT):
        fields.pop("reply", None)
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
