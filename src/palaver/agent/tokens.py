"""Estimating how many tokens a text has, for decisions made before a provider has counted them.

The estimate needs no vocabulary: four characters make a token in most languages; in scripts without spaces, a
character is nearly a token by itself.
"""

from __future__ import annotations

import json
import re
from math import ceil
from typing import TYPE_CHECKING, Any

from palaver.sessions.message import join_text_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from palaver.agent.base import Tool

_DENSE_SCRIPT = re.compile(r"[ᄀ-ᇿ⺀-〿぀-ヿ㄰-㆏㐀-鿿가-힯豈-﫿＀-￯\U00020000-\U0003ffff]+")
_TOKENS_PER_DENSE_CHAR = 0.8
_CHARS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4  # for the role and the separators of a message
TOKENS_PER_IMAGE = 1600  # what the providers count at most for a picture of ordinary size


def estimate_tokens(text: str) -> int:
    dense_chars = 0 if text.isascii() else sum(map(len, _DENSE_SCRIPT.findall(text)))
    return ceil((len(text) - dense_chars) / _CHARS_PER_TOKEN + dense_chars * _TOKENS_PER_DENSE_CHAR)


def estimate_message_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages in the format of chat models."""
    return sum(estimate_tokens(extract_text(message)) + _TOKENS_PER_MESSAGE for message in messages)


def estimate_tool_tokens(tools: Iterable[Tool]) -> int:
    """Estimate the tokens of the definitions of tools."""
    return sum(
        estimate_tokens(f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters))}") + _TOKENS_PER_MESSAGE
        for tool in tools
    )


def extract_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message in the format of chat models, without tool calls and reasoning."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return join_text_parts(content)
