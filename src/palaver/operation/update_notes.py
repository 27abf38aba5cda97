"""What is new in the running version: its section of CHANGELOG.md, which is part of the wheel."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from palaver import __version__

MAX_NOTES_CHARS: Final = 200_000
_PACKAGE = Path(__file__).parents[1]
_FILES: Final = (_PACKAGE / "CHANGELOG.md", _PACKAGE.parents[1] / "CHANGELOG.md")  # in a wheel, in a checkout
_HEADING = re.compile(r"^## \[?v?([^\]\s]+)\]?.*$", re.MULTILINE)


@lru_cache(maxsize=1)
def load_update_notes() -> str:
    """Return the notes of the running version as Markdown; empty if there are none."""
    for file in _FILES:
        try:
            return find_section(file.read_text(encoding="utf-8")[: 4 * MAX_NOTES_CHARS], __version__)[:MAX_NOTES_CHARS]
        except OSError:
            continue
    return ""


def find_section(changelog: str, version: str) -> str:
    """Return the section of a version without its heading, or that of what is not released yet."""
    headings = list(_HEADING.finditer(changelog))
    for wanted in (version, "Unreleased"):
        for heading, following in zip(headings, [*headings[1:], None], strict=False):
            if heading[1].casefold() == wanted.casefold():
                return changelog[heading.end() : following.start() if following else len(changelog)].strip()
    return ""
