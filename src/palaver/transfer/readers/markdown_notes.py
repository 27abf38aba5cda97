"""Splitting a Markdown file of notes into single memories."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from palaver.core.text import make_storable
from palaver.memory.model import MAX_MEMORY_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator

_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_HEADING = re.compile(r"#{1,6}\s+(\S.*)|\*\*([^*]+)\*\*:?$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def split_notes(text: str) -> Iterator[str]:
    """Yield one note for each list item and each paragraph; headings say what the notes under them are about."""
    heading = ""
    for block in _split_blocks(make_storable(text)):
        if found := _HEADING.fullmatch(block):
            heading = (found[1] or found[2]).strip(" #:")
            continue
        note = f"{heading}: {block}" if heading else block
        yield from _split_long(note)


def _split_blocks(text: str) -> Iterator[str]:
    """Yield headings, list items (with what is indented under them) and paragraphs, each on one line."""
    block: list[str] = []

    def take() -> str:
        joined = " ".join(" ".join(block).split())
        block.clear()
        return joined

    for line in text.splitlines():
        stripped = line.strip()
        is_start = line[:1] not in {" ", "\t"} and _BULLET.match(stripped)
        if (not stripped or is_start or _HEADING.fullmatch(stripped)) and (joined := take()):
            yield joined
        if not stripped or set(stripped) <= set("-=_*"):  # an empty line, or a rule
            continue
        if _HEADING.fullmatch(stripped):
            yield stripped
            continue
        block.append(_BULLET.sub("", stripped, count=1) if is_start else stripped)
    if joined := take():
        yield joined


def _split_long(note: str) -> Iterator[str]:
    """Split a note that is longer than a memory may be between its sentences."""
    part = ""
    for sentence in _SENTENCE_END.split(note):
        if part and len(part) + len(sentence) + 1 > MAX_MEMORY_CHARS:
            yield part
            part = ""
        if len(sentence) > MAX_MEMORY_CHARS:
            yield from (sentence[at : at + MAX_MEMORY_CHARS] for at in range(0, len(sentence), MAX_MEMORY_CHARS))
        else:
            part = f"{part} {sentence}".strip()
    if part:
        yield part
