"""Turns an answer into messages of Signal, and messages into the parameters of signal-cli. Pure.

A message is stored as JSON: `{"text": …, "styles": ["0:4:BOLD", …]}`. Its length is that of the formatted text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.delivery.model import LengthUnit, measure_length
from palaver.delivery.splitting import split_markdown
from palaver.platforms.signal.formatting import MessageBody, format_markdown
from palaver.platforms.signal.manifest import CAPABILITIES, MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from palaver.platforms.signal.inbound import MessageRef

MAX_QUOTE_CHARS: Final = 200
_LONG_FACTOR: Final = 3  # a text that is so many times longer than a message is not formatted to measure it


def render_markdown(markdown: str) -> list[str]:
    """Return the messages that a text becomes, as JSON."""
    return [_render(piece).to_json() for piece in split_markdown(markdown, CAPABILITIES, _measure)]


def build_quote(replied: MessageRef, text: str) -> dict[str, Any]:
    """Return the parameters of `send` that make a message the reply to another one."""
    shown = text[:MAX_QUOTE_CHARS]
    return {"quoteTimestamp": replied.timestamp, "quoteAuthor": replied.author, "quoteMessage": shown}


def _render(markdown: str) -> MessageBody:
    formatted = format_markdown(markdown)
    return formatted if formatted.text.strip() else MessageBody(markdown)  # only markup: shown as it was written


def _measure(markdown: str) -> int:
    size = measure_length(markdown, LengthUnit.BYTES)
    if size > _LONG_FACTOR * MAX_MESSAGE_BYTES:
        return size  # too long in any case: don't spend time on formatting the whole text
    return measure_length(_render(markdown).text, LengthUnit.BYTES)
