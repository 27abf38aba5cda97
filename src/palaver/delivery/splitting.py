"""Splits a text into messages that are short enough for a platform.

Always true: the messages contain the whole text in order. A message ends at the best place near its end: between
paragraphs, list items, rows of a table or lines, else between words. A code fence that is split is closed and opened
again with its language; a table that is split has its header again; a quote stays a quote. A word or an address is
split only if it alone is longer than a message, and then never within what people see as one character. Takes time in
proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from palaver.core.dataclass import dataclass
from palaver.core.text import find_cut
from palaver.delivery.model import Capabilities, LengthUnit, measure_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_MARK_STARTS = frozenset(" \t`~-*+#>0123456789")  # what a fence, a list item, a heading, a quote starts with
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})([^\n]*)")
_QUOTE = re.compile(r" {0,3}(?:> ?)+")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_HEADING = re.compile(r"#{1,6}[ \t]")
# A word, or what must not be split at its spaces: a link, code. Nothing in it can start another match, so that the
# time stays in proportion to the text.
_ATOM = re.compile(r"(?:\[[^\[\]\n]*\]\((?:[^()\s]|\([^()\s]*\))*\)|`[^`\n]*`|[^\s\[`]+|[\[`])+\s*|\s+")
_SENTENCE_END = (".", "!", "?", ":", ";", "…", "。", "！", "？", "；")
_CJK_BREAKS = re.compile(r"[。！？；，、]")
_MAX_CJK_TAIL_SHARE = 2  # a word without spaces ends after a punctuation mark in its second half

FILL_PERCENT = 90  # of the platform's limit: platforms count what they add themselves, and not all count alike
MEASURED_SHARE = 0.95  # of the average message; some parts of a text take more than others
MIN_FILL_SHARE = 3  # a message may end at a better place if it is at least a third full there


class BreakQuality(IntEnum):
    """How good it is to split before a piece."""

    WORD = 0
    SENTENCE = 1  # or a line of code
    LINE = 2  # or a row of a table
    ITEM = 3  # of a list
    BLOCK = 4


@dataclass(slots=True)  # not frozen: a long text has many
class Piece:
    """A part of the text that stays together."""

    text: str
    size: int  # in the platform's unit
    quality: BreakQuality  # of a split before this piece
    opening: str = ""  # what a message that starts with this piece needs before it
    closing: str = ""  # what the message before needs at its end, if this piece starts a new one
    indent: int | None = None  # of the fence that it is in
    is_fence_end: bool = False  # `closing` of the message before replaces it


_PLAIN = Piece("", 0, BreakQuality.LINE)


class _Line(NamedTuple):
    text: str  # with its line break and the empty lines after it
    is_last: bool  # of its paragraph


class _Cutter:
    """Cuts a text into pieces, none of them longer than `budget` together with its opening and closing."""

    def __init__(self, markdown: str, unit: LengthUnit, budget: int) -> None:
        self._lines = _read_lines(markdown)
        self._unit = unit
        self._budget = budget
        self._next = 0  # the line to cut next

    def cut(self) -> Iterator[Piece]:
        quality = BreakQuality.BLOCK
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.text[0] not in _MARK_STARTS and "|" not in line.text:  # most lines: only text
                self._next += 1
                yield from self._cut_line(line.text, quality)
                quality = _rate_break_after(line)
                continue
            if _LIST_ITEM.match(line.text) and quality >= BreakQuality.LINE:
                quality = max(quality, BreakQuality.ITEM)
            quote = self._find_quote(line.text)
            if fence := _match_fence(line.text.removeprefix(quote)):
                yield from self._cut_fence(fence, quality, quote)
            elif self._is_table():
                yield from self._cut_table(quality)
            else:
                self._next += 1
                yield from self._cut_line(line.text, quality, quote=quote)
            quality = _rate_break_after(self._lines[self._next - 1])

    def _measure(self, text: str) -> int:
        return measure_length(text, self._unit)

    def _find_quote(self, line: str) -> str:
        """Return the marks of a quote at the start of a line, if there is room to repeat them."""
        quote = _QUOTE.match(line)
        return quote[0] if quote is not None and self._measure(quote[0]) * 4 <= self._budget else ""

    def _cut_fence(self, fence: re.Match[str], quality: BreakQuality, quote: str) -> Iterator[Piece]:
        indent, marker, info = fence.groups()
        first = self._lines[self._next]
        inside = self._describe_code(0 if quote else len(indent), quote + marker, info.rstrip())
        self._next += 1
        yield from self._cut_line(first.text, quality, quote=quote)
        quality = BreakQuality.WORD  # the first line of code stays with its fence
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if not line.text.startswith(quote.rstrip()):
                return  # the quote has ended, and the code in it
            self._next += 1
            content = line.text.removeprefix(quote.rstrip()).strip()
            if len(content) >= len(marker) and not content.strip(marker[0]):
                end = replace(inside, is_fence_end=bool(inside.closing))
                yield from self._cut_line(line.text, quality, end, quote)
                return
            yield from self._cut_line(line.text, quality, inside, quote)
            quality = BreakQuality.LINE if line.is_last else BreakQuality.SENTENCE

    def _describe_code(self, indent: int, marker: str, info: str) -> Piece:
        """Return how a message goes on with code: with its language, if there is room for it."""
        for opening in (f"{marker}{info}\n", f"{marker}\n"):
            if self._measure(opening) * 4 <= self._budget:
                return Piece("", 0, BreakQuality.SENTENCE, opening, marker, indent)
        return Piece("", 0, BreakQuality.SENTENCE)

    def _is_table(self) -> bool:
        if self._next + 1 >= len(self._lines):
            return False
        header, rule = self._lines[self._next].text, self._lines[self._next + 1].text
        is_rule = "|" in rule and "-" in rule and not rule.strip(" \t|:-\n")
        return is_rule and "|" in header and not self._lines[self._next].is_last

    def _cut_table(self, quality: BreakQuality) -> Iterator[Piece]:
        first = self._next
        self._next += 2
        while (
            self._next < len(self._lines)
            and "|" in self._lines[self._next].text
            and not self._lines[self._next - 1].is_last
        ):
            self._next += 1
        header = self._lines[first].text + self._lines[first + 1].text
        rows = [line.text for line in self._lines[first + 2 : self._next]]
        room = self._budget - self._measure(header)
        if room < self._budget // 2 or any(self._measure(row) > room for row in rows):
            header = ""  # its rows do not fit below a header
        yield from self._cut_line(self._lines[first].text, quality)
        yield from self._cut_line(self._lines[first + 1].text, BreakQuality.WORD)
        quality = BreakQuality.WORD  # the first row stays with the header
        for row in rows:
            yield from self._cut_line(row, quality, Piece("", 0, quality, header))
            quality = BreakQuality.LINE

    def _cut_line(
        self, line: str, quality: BreakQuality, like: Piece | None = None, quote: str = ""
    ) -> Iterator[Piece]:
        """Cut a line if it is too long; `quote` are the marks at its start, which every further piece needs too."""
        template = like or _PLAIN
        size = self._measure(line)
        closing_size = len(template.closing) + 1 if template.closing else 0
        room = self._budget - self._measure(template.opening) - closing_size
        if size <= room or size <= 1:
            yield _fill(template, line, size, quality)
            return
        if quote:
            room -= self._measure(quote)
        following = replace(template, opening=template.opening + quote) if quote else template
        for text in self._cut_words(line, max(1, room)):
            yield _fill(template, text, self._measure(text), quality)
            template = following
            is_end = text.rstrip().endswith(_SENTENCE_END)
            quality = BreakQuality.SENTENCE if is_end else BreakQuality.WORD

    def _cut_words(self, line: str, room: int) -> Iterator[str]:
        """Cut a long line into short runs of whole words."""
        target = max(1, room // 16)
        words: list[str] = []
        size = 0
        for match in _ATOM.finditer(line):
            for word in self._cut_long_word(match[0], room):
                length = self._measure(word)
                if words and (size + length > target or words[-1].rstrip().endswith(_SENTENCE_END)):
                    yield "".join(words)
                    words, size = [], 0
                words.append(word)
                size += length
        if words:
            yield "".join(words)

    def _cut_long_word(self, word: str, room: int) -> Iterator[str]:
        if self._measure(word) <= room:
            yield word
            return
        start = 0
        while start < len(word):
            end = self._find_end(word, start, room)
            if end < len(word):
                marks = _CJK_BREAKS.finditer(word, start + (end - start) // _MAX_CJK_TAIL_SHARE, end)
                end = max((mark.end() for mark in marks), default=None) or find_cut(word, start, end)
            yield word[start:end]
            start = end

    def _find_end(self, text: str, start: int, room: int) -> int:
        """Return how far a text after `start` fits."""
        fits, too_far = start + 1, min(len(text), start + room) + 1
        while too_far - fits > 1:
            middle = (fits + too_far) // 2
            if self._measure(text[start:middle]) <= room:
                fits = middle
            else:
                too_far = middle
        return fits


def _fill(template: Piece, text: str, size: int, quality: BreakQuality) -> Piece:
    return Piece(text, size, quality, template.opening, template.closing, template.indent, template.is_fence_end)


def _match_fence(line: str) -> re.Match[str] | None:
    fence = _FENCE.match(line)
    is_inline_code = fence is not None and fence[2][0] == "`" and "`" in fence[3]
    return None if is_inline_code else fence


def _rate_break_after(line: _Line) -> BreakQuality:
    if line.text[0] == "#" and _HEADING.match(line.text):
        return BreakQuality.WORD  # a heading stays with what follows
    is_introduction = line.text.rstrip().endswith(":")
    return BreakQuality.BLOCK if line.is_last and not is_introduction else BreakQuality.LINE


def _read_lines(markdown: str) -> list[_Line]:
    found: list[list[str]] = []
    for line in _LINE.findall(markdown):
        if found and not line.strip():
            found[-1].append(line)
        else:
            found.append([line])
    return [_Line("".join(parts), len(parts) > 1) for parts in found]


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
    length = measure_message(markdown)
    if length <= budget:
        return [markdown]
    own_length, size = measure_length(markdown, unit), budget
    if length > own_length:  # otherwise each message would have to be split once more, into uneven ones
        size = max(1, int(budget * MEASURED_SHARE * own_length / length))
    return list(_split(markdown, unit, size, budget, measure_message))


def _split(markdown: str, unit: LengthUnit, size: int, budget: int, measure: Callable[[str], int]) -> Iterator[str]:
    """Split into messages of at most `size`, and those again that take more than `budget` on the platform."""
    for message in _pack(list(_Cutter(markdown, unit, size).cut()), unit, size):
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
