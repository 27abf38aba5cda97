"""Numbers that callers give: refused by name when they cannot be meant."""

from __future__ import annotations

from palaver.domain.errors import InvalidInput

MOST = 2**53  # the largest whole number that every client can write
MOST_MINUTES = 10_000_000  # nineteen years


def check_count(name: str, value: int | None, *, least: int = 1, most: int = MOST) -> None:
    """Refuse what is not a whole number in a range; None is nothing to check."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name}: {value!r} is not allowed; give a whole number from {least} to {most}")


def check_minutes(value: float) -> None:
    """Refuse a span that no list can mean."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_MINUTES:
        raise InvalidInput(f"active_minutes: {value!r} is not allowed; give a number from 0 to {MOST_MINUTES}")
