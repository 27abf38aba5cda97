"""A model that calls a tool wrongly is told in words what is allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.agent.base import ToolFailed
from palaver.agent.tools.arguments import Arguments, as_data


@pytest.mark.parametrize(("given", "read"), [("cat", "cat"), (" cat\n", "cat"), ("half \ud83d", "half ?")])
def test_text_is_read_without_what_surrounds_it(given: str, read: str) -> None:
    assert Arguments({"query": given}, "query").text("query") == read


@pytest.mark.parametrize("given", [{}, {"query": None}, {"query": " "}, {"query": 7}, {"query": ["cat"]}])
def test_text_that_is_needed_is_asked_for(given: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed, match="query: give some text"):
        Arguments(given, "query").text("query")


@pytest.mark.parametrize("given", [{}, {"query": None}, {"query": ""}])
def test_text_that_is_not_needed_may_be_missing(given: dict[str, Any]) -> None:
    assert Arguments(given, "query").text("query", needed=False) == ""


@pytest.mark.parametrize(
    ("given", "read"),
    [({}, None), ({"n": None}, None), ({"n": ""}, None), ({"n": 5}, 5), ({"n": "5"}, 5), ({"n": 5.0}, 5)],
)
def test_numbers_are_read_as_models_write_them(given: dict[str, Any], read: int | None) -> None:
    assert Arguments(given, "n").number("n", most=20) == read


@pytest.mark.parametrize("wrong", [0, -1, 21, "21", "9" * 5000, True, 1.5, "five", [5], float("inf"), float("nan")])
def test_a_number_out_of_range_is_refused_with_the_range(wrong: object) -> None:
    with pytest.raises(ToolFailed, match="n: give a whole number from 1 to 20") as failed:
        Arguments({"n": wrong}, "n").number("n", most=20)
    assert len(str(failed.value)) < 200


def test_an_unknown_argument_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ToolFailed, match=r"no argument words; possible are: query, limit"):
        Arguments({"words": "cat"}, "query", "limit")


@given(st.text(), st.integers(1, 50))
def test_what_people_wrote_cannot_leave_its_quotes(text: str, most: int) -> None:
    line = as_data(text, most)
    assert "\n" not in line
    assert json.loads(line)[: min(len(text), most)] == text.replace("\0", " ")[:most]


def test_what_is_too_long_says_how_long_it_is() -> None:
    assert as_data("x" * 10, 3) == '"xxx… (10 characters in all)"'
