"""Stores, changes and describes jobs inside a transaction. Its callers check who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidInput, NotAllowed, NotFound
from palaver.core.timestamps import to_micros
from palaver.jobs import job_run_summaries, preview as job_preview, table as jobs
from palaver.jobs.details import JobDetails
from palaver.jobs.fields import FieldChecker, JobFields
from palaver.jobs.model import JobState
from palaver.jobs.permissions import get_origin, get_person
from palaver.jobs.preview import PreviewRequest
from palaver.jobs.proposal import JobDraft, JobProposal
from palaver.jobs.schedule import describe_schedule, format_schedule, read_schedule
from palaver.jobs.slots import list_next_slots

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource
    from palaver.delivery.reachable_chats import Origin
    from palaver.jobs.details import JobPreview
    from palaver.jobs.fields import JobEnvironment
    from palaver.jobs.model import Job
    from palaver.jobs.schedule import Schedule
    from palaver.jobs.table import JobRow
    from palaver.people.model import Person


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
        return job_preview.build_preview(tx, self._environment, request)


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
