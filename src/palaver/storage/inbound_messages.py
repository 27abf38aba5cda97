"""What platforms have brought: the same message twice is one message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.storage.engines.base import Conflict

if TYPE_CHECKING:
    from palaver.domain.inbound import Inbound
    from palaver.storage.engines.base import Transaction

_KEY = "platform = $1 AND account = $2 AND chat = $3 AND message_id = $4"


def find(tx: Transaction, inbound: Inbound) -> dict[str, Any] | None:
    """What was answered when this message came before; None when it is new, or has no name to know it by."""
    if inbound.message_id is None:
        return None
    row = tx.one(f"SELECT receipt FROM inbound WHERE {_KEY}", *_key(inbound))
    return None if row is None else dict(json.loads(row[0]))


def keep(tx: Transaction, inbound: Inbound, receipt: dict[str, Any], now: int) -> None:
    """Know this message when it comes again."""
    if inbound.message_id is None:
        return
    kept = tx.run(
        "INSERT INTO inbound (platform, account, chat, message_id, receipt, at) VALUES ($1, $2, $3, $4, $5, $6)"
        " ON CONFLICT DO NOTHING",
        *_key(inbound),
        json.dumps(receipt, separators=(",", ":")),
        now,
    )
    if not kept:  # another process took it first: look again
        raise Conflict


def _key(inbound: Inbound) -> tuple[str, str, str, str]:
    place = inbound.session_id or inbound.source.chat_id
    return str(inbound.source.platform), inbound.account, place, inbound.message_id or ""
