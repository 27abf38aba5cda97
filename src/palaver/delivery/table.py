"""Deliveries: sent in order at each address, each at most once, and never silently twice.

Always true: at every address only the first open delivery is due; the others wait (`due_at` is NULL) until it has
ended. So looking for work reads as many rows as there are addresses with something to send, however many deliveries
wait behind them. Reads that only show deliveries are in `sessions/delivery_queries.py`.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Row, Transaction, fetch_value
from palaver.core.errors import LeaseLost, NotFound, NothingToDo
from palaver.core.ids import DeliveryId, PersonId, new_delivery_id
from palaver.core.old_rows import OldRows, declare_old_rows
from palaver.core.text import make_storable
from palaver.core.texts import Reader, chat_language, load_text, say, store_text, write_text
from palaver.people.person_data import EraseAt, PersonColumn, Stays
from palaver.sessions import delivery_queries, log_table as events
from palaver.sessions.delivery import (
    MAX_RETRY_DELAY,
    AccountKey,
    Address,
    Button,
    Delivery,
    DeliveryKind,
    DeliveryPart,
    DeliveryState,
    DeliveryStatus,
    Resolution,
)
from palaver.sessions.delivery_queries import DELIVERY_COLUMNS, delivery_from_row, make_first_due
from palaver.sessions.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


MARKED_NOT_SENT: Final = say("delivery.marked_not_sent", "Marked as not delivered.")

# -- parts --------------------------------------------------------------------------------------------------


_PART: Final = Columns(DeliveryPart, no="part_no")
_IS_PART = "delivery_no = $1 AND part_no = $2"
_IS_UNSENT_PART = f"{_IS_PART} AND state <> 'sent'"


def list_parts(tx: Transaction, delivery_no: int) -> list[DeliveryPart]:
    """Return the parts of a delivery in order; none if it was never sent."""
    rows = tx.fetch_all(
        f"SELECT {_PART.format_select()} FROM delivery_part WHERE delivery_no = $1 ORDER BY part_no", delivery_no
    )
    return list(map(_PART.decode, rows))


def add_parts(tx: Transaction, delivery_no: int, parts: Sequence[DeliveryPart]) -> None:
    """Store the parts of a delivery before the first of them is sent."""
    sql = """INSERT INTO delivery_part (delivery_no, part_no, body, attachment_no, edits_id, state)
        VALUES ($1, $2, $3, $4, $5, 'pending')"""
    tx.execute_many(
        sql, [(delivery_no, part.no, make_storable(part.body), part.attachment_no, part.edits_id) for part in parts]
    )


def mark_sending(tx: Transaction, delivery_no: int, part_no: int, first_sent_at: int) -> None:
    mark = "UPDATE delivery_part SET state = 'sending', first_sent_at = $3"
    tx.execute(f"{mark} WHERE {_IS_UNSENT_PART}", delivery_no, part_no, first_sent_at)


def save_outcome(tx: Transaction, delivery_no: int, part: DeliveryPart) -> None:
    """Store the state of a part after an attempt, unless the platform has confirmed it meanwhile."""
    sql = f"""UPDATE delivery_part SET state = $3, edits_id = $4, first_sent_at = $5, sent_message_id = $6, error = $7
        WHERE {_IS_UNSENT_PART}"""
    tx.execute(
        sql,
        delivery_no,
        part.no,
        part.state.value,
        part.edits_id,
        part.first_sent_at,
        None if part.sent_message_id is None else make_storable(part.sent_message_id),
        _encode_error(part.error),
    )


def _encode_error(error: str | None) -> str | None:
    return None if error is None else make_storable(store_text(error))


def empty_sent_bodies(tx: Transaction, before: int, limit: int) -> int:
    """Empty the texts of sent parts of deliveries from before a moment, the oldest first; return how many."""
    rows = tx.fetch_all(f"{_SELECT_SENT_BODIES} LIMIT $1", limit)
    old = [(delivery_no, part_no) for delivery_no, part_no, created_at in rows if created_at < before]
    tx.execute_many("UPDATE delivery_part SET body = '' WHERE delivery_no = $1 AND part_no = $2", old)
    return len(old)


def has_sent_body_before(tx: Transaction, before: int) -> bool:
    rows = tx.fetch_all(f"{_SELECT_SENT_BODIES} LIMIT 1")
    return any(created_at < before for *_, created_at in rows)


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


class SentPart(NamedTuple):
    """A part of a delivery, as its platform may report on it."""

    delivery_no: int
    address: str
    state: DeliveryState
    is_unconfirmed: bool  # it may have arrived, and it is not known that it has


def find_part(tx: Transaction, account: AccountKey, delivery_id: str, part_no: int) -> SentPart | None:
    sql = """SELECT d.no, d.address, p.state, p.first_sent_at FROM delivery d
        JOIN delivery_part p ON p.delivery_no = d.no
        WHERE d.id = $1 AND d.platform = $2 AND d.account = $3 AND p.part_no = $4"""
    row = tx.fetch_one(sql, delivery_id, *map(str, account), part_no)
    if row is None:
        return None
    delivery_no, address, state, first_sent_at = row
    return SentPart(delivery_no, address, DeliveryState(state), first_sent_at is not None and state != "sent")


def fail_part(tx: Transaction, delivery_no: int, part_no: int, error: str, now: int) -> None:
    """Record that a part has certainly not arrived, although the platform had taken it. So its delivery has failed."""
    fail = "UPDATE delivery_part SET state = 'failed', first_sent_at = NULL, sent_message_id = NULL, error = $3"
    tx.execute(f"{fail} WHERE {_IS_PART}", delivery_no, part_no, _encode_error(error))
    end = "UPDATE delivery SET state = 'failed', error = $2, ended_at = $3"
    tx.execute(f"{end} WHERE no = $1 AND state IN ('sent', 'uncertain')", delivery_no, _encode_error(error), now)


def confirm_part(tx: Transaction, delivery_no: int, part_no: int, message_id: str) -> None:
    """Record that a part has arrived. An uncertain delivery all of whose parts have arrived is sent."""
    confirm = "UPDATE delivery_part SET state = 'sent', sent_message_id = $3, error = NULL"
    tx.execute(f"{confirm} WHERE {_IS_UNSENT_PART}", delivery_no, part_no, make_storable(message_id))
    sql = """UPDATE delivery SET state = 'sent', error = NULL WHERE no = $1 AND state = 'uncertain'
        AND NOT EXISTS (SELECT 1 FROM delivery_part p WHERE p.delivery_no = $1 AND p.state <> 'sent')"""
    tx.execute(sql, delivery_no)


# -- queueing -----------------------------------------------------------------------------------------------


def enqueue(
    tx: Transaction,
    address: str,
    content: str,
    now: int,
    *,
    kind: DeliveryKind = DeliveryKind.ANSWER,
    session_no: int | None = None,
    turn_no: int | None = None,
    message_seq: int | None = None,  # the message of its session that it sends, if that is not the answer of a turn
    reply_to: str | None = None,
    attachment_ids: Sequence[str] = (),  # files that are sent after the text
    buttons: Sequence[Button] = (),  # under its last message, where the platform has buttons
    reader: Reader | None = None,  # None: everybody in the chat, in the language of chats as it is now
) -> DeliveryId:
    """Queue a delivery behind everything on its way to the same address; to a dead target it fails at once."""
    tx.lock_name(address)
    to, delivery_id = Address.from_text(address), new_delivery_id()
    if reader is None:
        reader = Reader(chat_language.name, to.command_prefix, is_owner=False)
    sql = """INSERT INTO delivery (id, kind, session_no, turn_no, address, reply_to, content, created_at, state,
        platform, account, attachment_ids, buttons, message_seq, due_at, error, ended_at)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $12, $13, $14, $15, $16,
        CASE WHEN $9 = 'failed' OR EXISTS (SELECT 1 FROM delivery o WHERE o.address = $5
        AND o.state IN ('pending', 'sending')) THEN NULL
        ELSE CAST($8 AS BIGINT) END, $10, $11
        WHERE $9 = 'failed' OR NOT EXISTS (SELECT 1 FROM dead_target t WHERE t.address = $5)"""
    values = (
        delivery_id,
        kind.value,
        session_no,
        turn_no,
        address,
        reply_to,
        make_storable(write_text(content, reader)),
        now,
    )
    more_values = (
        *map(str, to.account_key),
        json.dumps(list(attachment_ids)) if attachment_ids else None,
        json.dumps([[write_text(each.label, reader), each.data] for each in buttons]) if buttons else None,
        message_seq,
    )
    if not tx.execute(sql, *values, "pending", None, None, *more_values):
        reason: str | None = fetch_value(tx, "SELECT reason FROM dead_target WHERE address = $1", address)
        if reason is None:  # a message has just arrived from there
            raise Conflict
        tx.execute(sql, *values, "failed", _store_unreachable(reason), now, *more_values)
    return delivery_id


# -- sending ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLease:
    """A delivery that a process is sending, and its right to record the outcome."""

    no: int
    owner: str
    delivery: Delivery
    parts: tuple[DeliveryPart, ...] = ()  # none before it was sent for the first time


_HAS_LEASE = "no = $1 AND state = 'sending' AND lease_owner = $2 AND attempts = $3"
_RELEASED = "lease_owner = NULL, lease_until = NULL"


def _make_lease_params(lease: DeliveryLease) -> tuple[int, str, int]:
    return lease.no, lease.owner, lease.delivery.attempt


def _change(tx: Transaction, lease: DeliveryLease, assignments: str, *params: object) -> None:
    """Change a delivery; raise `LeaseLost` if the lease has gone to another process. The parameters begin at `$4`."""
    if not tx.execute(f"UPDATE delivery SET {assignments} WHERE {_HAS_LEASE}", *_make_lease_params(lease), *params):
        raise LeaseLost


def extend_lease(tx: Transaction, lease: DeliveryLease, until: int) -> None:
    """Extend a lease before the next message is sent. Raises LeaseLost."""
    _change(tx, lease, "lease_until = $4", until)


def find_next_due(tx: Transaction, accounts: Sequence[AccountKey]) -> int | None:
    select = """SELECT MIN(due_at) FROM delivery
        WHERE platform = $1 AND account = $2 AND state = 'pending' AND due_at IS NOT NULL"""
    times: list[int | None] = [fetch_value(tx, select, *account) for account in accounts]
    return min((due_at for due_at in times if due_at is not None), default=None)


def claim_due(
    tx: Transaction, owner: str, now: int, lease_until: int, limit: int, account: AccountKey
) -> list[DeliveryLease]:
    """Claim the deliveries of an account that are due, one for each address."""
    is_due = "platform = $1 AND account = $2 AND state = 'pending' AND due_at IS NOT NULL AND due_at <= $3"
    select = f"SELECT no FROM delivery WHERE {is_due} ORDER BY due_at LIMIT $4 {tx.skip_locked}"
    take = "UPDATE delivery SET state = 'sending', attempts = attempts + 1, lease_owner = $2, lease_until = $3"
    claimed = []
    for (no,) in tx.fetch_all(select, *account, now, limit):
        row = tx.fetch_one(f"{take} WHERE no = $1 RETURNING {DELIVERY_COLUMNS}", no, owner, lease_until)
        assert row is not None  # noqa: S101
        claimed.append(_lease_from_row(tx, row, owner))
    return claimed


def _lease_from_row(tx: Transaction, row: Row, owner: str) -> DeliveryLease:
    no, *_ = row
    return DeliveryLease(no=no, owner=owner, delivery=delivery_from_row(row), parts=tuple(list_parts(tx, no)))


def finish(tx: Transaction, lease: DeliveryLease, state: DeliveryState, now: int, *, error: str | None = None) -> None:
    """Record that a delivery was sent, has failed or is uncertain, and make the next one at its address due."""
    # As it is now: the chat may have moved.
    address: str | None = fetch_value(
        tx, f"SELECT address FROM delivery WHERE {_HAS_LEASE}", *_make_lease_params(lease)
    )
    if address is None:
        raise LeaseLost
    tx.lock_name(address)
    ended = f"state = $4, ended_at = $5, error = $6, due_at = NULL, {_RELEASED}"
    _change(tx, lease, ended, state.value, now, _encode_error(error))
    make_first_due(tx, address, now)


def retry_later(
    tx: Transaction, lease: DeliveryLease, due_at: int, error: str | None, *, attempts: int | None = None
) -> None:
    """Try an unsent delivery again at `due_at`; the others at its address keep waiting behind it.

    `attempts` is how many attempts count from now on; None: as many as there were.
    """
    count = lease.delivery.attempt if attempts is None else attempts
    postponed = f"state = 'pending', due_at = $4, error = COALESCE($5, error), attempts = $6, {_RELEASED}"
    _change(tx, lease, postponed, due_at, _encode_error(error), count)


def list_orphans(tx: Transaction, now: int, is_owner_dead: Callable[[str], bool]) -> list[DeliveryLease]:
    """List the deliveries whose sender is gone. A part of them that is `sending` may have arrived."""
    rows = tx.fetch_all(
        f"SELECT {DELIVERY_COLUMNS}, lease_owner, lease_until FROM delivery WHERE state = 'sending' ORDER BY no"
    )
    return [
        _lease_from_row(tx, tuple(row), owner) for *row, owner, until in rows if until < now or is_owner_dead(owner)
    ]


# Due later than any retry can be, and created in the future: the clock has been set back since.
_IS_POSTPONED = """platform = $1 AND account = $2 AND state = 'pending' AND due_at IS NOT NULL AND due_at > $4
    AND created_at > $3"""


def has_postponed(tx: Transaction, accounts: Sequence[AccountKey], now: int) -> bool:
    """Return whether a delivery is due in the future only because the clock was set back."""
    rows = (
        tx.fetch_one(f"SELECT 1 FROM delivery WHERE {_IS_POSTPONED} LIMIT 1", *_make_postponed_params(now, account))
        for account in accounts
    )
    return any(row is not None for row in rows)


def retry_postponed_now(tx: Transaction, accounts: Sequence[AccountKey], now: int) -> int:
    """Make the deliveries that a clock set back has postponed due now; return how many."""
    return sum(
        tx.execute(f"UPDATE delivery SET due_at = $3 WHERE {_IS_POSTPONED}", *_make_postponed_params(now, account))
        for account in accounts
    )


def _make_postponed_params(now: int, account: AccountKey) -> tuple[str, str, int, int]:
    return *account, now, now + MAX_RETRY_DELAY // timedelta(microseconds=1)


# -- dead targets and resending -----------------------------------------------------------------------------


def mark_target_dead(tx: Transaction, address: str, reason: str, now: int) -> None:
    """Record that an address cannot be reached, and fail everything that waits for it."""
    stored_reason = make_storable(store_text(reason))
    tx.lock_name(address)
    insert = "INSERT INTO dead_target (address, reason, marked_at) VALUES ($1, $2, $3)"
    update = "ON CONFLICT (address) DO UPDATE SET reason = excluded.reason, marked_at = excluded.marked_at"
    tx.execute(f"{insert} {update}", address, stored_reason, now)
    fail = "UPDATE delivery SET state = 'failed', ended_at = $2, error = $3, due_at = NULL"
    # Both conditions, so that the partial index on open deliveries is used.
    is_waiting = "state IN ('pending', 'sending') AND state = 'pending'"
    tx.execute(f"{fail} WHERE address = $1 AND {is_waiting}", address, now, _store_unreachable(stored_reason))


def _store_unreachable(stored_reason: str) -> str:
    text = say(
        "delivery.unreachable", "This address can no longer be reached: {reason}", reason=load_text(stored_reason)
    )
    return store_text(text)


def mark_target_alive(tx: Transaction, address: str) -> None:
    """Forget that an address could not be reached, because a message has arrived from there."""
    if tx.fetch_one("SELECT 1 FROM dead_target WHERE address = $1", address) is not None:
        tx.execute("DELETE FROM dead_target WHERE address = $1", address)


def resend(tx: Transaction, session_no: int, delivery_id: str, now: int, person_id: PersonId | None) -> DeliveryStatus:
    """Send the parts of an answer again that failed or may not have arrived, at a person's request, with the same keys.

    The log records who asked for it and why, for everybody who gets the answer twice or misses it.
    """
    sql = """SELECT no, address, platform, state, error FROM delivery
        WHERE id = $1 AND session_no = $2 AND (turn_no IS NOT NULL OR message_seq IS NOT NULL)"""
    row = tx.fetch_one(sql, delivery_id, session_no)
    if row is None:
        raise NotFound(f"Delivery {delivery_id} not found.", delivery_id=delivery_id)
    no, address, platform, state, error = row
    events.append_event(
        tx,
        session_no,
        EventKind.ANSWER_RESENT,
        now,
        person_id,
        delivery_id=delivery_id,
        platform=platform,
        previous_state=state,
        error=None if error is None else str(load_text(error)),
    )
    tx.lock_name(address)
    _reopen(tx, no, address, now)
    [(_, status)] = delivery_queries.list_statuses(tx, [no])
    return status


def _reopen(tx: Transaction, no: int, address: str, now: int) -> None:
    reopen = """UPDATE delivery SET state = 'pending', attempts = 0, error = NULL, ended_at = NULL, due_at = NULL,
        reported_at = NULL, dismissed_at = NULL"""
    if not tx.execute(f"{reopen} WHERE no = $1 AND state IN ('failed', 'uncertain')", no):
        raise NothingToDo("This answer was already delivered or is being sent.")
    reopen_parts = "UPDATE delivery_part SET state = 'pending', first_sent_at = NULL, error = NULL"
    tx.execute(f"{reopen_parts} WHERE delivery_no = $1 AND state <> 'sent'", no)
    mark_target_alive(tx, address)
    restore_order(tx, address, now)


def resolve(
    tx: Transaction,
    delivery_id: str,
    resolution: Resolution,
    audiences: Sequence[int] | None,
    now: int,
    person_id: PersonId | None,
    lane_key: str | None = None,
) -> None:
    """Do what a person has decided about a delivery that failed or is uncertain. Raises NotFound and NothingToDo.

    `audiences` are those whose conversations the person may change; None: all.
    """
    sql = """SELECT d.no, d.address, s.no, s.audience_no, s.key, COALESCE(d.turn_no, d.message_seq) IS NOT NULL
        FROM delivery d LEFT JOIN session s ON s.no = d.session_no WHERE d.id = $1"""
    row = tx.fetch_one(sql, delivery_id)
    no, address, session_no, audience_no, session_key, is_answer = row or (None,) * 6
    is_visible = (audiences is None or audience_no in audiences) and lane_key in (None, session_key)
    if no is None or not is_visible:
        raise NotFound(f"Delivery {delivery_id} not found.", delivery_id=delivery_id)
    match resolution:
        case Resolution.RESEND if is_answer:
            resend(tx, session_no, delivery_id, now, person_id)
            return
        case Resolution.RESEND:
            tx.lock_name(address)
            _reopen(tx, no, address, now)
            return
        case Resolution.DISMISS:
            change = "dismissed_at = $2 WHERE no = $1 AND state IN ('failed', 'uncertain') AND dismissed_at IS NULL"
            is_changed = tx.execute(f"UPDATE delivery SET {change}", no, now)
        case Resolution.SENT:
            is_changed = _settle_uncertain(tx, no, "state = 'sent', error = NULL", "state = 'sent', error = NULL")
        case Resolution.NOT_SENT:
            failed = "state = 'failed', error = $2"
            error = _encode_error(MARKED_NOT_SENT)
            is_changed = _settle_uncertain(tx, no, failed, f"{failed}, first_sent_at = NULL", error)
    if not is_changed:
        raise NothingToDo("This message is no longer uncertain, or was dismissed.", delivery_id=delivery_id)


def _settle_uncertain(tx: Transaction, no: int, change: str, part_change: str, *params: object) -> int:
    tx.execute(f"UPDATE delivery_part SET {part_change} WHERE delivery_no = $1 AND state = 'uncertain'", no, *params)
    return tx.execute(f"UPDATE delivery SET {change} WHERE no = $1 AND state = 'uncertain'", no, *params)


def list_unreported(tx: Transaction, accounts: Collection[AccountKey], after: int, before: int) -> list[Row]:
    """List the uncertain answers that ended in a time and of which people in the chat were not told, with their place.

    Each as (number, address, number of the session).
    """
    rows = tx.fetch_all(
        """SELECT platform, account, no, address, session_no FROM delivery WHERE state = 'uncertain'
        AND reported_at IS NULL AND ended_at > $1 AND ended_at <= $2 AND kind = 'answer' ORDER BY ended_at LIMIT 200""",
        after,
        before,
    )
    return [tuple(found) for platform, account, *found in rows if (platform, account) in accounts]


def mark_reported(tx: Transaction, delivery_no: int, now: int) -> bool:
    """Record that people were told of an uncertain delivery; return False if they had been, or it is not uncertain."""
    update = "UPDATE delivery SET reported_at = $2 WHERE no = $1 AND state = 'uncertain' AND reported_at IS NULL"
    return bool(tx.execute(update, delivery_no, now))


def restore_order(tx: Transaction, address: str, now: int) -> None:
    """Make only the first open delivery at an address due, not before the one that was due would have been."""
    at_address = "address = $1 AND state IN ('pending', 'sending')"
    last_due = fetch_value(tx, f"SELECT MAX(due_at) FROM delivery WHERE {at_address}", address)
    tx.execute(f"UPDATE delivery SET due_at = NULL WHERE {at_address} AND state = 'pending'", address)
    if tx.fetch_one(f"SELECT 1 FROM delivery WHERE {at_address} AND state = 'sending'", address) is None:
        make_first_due(tx, address, max(now, last_due or 0))


MAX_SENT_BODY_AGE: Final = timedelta(days=30)  # nothing is sent again after so long without being rendered again
MAX_NOTICE_AGE: Final = timedelta(days=30)  # of messages outside of conversations: no platform reports on them later
OLD_ROWS: Final = {
    # The rendered texts of messages that were sent: the answers are in the log.
    "sent_bodies": OldRows(MAX_SENT_BODY_AGE, has_sent_body_before, empty_sent_bodies),
    # What was sent to chats outside of conversations, such as notices.
    "notices": declare_old_rows(
        "delivery", "ended_at", MAX_NOTICE_AGE, only="session_no IS NULL AND ended_at IS NOT NULL"
    ),
}
PERSON_DATA: Final = (
    PersonColumn("dead_target", "address", merge=Stays("belongs to an address"), erase=EraseAt.START),
)
