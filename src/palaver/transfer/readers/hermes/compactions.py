"""Joining what Hermes stored before and after a compaction.

After a compaction it stores some of the first messages, a summary and some of the last messages again: in a session
that continues the old one, or below the old messages of the same session. Evidence for these copies is their place:
they stand directly before and after the summary and repeat, in the same order, how the conversation began and ended.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.transfer.readers.hermes.marks import MERGED, SUMMARY, UNDONE

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from palaver.transfer.readers.hermes.marks import Marks

MAX_FIRST_COPIES: Final = 16
MAX_LAST_COPIES: Final = 4_096
_SAME_TIME_SECONDS: Final = 0.001

SHOW: Final = 0
DROP: Final = 1
SUMMARIZE: Final = 2


@dataclass(slots=True)
class CompactionPlan:
    actions: bytearray  # for each message
    kept_counts: dict[int, int] = field(default_factory=dict)  # by the place of the summary

    @property
    def copy_count(self) -> int:
        return self.actions.count(DROP)


def plan_compactions(marks: Marks, session_starts: Container[int]) -> CompactionPlan:
    """Decide which messages are shown, which are copies and where summaries begin."""
    plan = CompactionPlan(bytearray(len(marks)))
    shown: array[int] = array("Q")  # keys of what is shown so far
    places: array[int] = array("Q")
    copies_end = 0
    for index in range(len(marks)):
        if marks.flags[index] & SUMMARY:
            plan.actions[index] = SUMMARIZE
            count = _count_first_copies(marks, shown, places, index, session_starts)
            for place in places[len(places) - count :] if count else ():
                plan.actions[place] = DROP
            del shown[len(shown) - count :], places[len(places) - count :]
            last = _count_last_copies(marks, shown, index)
            copies_end = index + 1 + last
            is_merged = bool(marks.flags[index] & MERGED) and last < len(shown)
            plan.kept_counts[index] = min(last + is_merged, len(shown)) if shown else 0
        elif index < copies_end:
            plan.actions[index] = DROP
        elif not marks.flags[index] & UNDONE:
            shown.append(marks.keys[index])
            places.append(index)
    return plan


def _count_first_copies(
    marks: Marks, shown: array[int], places: array[int], summary: int, session_starts: Container[int]
) -> int:
    """Return how many messages right before a summary repeat the beginning of the conversation."""
    for count in range(min(MAX_FIRST_COPIES, len(shown) // 2), 0, -1):
        if shown[len(shown) - count :] != shown[:count] or places[-count] != summary - count:
            continue
        is_start = summary - count in session_starts
        is_same_time = abs(marks.times[places[-1]] - marks.times[places[count - 1]]) <= _SAME_TIME_SECONDS
        if is_start or is_same_time or count > 1:
            return count
    return 0


def _count_last_copies(marks: Marks, shown: array[int], summary: int) -> int:
    """Return how many messages right after a summary repeat the end of what was said before it."""
    stop = summary + 1
    limit = min(len(marks), summary + 1 + MAX_LAST_COPIES)
    while stop < limit and not marks.flags[stop] & SUMMARY:
        stop += 1
    return measure_overlap(shown[-MAX_LAST_COPIES:], marks.keys[summary + 1 : stop])


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
