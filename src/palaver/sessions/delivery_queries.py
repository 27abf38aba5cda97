"""Reads of deliveries: their status in a session, what is open on each platform, and recent problems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.core.clock import from_micros
from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value
from palaver.core.source import Platform
from palaver.core.texts import load_text
from palaver.sessions.delivery import AccountKey, Address, Button, Delivery, DeliveryStatus, UndeliveredMessage
from palaver.sessions.targets import format_target
from palaver.sessions.turns_table import parse_quoted_seqs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime


_DELIVERY = Columns(
    Delivery,
    without={"buttons"},
    attempt="delivery.attempts",
    session_id="(SELECT s.id FROM session s WHERE s.no = delivery.session_no)",
)
DELIVERY_COLUMNS = f"delivery.no, {_DELIVERY.format_select('delivery')}, delivery.buttons"
_BUTTONS = 1 + len(_DELIVERY)  # the position of that column

# Those of an answer's turn; what a job or the agent has sent is no answer, and has a number in the log instead.
_OF_ANSWER = "CASE WHEN d.message_seq IS NULL THEN t.{} END"
_STATUS = Columns(
    DeliveryStatus,
    without={"quoted_seqs", "target"},
    turn_id=_OF_ANSWER.format("id"),
    input_seq=_OF_ANSWER.format("input_seq"),
)
_SELECT_STATUS = f"""SELECT d.no, {_STATUS.format_select("d")}, {_OF_ANSWER.format("facts")}, d.address
    FROM delivery d LEFT JOIN turn t ON t.no = d.turn_no
    WHERE (d.turn_no IS NOT NULL OR d.message_seq IS NOT NULL)"""


def list_latest_statuses(
    tx: Transaction, session_no: int, limit: int, before: int = 2**62
) -> list[tuple[int, DeliveryStatus]]:
    """Return the deliveries of the newest answers in a session before a delivery number, oldest first.

    Each as (number, status).
    """
    condition = "d.session_no = $1 AND d.no < $3 ORDER BY d.no DESC LIMIT $2"
    return _list_statuses(tx, condition, session_no, limit, before)[::-1]


def find_no(tx: Transaction, session_no: int, delivery_id: str) -> int | None:
    sql = "SELECT no FROM delivery WHERE id = $1 AND session_no = $2"
    return fetch_value(tx, sql, delivery_id, session_no)


def _list_statuses(tx: Transaction, condition: str, *params: object) -> list[tuple[int, DeliveryStatus]]:
    return [_numbered_status_from_row(row) for row in tx.fetch_all(f"{_SELECT_STATUS} AND {condition}", *params)]


def count_statuses(tx: Transaction, session_no: int) -> int:
    sql = "SELECT COUNT(*) FROM delivery WHERE session_no = $1 AND (turn_no IS NOT NULL OR message_seq IS NOT NULL)"
    return fetch_value(tx, sql, session_no) or 0


def list_statuses_after(tx: Transaction, session_no: int, after: int) -> list[tuple[int, DeliveryStatus]]:
    """Return the deliveries of answers in a session after delivery number `after`, as (number, status)."""
    return _list_statuses(tx, "d.session_no = $1 AND d.no > $2 ORDER BY d.no", session_no, after)


def list_statuses(tx: Transaction, numbers: Sequence[int]) -> list[tuple[int, DeliveryStatus]]:
    """Return deliveries by number, as (number, status); in one statement, because followers poll with it."""
    if not numbers:
        return []
    return _list_statuses(tx, f"d.no IN ({build_placeholders(len(numbers))}) ORDER BY d.no", *numbers)


def list_statuses_of_turns(tx: Transaction, turn_nos: Sequence[int]) -> dict[int, list[DeliveryStatus]]:
    """Return the deliveries of what turns answered, oldest first, by the number of the turn."""
    if not turn_nos:
        return {}
    condition = f"d.turn_no IN ({build_placeholders(len(turn_nos))})"
    rows = tx.fetch_all(f"SELECT d.no, d.turn_no FROM delivery d WHERE {condition} ORDER BY d.no", *turn_nos)
    statuses = dict(list_statuses(tx, [no for no, _ in rows]))
    by_turn: dict[int, list[DeliveryStatus]] = {}
    for no, turn_no in rows:
        by_turn.setdefault(turn_no, []).append(statuses[no])
    return by_turn


def list_for_session(tx: Transaction, session_no: int, limit: int = 50) -> list[Delivery]:
    """Return the latest deliveries of a session, newest first."""
    sql = f"SELECT {DELIVERY_COLUMNS} FROM delivery WHERE session_no = $1 ORDER BY no DESC LIMIT $2"
    return [delivery_from_row(row) for row in tx.fetch_all(sql, session_no, limit)]


def count_open_by_account(tx: Transaction) -> dict[AccountKey, int]:
    """Return how many deliveries are pending or being sent, by the account that sends them."""
    is_open = "state IN ('pending', 'sending')"
    rows = tx.fetch_all(f"SELECT platform, account, COUNT(*) FROM delivery WHERE {is_open} GROUP BY platform, account")
    return {(Platform(platform), account): int(count) for platform, account, count in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryProblems:
    uncertain: int = 0
    failed: int = 0
    last_error: str | None = None
    last_at: datetime | None = None


NO_PROBLEMS = DeliveryProblems()


def count_problems(tx: Transaction, since: int) -> dict[AccountKey, DeliveryProblems]:
    """Count the deliveries that failed or became uncertain since a moment, by the account that was to send them."""
    count_all = """SELECT platform, account, SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), COUNT(*), MAX(ended_at)
        FROM delivery WHERE state IN ('uncertain', 'failed') AND ended_at > $1 AND dismissed_at IS NULL
        GROUP BY platform, account"""
    find_last = """SELECT error FROM delivery WHERE state IN ('uncertain', 'failed') AND ended_at = $1
        AND platform = $2 AND account = $3 AND dismissed_at IS NULL ORDER BY no DESC LIMIT 1"""
    problems = {}
    for platform, account, failed, count, last_at in tx.fetch_all(count_all, since):
        last_error = fetch_value(tx, find_last, last_at, platform, account)
        problems[(Platform(platform), str(account))] = DeliveryProblems(
            uncertain=int(count) - int(failed),
            failed=int(failed),
            last_error=None if last_error is None else load_text(str(last_error)),
            last_at=from_micros(last_at),
        )
    return problems


_UNDELIVERED = Columns(
    UndeliveredMessage, without={"target"}, session_id="s.id", title="COALESCE(s.title, s.auto_title)"
)


def list_undelivered(
    tx: Transaction,
    audiences: Sequence[int] | None,
    *,
    before: tuple[int, int],
    limit: int,
    after: int = -1,
    delivery_id: str | None = None,
    state: str | None = None,
    platform: str | None = None,
    address: str | None = None,
    lane_key: str | None = None,
) -> list[tuple[int, UndeliveredMessage]]:
    """Return what failed or is uncertain, and that no person has dismissed, the last one first, as (number, message).

    `before` is a time and a number, `audiences` are those whose conversations count; None: all, and notices, too.
    """
    conditions = ["d.dismissed_at IS NULL AND d.ended_at > $1 AND (d.ended_at, d.no) < ($2, $3)"]
    params: list[object] = [after, *before, limit]
    filters = {"d.id": delivery_id, "d.state": state, "d.platform": platform, "d.address": address, "s.key": lane_key}
    for column, value in filters.items():
        if value is not None:
            params.append(value)
            conditions.append(f"{column} = ${len(params)}")
    if audiences is not None:
        conditions.append(f"s.audience_no IN ({build_placeholders(len(audiences), len(params) + 1)})")
        params += audiences
    sql = f"""SELECT d.no, {_UNDELIVERED.format_select("d")}, d.address
        FROM delivery d LEFT JOIN session s ON s.no = d.session_no
        WHERE d.state IN ('uncertain', 'failed') AND {" AND ".join(conditions)}
        ORDER BY d.ended_at DESC, d.no DESC LIMIT $4"""
    return [
        (no, _UNDELIVERED.decode(columns, target=_format_target(sent_to)))
        for no, *columns, sent_to in tx.fetch_all(sql, *params)
    ]


def delivery_from_row(row: Row) -> Delivery:
    """Read a delivery from a row that begins with `DELIVERY_COLUMNS`."""
    buttons = tuple(Button(label, data) for label, data in json.loads(row[_BUTTONS] or "[]"))
    return _DELIVERY.decode(row[1:], buttons=buttons)


def _numbered_status_from_row(row: Row) -> tuple[int, DeliveryStatus]:
    no, *columns, facts, address = row
    return no, _STATUS.decode(columns, quoted_seqs=parse_quoted_seqs(facts), target=_format_target(address))


def _format_target(address: str) -> str:
    place = Address.from_text(address)
    return "local" if place.platform == Platform.LOCAL else format_target(place)


def lock_open_addresses(tx: Transaction, session_no: int) -> list[str]:
    """Return the addresses with an open delivery of a session, and lock them until this transaction ends."""
    rows = tx.fetch_all(
        "SELECT DISTINCT address FROM delivery WHERE session_no = $1 AND state IN ('pending', 'sending')", session_no
    )
    addresses = sorted(address for (address,) in rows)
    for address in addresses:
        tx.lock_name(address)
    return addresses


def make_next_due(tx: Transaction, addresses: Iterable[str]) -> None:
    """Make the first delivery at each address due, after those before it were deleted."""
    for address in addresses:
        make_first_due(tx, address, 0)


def make_first_due(tx: Transaction, address: str, due_at: int) -> None:
    sql = """UPDATE delivery SET due_at = $2 WHERE no = (SELECT MIN(no) FROM delivery WHERE address = $1
        AND state IN ('pending', 'sending')) AND state = 'pending' AND due_at IS NULL"""
    tx.execute(sql, address, due_at)
