"""Splits a text into messages that are short enough for a platform.

Always true: the messages contain the whole text in order. A message ends at the best place near its end: between
paragraphs, list items, rows of a table or lines, else between words. A code fence that is split is closed and opened
again with its language; a table that is split has its header again. A word or an address is split only if it alone is
longer than a message, and then never within what people see as one character. Takes time in proportion to the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.delivery.capabilities import measure_length
from palaver.delivery.markdown_pieces import BreakQuality, Piece, cut_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver.delivery.capabilities import Capabilities, LengthUnit

FILL_PERCENT = 90  # of the platform's limit: platforms count what they add themselves, and not all count alike
MIN_FILL_SHARE = 3  # a message may end at a better place if it is at least a third full there


def split_markdown(markdown: str, capabilities: Capabilities, measure: Callable[[str], int] | None = None) -> list[str]:
    """Split Markdown into messages that fit the platform's limit; a blank text is no message.

    `measure` returns the length that the platform counts for a piece of Markdown, if that differs from the Markdown's
    own length: because of tags, escapes or removed marks. It is called for whole messages, a few times for each.
    """
    if not markdown.strip():
        return []
    limit = capabilities.max_length
    if limit is None:
        return [markdown]
    budget = max(1, limit * FILL_PERCENT // 100)
    unit = capabilities.length_unit
    measure_message = measure or (lambda text: measure_length(text, unit))
    if measure_message(markdown) <= budget:
        return [markdown]
    return list(_split(markdown, unit, budget, budget, measure_message))


def _split(markdown: str, unit: LengthUnit, size: int, budget: int, measure: Callable[[str], int]) -> Iterator[str]:
    """Split into messages of at most `size`, and those again that take more than `budget` on the platform."""
    for message in _pack(cut_markdown(markdown, unit, size), unit, size):
        length = measure(message)
        if length <= budget or size <= 1:
            yield message
        else:
            own_size = measure_length(message, unit)
            smaller = max(1, min(own_size * budget // length, own_size * 3 // 4, size - 1))  # less each time
            yield from _split(message, unit, smaller, budget, measure)


def _pack(pieces: list[Piece], unit: LengthUnit, size: int) -> Iterator[str]:
    start = 0
    while start < len(pieces):
        end = _find_end(pieces, start, unit, size)
        message = _build_message(pieces, start, end)
        if message.strip():
            yield message
        while end < len(pieces) and pieces[end].is_fence_end:
            end += 1  # the message has closed the fence
        start = end


def _find_end(pieces: list[Piece], start: int, unit: LengthUnit, size: int) -> int:
    """Return the number of the piece that starts the next message."""
    used = measure_length(pieces[start].opening, unit)
    last = start + 1  # the last place that fits
    best, best_quality = start + 1, None
    for number in range(start, len(pieces)):
        used += pieces[number].size
        if used > size:
            break
        if number + 1 == len(pieces):
            return len(pieces)
        following = pieces[number + 1]
        if used + len(following.closing) + 1 > size and following.closing:
            continue
        last = number + 1
        if used * MIN_FILL_SHARE >= size and (best_quality is None or following.quality >= best_quality):
            best, best_quality = last, following.quality
    return best if best_quality is not None and best_quality > BreakQuality.WORD else last


def _build_message(pieces: list[Piece], start: int, end: int) -> str:
    first = pieces[start]
    texts = [piece.text for piece in pieces[start:end]]
    if first.opening and first.indent:
        for number, piece in enumerate(pieces[start:end]):
            if piece.indent is None:
                break
            texts[number] = _remove_indent(piece.text, piece.indent)
    text = first.opening + "".join(texts)
    if first.indent is None:
        text = _remove_first_indent(text.lstrip("\n").rstrip())
    closing = pieces[end].closing if end < len(pieces) else ""
    if not closing:
        return text.rstrip()
    if text.strip() == pieces[end].opening.strip():
        return ""  # only empty lines of code
    return f"{text}{closing}" if text.endswith("\n") else f"{text}\n{closing}"


def _remove_first_indent(text: str) -> str:
    """Move a text to the left as far as its first line, so that items of an inner list do not become code."""
    indent = len(text) - len(text.lstrip(" \t"))
    if not indent:
        return text
    return "\n".join(_remove_indent(line, indent) for line in text.split("\n"))


def _remove_indent(text: str, indent: int) -> str:
    return text[min(indent, len(text) - len(text.lstrip(" \t"))) :]
