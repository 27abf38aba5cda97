"""Messages that were sent to us, so that the same message twice is handled once.

Always true: a key that a person chose finds only what that person sent, in the place where they sent it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.core.engines.base import Conflict

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.sessions.inbound import Inbound

_KEY_COLUMNS = "platform, account, chat, sender, message_id"
_IS_SAME = "platform = $1 AND account = $2 AND chat = $3 AND sender = $4 AND message_id = $5"
_IS_REFUSAL = """receipt LIKE '{"outcome":"rejected"%'"""


def find_receipt(tx: Transaction, inbound: Inbound) -> dict[str, Any] | None:
    """Return what was answered when this message came before; None if it is new or has no id to recognize it by."""
    if inbound.message_id is None:
        return None
    row = tx.fetch_one(f"SELECT receipt FROM inbound_message WHERE {_IS_SAME}", *_build_key(inbound))
    return None if row is None else dict(json.loads(row[0]))


def find_platform_receipt(tx: Transaction, source: SessionSource, message_id: str) -> dict[str, Any] | None:
    """Return what was answered to the message with this id of a platform, in this chat and on this account."""
    key = (str(source.platform), source.account, source.chat_id, "", message_id)
    row = tx.fetch_one(f"SELECT receipt FROM inbound_message WHERE {_IS_SAME}", *key)
    return None if row is None else dict(json.loads(row[0]))


def save_receipt(tx: Transaction, inbound: Inbound, receipt: dict[str, Any], now: int) -> None:
    """Store what was answered, for when the same message comes again."""
    if inbound.message_id is None:
        return
    params = (*_build_key(inbound), json.dumps(receipt, separators=(",", ":")), now)
    saved = tx.execute(
        "INSERT INTO inbound_message (platform, account, chat, sender, message_id, receipt, received_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        *params,
    )
    if not saved and inbound.can_be_repeated:  # an earlier version has kept a refusal
        saved = tx.execute(
            f"UPDATE inbound_message SET receipt = $6, received_at = $7 WHERE {_IS_SAME} AND {_IS_REFUSAL}", *params
        )
    if not saved:  # another process was faster: run again and find its receipt
        raise Conflict


def has_received_before(tx: Transaction, before: int) -> bool:
    return tx.fetch_one("SELECT 1 FROM inbound_message WHERE received_at < $1 LIMIT 1", before) is not None


def delete_received_before(tx: Transaction, before: int, limit: int) -> int:
    """Delete the oldest receipts, at most `limit`; return how many."""
    return tx.execute(
        f"DELETE FROM inbound_message WHERE ({_KEY_COLUMNS}) IN"
        f" (SELECT {_KEY_COLUMNS} FROM inbound_message WHERE received_at < $1 ORDER BY received_at LIMIT $2)",
        before,
        limit,
    )


def _build_key(inbound: Inbound) -> tuple[str, str, str, str, str]:
    chat = inbound.session_id or inbound.source.chat_id
    account = inbound.source.account or inbound.message_id_namespace
    return str(inbound.source.platform), account, chat, inbound.message_id_owner, inbound.message_id or ""
