"""The end of an answer: its state, the reason, and its facts. The same for stored and temporary conversations."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from palaver.core.dataclass import dataclass
from palaver.core.errors import AgentError, InvalidInput, NothingToDo, PalaverError, StoreError
from palaver.core.texts import Text, say, tell_owner
from palaver.sessions.turn import REASON_FOR_OTHERS_KEY, FailureCode, InterruptReason, TurnState
from palaver.sessions.usage import TurnUsage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta


# The facts of an error that are kept with the end of its answer.
FAILURE_FACTS = (
    *("code", "provider", "provider_title", "model", "seconds", "limit", "status", "detail"),
    *("scope", "subject", "period", "unit", "used", "resets_at", "timezone"),  # of a budget
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEnded:
    state: TurnState = TurnState.DONE
    error: str = ""  # why it was not completed
    facts: Mapping[str, Any] = field(default_factory=dict)  # the code of the error, or the reason, and their details
    usage: TurnUsage = field(default_factory=TurnUsage)  # of all calls together, where nothing else records them


def explain_error(error: BaseException, timeout: timedelta, *, timed_out: bool) -> AnswerEnded:
    if timed_out:
        return explain_interruption(InterruptReason.TIMED_OUT, timeout)
    if isinstance(error, AgentError | NothingToDo | InvalidInput | StoreError):
        return explain_failure(error)
    return explain_mistake(error)


def explain_failure(error: PalaverError, fact_names: Iterable[str] = FAILURE_FACTS) -> AnswerEnded:
    facts = {name: error.facts[name] for name in fact_names if error.facts.get(name) is not None}
    return AnswerEnded(
        state=TurnState.FAILED, error=error.text, facts={"code": error.code} | facts | _describe_for_others(error.text)
    )


def _describe_for_others(text: str) -> dict[str, str]:
    """Return as a fact what people read who are no owners, if the text has such a form."""
    others = text.others if isinstance(text, Text) else None
    return {} if others is None else {REASON_FOR_OTHERS_KEY: str(others)}


def explain_interruption(reason: InterruptReason, timeout: timedelta | None = None) -> AnswerEnded:
    facts: dict[str, Any] = {"reason": reason.value}
    if reason is InterruptReason.TIMED_OUT and timeout is not None:
        facts["minutes"] = round(timeout.total_seconds() / 60)
    return AnswerEnded(state=TurnState.INTERRUPTED, error=reason.explain(facts.get("minutes")), facts=facts)


def explain_mistake(error: BaseException) -> AnswerEnded:
    """Return the end of an answer whose driver raised what it should not. The caller logs it."""
    kind = type(error).__name__
    facts = {"code": FailureCode.INTERNAL_ERROR.value, "error": kind}
    text = tell_owner(
        say("answer.internal_error", "Internal error in Palaver ({kind}). See its log for details.", kind=kind),
        say("answer.internal_error_for_others", "Something went wrong in Palaver. That's not your fault."),
    )
    return AnswerEnded(state=TurnState.FAILED, error=text, facts=facts | _describe_for_others(text))
