"""What the agent proposes and a person confirms: a new job, or a change of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from palaver.core.ids import JobId

DEFAULT_CHOICE: Final = "default"  # the word that resets a model or a profile


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """The fields of a job as a person or the agent gives them; None: not given, or unchanged."""

    name: str | None = None
    prompt: str | None = None
    schedule: str | None = None  # in the grammar of `jobs/schedule.py`
    timezone: str | None = None
    targets: tuple[str, ...] | None = None
    toolsets: tuple[str, ...] | None = None
    repeat: int | None = None  # how many scheduled runs; 0: without end
    model: str | None = None  # `default`: the gateway's
    profile: str | None = None  # `default`: none


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProposal:
    """A job as it will be once its person confirms it."""

    job_id: JobId
    name: str
    prompt: str
    schedule: str  # as it is stored
    words: str  # its schedule, with the time zone
    timezone: str
    next_slots: tuple[datetime, ...]
    cost_per_day: Decimal | None  # in dollars, estimated; None: unknown
    runs_left: int | None
    targets: tuple[str, ...]
    target_words: tuple[str, ...]  # where each of them leads, for people
    toolsets: tuple[str, ...]
    is_change: bool = False  # of a job that exists already, and stays as it is until then
    is_new: bool = True  # False: the same was proposed before, and still waits for the person

    def build_facts(self) -> dict[str, Any]:
        """Build what the log of the conversation holds, from which a page shows the proposal."""
        return {
            "job_id": self.job_id,
            "name": self.name,
            "prompt": self.prompt,
            "schedule": self.schedule,
            "words": self.words,
            "timezone": self.timezone,
            "next_slots": [slot.isoformat() for slot in self.next_slots],
            "cost_per_day": None if self.cost_per_day is None else f"{self.cost_per_day:f}",
            "runs_left": self.runs_left,
            "targets": list(self.targets),
            "target_words": list(self.target_words),
            "toolsets": list(self.toolsets),
            "is_change": self.is_change,
        }


def format_cost_per_day(dollars: Decimal | None) -> str:
    """Write an estimated cost in words."""
    if dollars is None:
        return "unknown"
    if dollars == 0:
        return "free"
    return f"about ${dollars:.2f} per day" if dollars * 100 >= 1 else "less than $0.01 per day"
