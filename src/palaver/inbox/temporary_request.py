"""What a temporary conversation sends with a question, what is checked of it, and what the model gets of it. Pure.

The surface that shows the conversation is the only place that has it, so each question comes with all messages so far.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from palaver.agent.compaction import MIN_CONTEXT_TOKENS, count_tokens, shorten_messages
from palaver.agent.history import build_messages
from palaver.core.errors import AgentError, CommandUnavailable, InvalidInput, StoreError
from palaver.core.source import Platform
from palaver.core.text import make_storable
from palaver.inbox import MAX_MESSAGE_CHARS
from palaver.inbox.registry import find_command
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message
from palaver.sessions.turn import FailureCode, InterruptReason, TurnState
from palaver.sessions.usage import TurnUsage
from palaver.turns.compaction import OMITTED_NOTICE, SHORTENED_NOTICE
from palaver.turns.run import FAILURE_FACTS, INTERNAL_ERROR_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.agent.base import Notice

    ModelMessage = Mapping[str, Any]

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
    """One message of a temporary conversation."""

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
            raise InvalidInput(f"messages: the limit is {MAX_MESSAGES}. Leave out older messages.", limit=MAX_MESSAGES)
        if not self.messages[-1].text.strip():
            raise InvalidInput("messages: the last message is empty.")
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
    """Whether a text starts with the name of a slash command."""
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


# --------------------------------------------------------------------------------------------------
# What a reader of a temporary answer gets: its text as it grows, notices, and how it ended.

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The next piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerReasoning:
    """The next piece of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerNotice:
    """Something that people should know about the answer."""

    text: str
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEnded:
    """The last event of an answer."""

    state: TurnState
    error: str = ""  # why it was not completed, in English
    facts: Mapping[str, Any] = field(default_factory=dict)  # the code of the error, or the reason, and their details
    usage: TurnUsage = field(default_factory=TurnUsage)  # of all calls together


TemporaryEvent = AnswerText | AnswerReasoning | AnswerNotice | AnswerEnded


def explain_failure(error: AgentError | InvalidInput | StoreError) -> AnswerEnded:
    names = FAILURE_FACTS if isinstance(error, AgentError) else error.facts
    known = {name: error.facts[name] for name in names if error.facts.get(name) is not None}
    return AnswerEnded(state=TurnState.FAILED, error=str(error), facts={"code": error.code} | known)


def explain_interruption(reason: InterruptReason, minutes: int | None = None) -> AnswerEnded:
    facts = {"reason": reason.value} | ({} if minutes is None else {"minutes": minutes})
    return AnswerEnded(state=TurnState.INTERRUPTED, error=reason.explain(minutes), facts=facts)


def report_mistake(error: BaseException) -> AnswerEnded:
    """Log where an unexpected error came from. Its text is left out: it may contain what was said."""
    kind, frame = type(error).__name__, error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
    log.error("temporary_answer_internal_error", extra={"error": kind, "where": where})
    return AnswerEnded(
        state=TurnState.FAILED,
        error=INTERNAL_ERROR_REASON.format(kind=kind),
        facts={"code": FailureCode.INTERNAL_ERROR.value, "error": kind},
    )
