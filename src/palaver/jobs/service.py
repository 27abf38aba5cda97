"""Jobs of people: making, reading, changing and ending them, by their person, by the agent, or by an owner.

Always true: reading changes nothing, least of all the next slot of a job. A person sees and manages their own jobs; an
owner those of other people only if they ask for everything. A job of another person gives the same error as one that
does not exist. What the agent proposes does nothing until its person confirms it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from palaver.core.clock import Clock, to_micros
from palaver.core.engines.base import Transaction, Work, Write
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, NothingToDo
from palaver.core.operation import (
    AsyncRunner,
    Operations,
    Page,
    WriteThenWork,
    check_count,
    operation,
    read_operation,
    write_operation,
)
from palaver.core.source import Platform, SessionSource
from palaver.jobs import proposals, runs_table as job_runs, table as jobs
from palaver.jobs.editor import (
    JobEditor,
    check_can_manage_all,
    check_confirmed,
    check_has_proposal,
    check_not_job,
    check_role,
    decode_draft,
    describe_toolsets,
    encode_draft,
    find_maker,
    has_proposal,
)
from palaver.jobs.fields import (
    DEFAULT_TOOLSETS,
    JobEnvironment,
    get_person_timezone,
    list_grantable_toolsets,
    list_targets,
)
from palaver.jobs.model import (
    CostBasis,
    Job,
    JobDetails,
    JobDraft,
    JobOptions,
    JobPreview,
    JobProposal,
    JobRun,
    JobRunKind,
    JobState,
    JobSummary,
)
from palaver.jobs.schedule import describe_schedule, read_schedule
from palaver.jobs.table import ALL_PIECES, JobRow
from palaver.people import table as people
from palaver.sessions import inbound_table as inbound_messages, turns_table as turns
from palaver.sessions.deletions import HiddenRow, build_deletion
from palaver.sessions.inbound import Inbound
from palaver.sessions.turn import StopRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.agent.base import ModelPrices
    from palaver.people.model import Principal

R = TypeVar("R")

MAX_PAGE_JOBS: Final = 500
MAX_PAGE_RUNS: Final = 100
RUN_NAMESPACE: Final = "job runs"  # keeps the keys of runs apart from those of messages
_REMOVED = "The job was deleted."


class Jobs(Operations[R]):
    """The jobs of this gateway. Every operation says who asks."""

    def __init__(
        self, runner: R, environment: JobEnvironment, clock: Clock, *, only_chat: SessionSource | None = None
    ) -> None:
        """With `only_chat`, only jobs that were made in that chat exist: other people there read the answers."""
        super().__init__(runner)
        self._environment = environment
        self._editor = JobEditor(environment, only_chat)
        self._clock = clock
        self._only_chat = only_chat

    # -- reading -------------------------------------------------------------------------------------------

    @read_operation
    def list(
        self, tx: Transaction, principal: Principal, *, everything: bool = False, cursor: str | None = None
    ) -> Page[JobSummary]:
        """List a person's jobs by name; with `everything`, a page of the jobs of all people, the oldest first."""
        after = _parse_cursor(cursor)
        if everything:
            self._check_everything(principal)
            rows = jobs.list_all(tx, limit=MAX_PAGE_JOBS, after=after)
        else:
            rows = [row for row in jobs.list_owned(tx, principal.person_id) if self._is_shown(row)]
        last_runs = job_runs.load_last_runs(tx, [row.no for row in rows])
        summaries = [
            JobSummary(
                job=row.job,
                words=describe_schedule(read_schedule(row.job.schedule), row.job.timezone),
                person_name=row.person_name,
                last_run=last_runs.get(row.no),
            )
            for row in rows
        ]
        return Page(summaries, str(rows[-1].no) if everything and len(rows) == MAX_PAGE_JOBS else None)

    @read_operation
    def get(self, tx: Transaction, principal: Principal, id_or_name: str, *, everything: bool = False) -> JobDetails:
        return self._editor.describe(tx, self._find(tx, principal, id_or_name, everything), self._clock.now())

    @read_operation
    def list_runs(
        self,
        tx: Transaction,
        principal: Principal,
        id_or_name: str,
        *,
        limit: int = 20,
        before: datetime | None = None,
        everything: bool = False,
    ) -> Sequence[JobRun]:
        """List runs of a job, the newest first; with `before`, those whose slot is earlier."""
        check_count("limit", limit, maximum=MAX_PAGE_RUNS)
        job_row = self._find(tx, principal, id_or_name, everything)
        return job_runs.list_runs(tx, job_row.no, limit=limit, before=None if before is None else to_micros(before))

    @read_operation
    def get_options(self, tx: Transaction, principal: Principal) -> JobOptions:
        person = people.get_person(tx, principal.person_id)
        names = list_grantable_toolsets(self._environment, person.role)
        return JobOptions(
            timezone=get_person_timezone(self._environment, person),
            toolsets=describe_toolsets(names),
            default_toolsets=tuple(name for name in DEFAULT_TOOLSETS if name in names),
            targets=list_targets(tx, person.principal, self._environment.config),
        )

    @read_operation
    def preview(
        self,
        tx: Transaction,
        principal: Principal,
        draft: JobDraft,
        source: SessionSource,
        *,
        session_id: str | None = None,
        job: str | None = None,
        everything: bool = False,
    ) -> JobPreview:
        """Check a new job, or a change of one, and return it in words; nothing is stored."""
        now = self._clock.now()
        if job is not None:
            return self._editor.preview_change(tx, self._find(tx, principal, job, everything), draft, now)
        person, origin = find_maker(tx, principal, source, session_id)
        fields = self._editor.make_checker(tx, person, origin, now).check_fields(draft)
        jobs.check_name_free(tx, person.id, fields.name)
        return self._editor.build_preview(tx, fields, person.principal, origin, now)

    # -- by a person ---------------------------------------------------------------------------------------

    @write_operation
    def add(
        self,
        tx: Transaction,
        principal: Principal,
        draft: JobDraft,
        source: SessionSource,
        *,
        session_id: str | None = None,
    ) -> JobDetails:
        """Add a job, made in a place or in a conversation that the person sees; it is active at once."""
        now = self._clock.now()
        person, origin = find_maker(tx, principal, source, session_id)
        return self._editor.describe(tx, self._editor.insert(tx, person, draft, origin, now, JobState.ACTIVE), now)

    @write_operation
    def edit(
        self, tx: Transaction, principal: Principal, id_or_name: str, draft: JobDraft, *, everything: bool = False
    ) -> JobDetails:
        """Change fields of a job. A job that has ended and gets further times is active again."""
        job_row = self._find_to_change(tx, principal, id_or_name, everything)
        self._editor.apply(tx, job_row, draft, self._clock.now())
        return self._describe_changed(tx, job_row)

    @write_operation
    def pause(self, tx: Transaction, principal: Principal, id_or_name: str, *, everything: bool = False) -> JobDetails:
        """Stop starting runs of a job; one that is under way goes on."""
        job_row = self._find_to_change(tx, principal, id_or_name, everything)
        job = job_row.job
        check_confirmed(job)
        if job.state is not JobState.ACTIVE:
            name = repr(job.name)
            raise NothingToDo.say(
                "jobs.not_active", "The job {name} is not active: it is {state}.", name=name, state=job.state
            )
        jobs.set_state(tx, job_row.no, JobState.PAUSED, None, None, self._now())
        return self._describe_changed(tx, job_row)

    @write_operation
    def resume(self, tx: Transaction, principal: Principal, id_or_name: str, *, everything: bool = False) -> JobDetails:
        """Let a paused job run again from its next time on; what it missed is not made up for."""
        job_row = self._find_to_change(tx, principal, id_or_name, everything)
        check_confirmed(job_row.job)
        if job_row.job.state is JobState.ACTIVE:
            name = repr(job_row.job.name)
            raise NothingToDo.say("jobs.active_already", "The job {name} is active already.", name=name)
        self._editor.activate(tx, job_row, self._clock.now())
        return self._describe_changed(tx, job_row)

    @write_operation
    def run_now(
        self,
        tx: Transaction,
        principal: Principal,
        id_or_name: str,
        *,
        key: str | None = None,
        everything: bool = False,
    ) -> JobRun:
        """Queue a run of a job besides its schedule; raises `JobRunning` while a run is under way.

        A second call with the same key returns the same run, so a client that got no response can repeat it.
        """
        now = self._clock.now()
        job_row = self._find_to_change(tx, principal, id_or_name, everything)
        source = SessionSource(Platform.WEB, job_row.job.id, user_id=principal.person_id)
        request = Inbound(source=source, content="", message_id=key, message_id_namespace=RUN_NAMESPACE)
        receipt = inbound_messages.find_receipt(tx, request)
        if receipt is not None:
            run_row = job_runs.find_run(tx, receipt["run_id"])
            if run_row is None:
                raise NotFound("The run that was started with this key is no longer stored.")
            return run_row.run
        check_confirmed(job_row.job)
        queued = job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))
        inbound_messages.save_receipt(tx, request, {"outcome": "command", "run_id": queued.id}, to_micros(now))
        return queued

    @operation
    def remove(self, principal: Principal, id_or_name: str, *, everything: bool = False) -> Work[Job]:
        """Delete a job and stop its run; the conversations of its runs stay. Many runs are deleted by the cleanup."""
        return Write(lambda tx: self._remove(tx, principal, id_or_name, everything), frees_space=True)

    @operation
    def remove_completely(
        self, principal: Principal, id_or_name: str, *, everything: bool = False
    ) -> WriteThenWork[HiddenRow, Job]:
        """Delete a job like `remove`, and return when the last of its runs is deleted, too."""
        return build_deletion(lambda tx: self._remove(tx, principal, id_or_name, everything), ALL_PIECES)

    # -- proposals of the agent ----------------------------------------------------------------------------

    @write_operation
    def propose(
        self,
        tx: Transaction,
        principal: Principal,
        draft: JobDraft,
        source: SessionSource,
        *,
        session_id: str | None = None,
    ) -> JobProposal:
        """Store a job that waits for the confirmation of its person; one of the same name that waits is replaced."""
        now = self._clock.now()
        person, origin = find_maker(tx, principal, source, session_id)
        waiting = self._editor.find_waiting(tx, person.id, draft)
        if waiting is not None and self._is_shown(waiting):
            return self._editor.change_waiting(tx, waiting, draft, now, origin)
        job_row = self._editor.insert(tx, person, draft, origin, now, JobState.PROPOSED)
        return JobProposal(job_id=job_row.job.id, preview=self._editor.preview(tx, job_row, now))

    @write_operation
    def propose_change(self, tx: Transaction, principal: Principal, id_or_name: str, draft: JobDraft) -> JobProposal:
        """Store a change of a job that waits for the confirmation of its person; it replaces an earlier one."""
        now = self._clock.now()
        job_row = self._find_to_change(tx, principal, id_or_name, everything=False)
        job = job_row.job
        if job.state is JobState.PROPOSED:
            return self._editor.change_waiting(tx, job_row, draft, now)
        fields = self._editor.change_fields(tx, job_row, draft, now)
        if not fields.list_changes(job):
            raise NothingToDo.say("jobs.same", "The job {name} is like this already.", name=repr(job.name))
        jobs.check_name_free(tx, job.person_id, fields.name, except_no=job_row.no)
        change = encode_draft(draft, fields)
        jobs.update_fields(tx, job_row, {"proposed_change": change}, to_micros(now))
        preview = self._editor.preview(tx, job_row, now, fields)
        is_new = change != job.proposed_change
        return JobProposal(job_id=job.id, preview=preview, is_change=True, is_new=is_new)

    @write_operation
    def confirm(
        self,
        tx: Transaction,
        principal: Principal,
        id_or_name: str,
        *,
        everything: bool = False,
        asked_at: datetime | None = None,
    ) -> JobDetails:
        """Carry out what the agent has proposed: the job, or the change of it.

        `asked_at` is the time of the question that the person has seen. It fails if the agent has asked again since.
        """
        now = self._clock.now()
        job_row = self._find_to_change(tx, principal, id_or_name, everything)
        job = job_row.job
        check_has_proposal(job)
        if asked_at is not None and job.asked_at != asked_at:
            raise NothingToDo.say(
                "jobs.asked_again",
                "The agent has changed its proposal for the job {name}. Look at it again.",
                name=repr(job.name),
            )
        if job.state is JobState.PROPOSED:
            self._editor.activate(tx, job_row, now, anchor=now)
        elif job.proposed_change is not None:
            jobs.update_fields(tx, job_row, {"proposed_change": None}, to_micros(now))
            JobEditor(self._environment).apply(tx, job_row, decode_draft(job.proposed_change), now)
        proposals.record_decision(tx, job_row, principal.person_id, to_micros(now), is_confirmed=True)
        return self._describe_changed(tx, job_row)

    @write_operation
    def reject(self, tx: Transaction, principal: Principal, id_or_name: str, *, everything: bool = False) -> Job:
        """Drop what the agent has proposed; a job that was only proposed is deleted."""
        job_row = self._find_and_lock(tx, principal, id_or_name, everything)
        check_has_proposal(job_row.job)
        proposals.record_decision(tx, job_row, principal.person_id, self._now(), is_confirmed=False)
        if job_row.job.state is JobState.PROPOSED:
            jobs.delete(tx, job_row.no)
        else:
            jobs.update_fields(tx, job_row, {"proposed_change": None}, self._now())
        return job_row.job

    # -- inside a transaction ------------------------------------------------------------------------------

    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _remove(self, tx: Transaction, principal: Principal, id_or_name: str, everything: bool) -> Job:
        job_row, now = self._find_and_lock(tx, principal, id_or_name, everything), self._now()
        open_run = job_runs.find_open(tx, job_row.no)
        if open_run is not None and open_run.session_no is not None:
            turns.request_stop(tx, open_run.session_no, StopRequest.STOP, principal.person_id)
            turns.cancel_queued(tx, open_run.session_no, now, _REMOVED)
        if has_proposal(job_row.job):  # its person need not decide any more
            proposals.record_decision(tx, job_row, principal.person_id, now, is_confirmed=False)
        jobs.delete(tx, job_row.no)
        return job_row.job

    def _is_shown(self, job_row: JobRow) -> bool:
        if self._only_chat is None:
            return True
        here, origin = self._only_chat, job_row.job.origin
        return (here.platform, here.account, here.chat_id) == (origin.platform, origin.account, origin.chat_id)

    def _check_everything(self, principal: Principal) -> None:
        check_can_manage_all(principal)
        if self._only_chat is not None:
            raise NotAllowed.say("command.private", "Other people read this chat. Use this in a direct message.")

    def _find(self, tx: Transaction, principal: Principal, id_or_name: str, everything: bool) -> JobRow:
        if everything:
            self._check_everything(principal)
        try:
            job_row = jobs.get_owned(tx, principal.person_id, id_or_name)
        except NotFound:
            if not everything:
                raise
            job_row = jobs.get_any(tx, id_or_name)
        if not self._is_shown(job_row):
            raise jobs.make_not_found(id_or_name)
        return job_row

    def _find_and_lock(self, tx: Transaction, principal: Principal, id_or_name: str, everything: bool) -> JobRow:
        """Find a job, and keep others from changing it until this transaction ends: a slot may pass at this moment."""
        check_not_job(principal)
        job_row = self._find(tx, principal, id_or_name, everything)
        jobs.lock(tx, job_row.no)
        return self._find(tx, principal, job_row.job.id, everything)  # as it is since the lock

    def _find_to_change(self, tx: Transaction, principal: Principal, id_or_name: str, everything: bool) -> JobRow:
        job_row = self._find_and_lock(tx, principal, id_or_name, everything)
        check_role(job_row.person_role)
        return job_row

    def _describe_changed(self, tx: Transaction, job_row: JobRow) -> JobDetails:
        return self._editor.describe(tx, jobs.get_any(tx, job_row.job.id), self._clock.now())


