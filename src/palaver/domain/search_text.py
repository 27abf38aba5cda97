"""Text as search words, the same for every database engine.

Owns what a word is, how a query is read, and the excerpt that shows a match. The engines only store and look
up the words they are given from here; none of their own language rules decides what is found.

Text is folded first: compatibility forms and letter case become one, accents are dropped. A word is then a
run of letters, digits and the marks that belong to them, at most `LONGEST` characters of it. Scripts written
without spaces between words (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) give one word per character, and
what is looked for in them is a phrase of such words: so a word of two characters is found in a sentence.
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

LONGEST = 64

# Letters, digits and marks of the scripts that give one word per character.
_SINGLE = (
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
_QUOTES = str.maketrans("“”„‟＂", '"""""')  # as phones write them
_TERM = re.compile(r'(?P<minus>(?<!\S)-(?!-))?(?:"(?P<phrase>[^"]*)"?(?P<star>\*?)|(?P<plain>[^\s"]+))')

# ASCII by table: letters in lower case, digits, and a space for everything else.
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)).ljust(256)
_ASCII_WORD = re.compile("[a-z0-9]+")
_CHUNK = re.compile("[^ ]+")


_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def words(text: str) -> list[str]:
    """The search words of a text, in order."""
    if "\x1b" in text:  # what colours a terminal is not said
        text = _ESCAPES.sub(" ", text)
    if text.isascii():
        found = text.encode().translate(_ASCII).decode().split()
    else:
        found = _pattern().findall(_folded(text))
    if found and len(max(found, key=len)) > LONGEST:
        return [word[:LONGEST] for word in found]
    return found


def indexed(text: str, limit: int = 16_000) -> str:
    """The first `limit` words of a text joined by spaces, as the engines store them.

    What begins after `limit` words of full length is not read at all, so a huge text costs no more than that.
    """
    return " ".join(words(text[: limit * (LONGEST + 1)])[:limit])


# ---- queries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow one another; the last may be the beginning of a longer one."""

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: every term must be found, save the excluded ones, which must not."""

    terms: tuple[Term, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for; with exclusions alone, nothing is."""
        return all(term.excluded for term in self.terms)


def parse_query(text: str) -> Query:
    """A query as people type it: `word`, `"a phrase"`, `begin*`, `-without`; any text at all is a query."""
    terms = []
    for match in _TERM.finditer(text.translate(_QUOTES)):
        plain = match["plain"]
        found = words(match["phrase"] if plain is None else plain)
        if found:
            prefix = bool(match["star"]) if plain is None else plain.endswith("*")
            terms.append(Term(tuple(found), prefix, excluded=match["minus"] is not None))
    return Query(tuple(terms))


# ---- excerpts ----------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    """A word of a text that people see: the stretch between spaces it is part of, and its number there."""

    word: str
    chunk: str
    offset: int
    number: int

    @property
    def span(self) -> tuple[int, int]:
        """Where the word stands in the text."""
        start, end = _spans(self.chunk)[self.number]
        return self.offset + start, self.offset + end


def snippet(text: str, query: Query, width: int = 160, marks: tuple[str, str] = ("[", "]")) -> str:
    """An excerpt of at most `width` characters around the first match, matches marked, `…` where it was cut.

    The beginning of the text when nothing matches. Marks are not counted, and the text is not escaped.
    """
    text = " ".join(text.split())
    first = next(_matches(text, query), (0, 0))
    begin, end = _window(text, first, max(width, 16))
    low = text.rfind(" ", 0, begin) + 1  # whole words only are looked at again
    high = text.find(" ", max(end, first[1]))
    pieces, at = ["…" if begin else ""], begin
    for found in _matches(text[low : high if high >= 0 else None], query):
        start, stop = max(low + found[0], at), min(low + found[1], end)
        if start < stop:
            pieces += [text[at:start], marks[0], text[start:stop], marks[1]]
            at = stop
    pieces += [text[at:end], "…" if end < len(text) else ""]
    return "".join(pieces)


def _window(text: str, match: tuple[int, int], width: int) -> tuple[int, int]:
    """The part of a text to show: the match with a third of the room before it, cut between words if near."""
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


