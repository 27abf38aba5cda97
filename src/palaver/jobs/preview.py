"""Builds what a person confirms: a job in words, its next times, how often it runs and what that may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from palaver.agent import profiles
from palaver.agent.tokens import estimate_tokens
from palaver.agent.toolsets import describe_toolset
from palaver.jobs import job_run_summaries
from palaver.jobs.cron import parse_cron
from palaver.jobs.details import CostBasis, JobPreview, NamedItem
from palaver.jobs.schedule import Schedule, describe_schedule, format_schedule
from palaver.jobs.slots import iterate_slots, list_next_slots
from palaver.jobs.targets import describe_target

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import JobId
    from palaver.delivery.reachable_chats import Origin
    from palaver.jobs.fields import JobEnvironment, JobFields
    from palaver.people.model import Principal

SHOWN_SLOTS: Final = 3
# What a run sends besides its prompt and the configured instructions, and what it answers: typical numbers.
TYPICAL_CONTEXT_TOKENS: Final = 1500
TYPICAL_ANSWER_TOKENS: Final = 700
_NANOS_PER_DOLLAR: Final = 10**9
_TOKENS_PER_PRICE: Final = 10**6
_DAYS_COUNTED: Final = 28  # whole weeks
_DAYS_COUNTED_IF_RARE: Final = 4 * 365 + 1
_MAX_COUNTED_DAYS: Final = 250  # fewer than once a week in the longer time
_ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRequest:
    """A job that is or will be, and for whom."""

    fields: JobFields
    principal: Principal  # on whose behalf it runs
    origin: Origin
    now: datetime
    job_id: JobId | None = None
    job_no: int | None = None  # of a job that may have run


def build_preview(tx: Transaction, environment: JobEnvironment, request: PreviewRequest) -> JobPreview:
    """Build the preview; raises InvalidInput for a schedule that never comes."""
    fields, config, now = request.fields, environment.config, request.now
    used_model = fields.model or profiles.find_default_model(
        environment.profile, fields.profile, environment.agent.model
    )
    cost, basis = _estimate_cost_per_run(tx, environment, request, used_model)
    runs_per_day = count_runs_per_day(fields.schedule, fields.timezone, now)
    return JobPreview(
        job_id=request.job_id,
        name=fields.name,
        prompt=fields.prompt,
        schedule=format_schedule(fields.schedule),
        words=describe_schedule(fields.schedule, fields.timezone),
        timezone=fields.timezone,
        next_slots=list_shown_slots(fields, now),
        runs_left=fields.runs_left,
        runs_per_day=runs_per_day,
        cost_per_run=cost,
        cost_per_day=None if cost is None else cost * Decimal(runs_per_day or 1),
        cost_basis=basis,
        targets=tuple(
            describe_target(tx, request.principal, text, config, request.origin, now) for text in fields.targets
        ),
        toolsets=tuple(NamedItem(name=name, words=describe_toolset(name)) for name in fields.toolsets),
        model=fields.model,
        used_model=used_model,
        profile=fields.profile,
    )


def list_shown_slots(fields: JobFields, now: datetime) -> tuple[datetime, ...]:
    """List the next times of a job in its time zone; fewer than three if it has fewer runs left."""
    count = SHOWN_SLOTS if fields.runs_left is None else min(SHOWN_SLOTS, fields.runs_left)
    zone = ZoneInfo(fields.timezone)
    slots = list_next_slots(fields.schedule, fields.timezone, fields.anchor, now, count)
    return tuple(slot.astimezone(zone) for slot in slots)


def count_runs_per_day(schedule: Schedule, timezone: str, now: datetime) -> float | None:
    """Return how often a schedule comes on an average day; None if it comes once."""
    if schedule.is_once:
        return None
    if schedule.every is not None:
        return _ONE_DAY / schedule.every
    assert schedule.cron is not None  # noqa: S101
    cron = schedule.cron
    noon = replace(schedule, cron=parse_cron(" ".join(["0", "12", *cron.parts[2:]])))  # one slot for each of its days
    return len(cron.minutes) * len(cron.hours) * _count_days(noon, timezone, now)


def _count_days(noon: Schedule, timezone: str, now: datetime) -> float:
    """Return the share of the days on which a schedule has a slot."""
    often = _list_slots_within(noon, timezone, now, _DAYS_COUNTED)
    if len(often) >= _DAYS_COUNTED // 7:
        return len(often) / _DAYS_COUNTED
    return len(_list_slots_within(noon, timezone, now, _DAYS_COUNTED_IF_RARE)) / _DAYS_COUNTED_IF_RARE


def _list_slots_within(noon: Schedule, timezone: str, now: datetime, days: int) -> list[datetime]:
    end = now + days * _ONE_DAY
    slots = islice(iterate_slots(noon, timezone, now, now), _MAX_COUNTED_DAYS)
    return list(takewhile(lambda slot: slot <= end, slots))


def _estimate_cost_per_run(
    tx: Transaction, environment: JobEnvironment, request: PreviewRequest, model: str
) -> tuple[Decimal | None, CostBasis]:
    """Estimate what a run costs in dollars: as its last runs did or, before the first one, by its length."""
    if request.job_no is not None:
        sample = job_run_summaries.load_cost_sample(tx, request.job_no)
        if sample.run_count and not sample.has_unknown_cost:
            return Decimal(sample.cost_nanos) / sample.run_count / _NANOS_PER_DOLLAR, CostBasis.RUNS
    price = environment.prices.find(model)
    if price is None:
        return None, CostBasis.UNKNOWN
    profile = environment.profile.profiles.get(request.fields.profile or "", profiles.DEFAULT_PROFILE)
    instructions = profile.instructions or environment.profile.instructions
    input_tokens = estimate_tokens(instructions) + estimate_tokens(request.fields.prompt) + TYPICAL_CONTEXT_TOKENS
    dollars = price.input_usd * input_tokens + price.output_usd * TYPICAL_ANSWER_TOKENS
    return dollars / _TOKENS_PER_PRICE, CostBasis.ESTIMATE
