"""A memory: one fact that the agent remembers, in a few words.

A memory belongs to the audience of the conversation where it was added, or to one person alone. Two texts that differ
only in letter case or spaces are the same memory; two that have nearly the same words are similar, and the agent is
asked to replace the old one instead of adding another.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from datetime import datetime  # noqa: TC003 - the columns derive from it
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.ids import MemoryId, PersonId, SessionId  # noqa: TC001
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.sessions.search_text import MAX_QUERY_CHARS, split_query_words, split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MAX_MEMORY_CHARS = 2000  # of a memory that a person writes
MAX_AGENT_MEMORY_CHARS = 300  # of one that the agent writes: one fact in one sentence
MAX_MEMORIES_PER_AUDIENCE = 1000
_MAX_CANDIDATES = 5  # similar ones, and oldest ones, that could become one memory
_MIN_SIMILARITY_PERCENT = 85  # of the words of two memories that are similar
_MAX_LENGTH_RATIO = 2  # of two memories that are similar; others are not compared word by word
_MAX_KEY_BYTES = 500  # a database index does not accept much longer values
# What is left out of what the agent learns by itself: `password is …`, the number of a payment card, a key or token.
_SECRET = re.compile(
    r"(?:pass(?:word|phrase|code|wort)|kennwort|\bpin\b|\bpwd\b|\bapi.?key|\btoken\b|secret)[^.!?\n]{0,40}?"
    r"(?:[:=]|\b(?:is|are|ist|lautet)\b)\s*\S"
    r"|\b(?:\d{4}[ -]?){3}\d{4}\b"
    r"|-----BEGIN|\b(?:sk-|gh[pousr]_|xox[abp]-|AKIA|eyJ)[\w-]{12}",
    re.IGNORECASE,
)
_MIN_PREFIX_CHARS = 3  # `cat` finds cats, but `a` does not find everything


class MemoryOrigin(StrEnum):
    PERSON = "person"  # a person wrote or edited it
    AGENT = "agent"  # the agent saved it during a conversation
    LEARNED = "learned"  # the agent learned it from a conversation that had ended or was compacted


class MemoryTurnKind(StrEnum):
    """The event that a memory turn follows."""

    EXPIRY = "expiry"  # the conversation ended by its reset policy
    COMPACTION = "compaction"  # a summary replaced older messages
    LEFT = "new"  # a person left it: for another conversation, a new one or a copy
    FORGOTTEN = "forgotten"  # a memory from it was forgotten: it only marks what was written before as read


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    id: MemoryId
    text: str
    person_id: PersonId | None  # who added it or last edited it, if known
    created_at: datetime  # when that was
    origin: MemoryOrigin = MemoryOrigin.PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """A memory as one person sees it in their list."""

    memory: Memory
    author_name: str | None  # who added it or last edited it
    is_author: bool  # it was the person who sees it
    shared: bool  # it belongs to a conversation that several people share
    other_names: tuple[str, ...]  # the first few of the other people who can see it
    other_count: int  # how many other people can see it
    session_id: SessionId | None = None  # the conversation that it is from, if the person can see that one


def clean_memory(text: str, max_chars: int = MAX_MEMORY_CHARS) -> str:
    """Return the text without surrounding spaces; raise InvalidInput when it is empty or too long."""
    clean = make_storable(text).strip()
    if not clean:
        raise InvalidInput.say("memory.empty", "There is nothing to remember: the text is empty.")
    if len(clean) > max_chars:
        message = say(
            "memory.too_long",
            "This text is too long to remember: {length} of at most {limit} characters. Shorten it.",
            length=str(len(clean)),
            limit=str(max_chars),
        )
        raise InvalidInput(message, characters=len(clean))
    return clean


def looks_like_secret(text: str) -> bool:
    """Whether a text seems to contain a password, a key or the number of a payment card. Some are not recognized."""
    return _SECRET.search(text) is not None


def build_memory_key(text: str) -> str:
    """Return a key that is equal for two texts that count as the same memory."""
    folded = " ".join(text.split()).casefold()
    if len(folded.encode(errors="replace")) <= _MAX_KEY_BYTES:
        return folded
    return hashlib.sha256(folded.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """Why the agent should not simply add a memory."""

    similar: Memory | None  # says nearly the same; None: there are too many memories
    replaceable: tuple[Memory, ...] = ()  # candidates for one memory in place of several, if there are too many


def find_conflict(memories: Sequence[Memory], text: str, limit: int) -> MemoryConflict | None:
    """Return why a text should not be added to the memories of an audience, given newest first; None if it may be."""
    similar = find_similar(memories, text)
    if similar is not None:
        return MemoryConflict(similar)
    if len(memories) < limit:
        return None
    candidates = [*find_best_matches(memories, text, _MAX_CANDIDATES), *memories[: -_MAX_CANDIDATES - 1 : -1]]
    return MemoryConflict(None, tuple({memory.id: memory for memory in candidates}.values()))


def find_similar(memories: Iterable[Memory], text: str) -> Memory | None:
    """Return a memory with nearly the same words as the text, in whichever order; None if there is none."""
    key, words = build_memory_key(text), Counter(split_words(text))
    for memory in memories:
        if build_memory_key(memory.text) == key:
            return memory
        shorter, longer = sorted((len(memory.text), len(text)))
        if longer <= _MAX_LENGTH_RATIO * shorter and _is_similar(words, Counter(split_words(memory.text))):
            return memory
    return None


def _is_similar(words: Counter[str], other: Counter[str]) -> bool:
    common, all_words = (words & other).total(), (words | other).total()
    return all_words > 0 and common * 100 >= _MIN_SIMILARITY_PERCENT * all_words


def matches_query(text: str, query: str) -> bool:
    """Whether each word of a query begins a word of the text, so that results narrow down while a person types."""
    query_words = split_query_words(query)
    if not query_words:
        return " ".join(query[:MAX_QUERY_CHARS].split()).casefold() in " ".join(text.split()).casefold()
    text_words = sorted(set(split_words(text)))
    return all(_find_prefix(text_words, prefix) is not None for prefix in query_words)


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
    text_words = sorted(set(split_words(text)))
    found = ((word, _find_prefix(text_words, word)) for word in query_words)
    return sum(each is not None and (each == word or len(word) >= _MIN_PREFIX_CHARS) for word, each in found)


def _find_prefix(sorted_words: Sequence[str], prefix: str) -> str | None:
    """Return the first of these words that begins with a prefix."""
    index = bisect_left(sorted_words, prefix)
    return sorted_words[index] if index < len(sorted_words) and sorted_words[index].startswith(prefix) else None