def _matches(text: str, query: Query) -> Iterator[tuple[int, int]]:
    """Where the terms of a query stand in a text with single spaces: start and end, in order of the start."""
    if text.isascii():
        if (pattern := _ascii_matches(query)) is not None:
            yield from (found.span() for found in pattern.finditer(text))
        return
    terms = [term for term in query.terms if not term.excluded]
    if not terms:
        return
    longest = max(len(term.words) for term in terms)
    heads = {term.words[0] for term in terms}
    stems = tuple(term.words[0] for term in terms if term.prefix and len(term.words) == 1)
    ahead: deque[_Token] = deque()
    marked = 0
    for token in chain(_tokens(text), repeat(_Token("", "", 0, 0), longest - 1)):
        ahead.append(token)
        if len(ahead) == longest:
            first = ahead[0]
            if first.word in heads or first.word.startswith(stems):
                reach = max(len(term.words) if _begins(ahead, term) else 0 for term in terms)
                if reach and first.span[0] >= marked:
                    marked = ahead[reach - 1].span[1]
                    yield first.span[0], marked
            ahead.popleft()


@lru_cache(maxsize=128)
def _ascii_matches(query: Query) -> re.Pattern[str] | None:
    """The terms of a query that can stand in an ASCII text, as one pattern; the longest first."""
    terms = [term for term in query.terms if not term.excluded and all(word.isascii() for word in term.words)]
    if not terms:
        return None
    terms.sort(key=lambda term: len(term.words), reverse=True)
    any_of = "|".join(
        "[^0-9a-z]+".join(map(re.escape, term.words)) + ("[0-9a-z]*" if term.prefix else "") for term in terms
    )
    return re.compile(rf"(?<![0-9a-z])(?:{any_of})(?![0-9a-z])", re.IGNORECASE)


def _begins(ahead: deque[_Token], term: Term) -> bool:
    """Whether a term stands at the beginning of these words."""
    *whole, last = term.words
    if any(ahead[number].word != word for number, word in enumerate(whole)):
        return False
    word = ahead[len(whole)].word
    return word.startswith(last) if term.prefix else word == last


def _tokens(text: str) -> Iterator[_Token]:
    for chunk in _CHUNK.finditer(text):
        piece, offset = chunk[0], chunk.start()
        for number, word in enumerate(words(piece)):
            yield _Token(word, piece, offset, number)


@lru_cache(maxsize=64)
def _spans(chunk: str) -> list[tuple[int, int]]:
    """Where each word of `words(chunk)` stands in the chunk as it was before folding."""
    if chunk.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(chunk.lower())]
    folded, origin = [], []
    for cluster in _clusters().finditer(chunk):
        part = _folded(cluster[0])
        folded.append(part)
        origin += [cluster.span()] * len(part)
    found = _pattern().finditer("".join(folded))
    spans = [(origin[match.start()][0], origin[match.end() - 1][1]) for match in found]
    count = len(words(chunk))
    return spans if len(spans) == count else [(0, len(chunk))] * count


# ---- folding -----------------------------------------------------------------------------------------------


def _folded(text: str) -> str:
    """The text without accents, letter case and compatibility forms."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", bare).casefold()


@cache
def _pattern() -> re.Pattern[str]:
    """One word of folded text. Built when first needed: ASCII text, the most common, never needs it."""
    letter = rf"[^\W_{_SINGLE}]"
    marks = rf"(?=[^\x00-\u02ff])[{_marks()}]"  # the look ahead spares most words the long list
    return re.compile(rf"[{_SINGLE}]|{letter}+(?:{marks}+{letter}*)*")


@cache
def _clusters() -> re.Pattern[str]:
    """The smallest pieces of text that fold by themselves: a character with its marks, or a run of jamo."""
    return re.compile(f"[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+|.[{_marks()}\uff9e\uff9f]*", re.DOTALL)


@cache
def _marks() -> str:
    """Every combining mark outside the scripts of `_SINGLE`, as ranges of a character class."""
    single = re.compile(f"[{_SINGLE}]")
    places = chain(range(0x300, 0x1F000), range(0xE0100, 0xE01F0))
    codes = [c for c in places if unicodedata.category(chr(c))[0] == "M" and not single.match(chr(c))]
    starts = [code for before, code in pairwise([-1, *codes]) if before + 1 != code]
    ends = [code for code, after in pairwise([*codes, -1]) if after - 1 != code]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))
