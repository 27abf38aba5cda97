"""Tests of reading the arguments of a tool call, and of quoting text for the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.agent.base import ToolFailed
from palaver.agent.tool_arguments import Arguments, quote_data


@pytest.mark.parametrize(("value", "text"), [("cat", "cat"), (" cat\n", "cat"), ("half \ud83d", "half ?")])
def test_text_is_stripped_and_made_storable(value: str, text: str) -> None:
    assert Arguments({"query": value}, "query").get_text("query") == text


@pytest.mark.parametrize("values", [{}, {"query": None}, {"query": " "}, {"query": 7}, {"query": ["cat"]}])
def test_a_missing_required_text_is_an_error(values: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed, match="query: must be a non-empty text"):
        Arguments(values, "query").get_text("query")


@pytest.mark.parametrize("values", [{}, {"query": None}, {"query": ""}])
def test_an_optional_text_may_be_missing(values: dict[str, Any]) -> None:
    assert Arguments(values, "query").get_text("query", required=False) == ""


@pytest.mark.parametrize(
    ("values", "number"),
    [({}, None), ({"n": None}, None), ({"n": ""}, None), ({"n": 5}, 5), ({"n": "5"}, 5), ({"n": 5.0}, 5)],
)
def test_numbers_are_accepted_in_all_the_ways_that_models_write_them(
    values: dict[str, Any], number: int | None
) -> None:
    assert Arguments(values, "n").get_integer("n", maximum=20) == number


@pytest.mark.parametrize("wrong", [0, -1, 21, "21", "9" * 5000, True, 1.5, "five", [5], float("inf"), float("nan")])
def test_a_number_out_of_range_is_an_error_with_the_range(wrong: object) -> None:
    with pytest.raises(ToolFailed, match="n: must be a whole number from 1 to 20") as caught:
        Arguments({"n": wrong}, "n").get_integer("n", maximum=20)
    assert len(str(caught.value)) < 200


def test_an_unknown_argument_is_an_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(ToolFailed, match=r"Unknown argument: words\. Valid arguments: query, limit\."):
        Arguments({"words": "cat"}, "query", "limit")


@given(st.text(), st.integers(1, 50))
def test_text_cannot_break_out_of_its_quotes(text: str, max_chars: int) -> None:
    line = quote_data(text, max_chars)
    assert "\n" not in line
    assert json.loads(line)[: min(len(text), max_chars)] == text.replace("\0", " ")[:max_chars]


def test_a_cut_text_says_how_long_it_is() -> None:
    assert quote_data("x" * 10, 3) == '"xxx… (10 characters in all)"'
