"""Carries what a job or the agent has sent into the next session, when the reset policy leaves the old one unanswered.

A message that is sent to a chat does not keep its conversation from ending. People may answer it later all the same,
in a new conversation. So their first message there carries it, as a quote.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from palaver.sessions import lanes_table as lanes, log_table as events
from palaver.sessions.policy import ResetMode
from palaver.sessions.sender_words import describe_author
from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.message import Message

MAX_CARRIED_POSTS: Final = 5


def list_unanswered_posts(tx: Transaction, arrival: lanes.Arrival, lane_key: str) -> list[dict[str, str]]:
    """Return what was sent to a lane since a person last wrote there, if its session ends now; the oldest first."""
    config = arrival.config
    if not config.reset_by_profile and config.get_reset_policy(arrival.source).mode is ResetMode.NONE:
        return []
    current = lanes.find_current_session(tx, lane_key)
    last_message_at = current.session.last_message_at if current else None
    if (
        current is None
        or last_message_at is None
        or last_message_at <= (current.session.last_human_at or last_message_at)
    ):
        return []
    if lanes.find_open_entry(tx, arrival) is not None:
        return []
    newest = [event.message for event in events.list_messages(tx, current.no, limit=MAX_CARRIED_POSTS)]
    posts = takewhile(_is_post, reversed([message for message in newest if message is not None]))
    return [_quote_post(message) for message in posts][::-1]


def _is_post(message: Message) -> bool:
    return find_sent_by(message.extra) is not None


def _quote_post(message: Message) -> dict[str, str]:
    sent_by = find_sent_by(message.extra)
    return {"author": describe_author(sent_by) if sent_by else "you", "text": message.text}
