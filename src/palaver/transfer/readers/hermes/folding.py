"""Folding all stored copies of a conversation into one list of messages.

    each copy      repeated writes are dropped                                 `find_repeats`
    each session   its copies are aligned: database, JSONL, file of the page   `_Aligner`
    conversation   its sessions are joined at their compactions                `plan_compactions`

A plan holds a few bytes for each message; the messages themselves are read again when they are needed.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.transfer.imported import ImportProblem
from palaver.transfer.reader_kit.values import format_count
from palaver.transfer.readers.hermes.records import (
    FROM_AGENT,
    MERGED,
    NAMED,
    SUMMARY,
    UNDONE,
    UNNAMED_RESULT,
    Marks,
    Record,
    find_rewritten,
    join_keys,
    merge_records,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence


_CLOSE_SECONDS: Final = 5.0  # copies of one message are usually stored within this time
_TURN_SECONDS: Final = 5_400.0  # a message is stored when it arrives, and in the other copy when its turn ends
_MOMENT_SECONDS: Final = 1.0  # no person writes and no model answers as fast as this
_ZONE_STEP_SECONDS: Final = 900.0
_MAX_ZONE_STEPS: Final = 56  # 14 hours
_MAX_ZONE_REST_SECONDS: Final = 30.0  # zones differ by whole quarters of an hour
_MIN_ZONE_EVIDENCE: Final = 2
_MAX_DEPTH: Final = 12

_SAME_TIME_SECONDS: Final = 0.001
_ANSWER_SECONDS: Final = 1.0  # a message and its answer cannot follow the same ones as fast as this
_MESSAGE_SECONDS: Final = 0.2  # the same for one message alone
MAX_FIRST_COPIES: Final = 16
MAX_LAST_COPIES: Final = 4_096
MAX_TURN_MESSAGES: Final = 512  # a turn that is stored again is looked for among this many messages
MAX_COPIES: Final = 8  # of one session
ABSENT: Final = -1
SHOW, DROP, SUMMARIZE = range(3)  # what a plan does with a message
_count = partial(format_count, noun="message")


def estimate_zone_shift(first: Marks, second: Marks) -> float:
    """Return by how much the clock of the second copy is off because its times were read in another time zone."""
    places = _find_unique(second.keys, 0, len(second))
    steps: Counter[int] = Counter()
    for key, index in _find_unique(first.keys, 0, len(first)).items():
        difference = first.times[index] - second.times[places[key]] if key in places else math.nan
        if math.isnan(difference):
            continue
        step = round(difference / _ZONE_STEP_SECONDS)
        if abs(step) <= _MAX_ZONE_STEPS and abs(difference - step * _ZONE_STEP_SECONDS) <= _MAX_ZONE_REST_SECONDS:
            steps[step] += 1
    if not steps:
        return 0.0
    step, count = steps.most_common(1)[0]
    is_certain = count >= _MIN_ZONE_EVIDENCE and count * 2 > steps.total()
    return step * _ZONE_STEP_SECONDS if is_certain else 0.0


class _Range(NamedTuple):
    low: int
    high: int
    other_low: int
    other_high: int
    depth: int = 0

    @property
    def is_empty(self) -> bool:
        return self.low >= self.high or self.other_low >= self.other_high


class _Aligner:
    def __init__(self, first: Marks, second: Marks) -> None:
        self._first = first
        self._second = second
        self._partners = array("q", [ABSENT]) * len(first)
        self._times_by_key: dict[int, dict[int, list[float]]] = {}  # by the id of the copy

    def align(self) -> array[int]:
        """Return, for each message of the first copy, its place in the second one, in rising order, or ABSENT."""
        whole = _Range(0, len(self._first), 0, len(self._second))
        ranges = [self._trim(whole, _CLOSE_SECONDS)]
        while ranges:
            current = ranges.pop()
            if current.is_empty:
                continue
            anchors = self._find_anchors(current) if current.depth < _MAX_DEPTH else []
            if anchors:
                ranges += self._match_pairs(current, anchors)
            else:
                self._match_pairs(current, self._find_close_pairs(current))
        return self._partners

    def _match_pairs(self, current: _Range, pairs: list[tuple[int, int]]) -> list[_Range]:
        """Match pairs and their neighbors; return what remains between them.

        A message may be stored when it arrives, and in the other copy when its turn ends. Then its neighbor, the
        answer, says that both are the same, unless their times say that they are not.
        """
        remaining = []
        for index, other in pairs:
            self._partners[index] = other
        edges = [(current.low - 1, current.other_low - 1), *pairs, (current.high, current.other_high)]
        for number, ((left, other_left), (right, other_right)) in enumerate(pairwise(edges)):
            between = _Range(left + 1, right, other_left + 1, other_right, current.depth + 1)
            has_left, has_right = number > 0, number < len(pairs)
            remaining.append(self._trim(between, _TURN_SECONDS, from_left=has_left, from_right=has_right))
        return remaining

    def _trim(self, between: _Range, seconds: float, *, from_left: bool = True, from_right: bool = True) -> _Range:
        """Match what is the same at the beginning and at the end of a range; return what remains between."""
        low, high, other_low, other_high, depth = between
        while from_left and low < high and other_low < other_high and self._is_same(low, other_low, seconds):
            self._partners[low] = other_low
            low, other_low = low + 1, other_low + 1
        while from_right and low < high and other_low < other_high and self._is_same(high - 1, other_high - 1, seconds):
            high, other_high = high - 1, other_high - 1
            self._partners[high] = other_high
        return _Range(low, high, other_low, other_high, depth)

    def _is_same(self, index: int, other: int, seconds: float) -> bool:
        first, second = self._first, self._second
        if first.keys[index] != second.keys[other]:
            return False
        if first.ids[index] and second.ids[other]:
            return first.ids[index] == second.ids[other]
        if first.flags[index] & (NAMED | SUMMARY):
            return True
        difference = abs(first.times[index] - second.times[other])
        if math.isnan(difference) or difference <= _CLOSE_SECONDS:
            return True
        return difference <= seconds and self._can_be_one_message(index, other)

    def _can_be_one_message(self, index: int, other: int) -> bool:
        """Return whether the times of two rows that are far apart can be those of one message.

        A turn is stored at once when it ends, so the later row then has the time of a neighbor. If it has not, it is
        another message if a copy has the same words at that moment, or if the order of the times would be broken.
        """
        early, early_index, late, late_index = self._first, index, self._second, other
        if self._first.times[index] > self._second.times[other]:
            early, early_index, late, late_index = self._second, other, self._first, index
        key, early_time, late_time = early.keys[early_index], early.times[early_index], late.times[late_index]
        before, after = _get_time(late, late_index - 1), _get_time(late, late_index + 1)
        if abs(late_time - before) <= _MOMENT_SECONDS or abs(after - late_time) <= _MOMENT_SECONDS:
            return True
        if self._has_row_at(early, key, late_time) or self._has_row_at(late, key, early_time):
            return False
        next_time = _get_time(early, early_index + 1)
        return not (before > early_time + _MOMENT_SECONDS or next_time < late_time - _MOMENT_SECONDS)

    def _has_row_at(self, marks: Marks, key: int, time: float) -> bool:
        """Return whether a copy has a row with these words that was stored in the same moment."""
        times_by_key = self._times_by_key.get(id(marks))
        if times_by_key is None:
            times_by_key = self._times_by_key[id(marks)] = _collect_times(marks)
        times = times_by_key.get(key, [])
        place = bisect_left(times, time - _MOMENT_SECONDS)
        return place < len(times) and times[place] <= time + _MOMENT_SECONDS

    def _find_anchors(self, current: _Range) -> list[tuple[int, int]]:
        """Return pairs of messages that exist once in each copy, as many as stand in the same order in both."""
        places = _find_unique(self._second.keys, current.other_low, current.other_high)
        unique = _find_unique(self._first.keys, current.low, current.high)
        pairs = sorted((index, places[key]) for key, index in unique.items() if key in places)
        return _find_rising([pair for pair in pairs if self._is_same(*pair, _CLOSE_SECONDS)])

    def _find_close_pairs(self, current: _Range) -> list[tuple[int, int]]:
        """Match messages that are there several times, such as "ok", with the one that is closest in time."""
        places: dict[int, deque[int]] = defaultdict(deque)
        for other in range(current.other_low, current.other_high):
            places[self._second.keys[other]].append(other)
        last = current.other_low - 1
        pairs = []
        for index in range(current.low, current.high):
            candidates = places.get(self._first.keys[index], deque())
            time, times = self._first.times[index], self._second.times
            while candidates and candidates[0] <= last:
                candidates.popleft()
            while len(candidates) > 1 and abs(time - times[candidates[1]]) < abs(time - times[candidates[0]]):
                candidates.popleft()
            if candidates and self._is_same(index, candidates[0], _CLOSE_SECONDS):
                last = candidates.popleft()
                pairs.append((index, last))
        return pairs


def merge(first: Marks, second: Marks, partners: array[int]) -> Iterator[tuple[int, int]]:
    """Yield the places of each message in both copies, in the order of the conversation; ABSENT if it is missing."""
    other = 0
    index = 0
    while index < len(first) or other < len(second):
        stop = index
        while stop < len(first) and partners[stop] == ABSENT:
            stop += 1
        other_stop = partners[stop] if stop < len(first) else len(second)
        yield from _merge_by_time(first, second, range(index, stop), range(other, other_stop))
        if stop < len(first):
            yield stop, other_stop
        index, other = stop + 1, other_stop + 1


def _merge_by_time(first: Marks, second: Marks, firsts: range, seconds: range) -> Iterator[tuple[int, int]]:
    """Merge messages that only one of the copies has; without times, those of the first copy come first."""
    others = deque(seconds)
    for index in firsts:
        while others and second.times[others[0]] < first.times[index]:
            yield ABSENT, others.popleft()
        yield index, ABSENT
    for other in others:
        yield ABSENT, other


def _get_time(marks: Marks, index: int) -> float:
    """Return the time of a row; NaN, which no comparison is true for, if there is no such row."""
    return marks.times[index] if 0 <= index < len(marks) else math.nan


def _collect_times(marks: Marks) -> dict[int, list[float]]:
    """Return the known times of all rows with the same words, in order."""
    times_by_key: dict[int, list[float]] = defaultdict(list)
    for key, time in zip(marks.keys, marks.times, strict=True):
        if not math.isnan(time):
            times_by_key[key].append(time)
    for times in times_by_key.values():
        times.sort()
    return times_by_key


def _find_unique(keys: array[int], low: int, high: int) -> dict[int, int]:
    places: dict[int, int] = {}
    for index in range(low, high):
        places[keys[index]] = ABSENT if keys[index] in places else index
    return {key: place for key, place in places.items() if place != ABSENT}


def _find_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest selection of pairs, sorted by their first number, whose second numbers rise too."""
    ends: list[int] = []  # the smallest last number of a selection, by its length
    ends_at: list[int] = []
    before = [ABSENT] * len(pairs)
    for position, (_, other) in enumerate(pairs):
        length = bisect_left(ends, other)
        before[position] = ends_at[length - 1] if length else ABSENT
        if length == len(ends):
            ends.append(other)
            ends_at.append(position)
        else:
            ends[length], ends_at[length] = other, position
    chosen = []
    position = ends_at[-1] if ends_at else ABSENT
    while position != ABSENT:
        chosen.append(pairs[position])
        position = before[position]
    return chosen[::-1]


