"""What a summary must not lose: identifiers, dates and amounts, and what is still open.

Pure, and linear in what it reads, which is bounded. A summary is refused if it lacks
- an identifier (address, file, path, number of a ticket or order, code) that a person wrote or the previous summary
  has, or that the agent wrote more than once;
- more than half of the dates, times and amounts that people wrote;
- a question that waits for its answer, or an item of a to-do list that is not done.

Only the beginning of a long message counts: the rest was pasted, and what matters of it is repeated later. Of many
identifiers only the newest count, so that a long conversation can be summarized at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import extract_text
from palaver.core.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MAX_READ_CHARS: Final = 2000  # of one message
MAX_READ_MESSAGES: Final = 300  # the newest
MAX_IDENTIFIERS: Final = 30
MAX_AMOUNTS: Final = 30
MAX_OPEN_ITEMS: Final = 5
MAX_OPEN_ITEM_CHARS: Final = 200
MAX_SUMMARY_CHARS: Final = 40_000  # more than any summary that is accepted has
_MIN_AMOUNT_SHARE: Final = 0.5
_MIN_WORD_SHARE: Final = 0.4  # of the long words of a question, by their beginnings: a summary uses other forms of them
_STEM_CHARS: Final = 5

_EXTENSIONS: Final = (
    "pdf|docx?|xlsx?|pptx?|od[tsp]|csv|txt|md|json|ya?ml|toml|ini|conf|cfg|log|xml|html?|css|sql|py|ipynb|js|tsx?|jsx|go"
    "|rs|java|kt|swift|c|cpp|h|sh|ps1|png|jpe?g|gif|svg|webp|mp3|mp4|wav|zip|tar|gz|7z|iso|exe|apk"
)
_UNITS: Final = (
    r"%|°C|°F|€|\$|£|¥|EUR|USD|GBP|CHF|JPY|Euro|dollars?|kg|mg|g|t|lbs?|km|cm|mm|m|mi|ft|m²|qm|l|ml|kWh|kW|W|GB|MB|TB"
    r"|kB|h|min|hours?|minutes?|days?|weeks?|months?|years?|Uhr|Stunden?|Minuten?|Tagen?|Tage|Wochen?|Monaten?|Monate"
    r"|Jahren?|Jahre"
)
_NUMBER: Final = r"\d{1,12}(?:[.,'’ ]\d{2,3}){0,4}(?:[.,]\d{1,4})?"
_IDENTIFIER: Final = re.compile(
    r"(?P<url>https?://[^\s<>\"'`)\]]{3,300})"
    r"|(?P<mail>(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})"
    r"|`(?P<code>[^`\n]{3,60})`"
    r"|(?P<path>(?<![\w/])(?:~|\.{1,2})?/[\w.-]{1,60}(?:/[\w.-]{1,60}){1,12}|\b[A-Za-z]:\\[\w.\\-]{2,200})"
    rf"|(?P<file>(?<![\w.-])[\w-]{{1,80}}(?:\.[\w-]{{1,20}}){{0,3}}\.(?:{_EXTENSIONS})\b)"
    r"|(?P<ticket>(?<![\w&])#\d{1,12}\b)"
    r"|(?P<phone>(?<!\w)\+\d{1,3}(?:[ /()-]{0,2}\d{1,5}){2,6})"
    r"|(?P<id>(?<![\w-])(?=[\w-]{0,40}\d)[\w]{1,40}(?:-[\w]{1,40}){0,6}(?![\w-]))"
)
_AMOUNT: Final = re.compile(
    r"(?P<date>\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}[./]\s?\d{1,2}[./]\s?(?:\d{4}|\d{2})?(?!\d))"
    r"|(?P<time>\b\d{1,2}:\d{2}\b)"
    rf"|(?P<price>[$€£¥]\s?{_NUMBER}|\b{_NUMBER}\s?(?:{_UNITS})(?!\w))"
)
_DIGITS: Final = re.compile(r"\d+")
_GROUPED: Final = re.compile(r"\d[\d.,'’]*")
_TODO: Final = re.compile(
    r"^\s{0,8}(?:[-*]\s{0,3}\[ \]|(?:TODO|To[- ]?do|Offen|Open)\s{0,2}:)\s{0,4}(\S.*)$", re.MULTILINE
)
_QUESTION: Final = re.compile(r"[^.!?。！？\n]{3,400}[?？](?=\s*$)")
_WORD: Final = re.compile(r"[^\W\d_]{4,}|[぀-ヿ㐀-鿿가-힯]{2}")
_SPACES: Final = re.compile(r"[\s()./'’,-]+")
_MIN_ID_DIGITS: Final = 3
_MIN_NUMBER_DIGITS: Final = 5  # of a number alone; a shorter one is a year or a count
_MAX_SENTENCE_MARKS: Final = ".,;:!?)"


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """What a summary has lost."""

    mentioned: Sequence[str] = ()  # identifiers, dates and amounts
    open_items: Sequence[str] = ()

    @property
    def count(self) -> int:
        return len(self.mentioned) + len(self.open_items)


def find_missing_facts(
    summary: str, replaced: Sequence[Mapping[str, Any]], previous_summary: str | None = None
) -> MissingFacts:
    """Return what a summary of these messages lacks; nothing if it may replace them."""
    texts = list(_iterate_texts(replaced, previous_summary))  # the newest first
    known = _SummaryIndex(summary[:MAX_SUMMARY_CHARS])
    lost = [each for each in _list_identifiers(texts) if not known.has_identifier(each)]
    amounts = _list_amounts(texts)
    lost_amounts = [each for each in amounts if not known.has_amount(each)]
    if len(lost_amounts) > len(amounts) * _MIN_AMOUNT_SHARE:
        lost += lost_amounts
    open_items = [each for each in _list_open_items(replaced) if not known.has_words(each)]
    return MissingFacts(lost, open_items)


def add_missing_facts(summary: str, missing: MissingFacts) -> str:
    """Return the summary with what it lacks as a list."""
    parts = [summary]
    if missing.mentioned:
        parts.append(f"Also mentioned: {', '.join(missing.mentioned)}")
    if missing.open_items:
        parts.append("\n".join(["Still open:", *(f"- {item}" for item in missing.open_items)]))
    return "\n\n".join(parts)


# ---- what was said ---------------------------------------------------------------------------------------------


def _iterate_texts(replaced: Sequence[Mapping[str, Any]], previous_summary: str | None) -> Iterator[tuple[str, bool]]:
    """Yield what was said, the newest first, and whether all identifiers in it count."""
    for message in replaced[: -MAX_READ_MESSAGES - 1 : -1]:
        if message["role"] in {"user", "assistant"}:
            yield extract_text(message)[:MAX_READ_CHARS], message["role"] == "user"
    if previous_summary is not None:
        yield previous_summary[:MAX_SUMMARY_CHARS], True


def _list_identifiers(texts: Iterable[tuple[str, bool]]) -> list[str]:
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for text, is_persons in texts:
        for identifier in _find_identifiers(text):
            key = _fold(identifier)
            shown.setdefault(key, identifier)
            counts[key] = counts.get(key, 0) + (2 if is_persons else 1)
    return [identifier for key, identifier in shown.items() if counts[key] > 1][:MAX_IDENTIFIERS]


def _find_identifiers(text: str) -> Iterator[str]:
    for found in _IDENTIFIER.finditer(text):
        kind = found.lastgroup or ""
        identifier = found[kind].rstrip(_MAX_SENTENCE_MARKS)
        if kind == "id" and not _is_identifier(identifier):
            continue
        if len(identifier) > 1:
            yield identifier


def _is_identifier(token: str) -> bool:
    digits = sum(map(str.isdigit, token))
    if token.isdecimal():
        return digits >= _MIN_NUMBER_DIGITS
    if _AMOUNT.fullmatch(token):
        return False
    return digits >= _MIN_ID_DIGITS and any(map(str.isalpha, token))


def _list_amounts(texts: Iterable[tuple[str, bool]]) -> list[str]:
    amounts = [found[0].strip() for text, is_persons in texts if is_persons for found in _AMOUNT.finditer(text)]
    return list(dict.fromkeys(amounts))[:MAX_AMOUNTS]


def _list_open_items(replaced: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what is still open: to-dos, and the question at the end, if nothing has followed it."""
    newest = replaced[: -MAX_READ_MESSAGES - 1 : -1]
    said = [extract_text(message)[:MAX_READ_CHARS] for message in newest if message["role"] in {"user", "assistant"}]
    items = [found[1].strip() for text in said for found in _TODO.finditer(text)]
    if said and (question := _QUESTION.search(said[0][-MAX_OPEN_ITEM_CHARS * 2 :].strip())):
        items.insert(0, question[0].strip())
    return [item[:MAX_OPEN_ITEM_CHARS] for item in dict.fromkeys(items)][:MAX_OPEN_ITEMS]


