"""A question of a temporary conversation: checks it, and builds what the model gets of it. Pure.

The surface that shows the conversation is the only place that has it, so each question comes with all messages so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from palaver.agent.base import Notice, ReasoningDelta, TextDelta
from palaver.agent.compaction import MIN_CONTEXT_TOKENS, count_tokens, shorten_messages
from palaver.agent.history import build_messages
from palaver.core.errors import CommandUnavailable, InvalidInput
from palaver.core.source import Platform
from palaver.core.text import make_storable
from palaver.core.texts import say
from palaver.inbox.registry import find_command
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import MAX_MESSAGE_CHARS, Message
from palaver.turns.answer_end import AnswerEnded
from palaver.turns.compaction import OMITTED_NOTICE, SHORTENED_NOTICE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ModelMessage = Mapping[str, Any]

# What a reader of an answer gets: its text as it grows, notices, and its end as the last one.
TemporaryEvent = TextDelta | ReasoningDelta | Notice | AnswerEnded

MAX_MESSAGES: Final = 1000  # sent with one question
MAX_CONVERSATION_CHARS: Final = 1_000_000  # of all messages together
TEMPORARY_INSTRUCTIONS: Final = (
    "This is a temporary conversation: nothing of it is saved, and it is gone when the user closes it. You have no"
    " tools here, you know nothing of the user's other conversations, and you can't remember anything for later. If the"
    " user asks for that, say that it needs a normal conversation."
)
OMITTED_MESSAGE: Final = {
    "role": "user",
    "content": "[Earlier messages of this conversation are omitted here because there are too many.]",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryMessage:
    role: Literal["user", "assistant"]
    text: str
    is_interrupted: bool = False  # the answer was stopped before it was complete


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryQuestion:
    """A temporary conversation whose last message is to be answered."""

    messages: Sequence[TemporaryMessage]
    model: str | None = None  # None: that of the profile, or the default
    profile: str | None = None
    personality: str | None = None
    platform: Platform = Platform.WEB

    def check(self) -> None:
        """Raise `InvalidInput` for a question that can't be answered."""
        if not self.messages or self.messages[-1].role != "user":
            raise InvalidInput("messages: the last message must have the role `user`.")
        if len(self.messages) > MAX_MESSAGES:
            raise InvalidInput(
                say(
                    "temporary.too_many_messages",
                    "messages: the limit is {limit}. Leave out older messages.",
                    limit=str(MAX_MESSAGES),
                ),
                limit=MAX_MESSAGES,
            )
        if not self.messages[-1].text.strip():
            raise InvalidInput(say("temporary.last_message_empty", "messages: the last message is empty."))
        lengths = [len(message.text) for message in self.messages]
        if lengths[-1] > MAX_MESSAGE_CHARS:
            raise InvalidInput(
                f"messages: the last message has {lengths[-1]} characters. The limit is {MAX_MESSAGE_CHARS}.",
                limit=MAX_MESSAGE_CHARS,
            )
        if sum(lengths) > MAX_CONVERSATION_CHARS:
            raise InvalidInput(
                f"messages: {sum(lengths)} characters in all. The limit is {MAX_CONVERSATION_CHARS}. Leave out older"
                " messages.",
                limit=MAX_CONVERSATION_CHARS,
            )
        if is_command(self.messages[-1].text):
            raise CommandUnavailable


def is_command(text: str) -> bool:
    """Return whether a text starts with the name of a slash command."""
    word = text.strip().split(maxsplit=1)[0] if text.strip() else ""
    return word.startswith("/") and find_command(word[1:]) is not None


def build_question_messages(messages: Sequence[TemporaryMessage]) -> list[dict[str, Any]]:
    """Build the messages for the model, in the same way as for a conversation that is stored."""
    now = datetime.now(UTC)
    events = [
        Event(
            seq=seq,
            kind=EventKind.MESSAGE,
            at=now,
            message=Message(
                message.role,
                make_storable(message.text),
                extra={"interrupted": True} if message.is_interrupted and message.role == "assistant" else {},
            ),
        )
        for seq, message in enumerate(messages, 1)
    ]
    return build_messages(events, input_seq=len(events), compaction=None, shared=False)


def keep_newest(messages: Sequence[ModelMessage], max_tokens: float) -> list[ModelMessage]:
    """Return the newest messages that have at most `max_tokens` together; always the last one."""
    kept, tokens = 0, 0
    for message in reversed(messages):
        tokens += count_tokens([message])
        if kept and tokens > max_tokens:
            break
        kept += 1
    if kept == len(messages):
        return list(messages)
    return [OMITTED_MESSAGE, *messages[len(messages) - kept :]]


def iterate_smaller(messages: Sequence[ModelMessage]) -> Iterator[tuple[list[ModelMessage], Notice]]:
    """Yield smaller and smaller requests for a conversation that was too long, each with what the person is told.

    The older half is left out, until only the last message remains; then that one is shortened.
    """
    kept = list(messages)
    while len(kept) > 1:
        kept = kept[(len(kept) + 1) // 2 :]
        yield [OMITTED_MESSAGE, *kept], OMITTED_NOTICE
    tokens = count_tokens(kept)
    while tokens > MIN_CONTEXT_TOKENS:
        tokens //= 2
        yield shorten_messages(kept, tokens), SHORTENED_NOTICE
