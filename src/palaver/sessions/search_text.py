"""Search words: how text and queries are split into words, in the same way for every database engine.

Owns what a word is, how a query is parsed, and the snippet that shows a match. The engines only store and look
up the words they get from here; their own language rules do not affect what is found.

Text is folded first: compatibility forms and letter case are unified, accents are dropped. A word is then a run of
letters, digits and their combining marks, cut to `MAX_WORD_CHARS` characters. Scripts written without spaces
between words (Han, kana, Hangul, Thai, Lao, Khmer, Myanmar) give one word per character, and a query in them is a
phrase of such words: so a word of two characters is found in a sentence. Each of these characters is common, so the
engines also store every pair of them, which is rare: then the phrase is one of pairs.

Filters of searches and lists: platform, role, person, date, project, archive and words to leave out.

lisbon -porto platform:telegram person:Ada after:2026-01-01 project:"Night trains" archived:without

Always true: a filter only takes matches away. Who may see a message is decided elsewhere, and always applies as well.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo
from enum import StrEnum
from functools import cache, lru_cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.text import format_char_class, normalize_unicode
from palaver.core.texts import say
from palaver.sessions.message import MESSAGE_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


MAX_WORD_CHARS = 64
MAX_QUERY_CHARS = 1000
MAX_QUERY_WORDS = 64  # in all terms together: a phrase costs the engines its length at every place where it may begin
_USUAL_MATCH_CHARS = 8000  # a snippet looks here first, and only then in a longer text
_BLOCK_CHARS = 2000
_MAX_MATCH_CHARS = 5000  # a phrase is hardly ever longer
MIN_PREFIX_CHARS = 3  # of a word that is still being typed: shorter ones begin too many words to look them all up
MAX_INDEXED_WORDS = 16_000  # of a message; words after these are not found

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
_JAMO = "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
_ACCENTS = re.compile("[\u0300-\u036f]+")
_TYPOGRAPHIC_QUOTES = str.maketrans("“”„‟＂", '"""""')  # phones type these
_QUOTES = frozenset('"“”„‟＂')
_TERM = re.compile(r'(?P<minus>(?<!\S)-(?!-))?(?:"(?P<phrase>[^"]*)"?(?P<star>\*?)|(?P<plain>[^\s"]+))')

# A translation table for ASCII: letters become lower case, digits stay, everything else becomes a space.
_ASCII_FOLDING = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)).ljust(256)
_ASCII_WORD = re.compile("[A-Za-z0-9]+")
_CHUNK = re.compile("[^ ]+")
_TERMINAL_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
FILTER_ROLES: Final = ("user", "assistant", "tool")
_KEYS: Final = ("platform", "role", "after", "before", "project", "person", "archived")
_FILTER = re.compile(rf"(?<!\S)({'|'.join(_KEYS)}):(?:\"([^\"]*)\"|(\S+))", re.IGNORECASE)


def split_words(text: str) -> list[str]:
    """Return the search words of a text, in order."""
    if "\x1b" in text:  # terminal colors are not part of the text
        text = _TERMINAL_ESCAPES.sub(" ", text)
    if text.isascii():
        words = text.encode().translate(_ASCII_FOLDING).decode().split()
    else:
        words = _word_pattern().findall(_fold(text))
    if words and max(map(len, words)) > MAX_WORD_CHARS:
        return [word[:MAX_WORD_CHARS] for word in words]
    return words


def split_index_words(text: str, limit: int = MAX_INDEXED_WORDS) -> list[str]:
    """Return the first `limit` words of a text, which the engines store.

    Text beyond the length of `limit` longest words is not read at all, so a huge text costs no more than that.
    """
    return split_words(text[: limit * (MAX_WORD_CHARS + 1)])[:limit]


def list_pairs(words: Sequence[str]) -> list[str]:
    """Return the pair that each word forms with the next one; "" unless both are characters of scripts without spaces.

    Without such words, the list is empty.
    """
    chars = {word for word in set(words) if _is_single_char(word)}
    return [a + b if a in chars and b in chars else "" for a, b in pairwise(words)] if chars else []


def _is_single_char(word: str) -> bool:
    return len(word) == 1 and not word.isascii() and _single_char_pattern().match(word) is not None


