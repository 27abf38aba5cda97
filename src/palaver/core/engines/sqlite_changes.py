"""Finds the sessions that have changed since the last check on SQLite, which only reports that something changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palaver.core.engines.base import ACCESS_CHANGE, SETTINGS_CHANGE

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction

_SELECT_OPEN_TURNS = "SELECT no, session_no, state, input_seq, stop_request FROM turn"
MAX_WATCHED_QUEUED_TURNS = 500  # changes of turns further back in the queue are noticed when those turns start


@dataclass(frozen=True, slots=True)
class ChangeMarks:
    """The state of the tables at the last check, to compare the next one with."""

    event_no: int = 0
    draft_no: int = 0
    turn_no: int = 0
    delivery_no: int = 0
    access_change_no: int = 0
    open_turns: frozenset[tuple[int, int, str, int, str | None]] = field(default_factory=frozenset)
    sending: frozenset[tuple[int, int | None]] = field(default_factory=frozenset)  # (delivery, its session)
    job_run_no: int = 0
    next_job_slot: int = 0
    settings_version: int = 0
    next_delivery_at: int | None = None  # when the first delivery that waits is due

    def has_more_work_than(self, last: ChangeMarks) -> bool:
        """Tell whether there may be something to run, to stop or to send that was not there at the last check."""
        if self.next_delivery_at is not None and (
            last.next_delivery_at is None or self.next_delivery_at < last.next_delivery_at
        ):
            return True  # the one before it may have been deleted
        return self._work_state != last._work_state

    @property
    def _work_state(self) -> tuple[object, ...]:
        return self.turn_no, self.delivery_no, self.open_turns, self.job_run_no, self.next_job_slot


def read_marks(tx: Transaction) -> ChangeMarks:
    """Return marks from which later calls of `find_changed_sessions` count."""
    return find_changed_sessions(tx, None)[0]


def find_changed_sessions(tx: Transaction, marks: ChangeMarks | None) -> tuple[ChangeMarks, frozenset[int]]:
    """Return new marks, and the numbers of the sessions with something new or something in another state.

    `ACCESS_CHANGE` is among them if a person may have lost access, `SETTINGS_CHANGE` if an owner has changed settings.
    """
    last_numbers = tx.fetch_one(
        "SELECT (SELECT MAX(no) FROM event), (SELECT MAX(no) FROM draft), (SELECT MAX(no) FROM turn),"
        " (SELECT MAX(no) FROM delivery), (SELECT no FROM access_change WHERE id = 1),"
        " (SELECT MAX(no) FROM job_run), (SELECT MIN(next_slot) FROM job WHERE next_slot IS NOT NULL),"
        " (SELECT version FROM setting_state WHERE id = 1),"
        " (SELECT MIN(due_at) FROM delivery WHERE state = 'pending' AND due_at IS NOT NULL)"
    )
    assert last_numbers is not None  # noqa: S101
    *numbers, next_delivery_at = last_numbers
    event_no, draft_no, turn_no, delivery_no, access_change_no, job_run_no, next_job_slot, settings_version = (
        int(no or 0) for no in numbers
    )
    open_turns = frozenset(
        tx.fetch_all(f"{_SELECT_OPEN_TURNS} WHERE state = 'running'")
        + tx.fetch_all(
            f"{_SELECT_OPEN_TURNS} WHERE state = 'queued' ORDER BY queue_round, no LIMIT $1", MAX_WATCHED_QUEUED_TURNS
        )
    )
    sending = frozenset(tx.fetch_all("SELECT no, session_no FROM delivery WHERE state = 'sending'"))
    new_marks = ChangeMarks(
        event_no,
        draft_no,
        turn_no,
        delivery_no,
        access_change_no,
        open_turns,
        sending,
        job_run_no,
        next_job_slot,
        settings_version,
        next_delivery_at,
    )
    if marks is None:
        return new_marks, frozenset()
    changed = {turn[1] for turn in open_turns ^ marks.open_turns}
    if access_change_no != marks.access_change_no:
        changed.add(ACCESS_CHANGE)
    if new_marks.settings_version != marks.settings_version:
        changed.add(SETTINGS_CHANGE)
    changed |= {session_no for _, session_no in sending ^ marks.sending if session_no is not None}
    for table, before, last in (
        ("event", marks.event_no, event_no),
        ("draft", marks.draft_no, draft_no),
        ("turn", marks.turn_no, turn_no),
    ):
        if last > before:
            # Without DISTINCT, for which SQLite would scan a whole index of the table.
            changed |= {no for (no,) in tx.fetch_all(f"SELECT session_no FROM {table} WHERE no > $1", before)}
    return new_marks, frozenset(changed)
