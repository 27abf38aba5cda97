"""Which sessions have changed since the last look, where the engine only says that something has (SQLite)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.storage.engines.base import Transaction


_OPEN = "SELECT no, session_no, state, input_seq, wish FROM turn"
MOST_WAITING = 500  # turns whose changes are noticed at once; of others it is told when they begin


@dataclass(frozen=True, slots=True)
class Marks:
    """How far the last look came."""

    event_no: int = 0
    draft_no: int = 0
    turn_no: int = 0
    delivery_no: int = 0
    open_turns: frozenset[tuple[int, int, str, int, str | None]] = field(default_factory=frozenset)
    sending: frozenset[tuple[int, int | None]] = field(default_factory=frozenset)  # deliveries, with their sessions

    @property
    def work(self) -> tuple[object, ...]:
        """What a worker has to look at: differs when there may be something to run, to stop or to send."""
        return self.turn_no, self.delivery_no, self.open_turns


def start(tx: Transaction) -> Marks:
    """From now on."""
    return since(tx, None)[0]


def since(tx: Transaction, marks: Marks | None) -> tuple[Marks, frozenset[int]]:
    """New marks, and the numbers of the sessions in which something is new, or is in another state."""
    ends = tx.one(
        "SELECT (SELECT MAX(no) FROM event), (SELECT MAX(no) FROM draft), (SELECT MAX(no) FROM turn),"
        " (SELECT MAX(no) FROM delivery)"
    )
    assert ends is not None  # noqa: S101
    event_no, draft_no, turn_no, delivery_no = (int(end or 0) for end in ends)
    opened = frozenset(
        tx.all(f"{_OPEN} WHERE state = 'running'")
        + tx.all(f"{_OPEN} WHERE state = 'queued' ORDER BY round, no LIMIT $1", MOST_WAITING)
    )
    sending = frozenset(tx.all("SELECT no, session_no FROM delivery WHERE state = 'sending'"))
    found = Marks(event_no, draft_no, turn_no, delivery_no, opened, sending)
    if marks is None:
        return found, frozenset()
    changed = {turn[1] for turn in opened ^ marks.open_turns}
    changed |= {session_no for _, session_no in sending ^ marks.sending if session_no is not None}
    for table, before, end in (
        ("event", marks.event_no, event_no),
        ("draft", marks.draft_no, draft_no),
        ("turn", marks.turn_no, turn_no),
    ):
        if end > before:
            # Not DISTINCT, for which SQLite would walk through the whole index of a table.
            changed |= {no for (no,) in tx.all(f"SELECT session_no FROM {table} WHERE no > $1", before)}
    return found, frozenset(changed)
