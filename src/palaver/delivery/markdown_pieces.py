"""Cuts Markdown into the pieces between which it may be split, and says how good each place is.

A piece is a line with its line break and the empty lines after it; a long line is several pieces. All pieces together
are the text. A piece inside a code fence or a table knows what a message needs that starts with it, so that the code
or the table goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from palaver.core.graphemes import find_cut
from palaver.delivery.capabilities import LengthUnit, measure_length

if TYPE_CHECKING:
    from collections.abc import Iterator


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


_MARK_STARTS = frozenset(" \t`~-*+#0123456789")  # what a fence, a list item, a heading starts with
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})([^\n]*)")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_HEADING = re.compile(r"#{1,6}[ \t]")
# A word, or what must not be split at its spaces: a link, code. Nothing in it can start another match, so that the
# time stays in proportion to the text.
_ATOM = re.compile(r"(?:\[[^\[\]\n]*\]\((?:[^()\s]|\([^()\s]*\))*\)|`[^`\n]*`|[^\s\[`]+|[\[`])+\s*|\s+")
_SENTENCE_END = (".", "!", "?", ":", ";", "…", "。", "！", "？", "；")
_CJK_BREAKS = re.compile(r"[。！？；，、]")
_MAX_CJK_TAIL_SHARE = 2  # a word without spaces ends after a punctuation mark in its second half


def cut_markdown(markdown: str, unit: LengthUnit, budget: int) -> list[Piece]:
    """Return the pieces of a text, none of them longer than `budget` together with its opening and closing."""
    return list(_Cutter(markdown, unit, budget).cut())


class _Cutter:
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
            if fence := _match_fence(line.text):
                yield from self._cut_fence(fence, quality)
            elif self._is_table():
                yield from self._cut_table(quality)
            else:
                self._next += 1
                yield from self._cut_line(line.text, quality)
            quality = _rate_break_after(self._lines[self._next - 1])

    def _measure(self, text: str) -> int:
        return measure_length(text, self._unit)

    def _cut_fence(self, fence: re.Match[str], quality: BreakQuality) -> Iterator[Piece]:
        indent, marker, info = fence.groups()
        first = self._lines[self._next]
        inside = self._describe_code(len(indent), marker, info.rstrip())
        self._next += 1
        yield from self._cut_line(first.text, quality)
        quality = BreakQuality.WORD  # the first line of code stays with its fence
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            content = line.text.strip()
            if len(content) >= len(marker) and not content.strip(marker[0]):
                yield from self._cut_line(line.text, quality, replace(inside, is_fence_end=bool(inside.closing)))
                return
            yield from self._cut_line(line.text, quality, inside)
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

    def _cut_line(self, line: str, quality: BreakQuality, like: Piece | None = None) -> Iterator[Piece]:
        template = like or _PLAIN
        size = self._measure(line)
        closing_size = len(template.closing) + 1 if template.closing else 0
        room = self._budget - self._measure(template.opening) - closing_size
        if size <= room or size <= 1:
            yield _fill(template, line, size, quality)
            return
        for text in self._cut_words(line, max(1, room)):
            yield _fill(template, text, self._measure(text), quality)
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
