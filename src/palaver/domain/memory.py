"""What the agent was asked to remember: one thing, in a few words.

A memory belongs to those who may see the conversation it was said in, or to one person alone. The same thing said
twice, in other letter case or with other spaces, is one memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput
from palaver.domain.search_text import words
from palaver.domain.text import is_storable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.domain.ids import MemoryId, PersonId

LONGEST = 2000  # characters
MOST = 1000  # of one audience
_LONGEST_KEY = 500  # bytes; a database's index takes few more
_SHORTEST_BEGINNING = 3  # of a word: `cat` finds cats, `a` does not find everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something remembered."""

    id: MemoryId
    text: str
    person_id: PersonId | None  # who asked for it as it reads now, where that is known
    created_at: datetime  # when they did


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Something remembered, as one of those who know it sees it."""

    memory: Memory
    asked_by: str | None  # the name of whoever asked for it
    shared: bool  # it belongs to a place that several people share
    others: tuple[str, ...]  # the names of others who know it too, the first of them
    other_count: int  # how many others know it


def clean_memory(text: str) -> str:
    """The text without spaces around it; refused when it is empty, too long, or cannot be kept as it is."""
    clean = text.strip()
    if not clean:
        raise InvalidInput("there is nothing to remember: the text is empty")
    if len(clean) > LONGEST:
        raise InvalidInput(
            f"this is too long to be remembered ({len(clean)} characters); say it in at most {LONGEST}",
            characters=len(clean),
        )
    if not is_storable(clean):
        raise InvalidInput("this holds characters that cannot be kept; leave out NUL and halves of surrogate pairs")
    return clean


def memory_key(text: str) -> str:
    """What is equal for two texts that are the same thing."""
    folded = " ".join(text.split()).casefold()
    if len(folded.encode(errors="replace")) <= _LONGEST_KEY:
        return folded
    return hashlib.sha256(folded.encode(errors="replace")).hexdigest()


def has_words(text: str, query: str) -> bool:
    """Whether each word of a query begins a word of the text, so that results narrow down while somebody types."""
    wanted = set(words(query))
    if not wanted:
        return " ".join(query.split()).casefold() in " ".join(text.split()).casefold()
    found = set(words(text))
    return all(any(each.startswith(word) for each in found) for word in wanted)


def best_matching(memories: Iterable[Memory], query: str, limit: int) -> list[Memory]:
    """Those with words of the query, most of them first; among equals, and without a query, as they come."""
    wanted = set(words(query))
    whole = " ".join(query.split()).casefold()
    if not whole:
        return list(memories)[:limit]
    scored = [(_score(memory.text, wanted, whole), memory) for memory in memories]
    scored = sorted((each for each in scored if each[0]), key=lambda each: each[0], reverse=True)
    return [memory for _, memory in scored[:limit]]


def _score(text: str, wanted: set[str], whole: str) -> int:
    """How many of the wanted words a text has; a query without words, such as 🍵, must stand there as it is."""
    if not wanted:
        return int(whole in " ".join(text.split()).casefold())
    found = set(words(text))
    return sum(any(_finds(word, each) for each in found) for word in wanted)


def _finds(wanted: str, word: str) -> bool:
    return word == wanted or (len(wanted) >= _SHORTEST_BEGINNING and word.startswith(wanted))
