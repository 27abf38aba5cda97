from __future__ import annotations

from typing import Any

import pytest

from palaver.agent.base import estimate_message_tokens, estimate_tokens


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("four and some", 4), ("你好世界", 4)])
def test_the_estimate_depends_on_characters_and_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_message_counts_its_text_and_a_fixed_overhead() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "four"}]},
        {"role": "assistant", "content": None},
    ]
    assert estimate_message_tokens(messages) == 1 + 4 + 4