@dataclass(slots=True)
class CompactionPlan:
    actions: bytearray  # for each message
    kept_counts: dict[int, int] = field(default_factory=dict)  # by the place of the summary


def plan_compactions(marks: Marks, session_starts: Container[int]) -> CompactionPlan:
    """Decide which messages are shown, which are copies and where summaries begin.

    After a compaction Hermes stores some of the first messages, a summary and some of the last messages again: in a
    session that continues the old one, or below the old messages of the same session. Evidence for these copies is
    their place: they stand directly before and after the summary and repeat, in the same order, how the conversation
    began and ended.
    """
    plan = CompactionPlan(bytearray(len(marks)))
    places: array[int] = array("Q")  # of what is shown so far
    copies_end = 0
    for index in range(len(marks)):
        if marks.flags[index] & SUMMARY:
            plan.actions[index] = SUMMARIZE
            count = _count_first_copies(marks, places, index, session_starts)
            for place in places[len(places) - count :] if count else ():
                plan.actions[place] = DROP
            del places[len(places) - count :]
            copied, last = _count_last_copies(marks, places, index)
            copies_end = index + 1 + copied
            is_merged = bool(marks.flags[index] & MERGED) and last < len(places)
            plan.kept_counts[index] = min(last + is_merged, len(places)) if places else 0
        elif index < copies_end:
            plan.actions[index] = DROP
        elif not marks.flags[index] & UNDONE:
            places.append(index)
    return plan