# ---- queries -----------------------------------------------------------------------------------------------


def split_query_words(text: str) -> frozenset[str]:
    """Return the words of a query that is not parsed: at most `MAX_QUERY_WORDS`, of its first `MAX_QUERY_CHARS`."""
    return frozenset(split_words(text[:MAX_QUERY_CHARS])[:MAX_QUERY_WORDS])


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
        """Return whether the query has no term to look for; excluded terms alone find nothing."""
        return all(term.excluded for term in self.terms)


def parse_query(text: str, *, is_typing: bool = False) -> Query:
    """Parse a query as people type it: `word`, `"a phrase"`, `begin*`, `-without`; InvalidInput if it is too long.

    With `is_typing`, the last word may be the beginning of a longer word, unless something follows it.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise InvalidInput(
            say(
                "search.too_long",
                "query: a search has at most {limit} characters; this one has {length}. Shorten it.",
                limit=str(MAX_QUERY_CHARS),
                length=str(len(text)),
            ),
            key="query",
            limit=MAX_QUERY_CHARS,
        )
    terms = []
    for match in _TERM.finditer(text.translate(_TYPOGRAPHIC_QUOTES)):
        plain = match["plain"]
        words = split_words(match["phrase"] if plain is None else plain)
        if words:
            prefix = bool(match["star"]) if plain is None else plain.endswith("*")
            prefix = prefix and not _is_single_char(words[-1])  # no longer word begins with it, but many pairs do
            terms.append(Term(tuple(words), prefix, excluded=match["minus"] is not None))
    if is_typing and terms and _is_last_word_open(text, terms[-1]):
        terms[-1] = replace(terms[-1], prefix=True)
    word_count = sum(len(term.words) for term in terms)
    if word_count > MAX_QUERY_WORDS:
        raise InvalidInput(
            say(
                "search.too_many_words",
                "query: a search has at most {limit} words; this one has {number}. Leave some out. In Chinese,"
                " Japanese, Korean, Thai and similar scripts every character counts as a word.",
                limit=str(MAX_QUERY_WORDS),
                number=str(word_count),
            ),
            key="query",
            limit=MAX_QUERY_WORDS,
        )
    return Query(tuple(dict.fromkeys(terms)))


def _is_last_word_open(text: str, last: Term) -> bool:
    """Return whether the next letter that is typed may belong to the last word of a query."""
    if last.excluded or len(last.words[-1]) < MIN_PREFIX_CHARS:  # half a word would exclude too much
        return False
    return not text[-1].isspace() and text[-1] not in _QUOTES


# ---- snippets ----------------------------------------------------------------------------------------------


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
    text = " ".join(_TERMINAL_ESCAPES.sub(" ", " ".join(text.split())).split())
    low, matches = 0, _find_matches(text, query) if len(text) <= _BLOCK_CHARS else None
    first_match = _find_first_match(text, query) if matches is None else next(iter(matches), (0, 0))
    begin, end = _choose_window(text, first_match, max(width, 16))
    if matches is None:  # a long text: in the window, in complete words only, unless there are none for long
        low = max(text.rfind(" ", 0, begin) + 1, begin - _MAX_MATCH_CHARS)
        high = text.find(" ", max(end, first_match[1]))
        high = min(high if high >= 0 else len(text), end + 2 * _MAX_MATCH_CHARS)
        matches = _find_matches(text[low:high], query)
    segments, position = [("…" if begin else "", False)], begin
    for match in matches:
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


# A text is searched as its words, joined by spaces, with a space at either end: then a term is found as a part of a
# string, in time that grows with the text alone. Texts passed here have single spaces and no terminal escapes.


def _find_first_match(text: str, query: Query) -> tuple[int, int]:
    """Return start and end of the first place where a term occurs; (0, 0) if there is none."""
    length, words = _USUAL_MATCH_CHARS, list[str]()
    while len(words) < MAX_INDEXED_WORDS:
        part = text[:length]
        words = split_words(part)
        word_text = _join_words(words if length >= len(text) else words[:-1])  # the last word may have been cut
        found = [(word_text.find(needle), -len(term.words)) for needle, term in _list_needles(query)]
        if first := min((each for each in found if each[0] >= 0), default=None):
            index = word_text.count(" ", 0, first[0])
            return _find_span(part, index, index - first[1] - 1)
        if length >= len(text):
            break
        length *= 4
    return 0, 0


def _find_matches(text: str, query: Query) -> list[tuple[int, int]]:
    """Return start and end of each place where a term occurs, in order of the start; of two at one place the longer."""
    word_text = _join_words(split_words(text))
    lengths: dict[int, int] = {}  # by the index of the first word
    for needle, term in _list_needles(query):
        index, counted, position = 0, 0, word_text.find(needle)
        while position >= 0:
            index, counted = index + word_text.count(" ", counted, position), position
            lengths[index] = max(len(term.words), lengths.get(index, 0))
            position = word_text.find(needle, position + len(needle) - 1)
    if not lengths:
        return []
    spans = list(islice(_find_spans(text), max(map(sum, lengths.items()))))
    matches, next_index = [], 0
    for index, length in sorted(lengths.items()):
        if index >= next_index:
            next_index = index + length
            matches.append((spans[index][0], spans[next_index - 1][1]))
    return matches


def _join_words(words: list[str]) -> str:
    return f" {' '.join(words)} "


def _list_needles(query: Query) -> list[tuple[str, Term]]:
    """Return each term to look for, with its words as they occur in a joined text."""
    return [(f" {' '.join(term.words)}{'' if term.prefix else ' '}", term) for term in query.terms if not term.excluded]


def _find_span(text: str, first: int, last: int) -> tuple[int, int]:
    """Return the start of one word of a text and the end of another, given their indexes."""
    block_start = 0
    while (block_end := text.find(" ", block_start + _BLOCK_CHARS)) >= 0:
        word_count = len(split_words(text[block_start:block_end]))
        if first < word_count:
            break
        first, last, block_start = first - word_count, last - word_count, block_end
    spans = list(islice(_find_spans(text[block_start:]), first, last + 1))
    return block_start + spans[0][0], block_start + spans[-1][1]


def _find_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each word of `split_words(text)`."""
    if text.isascii():
        yield from (match.span() for match in _ASCII_WORD.finditer(text))
        return
    for chunk in _CHUNK.finditer(text):
        offset = chunk.start()
        for start, end in _find_chunk_spans(chunk[0]):
            yield offset + start, offset + end


