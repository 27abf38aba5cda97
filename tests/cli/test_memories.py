"""`palaver memories`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import SessionSource

if TYPE_CHECKING:
    from cli.conftest import Home


def test_where_nothing_is_remembered_the_list_says_how_to_begin(home: Home) -> None:
    assert "memories remember" in home.text("memories", "list")
    assert home.json("memories", "list") == {"memories": []}


def test_what_is_remembered_is_listed_newest_first_and_found_by_its_words(home: Home) -> None:
    assert "'My cat is called Ada.'" in home.text("memories", "remember", " My cat is called Ada. ")
    made = home.json("memories", "remember", "The bins go out on Tuesday.")["memory"]
    listed = home.json("memories", "list")["memories"]
    assert [each["text"] for each in listed] == ["The bins go out on Tuesday.", "My cat is called Ada."]
    assert listed[0] == made
    assert (made["asked_by"], made["shared"], made["others"]) == ("owner", False, [])
    shown = home.text("memories", "list", "bins", "tue")
    assert made["id"] in shown
    assert "you alone" in shown
    assert "cat" not in shown
    assert "'dog'" in home.text("memories", "list", "dog")


def test_more_than_one_page_is_listed_whole(home: Home) -> None:
    with home.store() as store:
        view = store.seen_by(store.owner().principal)
        for number in range(120):
            view.remember(f"number {number}")
    assert len(home.json("memories", "list")["memories"]) == 120


def test_something_is_forgotten_by_id_or_text_after_a_question(home: Home) -> None:
    one = home.json("memories", "remember", "one")["memory"]
    home("memories", "remember", "two")
    assert "--yes" in home.error("memories", "forget", "two", code=2)
    assert home.json("memories", "forget", "TWO", "--yes")["forgotten"]["text"] == "two"
    assert "'one'" in home.text("memories", "forget", one["id"], "--yes")
    assert home.json("memories", "list") == {"memories": []}
    assert "'one'" in home.error("memories", "forget", "one", "--yes", code=3)


def test_what_others_remember_is_not_there_for_the_owner(home: Home) -> None:
    with home.store() as store:
        theirs = store.seen_by(store.person_for(SessionSource("telegram", "1", user_id="1")).principal).remember("x")
    assert home.json("memories", "list") == {"memories": []}
    home.error("memories", "forget", theirs.memory.id, "--yes", code=3)
