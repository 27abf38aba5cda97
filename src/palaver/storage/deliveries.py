"""Deliveries: in order at each address, at most once each, and never silently twice.

At every address the first open delivery is due and the others wait (`due_at` is NULL) until it has ended. So looking
for work reads as many rows as there are addresses with something to do, however much waits behind them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain.delivery import LONGEST_DELAY, Address, Delivery, DeliveryKind, DeliveryState, DeliveryStatus
from palaver.domain.errors import LeaseLost, NotFound, NothingToDo
from palaver.domain.events import EventKind
from palaver.domain.ids import DeliveryId, SessionId, TurnId, new_delivery_id
from palaver.domain.source import Platform
from palaver.domain.text import storable
from palaver.storage import events
from palaver.storage.timestamps import from_micros, from_micros_or_none
from palaver.storage.turns import quotes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """Something to be sent."""

    address: str
    content: str
    kind: DeliveryKind = DeliveryKind.ANSWER
    session_no: int | None = None
    turn_no: int | None = None
    reply_to: str | None = None


def enqueue(tx: Transaction, outgoing: Outgoing, now: int) -> DeliveryId:
    """Let something be sent after all that is on its way to the same address."""
    tx.hold(outgoing.address)
    delivery_id = new_delivery_id()
    dead = tx.one("SELECT reason FROM dead_target WHERE address = $1", outgoing.address)
    tx.run(
        "INSERT INTO delivery (id, kind, session_no, turn_no, address, reply_to, content, created_at, state, platform,"
        " due_at, error, ended_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $12,"
        " CASE WHEN $9 = 'failed' OR EXISTS (SELECT 1 FROM delivery o WHERE o.address = $5"
        " AND o.state IN ('pending', 'sending')) THEN NULL"
        " ELSE CAST($8 AS BIGINT) END, $10, $11",
        delivery_id,
        outgoing.kind.value,
        outgoing.session_no,
        outgoing.turn_no,
        outgoing.address,
        outgoing.reply_to,
        storable(outgoing.content),
        now,
        "failed" if dead else "pending",
        f"nobody is there any more: {dead[0]}" if dead else None,
        now if dead else None,
        str(Address.parse(outgoing.address).platform),
    )
    return delivery_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A delivery that somebody is sending, and the right to say how it ended."""

    no: int
    owner: str
    delivery: Delivery


_COLUMNS = """d.no, d.id, d.address, d.content, d.kind, d.attempts,
    (SELECT s.id FROM session s WHERE s.no = d.session_no), d.reply_to, d.state, d.receipt, d.error, d.created_at"""


def next_due(tx: Transaction, platforms: Sequence[str]) -> int | None:
    """When the next delivery on one of these platforms is due."""
    rows = (
        tx.one(
            "SELECT MIN(due_at) FROM delivery WHERE platform = $1 AND state = 'pending' AND due_at IS NOT NULL",
            platform,
        )
        for platform in platforms
    )
    return min((int(row[0]) for row in rows if row is not None and row[0] is not None), default=None)


def claim(tx: Transaction, owner: str, now: int, until: int, most: int, platform: str) -> list[Sending]:
    """Take what is due on a platform that this process is connected to, one for each address."""
    skip = "FOR UPDATE SKIP LOCKED" if tx.lock else ""
    due = tx.all(
        "SELECT no FROM delivery WHERE platform = $1 AND state = 'pending' AND due_at IS NOT NULL AND due_at <= $2"
        f" ORDER BY due_at LIMIT $3 {skip}",
        platform,
        now,
        most,
    )
    claimed = []
    for (no,) in due:
        tx.run(
            "UPDATE delivery SET state = 'sending', attempts = attempts + 1, lease_owner = $2, lease_until = $3"
            " WHERE no = $1",
            no,
            owner,
            until,
        )
        row = tx.one(f"SELECT {_COLUMNS} FROM delivery d WHERE d.no = $1", no)
        assert row is not None  # noqa: S101
        claimed.append(Sending(no=no, owner=owner, delivery=_delivery(row)))
    return claimed


def end(
    tx: Transaction,
    sending: Sending,
    state: DeliveryState,
    now: int,
    *,
    receipt: str | None = None,
    error: str | None = None,
) -> None:
    """It was sent, or never will be, or nobody knows; the next at its address is due."""
    address = str(sending.delivery.address)
    tx.hold(address)
    ended = tx.run(
        "UPDATE delivery SET state = $3, ended_at = $4, receipt = $5, error = $6, due_at = NULL, lease_owner = NULL,"
        " lease_until = NULL WHERE no = $1 AND state = 'sending' AND lease_owner = $2",
        sending.no,
        sending.owner,
        state.value,
        now,
        None if receipt is None else storable(receipt),
        None if error is None else storable(error),
    )
    if not ended:
        raise LeaseLost
    _next(tx, address, now)


