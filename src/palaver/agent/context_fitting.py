"""Shortening messages that are too long for a model. Pure; the log keeps every message as it is.

Only texts inside messages become shorter, the longest first. No message disappears, so every call keeps its result
and every answer its question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from palaver.agent.tokens import estimate_message_tokens, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_CONTEXT_TOKENS = 100  # no model is so small that less would help
LEFT_OUT_MARKER = "\n[… {count} characters left out …]\n"
IMAGE_LEFT_OUT_TEXT = "(an image, left out because the conversation is too long for the model)"
_TOKENS_PER_IMAGE = 1000
_TOKENS_PER_MARKER = 12
_MIN_TEXT_TOKENS = 8  # no text is shortened below this


def count_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Estimate the tokens of messages, with their tool calls and images."""
    return estimate_message_tokens(messages) + sum(_count_extra_tokens(message) for message in messages)


def shorten_messages(messages: Sequence[Mapping[str, Any]], max_tokens: int) -> list[Mapping[str, Any]]:
    """Shorten the longest texts until the messages have about `max_tokens`, or until nothing is left to shorten."""
    sizes = [size for message in messages for size in _list_text_sizes(message)]
    overhead = count_tokens(messages) - sum(sizes)
    max_text_tokens = _find_max_text_tokens(sizes, max_tokens - overhead)
    return [_shorten_message(message, max_text_tokens) for message in messages]


def shorten_text(text: str, max_tokens: int) -> str:
    """Keep the beginning and the end of a text that has more than `max_tokens`."""
    tokens = estimate_tokens(text)
    if tokens <= max_tokens:
        return text
    kept_chars = int(len(text) * max(max_tokens - _TOKENS_PER_MARKER, 0) / tokens)
    head, tail = kept_chars - kept_chars // 3, kept_chars // 3
    marker = LEFT_OUT_MARKER.format(count=len(text) - head - tail)
    return f"{text[:head]}{marker}{text[len(text) - tail :]}"


def _find_max_text_tokens(sizes: Sequence[int], budget: int) -> int:
    """Return how long a text may be at most, so that all of them together stay within the budget."""
    remaining = sorted(sizes)
    for index, size in enumerate(remaining):
        share = budget // (len(remaining) - index)
        if size > share:
            return max(share, _MIN_TEXT_TOKENS)
        budget -= size
    return max(sizes, default=0)


def _list_text_sizes(message: Mapping[str, Any]) -> list[int]:
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else [content]
    sizes = [estimate_tokens(text) for part in parts if (text := _get_text(part))]
    sizes += [_TOKENS_PER_IMAGE for part in parts if _is_image(part)]
    return sizes + [estimate_tokens(_get_arguments(call)) for call in message.get("tool_calls") or ()]


def _count_extra_tokens(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    images = sum(map(_is_image, content)) if isinstance(content, list | tuple) else 0
    calls = sum(estimate_tokens(_get_arguments(call)) for call in message.get("tool_calls") or ())
    return images * _TOKENS_PER_IMAGE + calls


def _shorten_message(message: Mapping[str, Any], max_tokens: int) -> Mapping[str, Any]:
    content = message.get("content")
    shortened = dict(message)
    if isinstance(content, list | tuple):
        shortened["content"] = [_shorten_part(part, max_tokens) for part in content]
    elif content:
        shortened["content"] = shorten_text(content, max_tokens)
    if message.get("tool_calls"):
        shortened["tool_calls"] = [_shorten_call(call, max_tokens) for call in message["tool_calls"]]
    return shortened


def _shorten_part(part: Any, max_tokens: int) -> Any:
    if _is_image(part):
        return part if max_tokens >= _TOKENS_PER_IMAGE else {"type": "text", "text": IMAGE_LEFT_OUT_TEXT}
    text = _get_text(part)
    if not text:
        return part
    shortened = shorten_text(text, max_tokens)
    return {**part, "text": shortened} if isinstance(part, Mapping) else shortened


def _shorten_call(call: Mapping[str, Any], max_tokens: int) -> Mapping[str, Any]:
    arguments = _get_arguments(call)
    shortened = shorten_text(arguments, max_tokens)
    if shortened == arguments:
        return call
    return {**call, "function": {**call["function"], "arguments": json.dumps({"shortened": shortened})}}


def _get_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image_url"


def _get_arguments(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return arguments if isinstance(arguments, str) else ""
