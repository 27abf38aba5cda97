"""Draws a table with the characters of a font whose letters are all equally wide."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_INVISIBLE = frozenset("\ufe0f\u200d")  # inside an emoji


@dataclass(frozen=True, slots=True)
class TableLines:
    """What stands between the cells."""

    column: str = " │ "
    rule: str = "─"  # below the head
    cross: str = "─┼─"  # in that rule, below `column`


BOX_LINES = TableLines()


def draw_table(rows: Sequence[Sequence[str]], max_columns: int, lines: TableLines = BOX_LINES) -> str | None:
    """Return a table whose columns are aligned; the first row is its head. None if it is too wide."""
    widths = [max(map(measure_width, cells), default=0) for cells in zip(*rows, strict=False)]
    if sum(widths) + len(lines.column) * (len(widths) - 1) > max_columns:
        return None
    drawn = [lines.column.join(map(_pad_cell, row, widths)).rstrip() for row in rows]
    drawn.insert(1, lines.cross.join(lines.rule * width for width in widths))
    return "\n".join(drawn)


def measure_width(text: str) -> int:
    """Return how many columns a text takes: Chinese characters and emoji take two."""
    if text.isascii():
        return len(text)
    return sum(map(_measure_character, text))


def _measure_character(character: str) -> int:
    if unicodedata.combining(character) or character in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pad_cell(cell: str, width: int) -> str:
    return cell + " " * (width - measure_width(cell))