# ---- what the summary has --------------------------------------------------------------------------------------


class _SummaryIndex:
    def __init__(self, summary: str) -> None:
        self._text = summary.casefold()
        self._compact = _SPACES.sub("", self._text)
        grouped = {"".join(_DIGITS.findall(number)) for number in _GROUPED.findall(summary)}
        self._numbers = {number.lstrip("0") for number in {*_DIGITS.findall(summary), *grouped}}
        self._stems = {word[:_STEM_CHARS] for word in _WORD.findall(self._text)}

    def has_identifier(self, identifier: str) -> bool:
        folded = _fold(identifier)
        return folded in self._text or _SPACES.sub("", folded) in self._compact

    def has_amount(self, amount: str) -> bool:
        """Return whether a number is there: a date or time in any notation, so one part of it may be a word."""
        found = _AMOUNT.fullmatch(amount)
        if found is not None and found.lastgroup == "price":
            digits = "".join(_DIGITS.findall(amount)).lstrip("0")
            return digits in self._numbers or digits.removesuffix("00") in self._numbers
        parts = [part.lstrip("0") for part in _DIGITS.findall(amount)]
        return sum(part not in self._numbers for part in parts) <= 1

    def has_words(self, item: str) -> bool:
        """Return whether enough of the words of a question or task are there, in some form."""
        stems = {word[:_STEM_CHARS] for word in _WORD.findall(item.casefold())}
        return not stems or len(stems & self._stems) >= len(stems) * _MIN_WORD_SHARE


def _fold(identifier: str) -> str:
    folded = identifier.casefold()
    return folded.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")
