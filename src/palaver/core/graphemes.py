"""Where a text may be cut without damaging what people see as one character: an emoji, a flag, a letter with marks."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"


def find_cut(text: str, start: int, end: int) -> int:
    """Return the last position up to `end` at which the text after `start` can be cut.

    It is `end` itself if everything between the two is one character to people. Takes time in proportion to the
    distance.
    """
    if end >= len(text):
        return len(text)
    for position in range(end, start, -1):
        if _can_cut(text, position, start):
            return position
    return end


def _can_cut(text: str, position: int, start: int) -> bool:
    before, after = text[position - 1], text[position]
    if after < "\u0300" and before != _JOINER:
        return not (before == "\r" and after == "\n")
    if before == _JOINER or _continues_character(after):
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _count_flag_letters(text, position, start) % 2 == 0
    return not ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")


def _continues_character(char: str) -> bool:
    return (
        char == _JOINER
        or unicodedata.category(char).startswith("M")
        or "\u1160" <= char <= "\u11ff"  # vowels and final consonants of a Korean syllable
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # letters of the flags of regions
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _count_flag_letters(text: str, end: int, start: int) -> int:
    first = end
    while first > start and _is_flag_letter(text[first - 1]):
        first -= 1
    return end - first
