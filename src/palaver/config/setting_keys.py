"""Keys of single settings as text: `turns.max_running`, `prices."openai:gpt-5.4-mini".input`.

Always true: `parse_key(format_path(path)) == path`. A part with a dot, a quote or a space is put in double quotes.
"""

from __future__ import annotations

import json
import re
from typing import Final

from palaver.core.errors import InvalidInput

SettingPath = tuple[str, ...]

MAX_KEY_CHARS: Final = 500
_PLAIN_PART = re.compile(r"[^\s.\"]+")
_PART = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s."]+)')


def format_path(path: SettingPath) -> str:
    return ".".join(part if _PLAIN_PART.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def parse_key(key: str) -> SettingPath:
    """Return the parts of a key. Raises InvalidInput."""
    parts: list[str] = []
    position = 0
    while len(key) <= MAX_KEY_CHARS:
        match = _PART.match(key, position)
        if match is None:
            break
        try:
            parts.append(json.loads(match[1]) if match[1] else match[2])
        except ValueError:
            break
        position = match.end()
        if position == len(key):
            return tuple(parts)
        if key[position] != ".":
            break
        position += 1
    raise InvalidInput(
        f"{key[:60]!r} is not the key of a setting. Write it with dots, as in turns.max_running, and put a part that"
        ' contains a dot in double quotes, as in prices."openai:gpt-5.4-mini".input.',
        key=key[:60],
    )
