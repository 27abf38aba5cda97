"""`palaver sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Home


@pytest.fixture
def talks(home: Home) -> Home:
    home.said("when does the train leave?", "the train leaves at noon", title="Lisbon")
    home.said("a train of thought", "you lost it", source=home.bob)
    home.said("明天天气怎么样？", "多云", source=home.owner, title="weather")
    return home


def test_hits_name_conversation_speaker_and_the_words_newest_first(talks: Home) -> None:
    text = talks.text("sessions", "search", "train")
    assert "Lisbon" in text
    assert "untitled (Signal, Bob)" in text
    assert "Bob: a [train] of thought" in text
    assert "Ada: when does the [train] leave?" in text
    assert "agent: the [train] leaves at noon" in text
    assert text.index("thought") < text.index("noon") < text.index("when does")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["train", "leaves"], ["the train leaves at noon"]),
        (["train", "-noon", "-thought"], ["when does the train leave?"]),
        (['"train leaves"'], ["the train leaves at noon"]),
        (["thou*"], ["a train of thought"]),
        (["天气"], ["明天天气怎么样？"]),
        (["zebra"], []),
    ],
)
def test_words_phrases_beginnings_and_exclusions(talks: Home, words: list[str], found: list[str]) -> None:
    hits = talks.json("sessions", "search", *words)["hits"]
    assert [hit["message"]["content"] for hit in hits] == found


def test_a_search_goes_on_before_the_last_position(talks: Home) -> None:
    first = talks.json("sessions", "search", "train", "--limit", "2")
    assert len(first["hits"]) == 2
    assert first["before"] == first["hits"][-1]["position"]
    rest = talks.json("sessions", "search", "train", "--limit", "2", "--before", str(first["before"]))
    assert [hit["message"]["content"] for hit in rest["hits"]] == ["when does the train leave?"]
    assert rest["before"] is None
    assert f"--before {first['before']}" in talks("sessions", "search", "train", "--limit", "2").stderr


def test_a_search_can_stay_in_one_conversation_or_in_your_own(talks: Home) -> None:
    assert len(talks.json("sessions", "search", "train", "--in", "Lisbon")["hits"]) == 2
    assert talks.json("sessions", "search", "train", "--mine")["hits"] == []
    assert len(talks.json("sessions", "search", "天气", "--mine")["hits"]) == 1


def test_nothing_found_is_no_error(talks: Home) -> None:
    assert talks.text("sessions", "search", "zebra") == "nothing found for 'zebra'\n"


def test_a_slip_in_an_option_is_not_searched_for(talks: Home) -> None:
    assert "'--limit'" in talks.error("sessions", "search", "train", "--limt", "3", code=2)


def test_a_search_without_a_word_is_refused(talks: Home) -> None:
    assert "no word" in talks.error("sessions", "search", "!!", code=2)
    assert "no word" in talks.error("sessions", "search", "-train", code=2)
    assert "WORDS" in talks.error("sessions", "search", code=2)
