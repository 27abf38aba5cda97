"""Memories as values: which texts count as the same, and what to do when there are too many."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palaver.core.ids import MemoryId
from palaver.memory.model import Memory, find_conflict, find_similar


def make_memories(*texts: str) -> list[Memory]:
    """Make memories with the ids m_0, m_1 …, given newest first."""
    at = datetime(2026, 11, 15, tzinfo=UTC)
    return [
        Memory(id=MemoryId(f"m_{number}"), text=text, person_id=None, created_at=at)
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("known", "text", "is_similar"),
    [
        ("My cat is called Ada.", "my CAT is  called ada", True),
        ("My cat is called Ada.", "Ada is called my cat!", True),
        ("My cat is called Ada.", "My cat is called Bo.", False),
        ("The bins go out on Tuesday.", "The bins go out on Tuesdays.", False),
        (
            "Ada wants short answers in German, without lists",
            "Ada wants short answers in German without any lists",
            True,
        ),
        ("猫在家", "家在猫", True),
        ("猫在家", "狗在家", False),
        ("🍵", "🍵", True),
        ("🍵", "☕", False),
        ("tea", "tea tea tea", False),
    ],
)
def test_texts_with_nearly_the_same_words_are_similar(known: str, text: str, is_similar: bool) -> None:
    assert (find_similar(make_memories(known), text) is not None) is is_similar
    assert (find_similar(make_memories(text), known) is not None) is is_similar


def test_a_conflict_names_the_similar_memory_first() -> None:
    memories = make_memories("I like tea", "I have a boat")
    conflict = find_conflict(memories, "I have a Boat!", 2)
    assert conflict is not None
    assert conflict.similar == memories[1]
    assert find_conflict(memories, "The club meets on Monday", 3) is None


def test_a_full_list_names_similar_and_old_memories_once() -> None:
    memories = make_memories(*(f"number {number} is {word}" for number, word in enumerate("abcdefghijkl")))
    conflict = find_conflict(memories, "what was l, and b?", len(memories))
    assert conflict is not None
    assert conflict.similar is None
    assert [memory.id for memory in conflict.replaceable] == ["m_1", "m_11", "m_10", "m_9", "m_8", "m_7"]
