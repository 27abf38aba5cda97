"""The content of an inbound message: what is allowed, and the message that is stored for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidMessage
from palaver.sessions.attachment import find_attachment_ids
from palaver.sessions.json import format_time
from palaver.sessions.message import Message, join_text_parts
from palaver.sessions.message_parts import MAX_MESSAGE_CHARS, check_message_parts
from palaver.sessions.quoted_messages import CONTEXT_KEY, REPLIED_MESSAGE_KEY, build_replied_message

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.sessions.inbound import Inbound

__all__ = ["MAX_MESSAGE_CHARS", "add_lines", "build_message", "check_content", "get_text"]


def check_content(content: str | Sequence[Any], attachment_ids: Sequence[str] = ()) -> None:
    """Raise InvalidMessage for a message that is empty or has parts that people can't send."""
    is_empty = not content.strip() if isinstance(content, str) else not (isinstance(content, Sequence) and content)
    if is_empty and not attachment_ids:
        raise InvalidMessage("content: the message is empty")
    check_message_parts(content)


def get_text(inbound: Inbound) -> str:
    return inbound.content if isinstance(inbound.content, str) else join_text_parts(inbound.content)


def get_written_text(inbound: Inbound) -> str:
    """Return the text of a message without the words of its recordings: a spoken word is never a command."""
    if isinstance(inbound.content, str):
        return inbound.content
    return join_text_parts([part for part in inbound.content if not find_attachment_ids([part])])


def add_lines(content: str | Sequence[Any], lines: Sequence[str]) -> str | Sequence[Any]:
    """Return the content with lines of data below its text."""
    if not lines:
        return content
    added = "\n".join(lines)
    if isinstance(content, str):
        return f"{content}\n\n{added}" if content.strip() else added
    return [*content, {"type": "text", "text": added}]


def build_message(
    inbound: Inbound, content: str | Sequence[Any], context: Sequence[dict[str, str]], now: datetime
) -> Message:
    """Build the message to store, with what it replies to and what was said in the group before."""
    fields: dict[str, Any] = {"role": "user", "content": content, "platform_message_id": inbound.message_id}
    if context:
        fields[CONTEXT_KEY] = list(context)
    if inbound.replied_message is not None:
        fields[REPLIED_MESSAGE_KEY] = build_replied_message(inbound.replied_message)
    sent_at = inbound.sent_at
    if sent_at is not None and sent_at.tzinfo is not None and sent_at <= now:
        fields["sent_at"] = format_time(sent_at.astimezone(UTC))
    return Message.from_dict(fields)
