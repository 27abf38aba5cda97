"""Imports the files of other programs into a store.

The operator's import (`import_files`) brings in what the files name: people, chats, jobs. A person's own import
(`import_for_person`) writes only to that person's conversations, projects and memories, whatever the files say.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.core.clock import check_timezone, to_micros
from palaver.core.engines.base import Read, Transaction
from palaver.core.errors import InvalidInput, LimitReached
from palaver.core.ids import PersonId
from palaver.core.source import SessionSource
from palaver.core.text import make_storable
from palaver.delivery.reachable_chats import Origin, ReachableChats
from palaver.jobs import table as jobs
from palaver.jobs.fields import DEFAULT_TOOLSETS, has_other_readers
from palaver.jobs.model import MAX_JOB_NAME_CHARS, MAX_PROMPT_CHARS, MAX_TARGETS, JobState
from palaver.jobs.schedule import format_schedule, parse_schedule
from palaver.memory import table as memories
from palaver.people import erasures_table as erasures, table as people
from palaver.people.model import Person, Principal, Role
from palaver.sessions import home_channels
from palaver.sessions.targets import parse_target
from palaver.transfer import imports_table as imports
from palaver.transfer.chat_accounts import link_accounts, report_unlinked_accounts
from palaver.transfer.conversation_writer import ConversationImporter
from palaver.transfer.imported import (
    ImportedAccount,
    ImportedConversation,
    ImportedHomeChannel,
    ImportedJob,
    ImportedMemory,
    ImportProblem,
    ImportReader,
    InvalidImport,
)
from palaver.transfer.report import (
    MAX_BATCH_ROWS,
    MAX_DRY_RUN_ROWS,
    Batch,
    ImportOptions,
    ImportReport,
    ImportRun,
    WriteQueue,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imports_table import ItemKind


MAX_PERSONAL_CONVERSATIONS: Final = 50_000  # in one import by a person for themselves
MAX_PERSONAL_MESSAGES: Final = 2_000_000


class ItemImporter:
    def __init__(self, run: ImportRun, queue: WriteQueue) -> None:
        self._run = run
        self._queue = queue
        self._left_out: set[str] = set()
        # By type: what a report calls them, about how many rows one has, and how it is added.
        self._kinds: dict[type, tuple[str, int, Callable[..., None]]] = {
            ImportedAccount: ("people", 4, self._add_account),
            ImportedHomeChannel: ("home_channels", 1, self._add_home_channel),
            ImportedMemory: ("memories", 2, self._add_memory),
            ImportedJob: ("jobs", 2, self._add_job),
        }

    def add(self, item: ImportedAccount | ImportedHomeChannel | ImportedMemory | ImportedJob) -> None:
        run = self._run
        kind, rows, add = self._kinds[type(item)]
        if not run.is_trusted and not isinstance(item, ImportedMemory):
            if kind not in self._left_out:
                words = kind.replace("_", " ")
                run.report.notes.add(f"The {words} in these files were left out: only the operator can import them.")
            self._left_out.add(kind)
            return
        self._queue.add(lambda tx, batch: add(tx, batch, item), rows=rows)

    def _is_new(self, tx: Transaction, batch: Batch, kind: ItemKind, owner: str, origin_id: str) -> bool:
        key = imports.make_key(self._run.reader.format, kind, owner, origin_id)
        is_new = imports.add(tx, key, self._run.now)
        if not is_new:
            batch.report.count("unchanged")
        return is_new

    def _add_account(self, tx: Transaction, batch: Batch, item: ImportedAccount) -> None:
        name = make_storable(item.name)[:100]
        source = SessionSource(item.platform, item.user_id, user_id=item.user_id, user_name=name or None)
        account = people.find_account(source)
        if account is None or not self._is_new(tx, batch, "account", "", ":".join(account)):
            return
        row = people.find_or_add_by_source(tx, source, self._run.now)
        if row is not None and row.person.role is Role.OWNER:
            return
        if row is not None and row.person.role is Role.GUEST:
            people.set_role(tx, row.person.id, Role.MEMBER)
        batch.report.count("people")
        if item.is_owner:
            batch.report.notes.add(
                f"{item.platform} account {item.user_id!r} was an administrator there, and is a member here."
            )

    def _add_home_channel(self, tx: Transaction, batch: Batch, item: ImportedHomeChannel) -> None:
        platform = item.source.platform
        if not self._is_new(tx, batch, "home_channel", "", f"{platform}:{item.source.chat_id}"):
            return
        if platform in home_channels.load_chosen(tx):
            batch.report.notes.add(f"{platform.label} has a home channel here already. It stays.")
            return
        home_channels.choose(tx, item.source, self._run.person.id, self._run.now)
        batch.report.count("home_channels")

    def _add_memory(self, tx: Transaction, batch: Batch, item: ImportedMemory) -> None:
        person = self._run.person
        row = people.find_by_id(tx, person.id)
        if row is None or not self._is_new(tx, batch, "memory", person.id, item.origin_id):
            return
        at = self._run.now if item.at is None else to_micros(item.at)
        try:
            memories.add(tx, row.audience_no, memories.NewMemory(text=item.text, person_id=person.id), at)
        except (InvalidInput, LimitReached) as error:
            batch.report.add_problem(ImportProblem(where=f"memory {item.origin_id!r}", what=str(error)))
        else:
            batch.report.count("memories")

    def _add_job(self, tx: Transaction, batch: Batch, item: ImportedJob) -> None:
        try:
            new_job = self._convert_job(tx, item)
            if not self._is_new(tx, batch, "job", new_job.person_id, item.origin_id):
                return
            name = jobs.find_free_name(new_job.name, jobs.list_name_keys(tx, new_job.person_id))
            row = jobs.insert(tx, replace(new_job, name=name), self._run.now)
        except (InvalidInput, LimitReached) as error:
            batch.report.add_problem(ImportProblem(where=f"job {item.name!r}", what=str(error)))
            return
        jobs.set_state(tx, row.no, JobState.PAUSED, f"Imported from {self._run.reader.format}.", None, self._run.now)
        batch.report.count("jobs")
        advice = "as it was there." if item.is_paused else "Stop it where it comes from, then resume it here."
        batch.report.notes.add(f"The job “{name}” is paused{', ' if item.is_paused else '. '}{advice}")
        if not new_job.toolsets:
            what = f"Other people read what the job “{name}” sends, so it doesn't use your memories and conversations."
            batch.report.notes.add(what)
        if item.model is not None:
            what = f"The job “{name}” used the model {item.model[:100]!r} there; here it uses the default."
            batch.report.notes.add(what)

    def _convert_job(self, tx: Transaction, item: ImportedJob) -> jobs.NewJob:
        run = self._run
        now = run.store.clock.now()
        zone = check_timezone(item.timezone) if item.timezone else run.config.timezone
        schedule = parse_schedule(item.schedule, timezone=zone, now=now)
        targets = tuple(dict.fromkeys(str(each) for each in item.targets))[:MAX_TARGETS] or ("origin",)
        for target in targets:
            parse_target(target)
        origin = item.origin or SessionSource.local_cli()
        chats = ReachableChats(tx, run.person.principal, run.config, run.now, origin=Origin(origin))
        prompt = make_storable(item.prompt).strip()
        if not prompt or len(prompt) > MAX_PROMPT_CHARS:
            raise InvalidInput(f"its prompt is empty or longer than {MAX_PROMPT_CHARS} characters")
        return jobs.NewJob(
            person_id=run.person.id,
            name=" ".join(make_storable(item.name).split())[:MAX_JOB_NAME_CHARS] or "Imported job",
            prompt=prompt,
            schedule=format_schedule(schedule),
            timezone=zone,
            anchor=now,
            targets=targets,
            origin=origin,
            toolsets=() if has_other_readers(chats, targets) else DEFAULT_TOOLSETS,
            state=JobState.PAUSED,
            next_slot=None,
            runs_left=item.runs_left,
        )


class ImportEnded(InvalidImport):
    """A person was erased while the import ran, so it has ended. What came in before stays; start it again."""


class Importer:
    def __init__(
        self, store: SessionStore, attachments: Attachments | None, options: ImportOptions | None = None
    ) -> None:
        self._store = store
        self._make_run = partial(ImportRun, store=store, attachments=attachments, options=options or ImportOptions())

    def import_files(
        self,
        reader: ImportReader,
        person: Person,
        *,
        own_accounts: tuple[SessionSource, ...] = (),
        dry_run: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> ImportReport:
        """Import everything, for the operator; conversations that name no people belong to `person`.

        `own_accounts` become accounts of `person`, before anything else; raises NotAllowed if one must not.
        """
        run = self._make_run(reader=reader, person=person, is_trusted=True, is_dry_run=dry_run)
        run.on_progress, run.own_accounts = on_progress, own_accounts
        return _run_import(run)

    async def import_for_person(
        self,
        principal: Principal,
        reader: ImportReader,
        *,
        dry_run: bool = False,
        on_progress: Callable[[int], None] | None = None,
        on_entry: Callable[[], None] = lambda: None,
    ) -> ImportReport:
        """Import a person's own files on a thread; nothing of other people is written or read.

        `on_progress` is called on that thread, with the number of conversations so far, and `on_entry` after each entry
        of a conversation.
        """
        person = await self._store.engine.arun(Read(lambda tx: people.find_by_id(tx, PersonId(principal.person_id))))
        if person is None:
            raise ImportEnded
        run = self._make_run(reader=reader, person=person.person, is_trusted=False, is_dry_run=dry_run)
        run.on_progress, run.on_entry = on_progress, on_entry
        return await asyncio.to_thread(_run_import, run)


def _run_import(run: ImportRun) -> ImportReport:
    queue = WriteQueue(run.store.engine, run.report, _make_check(run))
    if run.own_accounts:
        queue.add_first(partial(link_accounts, run))
    elif run.is_trusted:
        report_unlinked_accounts(run)
    conversations, others = ConversationImporter(run, queue), ItemImporter(run, queue)
    count = 0
    for item in run.reader.read_items():
        if isinstance(item, ImportedConversation):
            if _is_limit_reached(run, count):
                break
            conversations.add(item)
            count += 1
            if run.on_progress is not None:
                run.on_progress(count)
        elif isinstance(item, ImportProblem):
            run.report.add_problem(item)
        else:
            others.add(item)
        queue.end_item(MAX_DRY_RUN_ROWS if run.is_trusted else MAX_BATCH_ROWS)
    queue.flush()
    if not run.is_dry_run:
        run.store.indexer.notify()
    return run.report


def _make_check(run: ImportRun) -> Callable[[Transaction], None]:
    """Return a check that ends the import once a person is erased: what it knows of people is no longer true."""
    last_no = run.store.engine.run(Read(erasures.load_last_no))

    def check(tx: Transaction) -> None:
        is_gone = not people.hold(tx, run.person.id) or erasures.find_of_person(tx, run.person.id) is not None
        if is_gone or (run.is_trusted and erasures.load_last_no(tx) != last_no):
            raise ImportEnded

    return check


def _is_limit_reached(run: ImportRun, count: int) -> bool:
    if run.is_trusted or (count < MAX_PERSONAL_CONVERSATIONS and run.report.counts["messages"] < MAX_PERSONAL_MESSAGES):
        return False
    run.report.notes.add("These files have more than one import may bring in. Ask the operator to import the rest.")
    return True