def again(tx: Transaction, sending: Sending, due_at: int, error: str) -> None:
    """It was not sent: try later. What waits at the same address goes on waiting."""
    changed = tx.run(
        "UPDATE delivery SET state = 'pending', due_at = $3, error = $4, lease_owner = NULL, lease_until = NULL"
        " WHERE no = $1 AND state = 'sending' AND lease_owner = $2",
        sending.no,
        sending.owner,
        due_at,
        storable(error),
    )
    if not changed:
        raise LeaseLost


def orphans(tx: Transaction, now: int, is_dead: Callable[[str], bool]) -> list[Sending]:
    """What somebody was sending who is gone: nobody knows whether it arrived."""
    rows = tx.all(
        f"SELECT {_COLUMNS}, d.lease_owner, d.lease_until FROM delivery d WHERE d.state = 'sending' ORDER BY d.no"
    )
    return [
        Sending(no=row[0], owner=row[12], delivery=_delivery(row)) for row in rows if row[13] < now or is_dead(row[12])
    ]


# Due only after longer than anything waits, and made in the future: the clock has been set back since.
_POSTPONED = "platform = $1 AND state = 'pending' AND due_at IS NOT NULL AND due_at > $3 AND created_at > $2"


def any_to_hasten(tx: Transaction, platforms: Sequence[str], now: int) -> bool:
    """Whether something waits for a time that lies ahead only because the clock was set back."""
    found = (tx.one(f"SELECT 1 FROM delivery WHERE {_POSTPONED} LIMIT 1", *_by(now, each)) for each in platforms)
    return any(row is not None for row in found)


def hasten(tx: Transaction, platforms: Sequence[str], now: int) -> int:
    """Let it wait no longer; how many those were."""
    return sum(tx.run(f"UPDATE delivery SET due_at = $2 WHERE {_POSTPONED}", *_by(now, each)) for each in platforms)


def _by(now: int, platform: str) -> tuple[str, int, int]:
    return platform, now, now + LONGEST_DELAY // timedelta(microseconds=1)


def open_at(tx: Transaction, session_no: int) -> list[str]:
    """The addresses at which something of a session is on its way. Nobody adds to them before this transaction ends."""
    rows = tx.all(
        "SELECT DISTINCT address FROM delivery WHERE session_no = $1 AND state IN ('pending', 'sending')", session_no
    )
    addresses = sorted(address for (address,) in rows)
    for address in addresses:
        tx.hold(address)
    return addresses


def go_on_at(tx: Transaction, addresses: Iterable[str]) -> None:
    """What was on its way there is gone: whatever stood behind it is next."""
    for address in addresses:
        _next(tx, address, 0)


def bury(tx: Transaction, address: str, reason: str, now: int) -> int:
    """Nobody is at this address any more: what waits for it fails too; how many those were."""
    tx.hold(address)
    tx.run(
        "INSERT INTO dead_target (address, reason, at) VALUES ($1, $2, $3)"
        " ON CONFLICT (address) DO UPDATE SET reason = excluded.reason, at = excluded.at",
        address,
        storable(reason),
        now,
    )
    return tx.run(
        "UPDATE delivery SET state = 'failed', ended_at = $2, error = $3, due_at = NULL"
        " WHERE address = $1 AND state IN ('pending', 'sending') AND state = 'pending'",  # as the index has it
        address,
        now,
        f"nobody is there any more: {storable(reason)}",
    )


def revive(tx: Transaction, address: str) -> None:
    """Somebody speaks from there again."""
    if tx.one("SELECT 1 FROM dead_target WHERE address = $1", address) is not None:
        tx.run("DELETE FROM dead_target WHERE address = $1", address)


def last_address(tx: Transaction, session_no: int, platform: str) -> str | None:
    """Where something of a session was last sent on a platform."""
    row = tx.one(
        "SELECT address FROM delivery WHERE session_no = $1 AND platform = $2 ORDER BY no DESC LIMIT 1",
        session_no,
        platform,
    )
    return str(row[0]) if row else None


# -- for whoever asks ---------------------------------------------------------------------------------------

_STATUS = """SELECT d.no, d.id, t.id, t.input_seq, t.facts, d.platform, d.state, d.error, d.created_at, d.ended_at
    FROM delivery d JOIN turn t ON t.no = d.turn_no"""


def latest(tx: Transaction, session_no: int, limit: int) -> list[tuple[int, DeliveryStatus]]:
    """How the deliveries of the newest answers in a session stand, oldest first, with numbers."""
    rows = tx.all(f"{_STATUS} WHERE d.session_no = $1 ORDER BY d.no DESC LIMIT $2", session_no, limit)
    return [_status(row) for row in reversed(rows)]


def newer(tx: Transaction, session_no: int, after: int) -> list[tuple[int, DeliveryStatus]]:
    """The same of those after one with this number."""
    rows = tx.all(f"{_STATUS} WHERE d.session_no = $1 AND d.no > $2 ORDER BY d.no", session_no, after)
    return [_status(row) for row in rows]