def _find_chunk_spans(chunk: str) -> list[tuple[int, int]]:
    """Return start and end of each word of `split_words(chunk)` in the chunk before folding."""
    if chunk.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(chunk)]
    whole = _fold(chunk)
    if len(whole) == len(chunk) and all(map(_folds_alone, set(chunk))):
        return [match.span() for match in _word_pattern().finditer(whole)]
    folded, origins = [], []
    for cluster in _cluster_pattern().finditer(chunk):
        part = _fold_cluster(cluster[0])
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
    without_accents = _ACCENTS.sub("", normalize_unicode("NFKD", text))
    return normalize_unicode("NFC", without_accents).casefold()


_fold_cluster = lru_cache(maxsize=4096)(_fold)


@lru_cache(maxsize=8192)
def _folds_alone(char: str) -> bool:
    """Return whether a character folds to one character, whatever stands beside it."""
    folded = _fold(char)
    return len(folded) == 1 and not any(_joining_pattern().match(each) for each in (char, folded))


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of one word. Built on first use: ASCII text, the most common, never needs it."""
    letter = rf"[^\W_{_SINGLE_CHAR_SCRIPTS}]"
    marks = rf"(?=[^\x00-\u02ff])[{_combining_marks()}]"  # for most words the lookahead avoids the long list
    return re.compile(rf"[{_SINGLE_CHAR_SCRIPTS}]|{letter}+(?:{marks}+{letter}*)*")


@cache
def _single_char_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_SINGLE_CHAR_SCRIPTS}]")


@cache
def _cluster_pattern() -> re.Pattern[str]:
    """Return the pattern of the smallest unit that folds on its own: a character with its marks, or a run of jamo."""
    return re.compile(f"[{_JAMO}]+|.[{_combining_marks()}\uff9e\uff9f]*", re.DOTALL)


@cache
def _joining_pattern() -> re.Pattern[str]:
    """Return the pattern of a character that folds together with the one before it."""
    return re.compile(f"[{_JAMO}{_combining_marks()}\uff9e\uff9f]")


@cache
def _combining_marks() -> str:
    """Return all combining marks outside `_SINGLE_CHAR_SCRIPTS`, as ranges of a character class."""
    single_char = _single_char_pattern()
    candidates = chain(range(0x300, 0x1F000), range(0xE0100, 0xE01F0))
    codes = [c for c in candidates if unicodedata.category(chr(c))[0] == "M" and not single_char.match(chr(c))]
    return format_char_class(codes)


FIRST_YEAR, LAST_YEAR = 1970, 2100  # of a range without a beginning or end


class ArchivedFilter(StrEnum):
    """Which conversations to search: archived ones, the others, or both."""

    ONLY = "only"
    WITHOUT = "without"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which messages or conversations to include; None includes all."""

    platform: str | None = None
    role: str | None = None  # of the message
    after: datetime | None = None  # at this moment or later
    before: datetime | None = None  # before this moment
    project: str | None = None  # one of the person's projects, by id or name
    without: str | None = None  # none of these words occurs
    person: str | None = None  # who wrote the message: a person who takes part in a visible conversation, by id or name
    archived: ArchivedFilter = ArchivedFilter.BOTH

    def __post_init__(self) -> None:
        if self.platform is not None:
            object.__setattr__(self, "platform", self.platform.strip().lower())
        if self.role is not None and self.role not in MESSAGE_ROLES:
            raise InvalidInput(f"role: {self.role!r} is not allowed. Use one of {', '.join(FILTER_ROLES)}.", key="role")
        for moment in (self.after, self.before):
            if moment is not None and moment.utcoffset() is None:
                raise InvalidInput(f"{moment.isoformat()} has no time zone, so it is ambiguous.")


