"""Text as people and programs send it: what can be stored, and how it is normalized.

The rule for text that enters: NUL and unpaired surrogates, which no database engine, UTF-8 file or JSON response can
hold, are replaced where the text enters. What is stored contains neither, so nothing that reads it has to care.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_MARKS_PER_CHAR = 30  # as in Unicode's stream-safe text format; no language needs more


def is_storable(text: str) -> bool:
    """Whether a text can be stored unchanged."""
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
    """Return JSON-ready data with all its text storable; the same object if it already was."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, Mapping):
        clean = {make_json_storable(key): make_json_storable(inner) for key, inner in value.items()}
        is_same = all(
            new_key is key and new is old
            for (new_key, new), (key, old) in zip(clean.items(), value.items(), strict=False)
        )
        return value if is_same and len(clean) == len(value) else clean
    if isinstance(value, list | tuple):
        items = [make_json_storable(inner) for inner in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
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


def make_name_key(name: str) -> str:
    """Return the text by which equal names are recognized."""
    return " ".join(name.split()).casefold()


def encode_json(value: object) -> str:
    """Return a list or an object as JSON that can be stored."""
    return json.dumps(make_json_storable(value), separators=(",", ":"))
