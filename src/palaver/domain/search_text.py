"""Search words: how text and queries are split into words, in the same way for every database engine.

Owns what a word is, how a query is parsed, and the snippet that shows a match. The engines only store and look
up the words they get from here; their own language rules do not affect what is found.

Text is folded first: compatibility forms and letter case are unified, accents are dropped. A word is then a run of
letters, digits and their combining marks, cut to `MAX_WORD_CHARS` characters. Scripts written without spaces
between words (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) give one word per character, and a query in them is a
phrase of such words: so a word of two characters is found in a sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WORD_CHARS = 64

# Letters, digits and marks of the scripts that give one word per character.
_SINGLE_CHAR_SCRIPTS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # kana
    "\uac00-\ud7a3"  # Hangul syllables
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0eff"  # Lao
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_TYPOGRAPHIC_QUOTES = str.maketrans("“”„‟＂", '"""""')  # phones type these
_TERM = re.compile(r'(?P<minus>(?<!\S)-(?!-))?(?:"(?P<phrase>[^"]*)"?(?P<star>\*?)|(?P<plain>[^\s"]+))')

# A translation table for ASCII: letters become lower case, digits stay, everything else becomes a space.
_ASCII_FOLDING = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)).ljust(256)
_ASCII_WORD = re.compile("[a-z0-9]+")
_CHUNK = re.compile("[^ ]+")
_TERMINAL_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def split_words(text: str) -> list[str]:
    """Return the search words of a text, in order."""
    if "\x1b" in text:  # terminal colors are not part of the text
        text = _TERMINAL_ESCAPES.sub(" ", text)
    if text.isascii():
        words = text.encode().translate(_ASCII_FOLDING).decode().split()
    else:
        words = _word_pattern().findall(_fold(text))
    if words and len(max(words, key=len)) > MAX_WORD_CHARS:
        return [word[:MAX_WORD_CHARS] for word in words]
    return words


def build_index_text(text: str, limit: int = 16_000) -> str:
    """Return the first `limit` words of a text joined by spaces, as the engines store them.

    Text beyond the length of `limit` longest words is not read at all, so a huge text costs no more than that.
    """
    return " ".join(split_words(text[: limit * (MAX_WORD_CHARS + 1)])[:limit])


# ---- queries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow one another; with `prefix`, the last one may be the beginning of a longer word."""

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A search query: every term must occur, except the excluded ones, which must not."""

    terms: tuple[Term, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the query has no term to look for; excluded terms alone find nothing."""
        return all(term.excluded for term in self.terms)


def parse_query(text: str) -> Query:
    """Parse a query as people type it: `word`, `"a phrase"`, `begin*`, `-without`; any text is a valid query."""
    terms = []
    for match in _TERM.finditer(text.translate(_TYPOGRAPHIC_QUOTES)):
        plain = match["plain"]
        words = split_words(match["phrase"] if plain is None else plain)
        if words:
            prefix = bool(match["star"]) if plain is None else plain.endswith("*")
            terms.append(Term(tuple(words), prefix, excluded=match["minus"] is not None))
    return Query(tuple(terms))


# ---- snippets ----------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    """A search word, and where it comes from in the original text."""

    word: str
    chunk: str  # the run of characters between spaces that contains the word
    offset: int  # of the chunk in the text
    word_index: int  # of the word in the chunk

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the word in the text."""
        start, end = _find_spans(self.chunk)[self.word_index]
        return self.offset + start, self.offset + end


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt of a text, in segments; those that match a query are highlighted. As a string: `big [server]`."""

    segments: tuple[tuple[str, bool], ...]  # text, is highlighted

    def __str__(self) -> str:
        return self.highlight()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.segments)

    @property
    def highlights(self) -> list[tuple[int, int]]:
        """Start and end of each highlighted segment in `text`; the end is exclusive."""
        spans, start = [], 0
        for text, is_highlighted in self.segments:
            if is_highlighted:
                spans.append((start, start + len(text)))
            start += len(text)
        return spans

    def highlight(self, before: str = "[", after: str = "]") -> str:
        """Return the text with marks around the highlighted segments. Nothing is escaped."""
        return "".join(f"{before}{text}{after}" if is_highlighted else text for text, is_highlighted in self.segments)


def build_snippet(text: str, query: Query, width: int = 160) -> Snippet:
    """Build an excerpt of at most `width` characters around the first match, with `…` where it was cut.

    If nothing matches, it is the beginning of the text.
    """
    text = " ".join(text.split())
    first_match = next(_find_matches(text, query), (0, 0))
    begin, end = _choose_window(text, first_match, max(width, 16))
    low = text.rfind(" ", 0, begin) + 1  # matches are searched again, in complete words only
    high = text.find(" ", max(end, first_match[1]))
    segments, position = [("…" if begin else "", False)], begin
    for match in _find_matches(text[low : high if high >= 0 else None], query):
        start, stop = max(low + match[0], position), min(low + match[1], end)
        if start < stop:
            segments += [(text[position:start], False), (text[start:stop], True)]
            position = stop
    segments += [(text[position:end], False), ("…" if end < len(text) else "", False)]
    return Snippet(tuple(segment for segment in segments if segment[0]))


