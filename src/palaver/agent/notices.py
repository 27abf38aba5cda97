"""Notices that several agents send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.agent.base import Notice
from palaver.sessions.turn_codes import NoticeCode

if TYPE_CHECKING:
    from palaver.core.errors import AgentError

CUT_OFF_NOTICE = Notice("The answer was cut off because it reached the maximum length.", NoticeCode.CUT_OFF)


def make_fallback_notice(error: AgentError, model: str, instead_of: str) -> Notice:
    """Say that another model answers, and why: with the code and the facts of the error as `failure`."""
    failure = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float)}
    facts = {"model": model, "instead_of": instead_of, "reason": str(error), "failure": failure}
    return Notice(f"{error} Using {model} instead of {instead_of}.", NoticeCode.FALLBACK_USED, facts)
