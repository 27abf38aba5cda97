"""Small helpers to build SQL statements."""

from __future__ import annotations


def build_placeholders(count: int, first: int = 1) -> str:
    """Return the parameters of an IN list: `$1, $2, $3`."""
    return ", ".join(f"${number}" for number in range(first, first + count))
