"""The screen on which a person links an account: a QR code, a code to type, and instructions. Pure.

The QR code is always dark on light, whatever the colors of the terminal: some apps read no other. Two rows of its
squares share a line, so that most codes fit into 80 × 24 characters; the words are beside it, or below where it is
narrow.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from palaver.cli import output
from palaver.operation.qr_code import make_qr_code

if TYPE_CHECKING:
    from os import terminal_size

    from palaver.delivery.model import LinkingPrompt

MARGIN_SQUARES = 2  # of light around the code
GAP = "   "  # between the code and the words
MIN_WORDS_COLUMNS = 26
PIPE_COLUMNS = 80
_DARK, _LIGHT = 16, 231  # of the 256 colors: black and white, which no color scheme changes
_RESET = "\x1b[0m"


class LinkingScreen:
    def __init__(self, label: str, prompt: LinkingPrompt) -> None:
        self._label = label
        self._prompt = prompt
        rows = make_qr_code(prompt.qr_text) if prompt.qr_text else ()
        self._squares = _add_margin(rows) if rows else []  # a text that is too long has no code

    def render(self, size: terminal_size | None, *, has_blocks: bool) -> str:
        """Return the text for a terminal of this size; None for a pipe, which gets no colors and any length."""
        if size is None:
            code = _draw_plain(self._squares) if has_blocks else []
            return "\n".join([*code, *self._wrap_words(PIPE_COLUMNS)])
        if not self._squares:
            return "\n".join(self._wrap_words(size.columns - 1))
        if not has_blocks:
            hint = "This terminal can't show the QR code. Open Platforms on the page instead."
            return "\n".join([*self._wrap_words(size.columns - 1), "", *textwrap.wrap(hint, size.columns - 1)])
        return self._fit(size) or self._render_too_small(size)

    def _fit(self, size: terminal_size) -> str | None:
        """Return the code with the words beside or below it; None if the window is too small for both."""
        width, height = len(self._squares[0]), len(self._squares) // 2
        code = _draw_colored(self._squares)
        beside = size.columns - width - len(GAP)
        if beside >= MIN_WORDS_COLUMNS:
            words = self._wrap_words(beside)
            if max(height, len(words)) <= size.lines:
                rest = [""] * (height - len(words))
                lines = [f"{line}{GAP}{text}".rstrip() for line, text in zip(code, [*words, *rest], strict=False)]
                return "\n".join([*lines, *(" " * width + GAP + text for text in words[height:])])
        words = self._wrap_words(size.columns - 1)
        if size.columns >= width and height + len(words) <= size.lines:
            return "\n".join([*code, *words])
        return None

    def _render_too_small(self, size: terminal_size) -> str:
        width, height = len(self._squares[0]) + len(GAP) + MIN_WORDS_COLUMNS, len(self._squares) // 2
        hint = (
            f"The QR code needs a window of {width} × {height} characters; this one has {size.columns} × {size.lines}."
            " Enlarge the window or make its font smaller, or open Platforms on the page."
        )
        return "\n".join([*textwrap.wrap(hint, size.columns - 1), "", *self._wrap_words(size.columns - 1)])

    def _wrap_words(self, columns: int) -> list[str]:
        prompt = self._prompt
        parts = [f"Link {self._label}", output.clean_text(prompt.instructions)]
        if prompt.code is not None:
            parts.append(f"Code: {output.clean_line(prompt.code)}")
        if prompt.expires_at is not None:
            parts.append(f"Valid until {prompt.expires_at.astimezone():%H:%M:%S}, then a new one is shown.")
        parts.append("Waiting for your phone… Ctrl+C stops.")
        lines: list[str] = []
        for part in parts:
            for paragraph in part.splitlines():
                lines += textwrap.wrap(paragraph, max(columns, 10)) or [""]
            lines.append("")
        return lines[:-1]


def _add_margin(rows: tuple[str, ...]) -> list[str]:
    """Return the squares with a light margin; an even number of rows, because two share a line."""
    width = len(rows[0]) + 2 * MARGIN_SQUARES
    margin = ["0" * width] * MARGIN_SQUARES
    side = "0" * MARGIN_SQUARES
    squares = [*margin, *(f"{side}{row}{side}" for row in rows), *margin]
    return squares if len(squares) % 2 == 0 else [*squares, "0" * width]


def _draw_colored(squares: list[str]) -> list[str]:
    lines = []
    for upper, lower in zip(squares[::2], squares[1::2], strict=True):
        cells, last = [], ""
        for pair in zip(upper, lower, strict=True):
            top, bottom = (_DARK if square == "1" else _LIGHT for square in pair)
            color = f"\x1b[38;5;{top};48;5;{bottom}m"
            cells.append("▀" if color == last else f"{color}▀")
            last = color
        lines.append("".join(cells) + _RESET)
    return lines


def _draw_plain(squares: list[str]) -> list[str]:
    blocks = {("0", "0"): " ", ("1", "0"): "▀", ("0", "1"): "▄", ("1", "1"): "█"}
    return [
        "".join(blocks[pair] for pair in zip(upper, lower, strict=True)).rstrip()
        for upper, lower in zip(squares[::2], squares[1::2], strict=True)
    ]
