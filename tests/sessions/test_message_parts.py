"""The parts of a message that people may send."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.core.errors import InvalidMessage
from palaver.sessions.message import MAX_MESSAGE_PARTS, check_message_parts

FILE = {"type": "attachment", "id": "a_0123456789ab0123456789ab"}


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "content",
    [
        "text",
        [],
        ["text", {"type": "text", "text": "more"}],
        [FILE],
        [{**FILE, "name": "a.png", "media_type": "image/png", "size": 7}],
        ["x"] * MAX_MESSAGE_PARTS,
    ],
)
def test_text_and_files_are_accepted(content: Any) -> None:
    check_message_parts(content)


@pytest.mark.parametrize(
    ("part", "key", "reason"),
    [
        ({"type": "text", "text": "x", "foo": nest(300)}, ".foo", "unknown key. Remove it"),
        ({"type": "text", "text": "x", "image_url": "x"}, ".image_url", "has type, text."),
        ({"type": "text", "text": "x", 7: 1}, ".7", "unknown key"),
        ({"type": "text", "text": ["x"]}, ".text", "list is not allowed here"),
        ({"type": "text"}, ".text", "missing"),
        ({"type": "attachment"}, ".id", "missing"),
        ({**FILE, "name": nest(300)}, ".name", "dict is not allowed here"),
        ({**FILE, "name": "x" * 2000}, ".name", "longer than 1000 characters"),
        ({**FILE, "size": True}, ".size", "a whole number"),
        (
            {**FILE, "url": "http://10.0.0.1"},
            ".url",
            "has type, id, name, media_type, size, transcript, transcript_error.",
        ),
        ({"type": "image_url", "image_url": {"url": "x"}}, ".type", "'image_url' is not a known type"),
        ({"type": ["text"]}, ".type", "list is not a known type"),
        ({}, ".type", "is not a known type"),
        (None, "", "a part is text or an object"),
        (["x"], "", "a part is text or an object"),
    ],
)
def test_anything_else_is_refused_by_name(part: Any, key: str, reason: str) -> None:
    with pytest.raises(InvalidMessage) as raised:
        check_message_parts(["first", part])
    assert str(raised.value).startswith(f"content[1]{key}: ")
    assert reason in str(raised.value)
    assert raised.value.facts["key"] == f"content[1]{key}"


def test_the_number_of_parts_is_limited() -> None:
    with pytest.raises(InvalidMessage, match="101 parts, and the limit is 100"):
        check_message_parts(["x"] * (MAX_MESSAGE_PARTS + 1))


def test_an_error_quotes_little_of_what_it_refuses() -> None:
    with pytest.raises(InvalidMessage) as raised:
        check_message_parts([{"type": "text", "text": "x", "k" * 100_000: 1}])
    assert len(str(raised.value)) < 300