def _choose_window(text: str, match: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the part of a text to show: a third of the width before the match, cut between words where possible."""
    if len(text) <= width:
        return 0, len(text)
    end = min(max(0, match[0] - width // 3) + width, len(text))
    begin = end - width
    if begin:
        gap = text.find(" ", begin, max(begin, min(begin + width // 5, match[0])))
        begin = (begin if gap < 0 else gap) + 1
    if end < len(text):
        gap = text.rfind(" ", max(end - width // 5, match[1]), end)
        end = gap if gap >= 0 else end - 1
    return begin, end


def _find_matches(text: str, query: Query) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place where a term occurs in a text with single spaces, in order of the start."""
    if text.isascii():
        if (pattern := _build_ascii_pattern(query)) is not None:
            yield from (match.span() for match in pattern.finditer(text))
        return
    terms = [term for term in query.terms if not term.excluded]
    if not terms:
        return
    max_words = max(len(term.words) for term in terms)
    first_words = {term.words[0] for term in terms}
    prefixes = tuple(term.words[0] for term in terms if term.prefix and len(term.words) == 1)
    window: deque[_Token] = deque()
    matched_up_to = 0
    for token in chain(_find_tokens(text), repeat(_Token("", "", 0, 0), max_words - 1)):
        window.append(token)
        if len(window) == max_words:
            first = window[0]
            if first.word in first_words or first.word.startswith(prefixes):
                length = max(len(term.words) if _starts_with(window, term) else 0 for term in terms)
                if length and first.span[0] >= matched_up_to:
                    matched_up_to = window[length - 1].span[1]
                    yield first.span[0], matched_up_to
            window.popleft()


@lru_cache(maxsize=128)
def _build_ascii_pattern(query: Query) -> re.Pattern[str] | None:
    """Return one pattern for the terms of a query that can occur in ASCII text, longest first."""
    terms = [term for term in query.terms if not term.excluded and all(word.isascii() for word in term.words)]
    if not terms:
        return None
    terms.sort(key=lambda term: len(term.words), reverse=True)
    any_of = "|".join(
        "[^0-9a-z]+".join(map(re.escape, term.words)) + ("[0-9a-z]*" if term.prefix else "") for term in terms
    )
    return re.compile(rf"(?<![0-9a-z])(?:{any_of})(?![0-9a-z])", re.IGNORECASE)


def _starts_with(window: deque[_Token], term: Term) -> bool:
    """Whether these words begin with a term."""
    *first_words, last = term.words
    if any(window[index].word != word for index, word in enumerate(first_words)):
        return False
    word = window[len(first_words)].word
    return word.startswith(last) if term.prefix else word == last


def _find_tokens(text: str) -> Iterator[_Token]:
    for match in _CHUNK.finditer(text):
        chunk, offset = match[0], match.start()
        for index, word in enumerate(split_words(chunk)):
            yield _Token(word, chunk, offset, index)


@lru_cache(maxsize=64)
def _find_spans(chunk: str) -> list[tuple[int, int]]:
    """Return start and end of each word of `split_words(chunk)` in the chunk before folding."""
    if chunk.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(chunk.lower())]
    folded, origins = [], []
    for cluster in _cluster_pattern().finditer(chunk):
        part = _fold(cluster[0])
        folded.append(part)
        origins += [cluster.span()] * len(part)
    matches = _word_pattern().finditer("".join(folded))
    spans = [(origins[match.start()][0], origins[match.end() - 1][1]) for match in matches]
    count = len(split_words(chunk))
    return spans if len(spans) == count else [(0, len(chunk))] * count


# ---- folding -----------------------------------------------------------------------------------------------


def _fold(text: str) -> str:
    """Return the text without accents, letter case and compatibility forms."""
    if text.isascii():
        return text.lower()
    without_accents = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", without_accents).casefold()


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of one word. Built on first use: ASCII text, the most common, never needs it."""
    letter = rf"[^\W_{_SINGLE_CHAR_SCRIPTS}]"
    marks = rf"(?=[^\x00-\u02ff])[{_combining_marks()}]"  # for most words the lookahead avoids the long list
    return re.compile(rf"[{_SINGLE_CHAR_SCRIPTS}]|{letter}+(?:{marks}+{letter}*)*")


@cache
def _cluster_pattern() -> re.Pattern[str]:
    """Return the pattern of the smallest unit that folds on its own: a character with its marks, or a run of jamo."""
    return re.compile(f"[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+|.[{_combining_marks()}\uff9e\uff9f]*", re.DOTALL)


@cache
def _combining_marks() -> str:
    """Return all combining marks outside `_SINGLE_CHAR_SCRIPTS`, as ranges of a character class."""
    single_char = re.compile(f"[{_SINGLE_CHAR_SCRIPTS}]")
    candidates = chain(range(0x300, 0x1F000), range(0xE0100, 0xE01F0))
    codes = [c for c in candidates if unicodedata.category(chr(c))[0] == "M" and not single_char.match(chr(c))]
    starts = [code for before, code in pairwise([-1, *codes]) if before + 1 != code]
    ends = [code for code, after in pairwise([*codes, -1]) if after - 1 != code]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))
