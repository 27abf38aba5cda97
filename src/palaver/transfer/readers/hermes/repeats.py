"""Finding messages that Hermes has written twice into the same file.

Its agent and its gateway both stored a turn: the same messages stand there again, in the same order, right after each
other. Evidence that they are no new messages: the id of the message on its platform, the ids of tool calls, or the
time, because no person writes and no model answers within a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.transfer.readers.hermes.marks import FROM_AGENT, NAMED, SUMMARY, UNDONE, UNNAMED_RESULT

if TYPE_CHECKING:
    from palaver.transfer.readers.hermes.marks import Marks

MAX_TURN_MESSAGES: Final = 512  # a turn that is stored again is looked for among this many messages
_ANSWER_SECONDS: Final = 1.0  # a message and its answer cannot follow the same ones as fast as this
_MESSAGE_SECONDS: Final = 0.2  # the same for one message alone


def find_repeats(marks: Marks) -> bytearray:
    """Return a 1 for every message that is there only because it was stored again."""
    return _RepeatFinder(marks).find()


class _RepeatFinder:
    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._kept: list[int] = []  # the last messages that stay
        self._places: dict[int, int] = {}  # where a key was last, in `_kept`

    def find(self) -> bytearray:
        dropped = bytearray(len(self._marks))
        index = 0
        while index < len(self._marks):
            length = self._measure_repeat(index)
            dropped[index : index + length] = b"\x01" * length
            if not length:
                self._keep(index)
            index += length or 1
        return dropped

    def _keep(self, index: int) -> None:
        if len(self._kept) >= 2 * MAX_TURN_MESSAGES:
            del self._kept[:MAX_TURN_MESSAGES]
            self._places = {self._marks.keys[kept]: place for place, kept in enumerate(self._kept)}
        self._places[self._marks.keys[index]] = len(self._kept)
        self._kept.append(index)

    def _measure_repeat(self, index: int) -> int:
        """Return how many messages from here on repeat those right before; 0 if this is a new message."""
        marks = self._marks
        place = self._places.get(marks.keys[index])
        if place is None or marks.flags[index] & (SUMMARY | UNNAMED_RESULT):
            return 0
        gap = marks.times[index] - marks.times[index - 1]
        is_next_named = index + 1 < len(marks) and marks.flags[index + 1] & NAMED
        if not (0 <= gap <= _ANSWER_SECONDS or marks.flags[index] & NAMED or marks.ids[index] or is_next_named):
            return 0
        block = self._kept[place:]
        return len(block) if _is_repeat(marks, block, index) else 0


def _is_repeat(marks: Marks, block: list[int], index: int) -> bool:
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