def _count_first_copies(marks: Marks, places: array[int], summary: int, session_starts: Container[int]) -> int:
    """Return how many messages right before a summary repeat the beginning of the conversation."""
    first, first_joined = _get_first_keys(marks, places)
    for count in range(min(MAX_FIRST_COPIES, len(places) // 2), 0, -1):
        if places[-count] != summary - count:
            continue
        keys = [marks.keys[place] for place in places[len(places) - count :]]
        if keys not in (first[:count], first_joined[:count]):
            continue
        is_start = summary - count in session_starts
        is_same_time = abs(marks.times[places[-count]] - marks.times[places[0]]) <= _SAME_TIME_SECONDS
        if is_start or is_same_time or count > 1:
            return count
    return 0


def _get_first_keys(marks: Marks, places: array[int]) -> tuple[list[int], list[int]]:
    """Return the keys of how the conversation began: as it was said, and with a person's messages joined."""
    return [marks.keys[place] for place in places[:MAX_FIRST_COPIES]], join_messages(marks, places[:MAX_TURN_MESSAGES])[
        0
    ]


def _count_last_copies(marks: Marks, places: array[int], summary: int) -> tuple[int, int]:
    """Return how many messages right after a summary repeat the end of what was said before it, and how many that were.

    Both are the same number unless Hermes has joined some of them.
    """
    stop = summary + 1
    limit = min(len(marks), summary + 1 + MAX_LAST_COPIES)
    while stop < limit and not marks.flags[stop] & SUMMARY:
        stop += 1
    shown = places[-MAX_LAST_COPIES:]
    copies = marks.keys[summary + 1 : stop]
    count = measure_overlap([marks.keys[place] for place in shown], copies)
    keys, sizes = join_messages(marks, shown)
    joined_count = measure_overlap(keys, copies)
    return (joined_count, sum(sizes[len(sizes) - joined_count :])) if joined_count > count else (count, count)


def measure_overlap(end: Sequence[int], beginning: Sequence[int]) -> int:
    """Return the length of the longest text that ends the first sequence and begins the second one."""
    text = [*beginning, None, *end[max(0, len(end) - len(beginning)) :]]
    lengths = [0] * len(text)  # of the longest beginning of `text` that ends here
    for index in range(1, len(text)):
        length = lengths[index - 1]
        while length and text[index] != text[length]:
            length = lengths[length - 1]
        lengths[index] = length + 1 if text[index] == text[length] else 0
    return lengths[-1] if end and beginning else 0


def find_repeats(marks: Marks) -> bytearray:
    """Return a 1 for every message that is there only because it was stored again.

    Hermes' agent and its gateway both stored a turn: the same messages stand in the same file again, in the same
    order, right after each other. Evidence that they are no new messages: the id of the message on its platform, the
    ids of tool calls, or the time, because no person writes and no model answers within a moment.
    """
    dropped = bytearray(len(marks))
    kept: list[int] = []  # the last messages that stay
    places: dict[int, int] = {}  # where a key was last, in `kept`
    index = 0
    while index < len(marks):
        key = marks.keys[index]
        block = kept[places[key] :] if key in places and _can_be_repeat(marks, index) else []
        if block and _is_repeat(marks, block, index):
            dropped[index : index + len(block)] = b"\x01" * len(block)
            index += len(block)
            continue
        if len(kept) >= 2 * MAX_TURN_MESSAGES:
            del kept[:MAX_TURN_MESSAGES]
            places = {marks.keys[each]: place for place, each in enumerate(kept)}
        places[key] = len(kept)
        kept.append(index)
        index += 1
    return dropped


@dataclass(slots=True)
class JoinedMessage:
    """The message that Hermes makes of a person's messages that follow each other, because a turn failed between them.

    It has the time of the first one, and an empty line between them.
    """

    key: int = 0
    time: float = math.nan
    count: int = 0  # of the messages

    def add(self, key: int, paragraphs: int, time: float) -> bool:
        """Add the next message; return whether it is joined with the one before."""
        is_joined = bool(self.count and paragraphs)
        self.key = join_keys(self.key, key, paragraphs) if is_joined else key
        self.time = self.time if is_joined else time
        self.count = self.count + 1 if is_joined else int(paragraphs > 0)
        return is_joined


def join_messages(marks: Marks, places: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the keys of messages with a person's messages joined, and how many messages each stands for."""
    keys: list[int] = []
    sizes: list[int] = []
    joined = JoinedMessage()
    for place in places:
        if joined.add(marks.keys[place], marks.paragraphs[place], 0.0):
            keys[-1] = joined.key
            sizes[-1] += 1
        else:
            keys.append(joined.key)
            sizes.append(1)
    return keys, sizes


def find_flushed_again(marks: Marks) -> bytearray:
    """Return a 1 for every message of a run that was stored again with the times that it had.

    Before a compaction that starts a new session, Hermes may store all messages of the old one again. Evidence: the
    run goes back in time, and its messages have the words, the order and the exact times of earlier ones, at least one
    of them to the fraction of a second: some platforms give whole seconds, in which a person can say "ok" twice. What
    stands right before or after a summary is left to `plan_compactions`.
    """
    if not any(after < before for before, after in pairwise(marks.times)):
        return bytearray(len(marks))
    return _FlushFinder(marks).find()


class _FlushFinder:
    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._dropped = bytearray(len(marks))
        self._places: dict[tuple[int, float], list[int]] = defaultdict(list)  # of the messages that stay
        self._joined = JoinedMessage()
        self._run: list[int] = []

    def find(self) -> bytearray:
        marks, last = self._marks, ABSENT  # the place of which the last message of the run is a copy
        for index in range(len(marks)):
            place = self._find_place(index, last) if self._run else ABSENT
            if place == ABSENT:
                self._close_run()
                is_earlier = index > 0 and marks.times[index] < marks.times[index - 1]
                place = self._find_place(index, ABSENT) if is_earlier else ABSENT
            if place == ABSENT:
                self._keep(index)
            else:
                last = place
                self._run.append(index)
        self._close_run()
        return self._dropped

    def _find_place(self, index: int, last: int) -> int:
        """Return the first message after `last` of which this one is a copy."""
        places = self._places.get((self._marks.keys[index], self._marks.times[index]), [])
        position = bisect_right(places, last)
        return places[position] if position < len(places) else ABSENT

    def _keep(self, index: int) -> None:
        marks, joined = self._marks, self._joined
        self._places[marks.keys[index], marks.times[index]].append(index)
        is_undone = marks.flags[index] & UNDONE
        if not is_undone and joined.add(marks.keys[index], marks.paragraphs[index], marks.times[index]):
            self._places[joined.key, joined.time].append(index)

    def _close_run(self) -> None:
        marks, run = self._marks, self._run
        around = (run[0] - 1, run[-1] + 1) if run else ()
        is_copy = not any(marks.flags[each] & SUMMARY for each in around if each < len(marks))
        is_copy = is_copy and any(not marks.times[each].is_integer() for each in run)
        for each in run:
            if is_copy:
                self._dropped[each] = 1
            else:
                self._keep(each)
        run.clear()


def _can_be_repeat(marks: Marks, index: int) -> bool:
    if marks.flags[index] & (SUMMARY | UNNAMED_RESULT):
        return False
    gap = marks.times[index] - marks.times[index - 1]
    is_next_named = index + 1 < len(marks) and marks.flags[index + 1] & NAMED
    return bool(0 <= gap <= _ANSWER_SECONDS or marks.flags[index] & NAMED or marks.ids[index] or is_next_named)


def _is_repeat(marks: Marks, block: list[int], index: int) -> bool:
    """Return whether the messages from here on repeat a block of those right before."""
    if index + len(block) > len(marks):
        return False
    has_named, has_answer = False, False
    for first, second in zip(block, range(index, index + len(block)), strict=True):
        if marks.keys[first] != marks.keys[second] or (marks.flags[first] ^ marks.flags[second]) & UNDONE:
            return False
        if marks.ids[first] and marks.ids[second]:
            if marks.ids[first] != marks.ids[second]:
                return False
            has_named = True
        has_named = has_named or bool(marks.flags[second] & NAMED)
        has_answer = has_answer or bool(marks.flags[second] & FROM_AGENT)
    if has_named:
        return True
    seconds = marks.times[index + len(block) - 1] - marks.times[index - 1]  # until all of it was stored again
    return 0 <= seconds <= (_ANSWER_SECONDS if has_answer else _MESSAGE_SECONDS)


@dataclass(slots=True)
class Copy:
    """One stored copy of a session, and what its plan says about its messages."""

    name: str
    open_records: Callable[[], Iterator[Record | ImportProblem]]
    has_local_times: bool = False  # without a time zone
    dropped: bytearray = field(default_factory=bytearray)  # a 1 for each message that was stored again
    rewritten: bytearray = field(default_factory=bytearray)  # a 1 for each message whose time was lost
    shift: float = 0.0  # seconds by which its clock is off

    def read(self) -> Iterator[Record | ImportProblem]:
        """Read the copy again, without what is dropped; it may have more messages than before."""
        index = -1
        for record in self.open_records():
            if isinstance(record, ImportProblem):
                yield record
                continue
            index += 1
            if index < len(self.dropped) and self.dropped[index]:
                continue
            if self.shift and record.at is not None:
                record.at += self.shift
            record.has_lost_time = index < len(self.rewritten) and bool(self.rewritten[index])
            yield record


@dataclass(slots=True)
class SessionPlan:
    """The plan by which the copies of one session become one list."""

    copies: list[Copy] = field(default_factory=list)
    members: bytearray = field(default_factory=bytearray)  # for each message: the copies that have it, as bits
    marks: Marks = field(default_factory=Marks)
    folded: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ConversationPlan:
    sessions: list[SessionPlan]
    compactions: CompactionPlan
    folded: tuple[str, ...]


class PlannedRecord(NamedTuple):
    record: Record
    action: int
    kept_count: int


def plan_conversation(sessions: Sequence[Sequence[Copy]]) -> ConversationPlan:
    plans = [plan_session(copies) for copies in sessions]
    marks, starts = Marks(), set()
    for plan in plans:
        starts.add(len(marks))
        marks.extend(plan.marks)
    compactions = plan_compactions(marks, starts)
    folded = [text for plan in plans for text in plan.folded]
    if copy_count := compactions.actions.count(DROP):
        folded.append(
            f"{_count(copy_count)} repeated around a summary: the same order as at the beginning or right before it"
        )
    if len(plans) > 1:
        folded.append(f"{len(plans)} sessions that continue each other after compactions are one conversation")
    return ConversationPlan(plans, compactions, tuple(folded))


def plan_session(copies: Sequence[Copy]) -> SessionPlan:
    plan = SessionPlan()
    for copy in copies[:MAX_COPIES]:
        marks = _read_marks(copy)
        if repeats := copy.dropped.count(1):
            plan.folded.append(
                f"{_count(repeats)} written again to {copy.name}: the same order, at once or with the same times or ids"
            )
        if copy.has_local_times and len(plan.marks) and (shift := estimate_zone_shift(plan.marks, marks)):
            copy.shift = shift
            marks.times = array("d", (time + shift for time in marks.times))
            plan.folded.append(
                f"the times in {copy.name} are {shift / 3600:+g} h off: corrected by those in the database"
            )
        _fold_in(plan, copy, marks)
    return plan


def _read_marks(copy: Copy) -> Marks:
    """Read one copy, and plan how it is read again; return what stays of it."""
    every = Marks()
    for record in copy.open_records():
        if isinstance(record, Record):
            every.add_record(record)
    copy.rewritten = find_rewritten(every)
    copy.dropped = find_flushed_again(every)
    for index, is_rewritten in enumerate(copy.rewritten):
        if is_rewritten:
            every.times[index] = math.nan
    once, places = _drop(every, copy.dropped)
    repeats = find_repeats(once)
    for place, is_repeat in zip(places, repeats, strict=True):
        copy.dropped[place] |= is_repeat
    return _drop(once, repeats)[0]


def _drop(marks: Marks, dropped: bytearray) -> tuple[Marks, Sequence[int]]:
    """Return what stays, and where each of it was."""
    if not any(dropped):
        return marks, range(len(marks))
    kept, places = Marks(), array("q")
    for index, is_dropped in enumerate(dropped):
        if not is_dropped:
            kept.copy(marks, index)
            places.append(index)
    return kept, places


def _fold_in(plan: SessionPlan, copy: Copy, marks: Marks) -> None:
    before, members, bit = plan.marks, plan.members, 1 << len(plan.copies)
    joined, joined_members, shared = Marks(), bytearray(), 0
    for index, other in merge(before, marks, _Aligner(before, marks).align()):
        if other == ABSENT:
            joined.copy(before, index)
            joined_members.append(members[index])
        elif index == ABSENT:
            joined.copy(marks, other)
            joined_members.append(bit)
        else:
            shared += 1
            time = before.times[index]
            joined.add(
                before.keys[index],
                marks.times[other] if math.isnan(time) else time,
                before.ids[index] or marks.ids[other],
                before.flags[index] | (marks.flags[other] & (SUMMARY | UNDONE)),
                before.paragraphs[index],
            )
            joined_members.append(members[index] | bit)
    if shared:
        names = ", ".join(each.name for each in plan.copies)
        plan.folded.append(f"{_count(shared)} both in {names} and in {copy.name}: aligned in order")
    plan.copies.append(copy)
    plan.marks, plan.members = joined, joined_members


def read_planned(plan: ConversationPlan) -> Iterator[PlannedRecord | ImportProblem]:
    place = 0
    for session in plan.sessions:
        readers = [copy.read() for copy in session.copies]
        for members in session.members:
            records = []
            for number, reader in enumerate(readers):
                for found in reader if members & 1 << number else ():
                    if isinstance(found, Record):
                        records.append(found)
                        break
                    yield found
            action, kept_count = plan.compactions.actions[place], plan.compactions.kept_counts.get(place, 0)
            place += 1
            if records:
                yield PlannedRecord(merge_records(records), action, kept_count)
        for reader in readers:  # messages that were added meanwhile come with the next import
            yield from (found for found in reader if isinstance(found, ImportProblem))
