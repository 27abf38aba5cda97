"""Aligning two copies of one conversation, so that what stands in both comes in once.

Two messages are the same if they have the same words, stand at the same place in the order of both copies, and nothing
speaks against it: not the time, not the id on the platform. Takes time that grows with the number of messages.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.transfer.readers.hermes.marks import NAMED, SUMMARY, Marks

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSE_SECONDS: Final = 5.0  # copies of one message are usually stored within this time
_TURN_SECONDS: Final = 5_400.0  # a message is stored when it arrives, and in the other copy when its turn ends
_MOMENT_SECONDS: Final = 1.0  # no person writes and no model answers as fast as this
_ZONE_STEP_SECONDS: Final = 900.0
_MAX_ZONE_STEPS: Final = 56  # 14 hours
_MAX_ZONE_REST_SECONDS: Final = 30.0  # zones differ by whole quarters of an hour
_MIN_ZONE_EVIDENCE: Final = 2
_MAX_DEPTH: Final = 12

ABSENT: Final = -1


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


def align(first: Marks, second: Marks) -> array[int]:
    """Return, for each message of the first copy, its place in the second one, in rising order, or ABSENT."""
    return _Aligner(first, second).align()


class _Range(NamedTuple):
    """A part of both copies."""

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
            candidates = places.get(self._first.keys[index])
            if not candidates:
                continue
            while candidates and candidates[0] <= last:
                candidates.popleft()
            while len(candidates) > 1 and self._is_closer(index, candidates[1], candidates[0]):
                candidates.popleft()
            if candidates and self._is_same(index, candidates[0], _CLOSE_SECONDS):
                last = candidates.popleft()
                pairs.append((index, last))
        return pairs

    def _is_closer(self, index: int, other: int, than: int) -> bool:
        return self._measure_gap(index, other) < self._measure_gap(index, than)

    def _measure_gap(self, index: int, other: int) -> float:
        return abs(self._first.times[index] - self._second.times[other])


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
