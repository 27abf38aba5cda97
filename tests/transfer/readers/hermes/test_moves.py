"""Moves from hermes-agent 0.19.0 as people make them: a chat and a terminal, `/compress`, both programs for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def home(read_home: Callable[[str], Any]) -> Any:
    return read_home("moves-0.19.0")


def test_a_compress_command_that_rotates_sessions_doubles_nothing(home: Any) -> None:
    """Hermes stored 22 and 20 messages again before the two compactions, with the times that they had."""
    sessions = home.truth["sessions"]
    for name, said in home.truth["seen"].items():
        texts = [each for each in home.texts(sessions[name]) if each[0] != "tool"]
        assert texts == said, name
    garden = home.texts(sessions["garden"])
    assert garden.count(["assistant", "Done."]) == 3
    assert garden.count(["user", "What now?"]) == garden.count(["assistant", "Fine."]) == 2
    assert [kept_count for _, kept_count in home.compactions(sessions["garden"])] == [8, 10]


def test_the_report_says_that_a_session_was_stored_again(home: Any) -> None:
    folded = home.conversation(home.truth["sessions"]["garden"]).folded
    assert [line.partition(" ")[0] for line in folded if "written again to state.db" in line] == ["22", "20"]
