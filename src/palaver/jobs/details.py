"""A job in the words and numbers that people confirm and read: what is shown of it on every surface."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from palaver.core.ids import JobId
    from palaver.jobs.job_run_summaries import LastRun
    from palaver.jobs.model import Job


class CostBasis(StrEnum):
    """What an estimated cost is based on."""

    RUNS = "runs"  # the average of its last runs
    ESTIMATE = "estimate"  # the length of its prompt, and an answer of typical length
    UNKNOWN = "unknown"  # the price of the model is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedItem:
    """A target or a toolset, and what it is in words."""

    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPreview:
    """A job as it is, or as it will be: everything that a person confirms."""

    job_id: JobId | None
    name: str
    prompt: str
    schedule: str  # as it is stored
    words: str  # the schedule in words, with the time zone
    timezone: str
    next_slots: tuple[datetime, ...]  # at most three, in the job's time zone
    runs_left: int | None
    runs_per_day: float | None  # None: it runs once
    cost_per_run: Decimal | None  # in dollars; None: unknown
    cost_per_day: Decimal | None  # of a job that runs once, the same as `cost_per_run`
    cost_basis: CostBasis
    targets: tuple[NamedItem, ...]
    toolsets: tuple[NamedItem, ...]
    model: str | None  # that it has chosen
    used_model: str
    profile: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as it is listed."""

    job: Job
    words: str  # the schedule in words, with the time zone
    person_name: str
    last_run: LastRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """A job, what it means, and the change that the agent proposes."""

    job: Job
    person_name: str
    last_run: LastRun | None
    preview: JobPreview
    proposed_change: JobPreview | None = None  # the job as it would be

    @property
    def words(self) -> str:
        return self.preview.words


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What a person can choose from when they make a job."""

    timezone: str  # the default
    toolsets: tuple[NamedItem, ...]
    default_toolsets: tuple[str, ...]
    targets: tuple[NamedItem, ...]
