"""Messages: reading, writing and previews."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidMessage
from palaver.sessions.message import Author, Message, join_text_parts, make_preview

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
        "unknown_key": st.text(max_size=5),
    },
)


@given(messages)
def test_a_message_survives_conversion_to_a_dict(data: dict[str, Any]) -> None:
    assert Message.from_dict(data).to_dict() == data


def test_null_values_are_left_out() -> None:
    message = Message.from_dict({"role": "user", "content": "x", "tool_calls": None, "author": None})
    assert message.to_dict() == {"role": "user", "content": "x"}


def test_an_author_can_be_given_as_an_object() -> None:
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
def test_the_text_of_parts_is_joined(parts: list[Any], text: str) -> None:
    assert join_text_parts(parts) == text
    assert Message("user", parts).text == text


@given(st.text(max_size=500))
def test_a_preview_is_one_short_line(text: str) -> None:
    preview = make_preview(text)
    assert len(preview) <= 120
    assert preview == " ".join(preview.split())


# ---- limits -------------------------------------------------------------------------------------------------


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def build_circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def build_bomb() -> Any:
    value: Any = "x"
    for _ in range(30):
        value = [value] * 30
    return value


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"content": [{"type": "text", "text": "x", "more": nest(300)}]}, "content"),
        ({"metadata": nest(300)}, "metadata"),
        ({"metadata": nest(100_000)}, "metadata"),
        ({"metadata": build_circle()}, "metadata"),
        ({"tool_calls": [nest(40)]}, "tool_calls"),
    ],
)
def test_a_message_that_is_nested_too_deeply_is_refused_by_name(fields: dict[str, Any], key: str) -> None:
    message = Message.from_dict({"role": "user", "content": "x", **fields})
    with pytest.raises(InvalidMessage, match=rf"^{key}: this is nested deeper than 32 levels\. Flatten it"):
        message.check_limits()


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"content": "x" * 10_000_001}, "content"),
        ({"content": "€" * 4_000_000}, "content"),
        ({"metadata": {"junk": "x" * 10_000_000}}, "metadata"),
        ({"metadata": {"x" * 10_000_000: 1}}, "metadata"),
        ({"metadata": [0] * 10_000_000}, "metadata"),
        ({"metadata": build_bomb()}, "metadata"),
        ({"a": "x" * 6_000_000, "b": "x" * 5_000_000}, "a"),
        ({"author": {"name": "x" * 10_000_000}}, "author"),
    ],
)
def test_a_message_that_is_too_large_is_refused_by_name(fields: dict[str, Any], key: str) -> None:
    message = Message.from_dict({"role": "user", "content": "x", **fields})
    with pytest.raises(InvalidMessage, match=rf"^{key}: this makes the message larger than 10000000 bytes\."):
        message.check_limits()


@pytest.mark.parametrize(
    "fields", [{"content": "€" * 3_000_000}, {"metadata": nest(31)}, {"content": None, "tool_calls": [nest(29)]}]
)
def test_a_message_within_the_limits_is_accepted(fields: dict[str, Any]) -> None:
    Message.from_dict({"role": "user", "content": "x", **fields}).check_limits()
