"""A bounded memory: the newest entries by key.

Imported by child processes, too: only the standard library.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentEntries(OrderedDict[K, V]):
    """The newest entries by key: when there are too many, the oldest ones are forgotten."""

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def remember(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._max_entries:
            self.popitem(last=False)