NO_FILTER: Final = SearchFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterText:
    """The text of a search, split into words and filters; days are days of a calendar, in no time zone yet."""

    words: str
    platform: str | None = None
    role: str | None = None
    after: date | None = None
    before: date | None = None
    project: str | None = None
    person: str | None = None
    archived: ArchivedFilter | None = None  # None: not said

    def to_filter(self, zone: tzinfo) -> SearchFilter:
        """Return the filter, with days that begin at midnight in a time zone."""
        return SearchFilter(
            platform=self.platform,
            role=self.role,
            after=None if self.after is None else start_of_day(self.after, zone),
            before=None if self.before is None else start_of_day(self.before, zone),
            project=self.project,
            person=self.person,
            archived=self.archived or ArchivedFilter.BOTH,
        )


def parse_filter_text(text: str) -> FilterText:
    """Split what a person typed into words and filters; raises `InvalidInput` for a filter with an invalid value."""
    found: dict[str, str] = {}
    for match in _FILTER.finditer(text):
        found[match[1].lower()] = match[3] if match[2] is None else match[2]
    role = found.get("role")
    if role is not None and role.lower() not in FILTER_ROLES:
        raise InvalidInput(f"role: {role!r} is not allowed. Use one of {', '.join(FILTER_ROLES)}.", key="role")
    return FilterText(
        words=" ".join(_FILTER.sub(" ", text).split()),
        platform=found.get("platform"),
        role=role and role.lower(),
        after=_parse_day("after", found.get("after")),
        before=_parse_day("before", found.get("before")),
        project=found.get("project"),
        person=found.get("person"),
        archived=None if (archived := found.get("archived")) is None else parse_archived(archived),
    )


def parse_archived(text: str) -> ArchivedFilter:
    try:
        return ArchivedFilter(text.lower())
    except ValueError:
        names = ", ".join(ArchivedFilter)
        text = say(
            "search.bad_archived", "archived: {text} is not allowed. Use one of {names}.", text=repr(text), names=names
        )
        raise InvalidInput(text, key="archived") from None


def start_of_day(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _parse_day(key: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise InvalidInput(
            say("search.bad_date", "{key}: {text} is not a date. Write it as 2026-01-31.", key=key, text=repr(text)),
            key=key,
        )
    return day
