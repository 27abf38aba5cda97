"""Text as people and programs send it: what can be stored, and how it is normalized.

The rule for text that enters: NUL and unpaired surrogates, which no database engine, UTF-8 file or JSON response can
hold, are replaced where the text enters. What is stored contains neither, so nothing that reads it has to care.

Where a text may be cut without damaging what people see as one character: an emoji, a flag, a letter with marks.

Plain text made from Markdown, for places that show one line of it: previews and titles.

Limits of the JSON in a log: how deep it may be nested, and how large it may be. What is nested deeper cannot be encoded
or decoded everywhere, so that one such value would make a whole page of a conversation unreadable.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final, Literal

MAX_MARKS_PER_CHAR = 30  # as in Unicode's stream-safe text format; no language needs more


def is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def make_storable(text: str) -> str:
    """Return the text with everything that cannot be stored replaced.

    The two halves of a surrogate pair that arrived as two characters become the one they stand for.
    """
    if is_storable(text):
        return text
    with_pairs = text.replace("\0", " ").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return with_pairs.encode("utf-8", "replace").decode()


def make_json_storable(value: Any) -> Any:
    """Return JSON-ready data with all its text storable."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, Mapping):
        return {make_json_storable(key): make_json_storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [make_json_storable(inner) for inner in value]
    return value


def normalize_unicode(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """Return the text in a Unicode normal form.

    Of a long run of combining marks only the first `MAX_MARKS_PER_CHAR` are kept: normalizing sorts each run, in time
    that grows with the square of its length.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _long_marks_pattern().sub(r"\1", text))


def format_char_class(codes: Iterable[int]) -> str:
    """Return characters, given by their codes in ascending order, as ranges for a character class."""
    known = list(codes)
    starts = [code for before, code in pairwise([-2, *known]) if before + 1 != code]
    ends = [code for code, after in pairwise([*known, -2]) if after - 1 != code]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


@cache
def _long_marks_pattern() -> re.Pattern[str]:
    """Return the pattern of a run of marks that is too long. Built on first use: it needs a moment."""
    candidates = [*range(0x300, 0xFE30), 0xFF9E, 0xFF9F, *range(0x10000, 0x1F000), *range(0xE0100, 0xE01F0)]
    marks = [code for code in candidates if unicodedata.category(chr(code))[0] == "M" or 0xFF9E <= code <= 0xFF9F]
    low = format_char_class(code for code in marks if code < 0x10000)
    high = format_char_class(code for code in marks if code >= 0x10000)
    mark = f"(?:[{low}]|(?=[^\0-\uffff])[{high}])"  # the lookahead avoids the slower half of the list
    return re.compile(f"({mark}{{{MAX_MARKS_PER_CHAR}}}){mark}+")


def shorten(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def make_name_key(name: str) -> str:
    """Return the text by which equal names are recognized."""
    return " ".join(name.split()).casefold()


def encode_json(value: object, *, allow_nan: bool = True) -> str:
    """Return a list or an object as JSON that can be stored."""
    encode = (_ENCODER if allow_nan else _STRICT_ENCODER).encode
    try:
        text = encode(value)
    except TypeError:  # a mapping that is no dict, perhaps
        return encode(make_json_storable(value))
    # All that can't be stored is escaped like this, and so are emoji.
    return encode(make_json_storable(value)) if "\\u0000" in text or "\\ud" in text else text


_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_STRICT_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


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


_MAX_SPAN_CHARS = 400  # between two marks that belong together; it also bounds the time for marks without a partner

_MARKS = re.compile(r"[*_`~#>\[\\|<=+)-]")
_WORDLESS_LINES = re.compile(  # code fences, rules, the underline of a heading, the line below the head of a table
    r"^[ \t>]{0,20}(?:(?:`{3,9}|~{3,9})[^`\n]{0,100}|[-*_=](?:[ \t]?[-*_=]){2,200}[ \t]{0,20}"
    r"|(?=[ \t:|-]{3})(?=[^\n]{0,200}\|)(?=[^\n]{0,200}-)[ \t:|-]{3,300})$",
    re.MULTILINE,
)
_BLOCK_MARKS = re.compile(  # of quotes, headings, lists and tasks; they may follow one another
    r"^(?:[ \t]{0,20}(?:>|#{1,6}(?=[ \t])|[-*+](?=[ \t])|\d{1,3}[.)](?=[ \t])))+[ \t]{0,20}(?:\[[ xX]\][ \t])?",
    re.MULTILINE,
)
_LIST_NUMBER = re.compile(r"\d[.)][ \t]")
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]{1,20}#{1,6}[ \t]{0,20}$", re.MULTILINE)
_TABLE_ROWS = re.compile(r"^[ \t]{0,20}\|.*", re.MULTILINE)
_FOOTNOTES = re.compile(r"\[\^[^\]\s]{1,40}\]:?")
_LINKS = re.compile(
    rf"!?\[([^\[\]]{{0,{_MAX_SPAN_CHARS}}})\]"
    r"(?:\([^()\s]{0,1000}(?:[ \t]+[\"'][^\"'\n]{0,200}[\"'])?\)|\[[^\[\]]{0,100}\])"
)
_AUTOLINKS = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,1000})>")
_TAGS = re.compile(r"</?(?:br|details|summary|sub|sup)(?:[ \t]+[^<>]{0,200})?/?>", re.IGNORECASE)
# Each begins with its mark, which is searched for faster than what must not be before it.
_CODE = re.compile(rf"(`(?<!``)`{{0,2}})(?!`) ?([^`]{{1,{_MAX_SPAN_CHARS}}}?) ?(?<!`)\1(?!`)")
_EMPHASIS = re.compile(
    rf"(\*(?<![\w*\\]\*)\*{{0,2}}|~(?<![\w*\\]~)~)(?=[^\s*~])([^*~]{{1,{_MAX_SPAN_CHARS}}})(?<=[^\s*~\\])\1(?![\w*])"
)
_UNDERSCORES = re.compile(
    rf"(_(?<![\w\\]_)_{{0,2}})(?=[^\s_])([^_]{{1,{_MAX_SPAN_CHARS}}})(?<=[^\s_\\])\1(?![\w(/-]|\.\w)"
)
_ESCAPES = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")

# In order: a mark that a text must contain, what stands for it, and what is left of that.
_INLINE_RULES = (
    ("#", _CLOSING_HASHES, ""),
    ("[^", _FOOTNOTES, ""),
    ("](", _LINKS, r"\1"),
    ("](", _LINKS, r"\1"),  # an image in a link
    ("][", _LINKS, r"\1"),
    ("<", _AUTOLINKS, r"\1"),
    ("<", _TAGS, " "),
    ("`", _CODE, r"\2"),
    ("*", _EMPHASIS, r"\2"),
    ("*", _EMPHASIS, r"\2"),  # around other emphasis
    ("~~", _EMPHASIS, r"\2"),
    ("_", _UNDERSCORES, r"\2"),
    ("\\", _ESCAPES, r"\1"),
)


def strip_markdown(text: str) -> str:
    """Return the text without Markdown's marks; what only looks like one, as in `snake_case` or `2 * 3`, stays."""
    if _MARKS.search(text) is None and (("\n" not in text and not text[:1].isdigit()) or not _LIST_NUMBER.search(text)):
        return text  # most messages
    plain = _BLOCK_MARKS.sub("", _WORDLESS_LINES.sub("", text))
    if "|" in plain:
        plain = _TABLE_ROWS.sub(lambda row: row[0].replace("|", " "), plain)
    for mark, pattern, replacement in _INLINE_RULES:
        if mark in plain:
            plain = pattern.sub(replacement, plain)
    return plain


MAX_JSON_DEPTH: Final = 32  # lists and objects inside each other
_NUMBER_BYTES: Final = 8


class JsonTooDeep(ValueError):
    """Lists and objects are nested deeper than `MAX_JSON_DEPTH`."""


def measure_json(value: object, max_bytes: int) -> int:
    """Return the size of a JSON value in bytes, as UTF-8; a result above `max_bytes` may be too low.

    Takes time in proportion to the smaller of the value and `max_bytes`. Raises `JsonTooDeep`, for circular values too.
    """
    size, depth, level = 0, 0, [value]
    while level:
        inner: list[Any] = []
        has_containers = False
        for item in level:
            if isinstance(item, str):
                size += _count_utf8_bytes(item) + 2
            elif item is None or isinstance(item, int | float):
                size += item.bit_length() // 3 + 1 if isinstance(item, int) else _NUMBER_BYTES
            elif isinstance(item, list | tuple):
                has_containers = True
                size += 2 + len(item)
                inner += item
            elif isinstance(item, dict | Mapping):
                has_containers = True
                size += 2 + 2 * len(item) + sum(_count_utf8_bytes(str(key)) + 2 for key in item)
                inner += item.values()
            if size > max_bytes:
                return size
        depth += has_containers
        if depth > MAX_JSON_DEPTH:
            raise JsonTooDeep
        level = inner
    return size


def is_too_deep(value: object, text: str) -> bool:
    """Whether a value is nested too deeply; `text` is its JSON, which rarely has enough brackets to look further."""
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return False
    try:
        measure_json(value, sys.maxsize)
    except JsonTooDeep:
        return True
    return False


def _count_utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
