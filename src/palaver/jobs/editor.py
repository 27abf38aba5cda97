"""Stores, changes and describes jobs inside a transaction. Its callers check who asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from palaver.agent import profiles
from palaver.agent.base import estimate_tokens
from palaver.agent.toolsets import describe_toolset
from palaver.core.clock import to_micros
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, OwnerRequired
from palaver.delivery.reachable_chats import Origin
from palaver.jobs import runs_table as job_run_summaries, table as jobs
from palaver.jobs.cron import parse_cron
from palaver.jobs.fields import FieldChecker, JobFields, describe_target
from palaver.jobs.model import JobDraft, JobProposal, JobState
from palaver.jobs.schedule import (
    Schedule,
    describe_schedule,
    format_schedule,
    iterate_slots,
    list_next_slots,
    read_schedule,
)
from palaver.jobs.wire import CostBasis, JobDetails, JobPreview, NamedItem
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import table as sessions
from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import JobId, PersonId
    from palaver.core.source import SessionSource
    from palaver.jobs.fields import JobEnvironment
    from palaver.jobs.model import Job
    from palaver.jobs.table import JobRow
    from palaver.people.model import Person, Principal


def check_can_manage_all(principal: Principal) -> None:
    """Raise OwnerRequired unless this principal may see and manage the jobs of all people."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired("Only an owner can view and manage the jobs of other people.")


def check_not_job(principal: Principal) -> None:
    if principal.job_id is not None:
        raise NotAllowed("A job can't make or change jobs.")


def check_role(role: Role) -> None:
    if role is Role.GUEST:
        raise NotAllowed("Guests can't have jobs. Ask an owner to make you a member.")


def get_person(tx: Transaction, person_id: PersonId) -> Person:
    row = people.find_by_id(tx, person_id)
    if row is None:
        raise NotFound("This account is closed.")
    return row.person


def get_job_person(tx: Transaction, principal: Principal) -> Person:
    """Return the person for whom a job is made."""
    check_not_job(principal)
    person = get_person(tx, principal.person_id)
    check_role(person.role)
    return person


def make_origin(tx: Transaction, person: Person, source: SessionSource, session_id: str | None) -> Origin:
    session_no = None if session_id is None else sessions.get_visible(tx, session_id, person.id).no
    return Origin(source, session_no)


def get_origin(job_row: JobRow) -> Origin:
    return Origin(job_row.job.origin, job_row.origin_session_no)


def has_proposal(job: Job) -> bool:
    """Whether the job, or a change of it, waits for the confirmation of its person."""
    return job.state is JobState.PROPOSED or job.proposed_change is not None


def check_confirmed(job: Job) -> None:
    if job.state is JobState.PROPOSED:
        raise InvalidInput(
            f"The job {job.name!r} waits for your confirmation. Confirm or reject it first.", job=job.name
        )


# --------------------------------------------------------------------------------------------------
# Builds what a person confirms: a job in words, its next times, how often it runs and what that may cost.

SHOWN_SLOTS: Final = 3
# What a run sends besides its prompt and the configured instructions, and what it answers: typical numbers.
TYPICAL_CONTEXT_TOKENS: Final = 1500
TYPICAL_ANSWER_TOKENS: Final = 700

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
            return Decimal(sample.cost_nanos) / sample.run_count / NANOS_PER_DOLLAR, CostBasis.RUNS
    price = environment.prices.find(model)
    if price is None:
        return None, CostBasis.UNKNOWN
    profile = environment.profile.profiles.get(request.fields.profile or "", profiles.DEFAULT_PROFILE)
    instructions = profile.instructions or environment.profile.instructions or ""
    input_tokens = estimate_tokens(instructions) + estimate_tokens(request.fields.prompt) + TYPICAL_CONTEXT_TOKENS
    dollars = price.input_usd * input_tokens + price.output_usd * TYPICAL_ANSWER_TOKENS
    return dollars / _TOKENS_PER_PRICE, CostBasis.ESTIMATE


# --------------------------------------------------------------------------------------------------


