"""The parts of deliveries: the messages that a delivery becomes on its platform, each with its own state.

Always true: a part is marked as `sending` in a transaction before the platform is called, and no part is sent before
the ones before it have ended. A part that is pending and has `first_sent_at` may have arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from palaver.core.text import make_storable
from palaver.sessions.delivery import AccountKey, DeliveryPart, DeliveryState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction


def list_parts(tx: Transaction, delivery_no: int) -> list[DeliveryPart]:
    """Return the parts of a delivery in order; none if it was never sent."""
    rows = tx.fetch_all(
        "SELECT part_no, body, attachment_no, edits_id, state, first_sent_at, sent_message_id, error"
        " FROM delivery_part WHERE delivery_no = $1 ORDER BY part_no",
        delivery_no,
    )
    return [
        DeliveryPart(
            no=row[0],
            body=row[1],
            attachment_no=row[2],
            edits_id=row[3],
            state=DeliveryState(row[4]),
            first_sent_at=row[5],
            sent_message_id=row[6],
            error=row[7],
        )
        for row in rows
    ]


def add_parts(tx: Transaction, delivery_no: int, parts: Sequence[DeliveryPart]) -> None:
    """Store the parts of a delivery before the first of them is sent."""
    tx.execute_many(
        "INSERT INTO delivery_part (delivery_no, part_no, body, attachment_no, edits_id, state)"
        " VALUES ($1, $2, $3, $4, $5, 'pending')",
        [(delivery_no, part.no, make_storable(part.body), part.attachment_no, part.edits_id) for part in parts],
    )


def mark_sending(tx: Transaction, delivery_no: int, part_no: int, now: int) -> None:
    """Record that a part is about to be sent."""
    tx.execute(
        "UPDATE delivery_part SET state = 'sending', first_sent_at = COALESCE(first_sent_at, $3)"
        " WHERE delivery_no = $1 AND part_no = $2 AND state <> 'sent'",
        delivery_no,
        part_no,
        now,
    )


def save_outcome(tx: Transaction, delivery_no: int, part: DeliveryPart) -> None:
    """Store the state of a part after an attempt, unless the platform has confirmed it meanwhile."""
    tx.execute(
        "UPDATE delivery_part SET state = $3, edits_id = $4, first_sent_at = $5, sent_message_id = $6, error = $7"
        " WHERE delivery_no = $1 AND part_no = $2 AND state <> 'sent'",
        delivery_no,
        part.no,
        part.state.value,
        part.edits_id,
        part.first_sent_at,
        None if part.sent_message_id is None else make_storable(part.sent_message_id),
        None if part.error is None else make_storable(part.error),
    )


def reopen_parts(tx: Transaction, delivery_no: int) -> None:
    """Let everything be sent again that has not certainly arrived, because a person has asked for it."""
    tx.execute(
        "UPDATE delivery_part SET state = 'pending', first_sent_at = NULL, error = NULL"
        " WHERE delivery_no = $1 AND state <> 'sent'",
        delivery_no,
    )


def empty_sent_bodies(tx: Transaction, before: int, limit: int) -> int:
    """Empty the texts of sent parts of deliveries from before a moment, the oldest first; return how many."""
    rows = tx.fetch_all(f"{_SELECT_SENT_BODIES} LIMIT $1", limit)
    old = [(delivery_no, part_no) for delivery_no, part_no, created_at in rows if created_at < before]
    tx.execute_many("UPDATE delivery_part SET body = '' WHERE delivery_no = $1 AND part_no = $2", old)
    return len(old)


def has_sent_body_before(tx: Transaction, before: int) -> bool:
    row = tx.fetch_one(f"{_SELECT_SENT_BODIES} LIMIT 1")
    return row is not None and row[2] < before


_SELECT_SENT_BODIES = """SELECT p.delivery_no, p.part_no,
    (SELECT d.created_at FROM delivery d WHERE d.no = p.delivery_no)
    FROM delivery_part p WHERE p.state = 'sent' AND p.body <> '' ORDER BY p.delivery_no"""


def compute_delivery_state(parts: Sequence[DeliveryPart]) -> tuple[DeliveryState, str | None]:
    """Return the state of a delivery of which nothing is left to send, and why it is not `sent`."""
    for state in (DeliveryState.FAILED, DeliveryState.UNCERTAIN):
        for part in parts:
            if part.state is state:
                return state, part.error
    return DeliveryState.SENT, None


# -- confirmations ------------------------------------------------------------------------------------------

_FIND_UNCONFIRMED = """SELECT d.no FROM delivery d JOIN delivery_part p ON p.delivery_no = d.no
    WHERE d.id = $1 AND d.platform = $2 AND d.account = $3 AND p.part_no = $4 AND p.first_sent_at IS NOT NULL
    AND p.state <> 'sent'"""


def find_unconfirmed(tx: Transaction, account: AccountKey, delivery_id: str, part_no: int) -> int | None:
    """Return the number of the delivery if this part of it may have arrived, and it is not known that it has."""
    row = tx.fetch_one(_FIND_UNCONFIRMED, delivery_id, *map(str, account), part_no)
    return int(row[0]) if row else None


class TakenPart(NamedTuple):
    """A part that the platform may have taken, or takes at the moment."""

    delivery_no: int
    address: str
    state: DeliveryState


def find_taken(tx: Transaction, account: AccountKey, delivery_id: str, part_no: int) -> TakenPart | None:
    """Return a part that was sent, may have been, or is being sent."""
    row = tx.fetch_one(
        "SELECT d.no, d.address, p.state FROM delivery d JOIN delivery_part p ON p.delivery_no = d.no"
        " WHERE d.id = $1 AND d.platform = $2 AND d.account = $3 AND p.part_no = $4"
        " AND p.state IN ('sending', 'sent', 'uncertain')",
        delivery_id,
        *map(str, account),
        part_no,
    )
    return TakenPart(row[0], row[1], DeliveryState(row[2])) if row else None


def fail_part(tx: Transaction, delivery_no: int, part_no: int, error: str, now: int) -> None:
    """Record that a part has certainly not arrived, although the platform had taken it. So its delivery has failed."""
    tx.execute(
        "UPDATE delivery_part SET state = 'failed', first_sent_at = NULL, sent_message_id = NULL, error = $3"
        " WHERE delivery_no = $1 AND part_no = $2",
        delivery_no,
        part_no,
        make_storable(error),
    )
    tx.execute(
        "UPDATE delivery SET state = 'failed', error = $2, ended_at = $3"
        " WHERE no = $1 AND state IN ('sent', 'uncertain')",
        delivery_no,
        make_storable(error),
        now,
    )


def confirm_part(tx: Transaction, delivery_no: int, part_no: int, message_id: str) -> None:
    """Record that a part has arrived. An uncertain delivery all of whose parts have arrived is sent."""
    tx.execute(
        "UPDATE delivery_part SET state = 'sent', sent_message_id = $3, error = NULL"
        " WHERE delivery_no = $1 AND part_no = $2 AND state <> 'sent'",
        delivery_no,
        part_no,
        make_storable(message_id),
    )
    tx.execute(
        "UPDATE delivery SET state = 'sent', error = NULL WHERE no = $1 AND state = 'uncertain'"
        " AND NOT EXISTS (SELECT 1 FROM delivery_part p WHERE p.delivery_no = $1 AND p.state <> 'sent')",
        delivery_no,
    )
