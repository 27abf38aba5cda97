from __future__ import annotations

from typing import Any

import pytest

from palaver.agent.tokens import estimate, estimate_messages


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("four and some", 4), ("你好世界", 4)])
def test_an_estimate_goes_by_characters_and_script(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_messages_count_their_words_and_their_borders() -> None:
    parts: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "four"}]},
        {"role": "assistant", "content": None},
    ]
    assert estimate_messages(parts) == 1 + 4 + 4
