"""Imports the files of other programs into a store.

The operator's import (`import_files`) brings in what the files name: people, chats, jobs. A person's own import
(`import_for_person`) writes only to that person's conversations, projects and memories, whatever the files say.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.accounts import erasures_table as erasures
from palaver.core.engines.base import Read
from palaver.core.ids import PersonId
from palaver.core.timestamps import to_micros
from palaver.people import table as people
from palaver.transfer.conversation_import import ConversationImporter
from palaver.transfer.import_request import MAX_PERSONAL_CONVERSATIONS, MAX_PERSONAL_MESSAGES, ImportOptions, ImportRun
from palaver.transfer.imported import ImportedConversation, ImportProblem, InvalidImport
from palaver.transfer.item_import import ItemImporter
from palaver.transfer.report import ImportReport
from palaver.transfer.restore_sessions import SESSION
from palaver.transfer.write_queue import WriteQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.engines.base import Transaction
    from palaver.media.attachments import Attachments
    from palaver.people.model import Person, Principal
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imported import ImportReader


class ImportEnded(InvalidImport):
    """A person was erased while the import ran, so it has ended. What came in before stays; start it again."""


class Importer:
    """Imports into one store."""

    def __init__(
        self, store: SessionStore, attachments: Attachments | None, options: ImportOptions | None = None
    ) -> None:
        self._store = store
        self._attachments = attachments
        self._options = options or ImportOptions()

    def import_files(
        self,
        reader: ImportReader,
        person: Person,
        *,
        dry_run: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> ImportReport:
        """Import everything, for the operator; conversations that name no people belong to `person`."""
        return self._import(reader, person, self._options, on_progress, is_trusted=True, is_dry_run=dry_run)

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
        options = replace(
            self._options, max_conversations=MAX_PERSONAL_CONVERSATIONS, max_messages=MAX_PERSONAL_MESSAGES
        )
        return await asyncio.to_thread(
            self._import, reader, person.person, options, on_progress, on_entry, is_trusted=False, is_dry_run=dry_run
        )

    def _import(
        self,
        reader: ImportReader,
        person: Person,
        options: ImportOptions,
        on_progress: Callable[[int], None] | None,
        on_entry: Callable[[], None] = lambda: None,
        *,
        is_trusted: bool,
        is_dry_run: bool,
    ) -> ImportReport:
        run = ImportRun(
            store=self._store,
            attachments=self._attachments,
            reader=reader,
            person=person,
            is_trusted=is_trusted,
            is_dry_run=is_dry_run,
            options=options,
            report=ImportReport(reader.format, is_dry_run=is_dry_run),
            on_progress=on_progress,
            on_entry=on_entry,
            now=to_micros(self._store.clock.now()),
            config=self._store.config,
        )
        _run_import(run)
        if not is_dry_run:
            self._store.indexer.notify()
        return run.report


def _run_import(run: ImportRun) -> None:
    def add_outcome(outcome: Any) -> None:
        if isinstance(outcome, ImportProblem):
            run.report.add_problem(outcome)
        elif isinstance(outcome, tuple):
            run.report.count(*outcome)
        elif " " in outcome:
            run.report.notes.add(outcome)
        else:
            run.report.count(outcome)

    queue = WriteQueue(run.store.engine, add_outcome, remembered=frozenset({SESSION}), check=_make_check(run))
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
    queue.flush()


def _make_check(run: ImportRun) -> Callable[[Transaction], None]:
    """Return a check that ends the import once a person is erased: what it knows of people is no longer true."""
    last_no = run.store.engine.run(Read(erasures.load_last_no))

    def check(tx: Transaction) -> None:
        is_gone = not people.hold(tx, run.person.id) or erasures.find_of_person(tx, run.person.id) is not None
        if is_gone or (run.is_trusted and erasures.load_last_no(tx) != last_no):
            raise ImportEnded

    return check


def _is_limit_reached(run: ImportRun, count: int) -> bool:
    options = run.options
    is_reached = (options.max_conversations is not None and count >= options.max_conversations) or (
        options.max_messages is not None and run.report.counts["messages"] >= options.max_messages
    )
    if is_reached:
        run.report.notes.add("These files have more than one import may bring in. Ask the operator to import the rest.")
    return is_reached
