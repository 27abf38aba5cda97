"""A memory: one fact that the agent was asked to remember, in a few words.

A memory belongs to the audience of the conversation where it was added, or to one person alone. Two texts that differ
only in letter case or spaces are the same memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput
from palaver.domain.search_text import MAX_QUERY_CHARS, split_query_words, split_words
from palaver.domain.text import make_storable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from palaver.domain.ids import MemoryId, PersonId

MAX_MEMORY_CHARS = 2000
MAX_MEMORIES_PER_AUDIENCE = 1000
_MAX_KEY_BYTES = 500  # a database index does not accept much longer values
_MIN_PREFIX_CHARS = 3  # `cat` finds cats, but `a` does not find everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: MemoryId
    text: str
    person_id: PersonId | None  # who added it or last edited it, if known
    created_at: datetime  # when that was


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """A memory as one person sees it in their list."""

    memory: Memory
    author_name: str | None  # who added it or last edited it
    shared: bool  # it belongs to a conversation that several people share
    other_names: tuple[str, ...]  # the first few of the other people who can see it
    other_count: int  # how many other people can see it


def clean_memory(text: str) -> str:
    """Return the text without surrounding spaces; raise InvalidInput when it is empty or too long."""
    clean = make_storable(text).strip()
    if not clean:
        raise InvalidInput("There is nothing to remember: the text is empty.")
    if len(clean) > MAX_MEMORY_CHARS:
        raise InvalidInput(
            f"This text is too long to remember: {len(clean)} of at most {MAX_MEMORY_CHARS} characters. Shorten it.",
            characters=len(clean),
        )
    return clean


def build_memory_key(text: str) -> str:
    """Return a key that is equal for two texts that count as the same memory."""
    folded = " ".join(text.split()).casefold()
    if len(folded.encode(errors="replace")) <= _MAX_KEY_BYTES:
        return folded
    return hashlib.sha256(folded.encode(errors="replace")).hexdigest()


def matches_query(text: str, query: str) -> bool:
    """Whether each word of a query begins a word of the text, so that results narrow down while a person types."""
    query_words = split_query_words(query)
    if not query_words:
        return " ".join(query[:MAX_QUERY_CHARS].split()).casefold() in " ".join(text.split()).casefold()
    text_words = set(split_words(text))
    return all(any(word.startswith(prefix) for word in text_words) for prefix in query_words)


def find_best_matches(memories: Iterable[Memory], query: str, limit: int) -> list[Memory]:
    """Return the memories that share a word with the query, best match first; ties keep the given order.

    An empty query returns the first `limit` memories.
    """
    query_words = split_query_words(query)
    folded_query = " ".join(query[:MAX_QUERY_CHARS].split()).casefold()
    if not folded_query:
        return list(memories)[:limit]
    scored = [(_score_match(memory.text, query_words, folded_query), memory) for memory in memories]
    matches = sorted((each for each in scored if each[0]), key=lambda each: each[0], reverse=True)
    return [memory for _, memory in matches[:limit]]


def _score_match(text: str, query_words: frozenset[str], folded_query: str) -> int:
    """Count the query's words that the text has; a query without words, such as 🍵, must occur in it as it is."""
    if not query_words:
        return int(folded_query in " ".join(text.split()).casefold())
    text_words = set(split_words(text))
    return sum(any(_matches_word(query_word, word) for word in text_words) for query_word in query_words)


def _matches_word(query_word: str, word: str) -> bool:
    return word == query_word or (len(query_word) >= _MIN_PREFIX_CHARS and word.startswith(query_word))
