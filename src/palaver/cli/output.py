"""Terminal output: cleaned text, tables, times, JSON.

Owns everything that depends on the reader: a person at a terminal gets colored tables that fit the width, a pipe
gets plain aligned text with nothing cut off, a program gets one JSON document.

Always true: no control character, escape sequence or direction mark from a conversation reaches a terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import click

from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

# Whole escape sequences, so that no part of them is left behind as text. A sequence that does not end is not
# matched; only its first character is removed.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colors, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\n]{0,2000}(?:\x07|\x1b\\|\x9c)"  # window titles, links, clipboard
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# Control characters, marks that change the writing direction, and halves of surrogate pairs.
_HIDDEN_CHARS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff"
_CONTROLS = re.compile(f"[{_HIDDEN_CHARS}]")
_NOT_ASCII = re.compile(f"[{_HIDDEN_CHARS}]|[^\x00-\x7f]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")

COLUMN_GAP = "  "
ELLIPSIS = "…"


# ---- text --------------------------------------------------------------------------------------------------


def clean_text(text: str) -> str:
    """Remove everything that could control a terminal; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)))


def clean_line(text: str) -> str:
    """Clean the text and put it on one line."""
    return " ".join(clean_text(text).split())


def get_display_width(text: str) -> int:
    """Return how many terminal columns a line of text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def truncate_text(text: str, max_width: int) -> str:
    """Cut a line of text to `max_width` terminal columns, with an ellipsis where it was cut."""
    if get_display_width(text) <= max_width:
        return text
    beginning = text[: 4 * max_width]
    while get_display_width(beginning) > max_width - 1:
        beginning = beginning[:-1]
    return beginning.rstrip() + ELLIPSIS


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun: `1 message`, `1,204 messages`."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


# ---- times -------------------------------------------------------------------------------------------------


def format_relative_time(moment: datetime | None, now: datetime) -> str:
    """Format a time as its age: `just now`, `3 min ago`, `2 d ago`, or as a date if it is more than a week old."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if -60 < seconds < 45:
        return "just now"
    for unit, unit_seconds, limit in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 8)):
        if seconds > 0 and round(seconds / unit_seconds) < limit:
            return f"{max(1, round(seconds / unit_seconds))} {unit} ago"
    return f"{moment.astimezone():%Y-%m-%d}"


def format_duration(milliseconds: int | None) -> str:
    """Format a duration: `0.4 s`, `12 s`, `2 min 5 s`; an unknown duration is an empty string."""
    if milliseconds is None:
        return ""
    if milliseconds < 50:
        return "< 0.1 s"
    seconds = milliseconds / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_timestamp(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


# ---- documents ---------------------------------------------------------------------------------------------


def format_json(document: object, *, ascii_only: bool = False) -> str:
    """Format an indented JSON document with all text in full.

    Characters that JSON allows but that could control a terminal are written as escapes.
    """
    return escape_json(json.dumps(document, ensure_ascii=False, indent=2, default=str), ascii_only=ascii_only)


def escape_json(text: str, *, ascii_only: bool = False) -> str:
    """Write characters of JSON that could control a terminal, or all but ASCII, as escapes."""
    return (_NOT_ASCII if ascii_only else _CONTROLS).sub(
        lambda match: f"\\u{ord(match[0]):04x}" if ord(match[0]) < 0x10000 else json.dumps(match[0])[1:-1], text
    )


def wants_json() -> bool:
    return bool(click.get_current_context().meta.get("palaver.json"))


def print_result(document: object, text: str) -> None:
    """Print what a command has done: for programs, if they ask for it with --json, or for people."""
    if wants_json():
        print_json(document)
    else:
        click.echo(text)


def print_list(document: object, columns: Sequence[Column[T]], items: Sequence[T], empty: str) -> None:
    """Print a list: for programs, as a table, or what to say when it is empty."""
    if wants_json():
        print_json(document)
    elif items:
        print_table(columns, items)
    else:
        click.echo(empty)


def print_json(document: object) -> None:
    click.echo(format_json(document, ascii_only=not can_print_unicode()))


def can_print_unicode() -> bool:
    return sys.stdout is not None and sys.stdout.encoding.lower().startswith("utf")


def print_hint(text: str) -> None:
    """Print a hint on stderr, so that a pipe only gets the result."""
    click.echo(text, err=True)


# ---- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column(Generic[T]):
    """A table column: the cell of an item, and how the column behaves on a narrow terminal.

    A time becomes its age, and None an empty cell. Text may come from people: it is cleaned here.
    """

    name: str
    get_cell: Callable[[T], str | int | datetime | None]
    align: Literal["left", "right"] = "left"
    width_divisor: int | None = None  # 5: the column takes at most a fifth of the terminal's width
    fills_width: bool = False  # takes the width that the other columns leave
    min_terminal_width: int = 0  # hidden on a terminal narrower than this
    style: str = ""

    def format_cell(self, item: T, now: datetime) -> str:
        cell = self.get_cell(item)
        if isinstance(cell, datetime):
            return format_relative_time(cell, now)
        return "" if cell is None else clean_line(str(cell))


def is_stdout_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def has_escape_codes() -> bool:
    """Return whether stdout is a terminal that can do more than show lines."""
    return is_stdout_terminal() and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def print_table(columns: Sequence[Column[T]], items: Sequence[T]) -> None:
    now = datetime.now(UTC)
    rows = [[column.format_cell(item, now) for column in columns] for item in items]
    if is_stdout_terminal():
        _print_fitted_table(columns, rows)
        return
    names = [column.name for column in columns]
    widths = [max(map(get_display_width, cells)) for cells in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        padded = [_pad_cell(cell, width, column) for cell, width, column in zip(row, widths, columns, strict=True)]
        click.echo(COLUMN_GAP.join(padded).rstrip())


def _pad_cell(cell: str, width: int, column: Column[T]) -> str:
    padding = " " * (width - get_display_width(cell))
    return padding + cell if column.align == "right" else cell + padding


def _print_fitted_table(columns: Sequence[Column[T]], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that fits the width of the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    width = console.width
    visible = [index for index, column in enumerate(columns) if width >= column.min_terminal_width]
    table = Table(box=None, pad_edge=False, padding=(0, len(COLUMN_GAP), 0, 0), expand=True)
    for index in visible:
        column = columns[index]
        column_width = max(get_display_width(column.name), *(get_display_width(row[index]) for row in rows), 1)
        if column.width_divisor is not None:
            column_width = min(column_width, max(10, width // column.width_divisor))
        table.add_column(
            column.name,
            justify=column.align,
            style=column.style,
            no_wrap=True,
            overflow="ellipsis",
            width=None if column.fills_width else column_width,
            ratio=1 if column.fills_width else None,
        )
    for row in rows:
        table.add_row(*(Text(row[index]) for index in visible))
    console.print(table)