def _parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.")
    return int(cursor)


# ---- with what they may cost: prices are loaded between two reads, outside of a transaction -----------------


async def get_priced_job(
    jobs: Jobs[AsyncRunner], prices: ModelPrices, principal: Principal, id_or_name: str, *, everything: bool = False
) -> JobDetails:
    details = await jobs.get(principal, id_or_name, everything=everything)
    return await load_prices(jobs, prices, principal, details, everything=everything)


async def load_prices(
    jobs: Jobs[AsyncRunner], prices: ModelPrices, principal: Principal, details: JobDetails, *, everything: bool = False
) -> JobDetails:
    """Return a job with what it may cost; it is read again only if a price was missing and is known now."""
    previews = [details.preview, *([details.proposed_change] if details.proposed_change else [])]
    if await _load_missing_prices(prices, previews):
        return await jobs.get(principal, details.job.id, everything=everything)
    return details


async def preview_priced_job(
    jobs: Jobs[AsyncRunner],
    prices: ModelPrices,
    principal: Principal,
    draft: JobDraft,
    source: SessionSource,
    **options: Any,
) -> JobPreview:
    """Return what `Jobs.preview` does, with what the job may cost."""
    preview = await jobs.preview(principal, draft, source, **options)
    if await _load_missing_prices(prices, [preview]):
        return await jobs.preview(principal, draft, source, **options)
    return preview


async def _load_missing_prices(prices: ModelPrices, previews: Sequence[JobPreview]) -> bool:
    """Load the prices that previews lack; return whether one was found."""
    models = {each.used_model for each in previews if each.cost_basis is CostBasis.UNKNOWN}
    missing = [model for model in models if not prices.is_loaded(model)]
    await prices.load(missing)
    return any(prices.find(model) is not None for model in missing)
