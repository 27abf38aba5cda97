"""Stops answering where two programs seem to answer each other.

Programs should say in their messages that they are programs; on some platforms many do not. Two that answer each other
would never stop, and each answer costs money. So the messages of a conversation, and of a chat, are counted. Only what
is stored is counted: a restart does not release the brake.

The limits are above what people do. A person who reads each answer and replies to it needs more than half a minute,
and does not get to 20 in ten minutes; a program replies within seconds. One that replies every few minutes reaches the
limit of a day. In a chat more is allowed: a person may forward dozens of mails at once, each a conversation of its own.
The message is not stored, and each conversation is told once: a program may answer that, too.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.clock import to_micros
from palaver.core.texts import say
from palaver.inbox.receipts import ERROR_KEY
from palaver.sessions import inbound_table as inbound_messages, turns_table as turns
from palaver.sessions.inbound import Outcome, Receipt

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import SessionId
    from palaver.core.source import SessionSource
    from palaver.sessions.table import SessionRow

log = logging.getLogger(__name__)

_PAUSED: Final = "answers_paused"


class AnswerLimit(NamedTuple):
    window: timedelta
    max_answers: int  # in one conversation
    max_messages: int  # in the chat, which may have many conversations


LIMITS: Final = (AnswerLimit(timedelta(minutes=10), 20, 200), AnswerLimit(timedelta(days=1), 120, 500))


def find_pause(tx: Transaction, source: SessionSource, current: SessionRow | None, now: datetime) -> Receipt | None:
    """Return the receipt of a message that is not answered; None if it may be."""
    answers: list[int] = []
    if current is not None:
        answers = turns.list_start_times(tx, current.no, max(each.max_answers for each in LIMITS))
    since = to_micros(now - max(each.window for each in LIMITS))
    messages = inbound_messages.list_received(tx, source, since, max(each.max_messages for each in LIMITS))
    received = [each.received_at for each in messages]
    for limit in LIMITS:
        starts_at = to_micros(now - limit.window)
        counted = (answers, limit.max_answers), (received, limit.max_messages)
        oldest = max((times[number - 1] for times, number in counted if len(times) >= number), default=0)
        if oldest > starts_at:
            receipts = [json.loads(each.receipt) for each in messages if each.received_at > starts_at]
            session_id = current.session.id if current else None
            was_told = any((each.get(ERROR_KEY), each.get("session_id")) == (_PAUSED, session_id) for each in receipts)
            return _make_receipt(session_id, minutes=(oldest - starts_at) // 60_000_000 + 1, was_told=was_told)
    return None


def _make_receipt(session_id: SessionId | None, *, minutes: int, was_told: bool) -> Receipt:
    log.warning("answers_paused", extra={"session": session_id, "minutes": minutes})
    reply = say(
        "answers.paused",
        "So many messages came here in a short time that a program may be answering my answers. I'm not answering here"
        " for {minutes} min, and messages that come until then aren't saved. If you are a person, send them again after"
        " that.",
        minutes=minutes,
    )
    return Receipt(
        outcome=Outcome.REJECTED,
        reply=None if was_told else reply,
        session_id=session_id,
        facts={"error": _PAUSED, "retry_after": minutes * 60},
    )
