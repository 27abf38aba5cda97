"""Titles of conversations: how they are cleaned, numbered, compared and made from a first message.

A title is one line of at most `MAX_TITLE` printable characters. Titles that differ only in a trailing ` #N`
form one line of conversations; `title_slot` says which line and which place in it. Two titles are the same
when they take the same slot: letter case and the way an accent was typed do not count, everything else does,
and `#draft` is not a number. Who may have which title is the business of the store: nothing is looked up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidTitle

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TITLE = 100
MAX_NUMBER = 999_999_999

# What has no shape of its own and could hide in a title: controls, zero-width and bidi characters, the BOM,
# fillers, tags, and halves of surrogate pairs. White space is not among them: it is collapsed instead.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_NUMBERED = re.compile(r"(.+) #([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class TitleSlot:
    """The place of a title in its line: the folded base, and the number (1 when none is written)."""

    base: str
    number: int


def clean_title(text: str) -> str:
    """The text as a title; refused when nothing printable is left of it, or too much."""
    title = _tidy(text)
    if not title:
        raise InvalidTitle("A title needs at least one printable character; this one has none.")
    if len(title) > MAX_TITLE:
        raise InvalidTitle(
            f"This title has {len(title)} characters; a title has at most {MAX_TITLE}. Shorten it.",
            length=len(title),
            limit=MAX_TITLE,
        )
    return title


def title_slot(title: str) -> TitleSlot:
    """Which line a title belongs to, and its place there: `My Project #2` is second in `my project`."""
    base, number = _parted(title)
    return TitleSlot(unicodedata.normalize("NFC", base.casefold()), number)


def base_of(title: str) -> str:
    """The title as it was written, without its number."""
    return _parted(title)[0]


def numbered(title: str, number: int) -> str:
    """The title at another place of its line: the bare base for 1, else with ` #N`, shortened to fit."""
    if not 1 <= number <= MAX_NUMBER:
        raise InvalidTitle(f"A title is numbered from 1 to {MAX_NUMBER}, not {number}.", number=number)
    base = base_of(title)
    if number == 1:
        return base
    suffix = f" #{number}"
    return base[: MAX_TITLE - len(suffix)].rstrip() + suffix


def title_from(messages: Iterable[Mapping[str, object]], limit: int = 64) -> str | None:
    """A title from the first thing a user says in these messages; None when no user says anything in text."""
    for message in messages:
        if message.get("role") == "user":
            said = _text_of(message.get("content")).lstrip()
            if title := _tidy(said[: 16 * limit]):
                return _shortened(title, limit)
    return None


def _tidy(text: str) -> str:
    """One line of printable text, composed, with single spaces."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return unicodedata.normalize("NFC", " ".join(_INVISIBLE.sub("", text).split()))


def _parted(title: str) -> tuple[str, int]:
    """The base and the number of a title."""
    clean = clean_title(title)
    match = _NUMBERED.fullmatch(clean)
    return (match[1], int(match[2])) if match else (clean, 1)


def _text_of(content: object) -> str:
    """The text of a message, which is a string or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = (part for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return " ".join(text for part in parts if isinstance(text := part.get("text"), str))


def _shortened(text: str, limit: int) -> str:
    """The text in at most `limit` characters, cut between words when a gap is near, and marked as cut."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 0)]
    gap = text.rfind(" ", 0, limit)
    if gap > limit * 2 // 3:
        head = head[:gap]
    return head.rstrip(" ,;:") + "…"
