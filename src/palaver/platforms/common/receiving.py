"""Shared by adapters that receive: bounded memories, JSON, lists in words.

Imported by child processes, too: only the standard library.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.gateway.intake import Intake
    from palaver.sessions.inbound import AnyUpdate, Cursor

K = TypeVar("K")
V = TypeVar("V")

MAX_LISTED_ITEMS: Final = 30


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


async def accept_updates(intake: Intake, updates: Sequence[AnyUpdate], cursor: Cursor | None) -> None:
    """Accept updates that came together, and store the cursor after the last one."""
    for number, update in enumerate(updates, 1):
        await intake.accept(update, cursor=cursor if number == len(updates) else None)
    if not updates and cursor is not None:
        await intake.save_cursor(cursor)


def parse_json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return a JSON object; None for anything else, such as the page of a proxy."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def list_items(title: str, items: Sequence[str], max_items: int = MAX_LISTED_ITEMS) -> str:
    """Return a line such as `Poll: red; green; and 3 more`."""
    shown = items[:max_items]
    more = f"; and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return f"{title}: {'; '.join(shown)}{more}"
