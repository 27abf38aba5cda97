"""What a reader of a temporary answer gets: its text as it grows, notices, and how it ended."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from palaver.core.errors import AgentError, InvalidInput, StoreError
from palaver.sessions.turn import InterruptReason, TurnState
from palaver.sessions.turn_codes import FailureCode
from palaver.sessions.usage import TurnUsage
from palaver.turns.run import FAILURE_FACTS, INTERNAL_ERROR_REASON

if TYPE_CHECKING:
    from collections.abc import Mapping

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
