"""Messages that were sent to us, so that the same message twice is handled once.

Always true: a key that a person chose finds only what that person sent, in the place where they sent it.

Messages in groups that were not addressed to the agent: what people said there before they turned to it.

Only the newest are kept, and none for long. They belong to the chat, not to a session.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Transaction, fetch_value
from palaver.core.old_rows import declare_old_rows
from palaver.core.text import make_storable, shorten

if TYPE_CHECKING:
    from palaver.core.source import SessionSource
    from palaver.sessions.inbound import Inbound


_KEY_COLUMNS = "platform, account, chat, sender, message_id"
_IS_SAME = "platform = $1 AND account = $2 AND chat = $3 AND sender = $4 AND message_id = $5"
MAX_MESSAGES_PER_CHAT = 50  # in each thread of a chat
MAX_MESSAGE_CHARS = 4000
# No platform sends a message again after so long: most give up within a day.
MAX_RECEIPT_AGE: Final = timedelta(days=30)
MAX_GROUP_MESSAGE_AGE: Final = timedelta(days=7)  # of messages that were not for the agent


def find_receipt(tx: Transaction, inbound: Inbound) -> dict[str, Any] | None:
    """Return what was answered when this message came before; None if it is new or has no id to recognize it by."""
    return None if inbound.message_id is None else _find_receipt(tx, _build_key(inbound))


def find_platform_receipt(tx: Transaction, source: SessionSource, message_id: str) -> dict[str, Any] | None:
    """Return what was answered to the message with this id of a platform, in this chat and on this account."""
    return _find_receipt(tx, (str(source.platform), source.account, source.chat_id, "", message_id))


def _find_receipt(tx: Transaction, key: tuple[str, ...]) -> dict[str, Any] | None:
    receipt = fetch_value(tx, f"SELECT receipt FROM inbound_message WHERE {_IS_SAME}", *key)
    return None if receipt is None else dict(json.loads(receipt))


class ReceivedAt(NamedTuple):
    received_at: int
    receipt: str  # JSON


def list_received(tx: Transaction, source: SessionSource, since: int, limit: int) -> list[ReceivedAt]:
    """Return when the newest messages of a chat came since a time, and their receipts; the newest first."""
    sql = """SELECT received_at, receipt FROM inbound_message WHERE platform = $1 AND account = $2 AND chat = $3
        AND received_at >= $4 ORDER BY received_at DESC LIMIT $5"""
    return [ReceivedAt(*row) for row in tx.fetch_all(sql, *_make_chat(source), since, limit)]


def save_receipt(tx: Transaction, inbound: Inbound, receipt: dict[str, Any], now: int) -> None:
    """Store what was answered, for when the same message comes again."""
    if inbound.message_id is None:
        return
    params = (*_build_key(inbound), json.dumps(receipt, separators=(",", ":")), now)
    sql = """INSERT INTO inbound_message (platform, account, chat, sender, message_id, receipt, received_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"""
    saved = tx.execute(sql, *params)
    if not saved and inbound.can_be_repeated:
        previous = fetch_value(tx, f"SELECT receipt FROM inbound_message WHERE {_IS_SAME}", *_build_key(inbound))
        if json.loads(previous or "{}").get("outcome") == "rejected":  # an earlier version has kept a refusal
            update = "UPDATE inbound_message SET receipt = $6, received_at = $7"
            saved = tx.execute(f"{update} WHERE {_IS_SAME} AND receipt = $8", *params, previous)
    if not saved:  # another process was faster: run again and find its receipt
        raise Conflict


def _build_key(inbound: Inbound) -> tuple[str, str, str, str, str]:
    chat = inbound.session_id or inbound.source.chat_id
    account = inbound.source.account or inbound.message_id_namespace
    return str(inbound.source.platform), account, chat, inbound.message_id_owner, inbound.message_id or ""


_IS_CHAT = "platform = $1 AND account = $2 AND chat_id = $3"
_IS_THREAD = f"{_IS_CHAT} AND thread_id = $4"
_IS_MESSAGE = f"{_IS_CHAT} AND message_id = $4"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroupMessage:
    message_id: str | None
    sender: str | None  # the account of its author
    author: str  # for people to read
    text: str
    is_to_others: bool = False  # it is addressed to another person


class GroupMessage(NamedTuple):
    no: int
    author: str
    text: str


def add(tx: Transaction, source: SessionSource, new: NewGroupMessage, now: int, last_seen: int = 0) -> bool:
    """Store a message, and forget the oldest ones of its thread; False if it is stored already.

    What follows a message to another person is not for the agent, until its lane has seen it (`last_seen`).
    """
    thread = _make_thread(source)
    tx.lock_name(f"group:{':'.join(thread)}")  # in the order of their numbers, so that no lane misses one
    added = tx.execute(
        "INSERT INTO group_message (platform, account, chat_id, thread_id, message_id, sender, author, content,"
        " sent_at, is_to_others) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $10 = 1 OR COALESCE((SELECT"
        f" g.is_to_others FROM group_message g WHERE {_IS_THREAD} AND g.no > $11 ORDER BY g.no DESC LIMIT 1), 0) = 1"
        " THEN 1 ELSE 0 END ON CONFLICT DO NOTHING",
        *thread,
        new.message_id,
        new.sender,
        make_storable(new.author),
        make_storable(shorten(new.text, MAX_MESSAGE_CHARS)),
        now,
        int(new.is_to_others),
        last_seen,
    )
    sql = f"""DELETE FROM group_message WHERE {_IS_THREAD} AND no <= (SELECT no FROM group_message WHERE {_IS_THREAD}
        ORDER BY no DESC LIMIT 1 OFFSET $5)"""
    tx.execute(sql, *thread, MAX_MESSAGES_PER_CHAT)
    return bool(added)


def has_any(tx: Transaction, source: SessionSource) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM group_message WHERE {_IS_CHAT} LIMIT 1", *_make_chat(source)) is not None


def has_message_to_others(tx: Transaction, source: SessionSource, after: int) -> bool:
    """Return whether a person in a thread has addressed another one since its lane has last seen it."""
    sql = f"SELECT 1 FROM group_message WHERE {_IS_THREAD} AND no > $5 AND is_to_others = 1 LIMIT 1"
    return tx.fetch_one(sql, *_make_thread(source), after) is not None


def has_message(tx: Transaction, source: SessionSource, message_id: str) -> bool:
    return tx.fetch_one(f"SELECT 1 FROM group_message WHERE {_IS_MESSAGE}", *_make_chat(source), message_id) is not None


def find_last_seen_since(tx: Transaction, lane_key: str, since: int) -> int | None:
    """Return the number of the last message that a lane has seen, if the agent was addressed there since; else None."""
    sql = """SELECT l.group_message_no FROM lane l WHERE l.key = $1 AND (l.updated_at >= $2 OR $2 <=
        (SELECT t.created_at FROM turn t WHERE t.session_no = l.session_no ORDER BY t.no DESC LIMIT 1))"""
    return fetch_value(tx, sql, lane_key, since)


def list_after(tx: Transaction, source: SessionSource, after: int, limit: int) -> list[GroupMessage]:
    """Return the newest messages of a thread after a number, oldest first."""
    sql = f"SELECT no, author, content FROM group_message WHERE {_IS_THREAD} AND no > $5 ORDER BY no DESC LIMIT $6"
    return [GroupMessage(*row) for row in reversed(tx.fetch_all(sql, *_make_thread(source), after, limit))]


def edit(tx: Transaction, source: SessionSource, message_id: str, sender: str | None, text: str) -> bool:
    """Change a message that its author has edited; False if no such message of this author is stored."""
    sql = f"UPDATE group_message SET content = $6 WHERE {_IS_MESSAGE} AND sender = $5"
    return tx.execute(sql, *_make_chat(source), message_id, sender, make_storable(shorten(text, MAX_MESSAGE_CHARS))) > 0


def delete(tx: Transaction, source: SessionSource, message_id: str, author: str | None = None) -> bool:
    """Forget a message that was deleted; False if it is not stored, or is not of the author that is named."""
    condition = _IS_MESSAGE if author is None else f"{_IS_MESSAGE} AND sender = $5"
    params = (*_make_chat(source), message_id, *([] if author is None else [author]))
    return tx.execute(f"DELETE FROM group_message WHERE {condition}", *params) > 0


def get_last_seen(tx: Transaction, lane_key: str) -> int:
    """Return the number of the last message of its chat that a lane has seen; 0 if it has seen none."""
    return fetch_value(tx, "SELECT group_message_no FROM lane WHERE key = $1", lane_key) or 0


def mark_seen(tx: Transaction, lane_key: str, no: int) -> None:
    tx.execute("UPDATE lane SET group_message_no = $2 WHERE key = $1", lane_key, no)


def _make_chat(source: SessionSource) -> tuple[str, str, str]:
    return str(source.platform), source.account, source.chat_id


def _make_thread(source: SessionSource) -> tuple[str, str, str, str]:
    return (*_make_chat(source), source.thread_id or "")


OLD_ROWS: Final = {
    "receipts": declare_old_rows("inbound_message", "received_at", MAX_RECEIPT_AGE, key=_KEY_COLUMNS),
    "group_messages": declare_old_rows("group_message", "sent_at", MAX_GROUP_MESSAGE_AGE),
}
