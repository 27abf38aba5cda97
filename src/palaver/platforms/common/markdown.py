"""Shared by the converters of Markdown: the cells of tables, tables as text, texts that every platform takes.

A table is drawn with the characters of a font whose letters are all equally wide. One that is too wide for a phone
becomes a list of its rows.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, TypeVar

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from markdown_it.token import Token

T = TypeVar("T")

_INVISIBLE = frozenset("\ufe0f\u200d")  # inside an emoji


@dataclass(frozen=True, slots=True)
class TableLines:
    """The characters between the cells."""

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


def read_rows(tokens: Iterable[Token], read_cell: Callable[[Token], T]) -> Iterator[list[T]]:
    """Yield the cells of each row of a table, until its end; the first row is the head."""
    row: list[T] = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append(read_cell(token))
        elif token.type == "tr_close":
            yield row
        elif token.type == "table_close":
            return


def name_cells(head: Sequence[str], row: Sequence[str], separator: str = ": ") -> list[str]:
    """Return the cells of a row that are not empty, each with the name of its column."""
    cells = zip(head, row, strict=False)
    return [f"{name}{separator}{cell}" if name else cell for name, cell in cells if cell]


def replace_invalid_characters(text: str) -> str:
    """Return a text that can be written as UTF-8 and contains no NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


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
