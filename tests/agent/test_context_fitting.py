"""Tests of shortening messages that are too long for a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver.agent.base import estimate_tokens
from palaver.agent.compaction import IMAGE_LEFT_OUT_TEXT, count_tokens, shorten_messages, shorten_text

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def make_call(arguments: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": "write", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_messages_that_fit_stay_as_they_are() -> None:
    messages = [{"role": "user", "content": "hello"}, make_call("{}")]
    assert shorten_messages(messages, 1000) == messages


def test_only_the_longest_text_is_shortened_and_keeps_its_beginning_and_end() -> None:
    messages = [{"role": "user", "content": "short"}, {"role": "user", "content": "begin " + "x" * 9000 + " end"}]
    shortened = shorten_messages(messages, 500)
    assert shortened[0] == messages[0]
    assert shortened[1]["content"].startswith("begin xxx")
    assert shortened[1]["content"].endswith("xxx end")
    assert "characters left out" in shortened[1]["content"]
    assert 400 <= count_tokens(shortened) <= 500


def test_parts_calls_and_images_are_shortened() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "x" * 9000}, IMAGE]},
        make_call(json.dumps({"text": "y" * 9000})),
        {"role": "tool", "tool_call_id": "1", "content": "z" * 9000},
    ]
    text, image = shorten_messages(messages, 600)[0]["content"]
    assert len(text["text"]) < 1000
    assert image == {"type": "text", "text": IMAGE_LEFT_OUT_TEXT}
    call, result = shorten_messages(messages, 600)[1:]
    arguments = call["tool_calls"][0]["function"]["arguments"]
    assert len(arguments) < 1000
    assert isinstance(json.loads(arguments), dict)
    assert result["tool_call_id"] == "1"
    assert count_tokens(shorten_messages(messages, 600)) <= 700
    assert shorten_messages(messages, 8000)[0]["content"][1] == IMAGE  # fits


@pytest.mark.parametrize("text", ["x" * 1000, "深" * 1000, "a深" * 500])
def test_a_shortened_text_has_about_as_many_tokens_as_asked_for(text: str) -> None:
    assert 40 <= estimate_tokens(shorten_text(text, 60)) <= 60


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=8), st.integers(0, 5000))
def test_shortening_never_adds_more_than_its_markers(sizes: list[int], max_tokens: int) -> None:
    messages = [{"role": "user", "content": "x" * size} for size in sizes]
    shortened = shorten_messages(messages, max_tokens)
    assert len(shortened) == len(messages)
    assert count_tokens(shortened) <= max(max_tokens, 20 * len(messages))
