"""How many tokens a text has, about: for what must be known before a provider has counted.

An estimate without a vocabulary. Four characters make a token in most languages; where a script is written without
spaces, a character is nearly a token by itself.
"""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, Any

from palaver.domain.message import text_of_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DENSE = re.compile(r"[ᄀ-ᇿ⺀-〿぀-ヿ㄰-㆏㐀-鿿가-힯豈-﫿＀-￯\U00020000-\U0003ffff]")
_DENSE_TOKENS = 0.8
_CHARACTERS_OF_A_TOKEN = 4
_OVERHEAD = 4  # of a message: its role and its borders


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    dense = 0 if text.isascii() else len(_DENSE.findall(text))
    return ceil((len(text) - dense) / _CHARACTERS_OF_A_TOKEN + dense * _DENSE_TOKENS)


def estimate_messages(messages: Iterable[Mapping[str, Any]]) -> int:
    """About how many tokens messages in the shape of chat models have."""
    return sum(estimate(text_of(message)) + _OVERHEAD for message in messages)


def text_of(message: Mapping[str, Any]) -> str:
    """The words of a message in the shape of chat models, without calls and reasoning."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return text_of_parts(content)
