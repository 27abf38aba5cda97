"""Messages as values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.message import Author, Message, preview, text_of_parts

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "tool"]),
        "content": st.none() | st.text(max_size=30) | st.lists(json_values, max_size=3),
    },
    optional={
        "tool_calls": st.lists(json_values, max_size=2),
        "tool_call_id": st.text(max_size=5),
        "reasoning": st.text(max_size=5),
        "author": st.fixed_dictionaries({"name": st.text(max_size=5)}, optional={"id": st.text(max_size=5)}),
        "kept_for_somebody": st.text(max_size=5),
    },
)


@given(messages)
def test_nothing_is_lost_on_the_way(data: dict[str, Any]) -> None:
    assert Message.from_dict(data).to_dict() == data


def test_what_is_nothing_is_left_out() -> None:
    message = Message.from_dict({"role": "user", "content": "x", "tool_calls": None, "author": None})
    assert message.to_dict() == {"role": "user", "content": "x"}


def test_an_author_may_be_given_as_a_value() -> None:
    message = Message.from_dict({"role": "user", "content": "x", "author": Author("Ada", "7")})
    assert message.to_dict()["author"] == {"id": "7", "name": "Ada"}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], ""),
        (["plain", {"type": "text", "text": "typed"}], "plain typed"),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"text": 7}, None, 3], ""),
    ],
)
def test_the_text_of_parts(parts: list[Any], text: str) -> None:
    assert text_of_parts(parts) == text
    assert Message("user", parts).text == text


@given(st.text(max_size=500))
def test_a_preview_is_one_short_line(text: str) -> None:
    shown = preview(text)
    assert len(shown) <= 120
    assert shown == " ".join(shown.split())
