"""The JSON that `--json` prints about anything but sessions and their logs, whose JSON is in `sessions/wire.py`.

The same rules hold: every key is always there, null if it has no value, and times are in ISO 8601 and UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from palaver.core.clock import format_time

if TYPE_CHECKING:
    from palaver.memory.model import MemoryEntry


class MemoryJson(TypedDict):
    id: str
    text: str
    author_name: str | None
    created_at: str
    origin: str
    session_id: str | None
    shared: bool
    other_names: list[str]
    other_count: int


def memory_to_json(entry: MemoryEntry) -> MemoryJson:
    return {
        "id": entry.memory.id,
        "text": entry.memory.text,
        "author_name": entry.author_name,
        "created_at": format_time(entry.memory.created_at),
        "origin": entry.memory.origin.value,
        "session_id": entry.session_id,
        "shared": entry.shared,
        "other_names": list(entry.other_names),
        "other_count": entry.other_count,
    }
