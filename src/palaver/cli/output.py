"""How things are shown: text without hidden powers, tables, times, JSON.

Owns everything that depends on who reads: a person at a terminal gets tables that fit and colours, a pipe
gets plain aligned text with nothing cut off, a program gets one JSON document.

Always true: no control character, escape sequence or direction mark from a conversation reaches a terminal.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

# Terminal commands as a whole, so that nothing of them is left standing as text. One that does not end is no
# command; only its first character goes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]{0,2000}(?:\x07|\x1b\\|\x9c)"  # window titles, links, clipboard
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# Controls, marks that turn the direction of writing, and halves of surrogate pairs.
_HIDDEN = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff"
_CONTROLS = re.compile(f"[{_HIDDEN}]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")

GAP = "  "  # between columns
ELLIPSIS = "…"


# ---- text --------------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text from a conversation as a terminal may show it; lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)))


def line(text: str) -> str:
    """The same on one line."""
    return " ".join(clean(text).split())


def cells(text: str) -> int:
    """How many columns of a terminal a line of text takes."""
    if text.isascii():
        return len(text)
    taken, joined = 0, False
    for char in text:
        if not joined:
            taken += _cells(char)
        joined = char == "\u200d"  # what follows a joiner is drawn into the character before it
    return taken


def fit(text: str, most: int) -> str:
    """A line of text in at most so many columns, marked where it was cut."""
    if cells(text) <= most:
        return text
    kept = text[: 4 * most]
    while cells(kept) > most - 1:
        kept = kept[:-1]
    return kept.rstrip() + ELLIPSIS


def _cells(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"} or "\U0001f3fb" <= char <= "\U0001f3ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def plural(count: int, noun: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


# ---- times -------------------------------------------------------------------------------------------------


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, in a few words; the date when it is more than a week."""
    if moment is None:
        return "never"
    seconds = (now - moment).total_seconds()
    if -60 < seconds < 45:
        return "just now"
    for unit, size, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 8)):
        if seconds > 0 and round(seconds / size) < most:
            return f"{max(1, round(seconds / size))} {unit} ago"
    return f"{moment.astimezone():%Y-%m-%d}"


def lasted(milliseconds: int | None) -> str:
    """How long something took: `0.4 s`, `12 s`, `2 min 5 s`; nothing when that is not known."""
    if milliseconds is None:
        return ""
    if milliseconds < 50:
        return "< 0.1 s"
    seconds = milliseconds / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def stamp(moment: datetime) -> str:
    """Date and time on the clock of this machine."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


# ---- documents ---------------------------------------------------------------------------------------------


def json_text(document: object, *, ascii_only: bool = False) -> str:
    """A JSON document that people can read too; every text in it is whole.

    What JSON leaves bare although a terminal may act on it is written as an escape.
    """
    text = json.dumps(document, ensure_ascii=ascii_only, indent=2, default=str)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json_text(document, ascii_only=not speaks_utf()))


def speaks_utf() -> bool:
    """Whether our output can carry every character."""
    return sys.stdout is not None and sys.stdout.encoding.lower().startswith("utf")


def hint(text: str) -> None:
    """Tell the person how to go on; on stderr, so that a pipe carries the answer alone."""
    click.echo(text, err=True)


# ---- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column, and how it gives way on a narrow terminal."""

    name: str
    align: Literal["left", "right"] = "left"
    share: int | None = None  # at most this part (one half, one third …) of the width
    rest: bool = False  # takes the room that the others leave
    from_width: int = 0  # left out on a terminal narrower than this
    style: str = ""


def on_terminal() -> bool:
    """Whether a person looks at our output."""
    return sys.stdout is not None and sys.stdout.isatty()


def say_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose cells are clean lines."""
    if on_terminal():
        _draw(columns, rows)
        return
    widths = [max(map(cells, each)) for each in zip(*([c.name for c in columns], *rows), strict=True)]
    for row in ([column.name for column in columns], *rows):
        padded = [_padded(cell, width, column) for cell, width, column in zip(row, widths, columns, strict=True)]
        click.echo(GAP.join(padded).rstrip())


def _padded(cell: str, width: int, column: Column) -> str:
    room = " " * (width - cells(cell))
    return room + cell if column.align == "right" else cell + room


def _draw(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Draw a table that fits the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    width = console.width
    shown = [number for number, column in enumerate(columns) if width >= column.from_width]
    table = Table(box=None, pad_edge=False, padding=(0, len(GAP), 0, 0), expand=True)
    for number in shown:
        column = columns[number]
        wanted = max(cells(column.name), *(cells(row[number]) for row in rows), 1)
        most = wanted if column.share is None else min(wanted, max(10, width // column.share))
        table.add_column(
            column.name,
            justify=column.align,
            style=column.style,
            no_wrap=True,
            overflow="ellipsis",
            width=None if column.rest else most,
            ratio=1 if column.rest else None,
        )
    for row in rows:
        table.add_row(*(Text(row[number]) for number in shown))
    console.print(table)
