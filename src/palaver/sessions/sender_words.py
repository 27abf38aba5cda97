"""Says in words who has sent a message that is no answer: for people, and for the agent.

The name of a job or a person is text from a chat: it is cleaned for people and quoted for the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.sessions.context import clean_chat_text, quote_chat_text
from palaver.sessions.sent_message import SenderKind

if TYPE_CHECKING:
    from palaver.sessions.sent_message import SentBy

MAX_NAME_CHARS: Final = 60


def describe_sender(sent_by: SentBy) -> str:
    """Say who sent a message, for people: `Sent by the job “Morning news”`."""
    name = clean_chat_text(sent_by.name, MAX_NAME_CHARS)
    if sent_by.kind is SenderKind.JOB:
        return f"Sent by the job “{name}”" if name else "Sent by a job"
    return f"Sent by the agent for {name}" if name else "Sent by the agent from another conversation"


def describe_author(sent_by: SentBy) -> str:
    """Name the author of a message in a group, for the agent that reads it there."""
    name = clean_chat_text(sent_by.name, MAX_NAME_CHARS)
    if sent_by.kind is SenderKind.JOB:
        return f"you, by the job “{name}”" if name else "you, by a job"
    return f"you, on behalf of {name}" if name else "you"


def format_sender_note(sent_by: SentBy) -> str:
    """Return the note that tells the agent how the message after it came about."""
    name = quote_chat_text(sent_by.name) if clean_chat_text(sent_by.name) else ""
    if sent_by.kind is SenderKind.JOB:
        cause = f"Your scheduled job {name} ran" if name else "A scheduled job of yours ran"
    else:
        cause = f"{name} asked you in another conversation" if name else "You were asked in another conversation"
    return f"[{cause}, and you sent the following message here.]"
