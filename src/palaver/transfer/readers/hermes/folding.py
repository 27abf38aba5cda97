"""Folding all stored copies of a conversation into one list of messages.

    each copy      repeated writes are dropped                                 `repeats`
    each session   its copies are aligned: database, JSONL, file of the page   `alignment`
    conversation   its sessions are joined at their compactions                `compactions`

A plan holds a few bytes for each message; the messages themselves are read again when they are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.alignment import ABSENT, align, estimate_zone_shift, merge
from palaver.transfer.readers.hermes.compactions import CompactionPlan, plan_compactions
from palaver.transfer.readers.hermes.marks import SUMMARY, UNDONE, Marks, find_rewritten
from palaver.transfer.readers.hermes.records import Record, merge_records
from palaver.transfer.readers.hermes.repeats import find_repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_COPIES: Final = 8  # of one session


@dataclass(frozen=True, slots=True)
class Copy:
    """One place where a session is stored."""

    name: str
    open_records: Callable[[], Iterator[Record | ImportProblem]]
    has_local_times: bool = False  # without a time zone


@dataclass(slots=True)
class SessionPlan:
    """How the copies of one session become one list."""

    copies: Sequence[Copy]
    dropped: list[bytearray] = field(default_factory=list)  # for each copy: what was stored again
    rewritten: list[bytearray] = field(default_factory=list)  # for each copy: whose times were lost
    shifts: list[float] = field(default_factory=list)  # for each copy: seconds by which its clock is off
    members: bytearray = field(default_factory=bytearray)  # for each message: the copies that have it, as bits
    marks: Marks = field(default_factory=Marks)
    folded: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ConversationPlan:
    sessions: list[SessionPlan]
    compactions: CompactionPlan
    folded: tuple[str, ...]

    @property
    def message_count(self) -> int:
        return len(self.compactions.actions)


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    record: Record
    action: int  # of `compactions`
    kept_count: int = 0


def plan_conversation(sessions: Sequence[Sequence[Copy]]) -> ConversationPlan:
    plans = [plan_session(copies) for copies in sessions]
    marks, starts = Marks(), set()
    for plan in plans:
        starts.add(len(marks))
        _extend(marks, plan.marks)
    compactions = plan_compactions(marks, starts)
    folded = [text for plan in plans for text in plan.folded]
    if compactions.copy_count:
        folded.append(
            f"{_count(compactions.copy_count)} repeated around a summary: the same order as at the beginning or right"
            " before it"
        )
    if len(plans) > 1:
        folded.append(f"{len(plans)} sessions that continue each other after compactions are one conversation")
    return ConversationPlan(plans, compactions, tuple(folded))


def plan_session(copies: Sequence[Copy]) -> SessionPlan:
    """Fold the copies of one session, one after another."""
    plan = SessionPlan(copies[:MAX_COPIES])
    for number, copy in enumerate(plan.copies):
        marks, dropped, rewritten = _read_marks(copy)
        plan.dropped.append(dropped)
        plan.rewritten.append(rewritten)
        if repeats := dropped.count(1):
            plan.folded.append(
                f"{_count(repeats)} written again to {copy.name}: the same turn in the same order, at once or with the"
                " same ids"
            )
        shift = estimate_zone_shift(plan.marks, marks) if copy.has_local_times and len(plan.marks) else 0.0
        plan.shifts.append(shift)
        if shift:
            marks.shift_times(shift)
            plan.folded.append(
                f"the times in {copy.name} are {shift / 3600:+g} h off: corrected by those in the database"
            )
        _fold_in(plan, number, marks)
    return plan


def _read_marks(copy: Copy) -> tuple[Marks, bytearray, bytearray]:
    """Read one copy: what stays of it, what is dropped, and whose times were lost."""
    every = Marks()
    for record in copy.open_records():
        if isinstance(record, Record):
            every.add_record(record)
    rewritten = find_rewritten(every)
    for index in range(len(every)):
        if rewritten[index]:
            every.times[index] = math.nan
    dropped = find_repeats(every)
    kept = every if not any(dropped) else Marks()
    if kept is not every:
        for index, is_dropped in enumerate(dropped):
            if not is_dropped:
                _copy_mark(kept, every, index)
    return kept, dropped, rewritten


def _fold_in(plan: SessionPlan, number: int, marks: Marks) -> None:
    """Add one more copy to the plan."""
    before, members = plan.marks, plan.members
    joined, joined_members, shared = Marks(), bytearray(), 0
    for index, other in merge(before, marks, align(before, marks)):
        if other == ABSENT:
            _copy_mark(joined, before, index)
            joined_members.append(members[index])
            continue
        bit = 1 << number
        if index == ABSENT:
            _copy_mark(joined, marks, other)
            joined_members.append(bit)
            continue
        shared += 1
        time = before.times[index]
        joined.add(
            before.keys[index],
            marks.times[other] if math.isnan(time) else time,
            before.ids[index] or marks.ids[other],
            before.flags[index] | (marks.flags[other] & (SUMMARY | UNDONE)),
        )
        joined_members.append(members[index] | bit)
    if shared and number:
        names = ", ".join(copy.name for copy in plan.copies[:number])
        plan.folded.append(f"{_count(shared)} both in {names} and in {plan.copies[number].name}: aligned in order")
    plan.marks, plan.members = joined, joined_members


def read_planned(plan: ConversationPlan) -> Iterator[PlannedRecord | ImportProblem]:
    """Read the messages again and join them as planned."""
    place = 0
    for session in plan.sessions:
        readers = [_RecordReader(session, number) for number in range(len(session.copies))]
        for members in session.members:
            records = []
            for number, reader in enumerate(readers):
                if members & 1 << number:
                    record, problems = reader.read_next()
                    yield from problems
                    if record is not None:
                        records.append(record)
            action, kept_count = plan.compactions.actions[place], plan.compactions.kept_counts.get(place, 0)
            place += 1
            if records:
                yield PlannedRecord(merge_records(records), action, kept_count)
        for reader in readers:
            yield from reader.read_rest()


class _RecordReader:
    """Reads one copy again, without what is dropped."""

    def __init__(self, session: SessionPlan, number: int) -> None:
        self._records = session.copies[number].open_records()
        self._dropped = session.dropped[number]
        self._rewritten = session.rewritten[number]
        self._shift = session.shifts[number]
        self._index = 0

    def read_next(self) -> tuple[Record | None, list[ImportProblem]]:
        problems: list[ImportProblem] = []
        for record in self._records:
            if isinstance(record, ImportProblem):
                problems.append(record)
                continue
            index, self._index = self._index, self._index + 1
            if index < len(self._dropped) and self._dropped[index]:
                continue
            if self._shift and record.at is not None:
                record.at += self._shift
            record.has_lost_time = index < len(self._rewritten) and bool(self._rewritten[index])
            return record, problems
        return None, problems

    def read_rest(self) -> Iterator[ImportProblem]:
        """Read the problems at the end; messages that were added meanwhile come with the next import."""
        for record in self._records:
            if isinstance(record, ImportProblem):
                yield record


def _copy_mark(marks: Marks, source: Marks, index: int) -> None:
    marks.add(source.keys[index], source.times[index], source.ids[index], source.flags[index])


def _extend(marks: Marks, more: Marks) -> None:
    marks.keys.extend(more.keys)
    marks.times.extend(more.times)
    marks.ids.extend(more.ids)
    marks.flags.extend(more.flags)


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"
