"""Tests of `palaver memories`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.memory.service import MemoryOperations

if TYPE_CHECKING:
    from cli.conftest import Home


def test_an_empty_list_says_how_to_save_a_memory(home: Home) -> None:
    assert "memories remember" in home.get_text("memories", "list")
    assert home.get_json("memories", "list") == {"memories": []}


def test_memories_are_listed_newest_first_and_found_by_words(home: Home) -> None:
    assert "'My cat is called Ada.'" in home.get_text("memories", "remember", " My cat is called Ada. ")
    memory = home.get_json("memories", "remember", "The bins go out on Tuesday.")["memory"]
    memories = home.get_json("memories", "list")["memories"]
    assert [listed["text"] for listed in memories] == ["The bins go out on Tuesday.", "My cat is called Ada."]
    assert memories[0] == memory
    assert (memory["author_name"], memory["shared"], memory["other_names"]) == ("owner", False, [])
    text = home.get_text("memories", "list", "bins", "tue")
    assert memory["id"] in text
    assert "only you" in text
    assert "cat" not in text
    assert "'dog'" in home.get_text("memories", "list", "dog")


def test_memories_are_edited_and_filtered_by_origin(home: Home) -> None:
    memory = home.get_json("memories", "remember", "My cat is called Ada.")["memory"]
    assert (memory["origin"], memory["session_id"]) == ("person", None)
    assert "Changed" in home.get_text("memories", "edit", memory["id"], "My cat is called Bo.")
    edited = home.get_json("memories", "edit", "my cat is called bo.", "My cat is called Mo.")["memory"]
    assert (edited["id"], edited["text"]) == (memory["id"], "My cat is called Mo.")
    assert "m_0" in home.get_error("memories", "edit", "m_0", "x", code=3)
    assert len(home.get_json("memories", "list", "--origin", "person")["memories"]) == 1
    assert home.get_json("memories", "list", "--origin", "learned") == {"memories": []}
    assert "of this origin" in home.get_text("memories", "list", "--origin", "agent")
    assert "learned" in home.get_error("memories", "list", "--origin", "other", code=2)


def test_the_list_has_all_pages(home: Home) -> None:
    with home.open_store() as store:
        view = store.seen_by(store.get_owner().principal)
        for number in range(120):
            view.part(MemoryOperations).remember(f"number {number}")
    assert len(home.get_json("memories", "list")["memories"]) == 120


def test_a_memory_is_deleted_by_id_or_text_after_a_confirmation(home: Home) -> None:
    one = home.get_json("memories", "remember", "one")["memory"]
    home("memories", "remember", "two")
    assert "--yes" in home.get_error("memories", "forget", "two", code=2)
    assert home.get_json("memories", "forget", "TWO", "--yes")["deleted"]["text"] == "two"
    assert "'one'" in home.get_text("memories", "forget", one["id"], "--yes")
    assert home.get_json("memories", "list") == {"memories": []}
    assert "'one'" in home.get_error("memories", "forget", "one", "--yes", code=3)


def test_the_owner_does_not_see_memories_of_others(home: Home) -> None:
    with home.open_store() as store:
        theirs = (
            store.seen_by(store.get_or_create_person(SessionSource("telegram", "1", user_id="1")).principal)
            .part(MemoryOperations)
            .remember("x")
        )
    assert home.get_json("memories", "list") == {"memories": []}
    home.get_error("memories", "forget", theirs.memory.id, "--yes", code=3)
