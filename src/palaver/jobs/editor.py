"""Stores, changes and describes jobs inside a transaction. Its callers check who asks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from palaver.agent import profiles
from palaver.agent.base import estimate_tokens
from palaver.agent.toolsets import describe_toolset
from palaver.core.clock import to_micros
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, NothingToDo, OwnerRequired
from palaver.core.texts import say
from palaver.delivery.reachable_chats import Origin
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.cron import parse_cron
from palaver.jobs.fields import FieldChecker, JobEnvironment, describe_target, get_origin
from palaver.jobs.model import (
    CostBasis,
    Job,
    JobDetails,
    JobDraft,
    JobFields,
    JobPreview,
    JobProposal,
    JobState,
    NamedItem,
)
from palaver.jobs.schedule import Schedule, describe_schedule, iterate_slots, list_next_slots, read_schedule
from palaver.people import table as people
from palaver.people.model import Person, Principal, Role
from palaver.sessions import table as sessions
from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource
    from palaver.jobs.table import JobRow


SHOWN_SLOTS: Final = 3
# What a run sends besides its prompt and the configured instructions, and what it answers: typical numbers.
TYPICAL_CONTEXT_TOKENS: Final = 1500
TYPICAL_ANSWER_TOKENS: Final = 700
_DAYS_COUNTED: Final = 28  # whole weeks
_DAYS_COUNTED_IF_RARE: Final = 4 * 365 + 1
_MAX_COUNTED_DAYS: Final = 250  # fewer than once a week in the longer time
_ONE_DAY: Final = timedelta(days=1)


def check_can_manage_all(principal: Principal) -> None:
    """Raise OwnerRequired unless this principal may see and manage the jobs of all people."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired.say("jobs.others", "Only an owner can view and manage the jobs of other people.")


def check_not_job(principal: Principal) -> None:
    if principal.job_id is not None:
        raise NotAllowed.say("jobs.no_jobs", "A job can't make or change jobs.")


def check_role(role: Role) -> None:
    if role is Role.GUEST:
        raise NotAllowed.say("jobs.no_guests", "Guests can't have jobs. Ask an owner to make you a member.")


def find_maker(
    tx: Transaction, principal: Principal, source: SessionSource, session_id: str | None
) -> tuple[Person, Origin]:
    """Return the person who makes a job, and the place or the conversation, which they see, where they make it."""
    check_not_job(principal)
    person = people.get_person(tx, principal.person_id)
    check_role(person.role)
    session_no = None if session_id is None else sessions.get_visible(tx, session_id, person.id).no
    return person, Origin(source, session_no)


def has_proposal(job: Job) -> bool:
    """Whether the job, or a change of it, waits for the confirmation of its person."""
    return job.state is JobState.PROPOSED or job.proposed_change is not None


def check_has_proposal(job: Job) -> None:
    if not has_proposal(job):
        raise NothingToDo.say(
            "jobs.nothing_proposed", "The agent has proposed nothing for the job {name}.", name=repr(job.name)
        )


def check_confirmed(job: Job) -> None:
    if job.state is JobState.PROPOSED:
        text = say(
            "jobs.unconfirmed",
            "The job {name} waits for your confirmation. Confirm or reject it first.",
            name=repr(job.name),
        )
        raise InvalidInput(text, job=job.name)


def describe_toolsets(names: Iterable[str]) -> tuple[NamedItem, ...]:
    return tuple(NamedItem(name=name, words=describe_toolset(name)) for name in names)


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