class JobEditor:
    """Carries out what `Jobs` has allowed."""

    def __init__(self, environment: JobEnvironment, only_chat: SessionSource | None = None) -> None:
        """With `only_chat`, which other people read, targets are limited to that chat and home channels."""
        self._environment = environment
        self._only_chat = only_chat

    def make_checker(self, tx: Transaction, person: Person, origin: Origin, now: datetime) -> FieldChecker:
        return FieldChecker(
            tx=tx, environment=self._environment, person=person, origin=origin, now=now, only_chat=self._only_chat
        )

    def insert(
        self, tx: Transaction, person: Person, draft: JobDraft, origin: Origin, now: datetime, state: JobState
    ) -> JobRow:
        fields = self.make_checker(tx, person, origin, now).make_fields(draft)
        first = find_first_slot(fields.schedule, fields.timezone, fields.anchor, now)
        new_job = jobs.NewJob(
            person_id=person.id,
            origin=origin.source,
            origin_session_no=origin.session_no,
            state=state,
            next_slot=first if state is JobState.ACTIVE else None,
            **fields.to_columns(),
        )
        return jobs.insert(tx, new_job, to_micros(now))

    def change_fields(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> JobFields:
        person = get_person(tx, job_row.job.person_id)
        return self.make_checker(tx, person, get_origin(job_row), now).change_fields(job_row.job, draft)

    def apply(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> None:
        """Change a job, and its next slot if its times change; a paused job stays paused."""
        fields = self.change_fields(tx, job_row, draft, now)
        changes = fields.list_changes(job_row.job)
        if not changes:
            return
        changed = jobs.update_fields(tx, job_row, changes, to_micros(now))
        if changes.keys().isdisjoint({"schedule", "timezone", "anchor", "runs_left"}):
            return
        state = job_row.job.state
        if state is JobState.ACTIVE:
            first = find_first_slot(fields.schedule, fields.timezone, fields.anchor, now)
            jobs.set_next_slot(tx, job_row.no, first, to_micros(now))
        elif state is JobState.ENDED:
            self.activate(tx, changed, now)

    def activate(self, tx: Transaction, job_row: JobRow, now: datetime, *, anchor: datetime | None = None) -> None:
        """Let a job run at its next time after now."""
        job = job_row.job
        if job.runs_left == 0:
            raise InvalidInput(f"The job {job.name!r} has no runs left. Change how often it repeats.", job=job.name)
        if anchor is not None:
            jobs.update_fields(tx, job_row, {"anchor": anchor}, to_micros(now))
        first = find_first_slot(read_schedule(job.schedule), job.timezone, anchor or job.anchor, now)
        jobs.set_state(tx, job_row.no, JobState.ACTIVE, None, first, to_micros(now))

    def find_waiting(self, tx: Transaction, person_id: PersonId, draft: JobDraft) -> JobRow | None:
        """Find the job of this name that waits for confirmation."""
        try:
            job_row = jobs.get_owned(tx, person_id, draft.name or "")
        except NotFound:
            return None
        return job_row if job_row.job.state is JobState.PROPOSED else None

    def change_waiting(
        self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime, origin: Origin | None = None
    ) -> JobProposal:
        """Change a job that waits for confirmation; with an origin, it is proposed again, maybe in another place."""
        if origin is not None and origin != get_origin(job_row):
            moved = {"origin": origin.source, "origin_session_no": origin.session_no}
            job_row = jobs.update_fields(tx, job_row, moved, to_micros(now))
        changes = self.change_fields(tx, job_row, draft, now).list_changes(job_row.job)
        if changes:
            job_row = jobs.update_fields(tx, job_row, changes, to_micros(now))
        is_new = not changes.keys() <= {"anchor"}
        return make_proposal(job_row.job, self.preview(tx, job_row, now), is_new=is_new)

    # -- in words ------------------------------------------------------------------------------------------

    def describe(self, tx: Transaction, job_row: JobRow, now: datetime) -> JobDetails:
        job = job_row.job
        change = None
        if job.proposed_change is not None:
            try:
                change = self.preview_change(tx, job_row, decode_draft(job.proposed_change), now)
            except (InvalidInput, NotAllowed):  # no longer possible; confirming it says why
                change = None
        return JobDetails(
            job=job,
            person_name=job_row.person_name,
            last_run=job_run_summaries.load_last_runs(tx, [job_row.no]).get(job_row.no),
            preview=self.preview(tx, job_row, now),
            proposed_change=change,
        )

    def preview(self, tx: Transaction, job_row: JobRow, now: datetime) -> JobPreview:
        return self.build_preview(tx, job_row, get_fields(job_row.job), now)

    def preview_change(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> JobPreview:
        fields = self.change_fields(tx, job_row, draft, now)
        jobs.check_name_free(tx, job_row.job.person_id, fields.name, except_no=job_row.no)
        return self.build_preview(tx, job_row, fields, now)

    def build_preview(self, tx: Transaction, job_row: JobRow, fields: JobFields, now: datetime) -> JobPreview:
        person = get_person(tx, job_row.job.person_id)
        request = PreviewRequest(
            fields=fields,
            principal=person.principal,
            origin=get_origin(job_row),
            now=now,
            job_id=job_row.job.id,
            job_no=job_row.no,
        )
        return build_preview(tx, self._environment, request)


# ---- fields ----------------------------------------------------------------------------------------------------


def find_first_slot(schedule: Schedule, timezone: str, anchor: datetime, now: datetime) -> datetime:
    slots = list_next_slots(schedule, timezone, anchor, now, 1)
    if not slots:
        words = describe_schedule(schedule, timezone)
        raise InvalidInput(f"schedule: its time has passed ({words}). Give the job another schedule.", key="schedule")
    return slots[0]


def get_fields(job: Job) -> JobFields:
    return JobFields(
        name=job.name,
        prompt=job.prompt,
        schedule=read_schedule(job.schedule),
        timezone=job.timezone,
        anchor=job.anchor,
        runs_left=job.runs_left,
        targets=job.targets,
        toolsets=job.toolsets,
        model=job.model,
        profile=job.profile,
    )


def make_proposal(job: Job, preview: JobPreview, *, is_change: bool = False, is_new: bool = True) -> JobProposal:
    return JobProposal(
        job_id=job.id,
        name=preview.name,
        prompt=preview.prompt,
        schedule=preview.schedule,
        words=preview.words,
        timezone=preview.timezone,
        next_slots=preview.next_slots,
        cost_per_day=preview.cost_per_day,
        runs_left=preview.runs_left,
        targets=tuple(target.name for target in preview.targets),
        target_words=tuple(target.words for target in preview.targets),
        toolsets=tuple(toolset.name for toolset in preview.toolsets),
        is_change=is_change,
        is_new=is_new,
    )


def encode_draft(draft: JobDraft, fields: JobFields) -> dict[str, object]:
    """Return what a draft changes as JSON-ready data; a relative time such as `30m` becomes the moment it means."""
    change = {name: getattr(draft, name) for name in draft.__slots__ if getattr(draft, name) is not None}
    if "schedule" in change:
        change["schedule"] = format_schedule(fields.schedule)
    if "targets" in change:
        change["targets"] = fields.targets  # with the real ids, if they were hidden from the agent
    return {name: [*value] if isinstance(value, tuple) else value for name, value in change.items()}


def decode_draft(change: Mapping[str, object]) -> JobDraft:
    """Read what `_encode_draft` returned."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in change.items()
    }
    return JobDraft(**values)
