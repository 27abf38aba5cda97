"""Checks of numbers that callers pass: a value out of range is refused with the name of the argument."""

from __future__ import annotations

from palaver.core.errors import InvalidInput

MAX_INTEGER = 2**53  # the largest whole number that every JSON client can represent
MAX_MINUTES = 10_000_000  # nineteen years


def check_count(name: str, value: int | None, *, minimum: int = 1, maximum: int = MAX_INTEGER) -> None:
    """Refuse anything but a whole number within the range; None is accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidInput(f"{name}: {value!r} is not allowed. Give a whole number from {minimum} to {maximum}.")


def check_minutes(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_MINUTES:
        raise InvalidInput(f"{name}: {value!r} is not allowed. Give a number from 0 to {MAX_MINUTES}.")
