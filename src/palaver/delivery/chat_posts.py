"""Posts a message to a chat: it becomes part of the conversation there, and is sent through the outbox.

Always true: message and delivery are stored together or not at all. People who reply in that chat talk to an agent
that knows what it has sent. The message is no human activity: it does not move the idle clock of the reset policy.

Where a group has a lane for each person, there is no single conversation. There the message is kept with the group's
messages, and every lane carries it into its conversation with the next message. The same holds for a chat in which
no person has written yet, whose type is unknown.

A message that is sent to a chat does not keep its conversation from ending. People may answer it later all the same,
in a new conversation. So their first message there carries it, as a quote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros
from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import join_texts
from palaver.delivery import table as deliveries
from palaver.delivery.reachable_chats import ChatKind, ReachableChat
from palaver.media import table as attachments
from palaver.sessions import (
    inbound_table as group_messages,
    lanes_table as lanes,
    log_table as events,
    message_table as message_log,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.delivery import Address
from palaver.sessions.gateway_config import MACHINE_PLATFORMS
from palaver.sessions.message import Message
from palaver.sessions.policy import ResetMode
from palaver.sessions.quoted_messages import describe_author
from palaver.sessions.sent_message import SENT_BY_KEY, SentBy, find_sent_by
from palaver.sessions.speech import add_attachments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import DeliveryId, SessionId
    from palaver.sessions.gateway_config import GatewayConfig


_ANY_USER = "any-user"  # stands for the user of a group when it is asked whether people there have lanes of their own
MAX_CARRIED_POSTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPost:
    text: str
    sent_by: SentBy
    heading: str = ""  # above the text where people read it in a chat; no part of the message that is stored
    attachment_ids: Sequence[str] = ()
    turn_no: int | None = None  # the turn of a job's run; it sends at most one message to an address
    session_no: int | None = None  # the conversation of the run: it shows deliveries that have no other conversation
    file_address: Address | None = None  # of a file on this machine


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """The place of a message in a log, if it has a conversation there, and its delivery, if it is sent."""

    session_id: SessionId | None = None
    seq: int | None = None
    delivery_id: DeliveryId | None = None


def post_to_chat(
    tx: Transaction, config: GatewayConfig, chat: ReachableChat, post: ChatPost, now: int
) -> PostedMessage:
    """Store a message in the conversation of a chat, and queue its delivery."""
    if chat.kind is ChatKind.SESSION and chat.session_no is not None:
        return _append(tx, chat.session_no, post, now)
    if chat.source is None or chat.address is None:
        if post.file_address is None:
            raise ValueError("A file needs an address.")
        return PostedMessage(None, None, _enqueue(tx, post.file_address, post, now))
    is_group = chat.source.chat_type is not ChatType.DM
    has_lane_per_person = is_group and not config.is_shared(replace(chat.source, user_id=_ANY_USER))
    if not chat.is_known or has_lane_per_person:
        author = describe_author(post.sent_by)
        new = group_messages.NewGroupMessage(message_id=None, sender=None, author=author, text=post.text)
        group_messages.add(tx, chat.source, new, now)
        return PostedMessage(None, None, _enqueue(tx, chat.address, post, now))
    session_no = find_session_for_post(tx, config, chat.source, now)
    posted = _append(tx, session_no, post, now)
    delivery_id = _enqueue(tx, chat.address, replace(post, session_no=session_no), now, message_seq=posted.seq)
    return replace(posted, delivery_id=delivery_id)


def make_file_address(folder: str, name: str) -> Address:
    """Return the address of a file on this machine; `delivery/local_files.py` decides its path."""
    return Address(Platform.LOCAL, folder, name)


def find_session_for_post(tx: Transaction, config: GatewayConfig, source: SessionSource, now: int) -> int:
    """Return the session of a chat's lane. One that the reset policy has run out on is left, and another one starts."""
    arrival = lanes.Arrival(
        source=source,
        config=config,
        now=from_micros(now),
        busy_since=lambda _session_id: None,
        is_message_sent=True,
    )
    open_turns = turns.load_open_on_lane(tx, lanes.resolve_key(tx, arrival))
    if open_turns.oldest is not None:
        busy_since = from_micros(open_turns.oldest.created_at)
        arrival.busy_since = lambda _session_id: busy_since
    return sessions.get_no(tx, lanes.get_or_create_entry(tx, arrival).session_id)


def _append(tx: Transaction, session_no: int, post: ChatPost, now: int) -> PostedMessage:
    files = attachments.list_by_id(tx, post.attachment_ids)
    content = add_attachments(post.text, [file for _, file in files])
    message = Message("assistant", content, extra={SENT_BY_KEY: post.sent_by.to_dict()})
    session_id = sessions.get_by_no(tx, session_no).session.id
    seq = message_log.append_messages(tx, session_id, [message], now)
    attachments.use_in_session(tx, session_no, [no for no, _ in files])
    return PostedMessage(session_id, seq)


def _enqueue(
    tx: Transaction, address: Address, post: ChatPost, now: int, *, message_seq: int | None = None
) -> DeliveryId:
    heading = "" if address.platform in (Platform.LOCAL, *MACHINE_PLATFORMS) else post.heading
    return deliveries.enqueue(
        tx,
        str(address),
        join_texts("\n\n", filter(None, (heading, post.text))),
        now,
        session_no=post.session_no,
        turn_no=post.turn_no,
        message_seq=message_seq,
        attachment_ids=post.attachment_ids,
    )


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
    posts: list[dict[str, str]] = []
    newest = [event.message for event in events.list_messages(tx, current.no, limit=MAX_CARRIED_POSTS)]
    for message in reversed([message for message in newest if message is not None]):
        sent_by = find_sent_by(message.extra)
        if sent_by is None:
            break
        posts.append({"author": describe_author(sent_by), "text": message.text})
    return posts[::-1]
