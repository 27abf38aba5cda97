"""Tests of `palaver sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.cli import sessions as search_command
from palaver.sessions import indexer
from palaver.sessions.indexer import Indexer

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture
def home_with_messages(home: Home) -> Home:
    home.add_conversation("when does the train leave?", "the train leaves at noon", title="Lisbon")
    home.add_conversation("a train of thought", "you lost it", source=home.bob)
    home.add_conversation("明天天气怎么样？", "多云", source=home.owner, title="weather")
    return home


def test_hits_show_conversation_speaker_and_matching_words_newest_first(home_with_messages: Home) -> None:
    text = home_with_messages.get_text("sessions", "search", "train")
    assert "Lisbon" in text
    assert "a train of thought" in text
    assert "Bob: a [train] of thought" in text
    assert "Ada: when does the [train] leave?" in text
    assert "agent: the [train] leaves at noon" in text
    assert text.index("thought") < text.index("noon") < text.index("when does")


@pytest.mark.parametrize(
    ("words", "contents"),
    [
        (["train", "leaves"], ["the train leaves at noon"]),
        (["train", "-noon", "-thought"], ["when does the train leave?"]),
        (['"train leaves"'], ["the train leaves at noon"]),
        (["thou*"], ["a train of thought"]),
        (["天气"], ["明天天气怎么样？"]),
        (["zebra"], []),
    ],
)
def test_a_query_can_have_words_phrases_prefixes_and_exclusions(
    home_with_messages: Home, words: list[str], contents: list[str]
) -> None:
    hits = home_with_messages.get_json("sessions", "search", *words)["hits"]
    assert [hit["message"]["content"] for hit in hits] == contents


def test_a_cursor_continues_a_search(home_with_messages: Home) -> None:
    first = home_with_messages.get_json("sessions", "search", "train", "--limit", "2")
    assert len(first["hits"]) == 2
    cursor = first["next_cursor"]
    assert cursor == "{session_id}.{seq}".format(**first["hits"][-1])
    rest = home_with_messages.get_json("sessions", "search", "train", "--limit", "2", "--cursor", cursor)
    assert [hit["message"]["content"] for hit in rest["hits"]] == ["when does the train leave?"]
    assert rest["next_cursor"] is None
    assert f"--cursor {cursor}" in home_with_messages("sessions", "search", "train", "--limit", "2").stderr


def test_a_search_can_be_limited_to_one_conversation_or_your_own(home_with_messages: Home) -> None:
    assert len(home_with_messages.get_json("sessions", "search", "train", "--in", "Lisbon")["hits"]) == 2
    assert home_with_messages.get_json("sessions", "search", "train", "--mine")["hits"] == []
    assert len(home_with_messages.get_json("sessions", "search", "天气", "--mine")["hits"]) == 1


def test_a_search_without_hits_is_not_an_error(home_with_messages: Home) -> None:
    assert home_with_messages.get_text("sessions", "search", "zebra") == "No messages match 'zebra'.\n"


def test_a_mistyped_option_is_not_taken_as_a_word(home_with_messages: Home) -> None:
    assert "'--limit'" in home_with_messages.get_error("sessions", "search", "train", "--limt", "3", code=2)


def test_a_query_without_a_word_is_an_error(home_with_messages: Home) -> None:
    assert "no word" in home_with_messages.get_error("sessions", "search", "!!", code=2)
    assert "no word" in home_with_messages.get_error("sessions", "search", "-train", code=2)
    assert "WORDS" in home_with_messages.get_error("sessions", "search", code=2)


@pytest.mark.parametrize(
    ("options", "contents"),
    [
        (["--platform", "signal"], ["a train of thought"]),
        (["--role", "assistant"], ["the train leaves at noon"]),
        (["--role", "user", "--without", "thought"], ["when does the train leave?"]),
        (["--after", "2020-01-01", "--before", "2020-02-01"], []),
    ],
)
def test_a_search_can_be_filtered(home_with_messages: Home, options: list[str], contents: list[str]) -> None:
    hits = home_with_messages.get_json("sessions", "search", "train", *options)["hits"]
    assert [hit["message"]["content"] for hit in hits] == contents


def test_a_search_can_be_limited_to_a_person(home_with_messages: Home) -> None:
    def find(*options: str) -> list[str]:
        hits = home_with_messages.get_json("sessions", "search", "train", *options)["hits"]
        return [hit["message"]["content"] for hit in hits]

    assert find("--person", "Bob") == ["a train of thought"]
    assert find("--person", "ada") == ["when does the train leave?"]
    assert find("--person", "Bob", "--without", "thought") == []
    assert "Zoe" in home_with_messages.get_error("sessions", "search", "train", "--person", "Zoe", code=3)
    # Of your own conversations, only people who take part in one of them can be named.
    assert "Bob" in home_with_messages.get_error("sessions", "search", "train", "--mine", "--person", "Bob", code=3)


def test_a_search_can_be_limited_to_archived_conversations(home_with_messages: Home) -> None:
    def count(*options: str) -> int:
        return len(home_with_messages.get_json("sessions", "search", "train", *options)["hits"])

    home_with_messages("sessions", "archive", "Lisbon")
    assert [count(), count("--archived", "only"), count("--archived", "without")] == [3, 2, 1]
    assert "'maybe'" in home_with_messages.get_error("sessions", "search", "train", "--archived", "maybe", code=2)


def test_a_search_can_be_limited_to_a_project(home_with_messages: Home) -> None:
    home_with_messages("projects", "create", "Trips")
    home_with_messages("sessions", "move", "Lisbon", "Trips")
    hits = home_with_messages.get_json("sessions", "search", "train", "--project", "Trips")["hits"]
    assert [hit["message"]["content"] for hit in hits] == ["the train leaves at noon", "when does the train leave?"]


def test_a_search_says_that_messages_are_still_being_indexed(
    home_with_messages: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "BATCH_EVENTS", 1)
    monkeypatch.setattr(indexer, "MAX_CATCH_UP_SECONDS", 0.0)
    monkeypatch.setattr(Indexer, "notify", lambda _: None)
    home_with_messages.add_conversation("a train", "a second train", "a third train")
    with monkeypatch.context() as patch:
        patch.setattr(search_command, "MAX_INDEXING_SECONDS", 0.0)
        result = home_with_messages("sessions", "search", "zebra")
        assert "Some messages are still being indexed" in result.stderr
        assert home_with_messages.get_json("sessions", "search", "zebra")["is_indexing"]
    found = home_with_messages.get_json("sessions", "search", "train")  # waits until everything is indexed
    assert not found["is_indexing"]
    assert len(found["hits"]) == 6
