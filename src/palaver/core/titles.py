"""Titles of conversations: how they are cleaned, numbered, compared, and made from a first message.

A title is one line of at most `MAX_TITLE_CHARS` printable characters. Titles that differ only in a trailing ` #N`
form a numbered series; `parse_title_slot` returns the series and the number of a title. Two titles are the same
when they have the same slot: letter case and the way an accent was typed do not count, everything else does, and
`#draft` is not a number. The store decides who may use which title; nothing is looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, InvalidTitle
from palaver.core.text import make_storable, normalize_unicode, strip_markdown
from palaver.core.texts import say

MAX_TITLE_CHARS = 100
MAX_TITLE_NUMBER = 999_999_999
MAX_WORDS_TITLE_CHARS = 64
MAX_MODEL_ANSWER_CHARS = 1000  # what a model says after them is no part of a title

# Characters that are invisible in a title: controls, zero-width and bidi characters, the BOM, fillers, tags, and
# unpaired surrogates. White space is not included: it is collapsed instead.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_TERMINAL_SEQUENCE = re.compile(  # colors, and what sets window titles or the clipboard
    r"(?:\x1b\[|\x9b)[0-?]{0,50}[ -/]{0,9}[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,1000}(?:\x07|\x1b\\|\x9c)"
)
_LABEL = re.compile(r"^\W{0,4}(?:title|titel)\W{0,4}[:：]", re.IGNORECASE)
_NUMBERED = re.compile(r"(.+) #([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class TitleSlot:
    """The place of a title in its series: the folded base, and the number (1 if the title has none)."""

    base: str
    number: int


def clean_title(text: str) -> str:
    """Clean a title; raise InvalidTitle when it is empty or too long."""
    title = _normalize(text)
    if not title:
        raise InvalidTitle.say("title.no_characters", "A title needs at least one printable character.")
    if len(title) > MAX_TITLE_CHARS:
        raise InvalidTitle(
            say(
                "title.too_long",
                "This title has {length} characters, but only {limit} are allowed. Shorten it.",
                length=str(len(title)),
                limit=str(MAX_TITLE_CHARS),
            ),
            length=len(title),
            limit=MAX_TITLE_CHARS,
        )
    return title


def parse_title_slot(title: str) -> TitleSlot:
    """Return the series and number of a title: `My Project #2` is number 2 of `my project`."""
    base, number = _split_number(title)
    return TitleSlot(normalize_unicode("NFC", base.casefold()), number)


def strip_title_number(title: str) -> str:
    """Return the title as written, without its number."""
    return _split_number(title)[0]


def number_title(title: str, number: int) -> str:
    """Return the title with another number: without a suffix for 1, else with ` #N`, shortened to fit."""
    if not 1 <= number <= MAX_TITLE_NUMBER:
        raise InvalidTitle(f"{number} is not a valid title number (1 to {MAX_TITLE_NUMBER}).", number=number)
    base = strip_title_number(title)
    if number == 1:
        return base
    suffix = f" #{number}"
    return base[: MAX_TITLE_CHARS - len(suffix)].rstrip() + suffix


def title_from(messages: Iterable[Mapping[str, object]], limit: int = MAX_WORDS_TITLE_CHARS) -> str | None:
    """Return a title made from the first user message with text; None when there is none."""
    for message in messages:
        if message.get("role") == "user" and (title := make_words_title(_get_text(message.get("content")), limit)):
            return title
    return None


def make_words_title(text: str, limit: int = MAX_WORDS_TITLE_CHARS) -> str | None:
    """Return a title made from the first words of a text, without Markdown; None if there are none."""
    head = text.lstrip()[: 16 * limit]
    if "\x1b" in head or "\x9b" in head or "\x9d" in head:
        head = _TERMINAL_SEQUENCE.sub("", head)
    plain = strip_markdown(head)
    words = _normalize(plain[: 4 * limit])
    if len(words) < 2 * limit:  # otherwise the rest would be cut off
        words = _normalize(plain)
    return _shorten(words, limit) if words else None


def clean_model_title(text: str) -> str | None:
    """Return the title in a model's answer, without quotes, Markdown and a label; None if the answer is no title."""
    line = next((line for line in text[:MAX_MODEL_ANSWER_CHARS].splitlines() if line.strip()), "")
    title = _normalize(_LABEL.sub("", strip_markdown(line.strip())))
    title = title.strip(" \"'“”„«».")
    return title if title and len(title) <= MAX_TITLE_CHARS else None


def _normalize(text: str) -> str:
    """Return the text as one line of printable, composed characters with single spaces."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return normalize_unicode("NFC", " ".join(_INVISIBLE.sub("", text).split()))


def _split_number(title: str) -> tuple[str, int]:
    clean = clean_title(title)
    match = _NUMBERED.fullmatch(clean)
    return (match[1], int(match[2])) if match else (clean, 1)


def _get_text(content: object) -> str:
    """Return the text of a message, whose content is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = (part for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return " ".join(text for part in parts if isinstance(text := part.get("text"), str))


def _shorten(text: str, limit: int) -> str:
    """Cut the text to at most `limit` characters, between words where possible, and add `…`."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 0)]
    gap = text.rfind(" ", 0, limit)
    if gap > limit * 2 // 3:
        head = head[:gap]
    return head.rstrip(" ,;:") + "…"


def clean_long_text(key: str, text: str, max_chars: int) -> str:
    """Return a text as it is stored; `InvalidInput` names the key of one that is empty or too long."""
    clean = make_storable(text).strip()
    if not clean:
        raise InvalidInput(say("text.empty", "{key}: it is empty. Write something.", key=key), key=key)
    if len(clean) > max_chars:
        raise InvalidInput(
            say(
                "text.too_long",
                "{key}: it has {length} characters; at most {limit} are allowed.",
                key=key,
                length=str(len(clean)),
                limit=str(max_chars),
            ),
            key=key,
        )
    return clean
