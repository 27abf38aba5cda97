"""Shared by adapters that receive: JSON, lists and places in words.

Imported by child processes, too: nothing heavy.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.gateway.intake import Intake
    from palaver.sessions.inbound import AnyUpdate, Cursor

MAX_LISTED_ITEMS: Final = 30
# Raised while something is read that is not as its platform documents it.
UNREADABLE_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, InvalidInput)


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


def describe_place(latitude: object, longitude: object, *names: object) -> str:
    """Return a line such as `Place: Harbor, Main Street 1 (53.5, 9.9)`."""
    position, named = f"{latitude}, {longitude}", ", ".join(str(name) for name in names if name)
    return f"Place: {named} ({position})" if named else f"Location: {position}"


def list_items(title: str, items: Sequence[str], max_items: int = MAX_LISTED_ITEMS) -> str:
    """Return a line such as `Poll: red; green; and 3 more`."""
    shown = items[:max_items]
    more = f"; and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
    return f"{title}: {'; '.join(shown)}{more}"