def by_numbers(tx: Transaction, numbers: Sequence[int]) -> list[tuple[int, DeliveryStatus]]:
    """The same of some, by their numbers; in one statement, because those who follow ask again and again."""
    if not numbers:
        return []
    places = ", ".join(f"${place}" for place in range(1, len(numbers) + 1))
    return [_status(row) for row in tx.all(f"{_STATUS} WHERE d.no IN ({places}) ORDER BY d.no", *numbers)]


def repeat(tx: Transaction, session_no: int, delivery_id: str, now: int, by: PersonId | None) -> DeliveryStatus:
    """Send an answer again that failed, or may not have arrived, because a person wants it; with the same key.

    It is written into the log: whoever gets it twice, or wonders where it went, can see who wanted that and why.
    """
    row = tx.one(
        "SELECT no, address, platform, state, error FROM delivery"
        " WHERE id = $1 AND session_no = $2 AND turn_no IS NOT NULL",
        delivery_id,
        session_no,
    )
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id}", delivery_id=delivery_id)
    no, address, platform, state, error = row
    events.note(tx, session_no, EventKind.RESENT, now, by, delivery=delivery_id, to=platform, was=state, why=error)
    tx.hold(address)
    repeated = tx.run(
        "UPDATE delivery SET state = 'pending', attempts = 0, error = NULL, ended_at = NULL, due_at = NULL"
        " WHERE no = $1 AND state IN ('failed', 'uncertain')",
        no,
    )
    if not repeated:
        raise NothingToDo("this answer has arrived, or is on its way already", delivery_id=delivery_id)
    revive(tx, address)
    _let_first(tx, address, now)
    return by_numbers(tx, [no])[0][1]


def _let_first(tx: Transaction, address: str, now: int) -> None:
    """The first that is open at an address is due, when whoever was due before it would have been; others wait."""
    at_address = "address = $1 AND state IN ('pending', 'sending')"
    waits = tx.one(f"SELECT MAX(due_at) FROM delivery WHERE {at_address}", address)
    tx.run(f"UPDATE delivery SET due_at = NULL WHERE {at_address} AND state = 'pending'", address)
    if tx.one(f"SELECT 1 FROM delivery WHERE {at_address} AND state = 'sending'", address) is None:
        _next(tx, address, max(now, (waits and waits[0]) or 0))


def _status(row: Row) -> tuple[int, DeliveryStatus]:
    return row[0], DeliveryStatus(
        id=DeliveryId(row[1]),
        turn_id=TurnId(row[2]),
        input_seq=row[3],
        quotes=quotes_in(json.loads(row[4])) if row[4] else (),
        platform=Platform(row[5]),
        state=DeliveryState(row[6]),
        error=row[7],
        created_at=from_micros(row[8]),
        ended_at=from_micros_or_none(row[9]),
    )


def of_session(tx: Transaction, session_no: int, limit: int = 50) -> list[Delivery]:
    """The newest deliveries of a session, newest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM delivery d WHERE d.session_no = $1 ORDER BY d.no DESC LIMIT $2", session_no, limit
    )
    return [_delivery(row) for row in rows]


def waiting(tx: Transaction) -> dict[str, int]:
    """How much is on its way, by platform."""
    rows = tx.all("SELECT platform, COUNT(*) FROM delivery WHERE state IN ('pending', 'sending') GROUP BY platform")
    return {platform: int(count) for platform, count in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A delivery that did not arrive, or of which nobody knows whether it did."""

    platform: str
    state: DeliveryState
    error: str | None
    at: datetime


def troubles(tx: Transaction, since: int) -> list[Trouble]:
    """What went wrong since a moment, newest first, and not more of it than anybody would read."""
    rows = tx.all(
        "SELECT platform, state, error, ended_at FROM delivery WHERE state IN ('uncertain', 'failed') AND ended_at > $1"
        " ORDER BY ended_at DESC LIMIT 1000",
        since,
    )
    return [
        Trouble(platform=platform, state=DeliveryState(state), error=error, at=from_micros(ended))
        for platform, state, error, ended in rows
    ]


def _next(tx: Transaction, address: str, now: int) -> None:
    tx.run(
        "UPDATE delivery SET due_at = $2 WHERE no = (SELECT MIN(no) FROM delivery WHERE address = $1"
        " AND state IN ('pending', 'sending')) AND state = 'pending' AND due_at IS NULL",
        address,
        now,
    )


def _delivery(row: Row) -> Delivery:
    return Delivery(
        id=row[1],
        address=Address.parse(row[2]),
        content=row[3],
        kind=DeliveryKind(row[4]),
        attempt=row[5],
        session_id=None if row[6] is None else SessionId(row[6]),
        reply_to=row[7],
        state=DeliveryState(row[8]),
        receipt=row[9],
        error=row[10],
        created_at=from_micros(row[11]),
    )
