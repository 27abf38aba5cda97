"""Limits of the JSON in a log: how deep it may be nested, and how large it may be.

Nesting deeper than this cannot be encoded or decoded everywhere, so that one such value would make a whole page of a
conversation unreadable.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

MAX_JSON_DEPTH: Final = 32  # lists and objects inside each other
_NUMBER_BYTES: Final = 8


class JsonTooDeep(ValueError):
    """Lists and objects are nested deeper than `MAX_JSON_DEPTH`."""


def measure_json(value: object, max_bytes: int) -> int:
    """Return the size of a JSON value in bytes, as UTF-8; a result above `max_bytes` may be too low.

    Takes time in proportion to the smaller of the value and `max_bytes`. Raises `JsonTooDeep`, for circular values too.
    """
    size, depth, level = 0, 0, [value]
    while level:
        inner: list[Any] = []
        has_containers = False
        for item in level:
            if isinstance(item, str):
                size += _count_utf8_bytes(item) + 2
            elif item is None or isinstance(item, int | float):
                size += item.bit_length() // 3 + 1 if isinstance(item, int) else _NUMBER_BYTES
            elif isinstance(item, list | tuple):
                has_containers = True
                size += 2 + len(item)
                inner += item
            elif isinstance(item, dict | Mapping):
                has_containers = True
                size += 2 + 2 * len(item) + sum(_count_utf8_bytes(str(key)) + 2 for key in item)
                inner += item.values()
            if size > max_bytes:
                return size
        depth += has_containers
        if depth > MAX_JSON_DEPTH:
            raise JsonTooDeep
        level = inner
    return size


def is_too_deep(value: object, text: str) -> bool:
    """Whether a value is nested too deeply; `text` is its JSON, which rarely has enough brackets to look further."""
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return False
    try:
        measure_json(value, sys.maxsize)
    except JsonTooDeep:
        return True
    return False


def _count_utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
