"""Marks: the little that folding needs to know of a message, so that a long conversation is never in memory.

A list of messages becomes four columns. Equal keys mean: the same role and the same words, or the same tool call. That
alone never makes two messages one; `alignment`, `repeats` and `compactions` look for evidence.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from palaver.transfer.readers.hermes.texts import clean_text

if TYPE_CHECKING:
    from palaver.transfer.readers.hermes.records import Record

FROM_PERSON: Final = 1
FROM_AGENT: Final = 2
NAMED: Final = 4  # its key contains the id of a tool call, which no other message has
SUMMARY: Final = 8  # it is a summary of what was said before
MERGED: Final = 16  # a summary in one message with words that were said before
UNDONE: Final = 32
UNNAMED_RESULT: Final = 64  # of a tool, without the id of its call

_REWRITE_STEP_SECONDS: Final = 1e-5  # two messages that are appended are stored further apart


@dataclass(slots=True)
class Marks:
    keys: array[int] = field(default_factory=lambda: array("Q"))
    times: array[float] = field(default_factory=lambda: array("d"))  # seconds; NaN: unknown
    ids: array[int] = field(default_factory=lambda: array("Q"))  # of the message on its platform; 0: unknown
    flags: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, key: int, time: float, message_id: int, flags: int) -> None:
        self.keys.append(key)
        self.times.append(time)
        self.ids.append(message_id)
        self.flags.append(flags)

    def add_record(self, record: Record) -> None:
        self.add(
            make_key(record),
            math.nan if record.at is None else record.at,
            hash_text(record.platform_message_id) if record.platform_message_id else 0,
            _make_flags(record),
        )

    def shift_times(self, seconds: float) -> None:
        for index, time in enumerate(self.times):
            self.times[index] = time + seconds


def find_rewritten(marks: Marks) -> bytearray:
    """Return a 1 for every message whose time says only when the whole transcript was rewritten, after an undo.

    Older versions of Hermes gave all messages the time of the rewriting, a microsecond apart.
    """
    rewritten = bytearray(len(marks))
    for index in range(1, len(marks)):
        if 0 < marks.times[index] - marks.times[index - 1] <= _REWRITE_STEP_SECONDS:
            rewritten[index - 1] = rewritten[index] = 1
    return rewritten


def make_key(record: Record) -> int:
    """Return the same number for copies of one message, however its other fields were stored."""
    if record.summary is not None:
        return hash_text("summary\0" + record.summary)
    if record.role == "tool" and record.tool_call_id:
        return hash_text("tool\0" + record.tool_call_id)
    if record.tool_calls:
        return hash_text("calls\0" + "\0".join(call["id"] for call in record.tool_calls))
    return hash_text(f"{record.role}\0{clean_text(record.role, record.text)}")


def hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()) or 1


def _make_flags(record: Record) -> int:
    if record.summary is not None:
        return SUMMARY | (MERGED if record.is_merged_summary else 0)
    flags = {"user": FROM_PERSON, "assistant": FROM_AGENT}.get(record.role, 0)
    if record.role == "tool":
        flags |= NAMED if record.tool_call_id else UNNAMED_RESULT
    if record.tool_calls:
        flags |= NAMED
    return flags | (UNDONE if record.is_undone else 0)