# ---- changes ----------------------------------------------------------------------------------------------------


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
        fields = self.make_checker(tx, person, origin, now).check_fields(draft)
        first = find_first_slot(fields, now)
        new_job = jobs.NewJob(
            person_id=person.id,
            origin=origin.source,
            origin_session_no=origin.session_no,
            state=state,
            next_slot=first if state is JobState.ACTIVE else None,
            **fields.list_fields(),
        )
        return jobs.insert(tx, new_job, to_micros(now))

    def change_fields(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> JobFields:
        person = people.get_person(tx, job_row.job.person_id)
        return self.make_checker(tx, person, get_origin(job_row), now).check_fields(draft, job_row.job)

    def apply(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> None:
        """Change a job, and its next slot if its times change; a paused job stays paused."""
        fields = self.change_fields(tx, job_row, draft, now)
        changes = fields.list_changes(job_row.job)
        if not changes:
            return
        has_other_times = not changes.keys().isdisjoint({"schedule", "timezone", "anchor", "runs_left"})
        if has_other_times and job_row.job.state is JobState.ACTIVE:
            changes["next_slot"] = find_first_slot(fields, now)
        changed = jobs.update_fields(tx, job_row, changes, to_micros(now))
        if has_other_times and job_row.job.state is JobState.ENDED:
            self.activate(tx, changed, now)

    def activate(self, tx: Transaction, job_row: JobRow, now: datetime, *, anchor: datetime | None = None) -> None:
        """Let a job run at its next time after now."""
        job = job_row.job
        if job.runs_left == 0:
            text = say(
                "jobs.no_runs_left",
                "The job {name} has no runs left. Change how often it repeats.",
                name=repr(job.name),
            )
            raise InvalidInput(text, job=job.name)
        if anchor is not None:
            job = jobs.update_fields(tx, job_row, {"anchor": anchor}, to_micros(now)).job
        first = find_first_slot(job, now)
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
            job_row = jobs.move_origin(tx, job_row, origin.source, origin.session_no, to_micros(now))
        changes = self.change_fields(tx, job_row, draft, now).list_changes(job_row.job)
        if changes:
            job_row = jobs.update_fields(tx, job_row, changes, to_micros(now))
        is_new = not changes.keys() <= {"anchor"}
        return JobProposal(job_id=job_row.job.id, preview=self.preview(tx, job_row, now), is_new=is_new)

    # -- in words ------------------------------------------------------------------------------------------

    def describe(self, tx: Transaction, job_row: JobRow, now: datetime) -> JobDetails:
        job = job_row.job
        change = None
        if job.proposed_change is not None:
            with suppress(InvalidInput, NotAllowed):  # no longer possible; confirming it says why
                change = self.preview_change(tx, job_row, decode_draft(job.proposed_change), now)
        preview = self.preview(tx, job_row, now)
        return JobDetails(
            job=job,
            words=preview.words,
            person_name=job_row.person_name,
            last_run=job_runs.load_last_runs(tx, [job_row.no]).get(job_row.no),
            preview=preview,
            proposed_change=change,
        )

    def preview(self, tx: Transaction, job_row: JobRow, now: datetime, fields: JobFields | None = None) -> JobPreview:
        """Build the preview of a job as it is, or with other fields."""
        principal = people.get_person(tx, job_row.job.person_id).principal
        return self.build_preview(tx, fields or job_row.job, principal, get_origin(job_row), now, job_no=job_row.no)

    def preview_change(self, tx: Transaction, job_row: JobRow, draft: JobDraft, now: datetime) -> JobPreview:
        fields = self.change_fields(tx, job_row, draft, now)
        jobs.check_name_free(tx, job_row.job.person_id, fields.name, except_no=job_row.no)
        return self.preview(tx, job_row, now, fields)

    def build_preview(
        self,
        tx: Transaction,
        fields: JobFields,
        principal: Principal,
        origin: Origin,
        now: datetime,
        *,
        job_no: int | None = None,
    ) -> JobPreview:
        """Build the preview of a job that is or will be; raises InvalidInput for a schedule that never comes.

        With its number, its cost is that of its last runs.
        """
        environment, schedule = self._environment, read_schedule(fields.schedule)
        used_model = fields.model or profiles.find_default_model(
            environment.profile, fields.profile, environment.agent.model
        )
        cost, basis = self._estimate_cost_per_run(tx, fields, used_model, job_no)
        runs_per_day = count_runs_per_day(schedule, fields.timezone, now)
        place = (environment.config, origin, now)
        shown = SHOWN_SLOTS if fields.runs_left is None else min(SHOWN_SLOTS, fields.runs_left)
        slots = list_next_slots(schedule, fields.timezone, fields.anchor, now, shown)
        return JobPreview(
            fields=fields,
            words=describe_schedule(schedule, fields.timezone),
            next_slots=tuple(slot.astimezone(ZoneInfo(fields.timezone)) for slot in slots),
            runs_per_day=runs_per_day,
            cost_per_run=cost,
            cost_per_day=None if cost is None else cost * Decimal(runs_per_day or 1),
            cost_basis=basis,
            targets=tuple(describe_target(tx, principal, text, *place) for text in fields.targets),
            toolsets=describe_toolsets(fields.toolsets),
            used_model=used_model,
        )

    def _estimate_cost_per_run(
        self, tx: Transaction, fields: JobFields, model: str, job_no: int | None
    ) -> tuple[Decimal | None, CostBasis]:
        """Estimate what a run costs in dollars: as its last runs did or, before the first one, by its length."""
        if job_no is not None:
            sample = job_runs.load_cost_sample(tx, job_no)
            if sample.run_count and not sample.has_unknown_cost:
                return Decimal(sample.cost_nanos) / sample.run_count / NANOS_PER_DOLLAR, CostBasis.RUNS
        price, agent_profile = self._environment.prices.find(model), self._environment.profile
        if price is None:
            return None, CostBasis.UNKNOWN
        profile = agent_profile.profiles.get(fields.profile or "", profiles.DEFAULT_PROFILE)
        instructions = profile.instructions or agent_profile.instructions or ""
        input_tokens = estimate_tokens(instructions) + estimate_tokens(fields.prompt) + TYPICAL_CONTEXT_TOKENS
        return price.compute_cost(input_tokens, TYPICAL_ANSWER_TOKENS), CostBasis.ESTIMATE


def find_first_slot(job: JobFields, now: datetime) -> datetime:
    schedule = read_schedule(job.schedule)
    slots = list_next_slots(schedule, job.timezone, job.anchor, now, 1)
    if not slots:
        words = describe_schedule(schedule, job.timezone)
        text = say(
            "jobs.time_passed", "schedule: its time has passed ({words}). Give the job another schedule.", words=words
        )
        raise InvalidInput(text, key="schedule")
    return slots[0]


def encode_draft(draft: JobDraft, fields: JobFields) -> dict[str, object]:
    """Return what a draft changes as JSON-ready data; a relative time such as `30m` becomes the moment it means."""
    change = draft.list_given()
    for name in change.keys() & {"schedule", "targets"}:  # the targets with ids that were hidden from the agent
        change[name] = getattr(fields, name)
    return {name: [*value] if isinstance(value, tuple) else value for name, value in change.items()}


def decode_draft(change: Mapping[str, object]) -> JobDraft:
    """Read what `encode_draft` returned."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in change.items()
    }
    return JobDraft(**values)
