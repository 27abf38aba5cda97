"""The sender of a message to a chat that is no answer: a job, or the agent at the request of another conversation.

It is stored with the message, so that people, exports and the agent itself know where it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final, Self

from palaver.core.dataclass import dataclass

SENT_BY_KEY: Final = "sent_by"  # in the message


class SenderKind(StrEnum):
    JOB = "job"
    AGENT = "agent"  # a person asked for it in another conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBy:
    """The sender of a message that is no answer."""

    kind: SenderKind
    name: str = ""  # of the job; of the person on whose behalf the agent sent it
    job_id: str | None = None
    run_id: str | None = None
    session_id: str | None = None  # the conversation of the run, or in which the agent was asked

    def to_dict(self) -> dict[str, str | None]:
        """Return it as JSON-ready fields; `from_dict` reads them."""
        return {**asdict(self), "kind": self.kind.value}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self | None:
        """Read what `to_dict` returned; None if it is something else."""
        texts: dict[str, Any] = {key: value for key in cls.__slots__ if isinstance(value := fields.get(key), str)}
        if texts.get("kind") not in set(SenderKind):
            return None
        return cls(**{**texts, "kind": SenderKind(texts["kind"])})


def find_sent_by(extra: Mapping[str, Any]) -> SentBy | None:
    """Return who sent a message with these fields; None for an answer, and for messages of people."""
    fields = extra.get(SENT_BY_KEY)
    return SentBy.from_dict(fields) if isinstance(fields, Mapping) else None
