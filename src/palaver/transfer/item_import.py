"""Imports what other programs have beside conversations: accounts with access, home channels, memories, jobs.

Each comes in once: what a person changes or deletes here afterwards stays as they want it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput, LimitReached
from palaver.core.source import SessionSource
from palaver.core.text import make_storable
from palaver.core.timestamps import to_micros
from palaver.core.timezones import check_timezone
from palaver.jobs import table as jobs
from palaver.jobs.fields import DEFAULT_TOOLSETS
from palaver.jobs.model import MAX_JOB_NAME_CHARS, MAX_PROMPT_CHARS, MAX_TARGETS, JobState
from palaver.jobs.schedule import format_schedule, parse_schedule
from palaver.memory import table as memories
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import home_channels
from palaver.sessions.targets import parse_target
from palaver.transfer import imports_table as imports
from palaver.transfer.imported import ImportedAccount, ImportedHomeChannel, ImportedJob, ImportedMemory, ImportProblem

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.transfer.import_request import ImportRun
    from palaver.transfer.imports_table import ItemKind
    from palaver.transfer.write_queue import Batch, WriteQueue

OtherItem = ImportedAccount | ImportedHomeChannel | ImportedMemory | ImportedJob

_PERSONAL_KINDS = (ImportedMemory,)
_NAMES = {
    ImportedAccount: "people",
    ImportedHomeChannel: "home_channels",
    ImportedMemory: "memories",
    ImportedJob: "jobs",
}


class ItemImporter:
    """Imports the other items of one run."""

    def __init__(self, run: ImportRun, queue: WriteQueue) -> None:
        self._run = run
        self._queue = queue
        self._left_out: set[str] = set()

    def add(self, item: OtherItem) -> None:
        run = self._run
        if not run.is_trusted and not isinstance(item, _PERSONAL_KINDS):
            self._leave_out(_NAMES[type(item)])
            return
        if run.is_dry_run:
            run.report.count(_NAMES[type(item)])
            return
        match item:
            case ImportedAccount():
                self._queue.add(lambda tx, batch: self._add_account(tx, batch, item), rows=4)
            case ImportedHomeChannel():
                self._queue.add(lambda tx, batch: self._add_home_channel(tx, batch, item))
            case ImportedMemory():
                self._queue.add(lambda tx, batch: self._add_memory(tx, batch, item), rows=2)
            case ImportedJob():
                self._add_job(item)

    def _leave_out(self, name: str) -> None:
        if name not in self._left_out:
            self._left_out.add(name)
            words = name.replace("_", " ")
            self._run.report.notes.add(f"The {words} in these files were left out: only the operator can import them.")

    def _is_new(self, tx: Transaction, batch: Batch, kind: ItemKind, owner: str, origin_id: str) -> bool:
        key = imports.make_key(self._run.reader.format, kind, owner, origin_id)
        is_new = imports.add(tx, key, self._run.now)
        if not is_new:
            batch.add_outcome("unchanged")
        return is_new

    def _add_account(self, tx: Transaction, batch: Batch, item: ImportedAccount) -> None:
        name = make_storable(item.name)[:100]
        source = SessionSource(item.platform, item.user_id, user_id=item.user_id, user_name=name or None)
        account = people.find_account(source)
        if account is None or not self._is_new(tx, batch, "account", "", ":".join(account)):
            return
        row = people.find_or_add_by_source(tx, source, self._run.now)
        if row is not None and row.person.role is Role.GUEST:
            people.set_role(tx, row.person.id, Role.MEMBER)
        batch.add_outcome("people")
        if item.is_owner:
            batch.add_outcome(
                f"{item.platform} account {item.user_id!r} was an administrator there, and is a member here."
            )

    def _add_home_channel(self, tx: Transaction, batch: Batch, item: ImportedHomeChannel) -> None:
        platform = item.source.platform
        if not self._is_new(tx, batch, "home_channel", "", f"{platform}:{item.source.chat_id}"):
            return
        if platform in home_channels.load_chosen(tx):
            batch.add_outcome(f"{platform.label} has a home channel here already. It stays.")
            return
        home_channels.choose(tx, item.source, self._run.person.id, self._run.now)
        batch.add_outcome("home_channels")

    def _add_memory(self, tx: Transaction, batch: Batch, item: ImportedMemory) -> None:
        person = self._run.person
        row = people.find_by_id(tx, person.id)
        if row is None or not self._is_new(tx, batch, "memory", person.id, item.origin_id):
            return
        at = self._run.now if item.at is None else to_micros(item.at)
        try:
            memories.add(tx, row.audience_no, memories.NewMemory(text=item.text, person_id=person.id), at)
        except (InvalidInput, LimitReached) as error:
            batch.add_outcome(ImportProblem(where=f"memory {item.origin_id!r}", what=str(error)))
        else:
            batch.add_outcome("memories")

    # -- jobs ----------------------------------------------------------------------------------------------

    def _add_job(self, item: ImportedJob) -> None:
        run = self._run
        now = run.store.clock.now()
        try:
            zone = check_timezone(item.timezone) if item.timezone else run.config.timezone
            schedule = parse_schedule(item.schedule, timezone=zone, now=now)
            targets = tuple(dict.fromkeys(str(each) for each in item.targets))[:MAX_TARGETS] or ("origin",)
            for target in targets:
                parse_target(target)
            prompt = make_storable(item.prompt).strip()
            if not prompt or len(prompt) > MAX_PROMPT_CHARS:
                raise InvalidInput(f"its prompt is empty or longer than {MAX_PROMPT_CHARS} characters")
        except InvalidInput as error:
            run.report.add_problem(ImportProblem(where=f"job {item.name!r}", what=str(error)))
            return
        new_job = jobs.NewJob(
            person_id=run.person.id,
            name=" ".join(make_storable(item.name).split())[:MAX_JOB_NAME_CHARS] or "Imported job",
            prompt=prompt,
            schedule=format_schedule(schedule),
            timezone=zone,
            anchor=now,
            targets=targets,
            origin=item.origin or SessionSource.local_cli(),
            toolsets=DEFAULT_TOOLSETS,
            state=JobState.PAUSED,
            next_slot=None,
            runs_left=item.runs_left,
        )
        self._queue.add(lambda tx, batch: self._insert_job(tx, batch, item, new_job), rows=2)

    def _insert_job(self, tx: Transaction, batch: Batch, item: ImportedJob, new_job: jobs.NewJob) -> None:
        if not self._is_new(tx, batch, "job", new_job.person_id, item.origin_id):
            return
        name = jobs.find_free_name(new_job.name, jobs.list_name_keys(tx, new_job.person_id))
        try:
            row = jobs.insert(tx, replace(new_job, name=name), self._run.now)
        except LimitReached as error:
            batch.add_outcome(ImportProblem(where=f"job {item.name!r}", what=str(error)))
            return
        jobs.set_state(tx, row.no, JobState.PAUSED, f"Imported from {self._run.reader.format}.", None, self._run.now)
        batch.add_outcome("jobs")
        batch.add_outcome(f"The job “{name}” is paused. Stop it where it comes from, then resume it here.")
