"""Imports conversations of other programs: each becomes a session with its log, counters, title, usage and lane.

A conversation that came in before is recognized by its id there. If it has grown there, its new messages are appended
or, if it was continued here too, become a second conversation that branches from it. If it was deleted here, it does
not come back.

The entries are read once and never kept: rows go to the queue in steps, each with the progress that it means. A long
conversation is written by several transactions, which no list shows before the last. After a crash, the next run goes
on where the last one stopped.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.agent.profiles import clean_workspace
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction
from palaver.core.errors import InvalidInput, InvalidTitle, SessionNotFound
from palaver.core.ids import PersonId, SessionId, new_session_id
from palaver.core.source import ChatType, encode_source
from palaver.core.text import make_storable
from palaver.core.titles import MAX_TITLE_CHARS, clean_title, make_words_title, number_title, strip_title_number
from palaver.media import table as attachments
from palaver.people import table as people
from palaver.sessions import (
    hidden_ranges as read_marks,
    log_table as events,
    projects_table as projects,
    table as sessions,
    usage_table as usage,
)
from palaver.sessions.events import EventKind
from palaver.sessions.gateway_config import MACHINE_PLATFORMS
from palaver.sessions.message import Author
from palaver.sessions.model import EndReason, StartReason
from palaver.sessions.speech import MAX_FILES_PER_MESSAGE
from palaver.transfer import import_rows, imports_table as imports
from palaver.transfer.conversation_log import ConversationLog, to_utc
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedEntry,
    ImportedFile,
    ImportedMessage,
    ImportProblem,
)
from palaver.transfer.places import Place, PlaceFinder, put_on_lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from palaver.transfer.import_rows import EventRow
    from palaver.transfer.imports_table import ItemKey, ItemProgress
    from palaver.transfer.report import Batch, ImportRun, WriteQueue


ROWS_PER_STEP: Final = 250
CHARS_PER_STEP: Final = 500_000
_COUNTER_COLUMNS: Final = (
    *("message_count", "tool_call_count", "auto_title", "last_message_at", "last_human_at", "compaction_seq"),
)
_MAX_MODEL_CHARS: Final = 200
_MAX_SHOWN_CHARS: Final = 80  # of an id or a title, in a report


class Original(NamedTuple):
    """A conversation that went on both there and here."""

    conversation: ImportedConversation
    session_id: str


class ConversationImporter:
    def __init__(self, run: ImportRun, queue: WriteQueue) -> None:
        self._run = run
        self._queue = queue
        self._places = PlaceFinder(run)

    def add(self, conversation: ImportedConversation, *, original: Original | None = None) -> None:
        """Add a conversation, or the rest of one that went on both there and here."""
        run = self._run
        owner = "" if run.is_trusted and conversation.source is not None else run.person.id
        key = imports.make_key(run.reader.format, "conversation", owner, conversation.origin_id)
        item, session_no = run.store.engine.run(Read(lambda tx: _find_known(tx, key)))
        if item is not None and session_no is None and item.is_done:
            run.report.count("deleted")
            return
        for line in conversation.folded:
            run.report.folded.add(f"{describe_conversation(conversation)}: {line}")
        writer = ConversationWriter(run, self._queue, self._places, conversation, key, original)
        if item is None:
            writer.write()
        elif not item.is_done:
            writer.resume(item, session_no)
        elif self._is_shared_now(conversation) and run.store.engine.run(Read(lambda tx: writer.is_personal(tx, item))):
            writer.write_again(item, lambda tx: writer.is_personal(tx, item, tx.for_update))
        elif (first := writer.append_new_entries(item, session_no or 0)) is not None:
            title = run.store.engine.run(Read(lambda tx: _find_next_title(tx, session_no or 0)))
            rest = make_continuation(conversation, item.entry_count, created_at=first.at, title=title)
            self.add(rest, original=Original(conversation, item.session_id or ""))

    def _is_shared_now(self, conversation: ImportedConversation) -> bool:
        """Whether this is what a group is on whose people share one conversation here."""
        source = conversation.source
        if source is None or source.chat_type is ChatType.DM or not self._run.is_trusted:
            return False
        return conversation.is_current and self._run.config.is_shared(source)


@dataclass(eq=False)
class ConversationWriter:
    _run: ImportRun
    _queue: WriteQueue
    _places: PlaceFinder
    _conversation: ImportedConversation
    _key: ItemKey
    _original: Original | None = None

    def __post_init__(self) -> None:
        run, conversation = self._run, self._conversation
        self._created_at = to_micros(to_utc(conversation.created_at))
        self._session_id: SessionId = new_session_id(to_utc(conversation.created_at))
        self._place: Place | None = None
        self._author_ids: set[PersonId] = set()
        self._rows: list[EventRow] = []
        self._chars = 0
        self._file_ids: list[str] = []
        self._has_started = False
        self._is_growth = False  # entries are appended to a conversation that is here already
        platform = run.reader.platform if conversation.source is None else conversation.source.platform
        self._start_reason = StartReason.FIRST if conversation.parent_origin_id is None else StartReason.FORK
        facts: dict[str, object] = {"reason": self._start_reason.value, "imported_from": run.reader.format}
        if self._original is not None:
            facts |= {"previous": self._original.session_id, "is_rest": True}
        self._log = ConversationLog(
            started_at=self._created_at, started_facts=facts, is_from_human=platform not in MACHINE_PLATFORMS
        )

    def resume(self, item: ItemProgress, session_no: int | None) -> None:
        """Go on with a conversation whose import was interrupted; begin again if its files have changed since."""
        if session_no is None or not self._matches(item):
            self.write_again(item)
            return
        self._session_id = item.session_id  # type: ignore[assignment]
        self.write(stored=item)

    def write_again(self, item: ItemProgress, may_remove: Callable[[Transaction], bool] = lambda _tx: True) -> None:
        self._queue.add(lambda tx, _batch: may_remove(tx) and imports.remove(tx, self._key, item.session_id))
        self.write()

    def is_personal(self, tx: Transaction, item: ItemProgress, lock: str = "") -> bool:
        """Whether the conversation came in as one person's, and nothing was said or changed in it here.

        If the group shares its conversation by now, it comes in again as the group's.
        """
        no = import_rows.find_session_no(tx, item.session_id)
        row = None if no is None else sessions.find_by_no(tx, no, lock)
        if row is None or row.session.shared or row.session.pinned:
            return False
        has_own_title = row.session.title not in (None, clean_imported_title(self._conversation.title))
        is_untouched = import_rows.find_last_seq_if_unchanged(tx, row.no, item.last_seq) is not None
        return is_untouched and not has_own_title

    def append_new_entries(self, item: ItemProgress, session_no: int) -> ImportedEntry | None:
        """Append what a conversation that is here has got there since.

        If it was continued here too, nothing is appended, and its first new entry is returned.
        """
        find_last_seq = Read(lambda tx: import_rows.find_last_seq_if_unchanged(tx, session_no, item.last_seq))
        entries = self._read_entries()
        for entry in islice(entries, item.entry_count):
            self._log.add(entry)
        if self._log.entry_count < item.entry_count:
            self._keep_as_it_is("has fewer messages there than before")
        elif self._log.digest != item.digest:
            self._keep_as_it_is("has changed there since its import")
        elif (first := next(entries, None)) is None:
            self._run.report.count("unchanged")
        elif (last_seq := self._run.store.engine.run(find_last_seq)) is None:
            return first
        else:
            self._session_id = item.session_id  # type: ignore[assignment]
            self._log.continue_after(last_seq)
            self._append_growth(session_no, chain([first], entries))
        return None

    def _keep_as_it_is(self, reason: str) -> None:
        self._run.report.count("changed")
        self._run.report.notes.add(f"{describe_conversation(self._conversation)} {reason}. It stays as it is here.")

    def _append_growth(self, session_no: int, entries: Iterator[ImportedEntry]) -> None:
        before = self._log.counters.stored_messages
        self._queue.add(lambda _tx, batch: batch.set_session(self._session_id, session_no))
        self._has_started = self._is_growth = True
        for entry in entries:
            self._add_entry(entry)
        self._rows += self._log.finish(None, None)
        self._flush_rows()
        count = self._log.counters.stored_messages - before
        self._queue.add(lambda tx, batch: self._finish_growth(tx, batch, count))

    def _matches(self, item: ItemProgress) -> bool:
        """Return whether the conversation still begins with the entries that are stored."""
        log, self._log = self._log, ConversationLog(started_at=0, started_facts={}, is_from_human=True)
        for entry in islice(self._read_entries(is_quiet=True), item.entry_count):
            self._log.add(entry)
        matches = self._log.entry_count == item.entry_count and (
            not item.entry_count or self._log.digest == item.digest
        )
        self._log = log
        return matches

    def _read_entries(self, *, is_quiet: bool = False) -> Iterator[ImportedEntry]:
        for entry in self._conversation.open_entries():
            if not isinstance(entry, ImportProblem):
                yield entry
                self._run.on_entry()
            elif not is_quiet:
                self._run.report.add_problem(entry)

    def write(self, stored: ItemProgress | None = None) -> None:
        """Write all entries; of a conversation that was interrupted, those that are not stored yet."""
        skipped, last_seq = (0, 0) if stored is None else (stored.entry_count, stored.last_seq)
        if stored is not None:
            session_id = self._session_id
            self._queue.add(
                lambda tx, batch: batch.set_session(session_id, import_rows.find_session_no(tx, session_id))
            )
            self._has_started = True
        self._rows = [self._log.first_row]
        for index, entry in enumerate(self._read_entries()):
            if index < skipped:
                self._skip_entry(entry, last_seq)
            else:
                self._add_entry(entry)
        self._finish()

    def _skip_entry(self, entry: ImportedEntry, last_seq: int) -> None:
        """Count an entry that is stored already."""
        rows, _ = self._log.add(entry)
        self._rows = [row for row in (*self._rows, *rows) if row.seq > last_seq]
        self._find_author(entry)

    def _add_entry(self, entry: ImportedEntry) -> None:
        author, person_id = self._find_author(entry)
        parts: list[dict[str, Any]] = []
        if isinstance(entry, ImportedMessage) and entry.files:
            parts = [self._store_file(file, number) for number, file in enumerate(entry.files)]
        rows, problem = self._log.add(entry, parts, person_id, author)
        self._report_problem(problem)
        if self._run.is_dry_run:
            return
        self._rows += rows
        self._chars += sum(row.size for row in rows)
        if len(self._rows) >= ROWS_PER_STEP or self._chars >= CHARS_PER_STEP:
            self._flush_rows()

    def _find_author(self, entry: ImportedEntry) -> tuple[Author | None, PersonId | None]:
        """Return who wrote a message in a conversation of several people; a dry run need not know."""
        if not isinstance(entry, ImportedMessage) or entry.message.role != "user" or self._run.is_dry_run:
            return None, None
        if not self._get_place().shared:
            return None, None
        source = self._get_place().source
        author = entry.message.author
        if author is None and (source.user_name or source.participant):
            author = Author(source.user_name or "", source.participant)
        person_id = self._places.find_author(self._get_place(), author)
        if person_id is not None:
            self._author_ids.add(person_id)
        return author, person_id

    def _store_file(self, file: ImportedFile, number: int) -> dict[str, Any]:
        """Store a file and return its part of the message; one that can't be stored is named in words."""
        run = self._run
        try:
            if run.attachments is None:
                raise InvalidInput("Files can't be stored here.")
            if number >= MAX_FILES_PER_MESSAGE:
                raise InvalidInput(f"A message can have up to {MAX_FILES_PER_MESSAGE} files.")
            if run.is_dry_run:
                run.report.count("files")
                return {"type": "text", "text": file.name}
            person_id = self._get_place().person_id or run.person.id
            attachment = run.attachments.store_blocking(person_id, file.name, file.open_chunks())
        except (InvalidInput, OSError) as error:
            self._report_problem(f"the file {file.name!r} was not imported: {error}")
            return {"type": "text", "text": f"[file not imported: {make_storable(file.name)[:200]}]"}
        crash_point("import.file_stored")
        run.report.count("files")
        self._file_ids.append(attachment.id)
        return attachment.to_part()

    def _report_problem(self, what: str | None) -> None:
        if what is not None:
            self._run.report.add_problem(ImportProblem(where=describe_conversation(self._conversation), what=what))

    def _get_place(self, tx: Transaction | None = None) -> Place:
        """Return the place. What a dry run finds holds only within `tx`, which is rolled back."""
        if tx is not None and self._run.is_dry_run:
            return self._places.find(self._conversation, self._session_id, tx)
        if self._place is None:
            self._place = self._places.find(self._conversation, self._session_id)
        return self._place

    def _flush_rows(self) -> None:
        """Queue the rows that are ready, with the progress that they mean.

        The session of a conversation that grows is in lists, so its counters change together with its log.
        """
        counters = self._make_growth_counters() if self._is_growth else {}
        if not self._has_started:
            self._has_started = True
            self._queue.add(self._start, rows=2)
        rows = [] if self._run.is_dry_run else self._rows
        chars, file_ids, progress = self._chars, self._file_ids, self._log.progress
        self._rows, self._chars, self._file_ids = [], 0, []

        def append(tx: Transaction, batch: Batch) -> None:
            no = batch.get_session_no(self._session_id)
            if no is None:
                return
            import_rows.append_events(tx, no, rows)
            if file_ids:
                attachments.use_in_session(tx, no, [each for each, _ in attachments.list_by_id(tx, file_ids)])
            if counters:
                import_rows.update_session(tx, no, counters)
            imports.save_progress(tx, self._key, *progress, is_done=self._is_growth)

        self._queue.add(append, rows=len(rows) + 1, chars=chars)

    def _start(self, tx: Transaction, batch: Batch) -> None:
        if not imports.add(tx, self._key, self._run.now, session_id=self._session_id, is_done=False):
            batch.set_session(None, None)  # the files have this id twice
            batch.report.count("unchanged")
            return
        place = self._get_place(tx)
        audience_no = place.find_audience(tx, self._run.now)
        columns = {
            "id": self._session_id,
            "key": place.key,
            "platform": str(place.source.platform),
            "chat_type": place.source.chat_type.value,
            "source": encode_source(place.source),
            "audience_no": audience_no,
            "shared": int(place.shared),
            "created_at": self._created_at,
            "start_reason": self._start_reason.value,
            "is_first_contact": int(import_rows.is_first_contact(tx, audience_no)),
            "ended_at": self._created_at,  # until it is complete, nothing may continue it
            "end_reason": EndReason.SWITCHED.value,
        }
        batch.set_session(self._session_id, import_rows.start_session(tx, columns))

    def _finish(self) -> None:
        """Queue the end of the conversation, or leave it out if there is nothing in it."""
        counters, conversation = self._log.counters, self._conversation
        if counters.stored_messages == 0:
            self._run.report.count("empty")
            return
        if not self._run.is_dry_run:
            self._get_place()  # the people in it are added outside of the last transaction
        active_at = self._find_active_at()
        is_current = conversation.is_current and conversation.source is not None and self._run.is_trusted
        ended_at, end_reason = None, None
        if not is_current and (conversation.ended_at is not None or (conversation.source and self._run.is_trusted)):
            ended_at = active_at if conversation.ended_at is None else to_micros(to_utc(conversation.ended_at))
            end_reason = (conversation.end_reason or EndReason.SWITCHED).value
        self._rows += self._log.finish(ended_at, end_reason)
        self._flush_rows()
        columns = self._make_counters(active_at) | check_settings(self._run, conversation)
        columns |= {
            "ended_at": ended_at,
            "end_reason": end_reason,
            "pinned_at": active_at if conversation.pinned else None,
            "archived_at": active_at if conversation.archived else None,
            "unindexed": 1,
        }
        if (auto_title := clean_imported_title(conversation.auto_title)) is not None:
            columns |= {"auto_title": auto_title, "auto_title_asked": 1}
        self._queue.add(lambda tx, batch: self._write_end(tx, batch, columns, is_current=is_current), rows=4)

    def _find_active_at(self) -> int:
        counters, conversation = self._log.counters, self._conversation
        if conversation.active_at is not None:
            return to_micros(to_utc(conversation.active_at))
        return counters.last_message_at or counters.last_entry_at or self._created_at

    def _make_counters(self, active_at: int) -> dict[str, Any]:
        counters = self._log.counters
        columns: dict[str, Any] = {name: getattr(counters, name) for name in _COUNTER_COLUMNS}
        columns["expiry_base"] = counters.last_human_at or self._created_at
        return columns | {"active_at": active_at, "preview": self._log.preview if counters.message_count else ""}

    def _make_growth_counters(self) -> dict[str, Any]:
        columns = self._make_counters(self._find_active_at())
        kept = {"auto_title", "compaction_seq"} if columns["compaction_seq"] is None else {"auto_title"}
        return {name: value for name, value in columns.items() if name not in kept} | {"unindexed": 1}

    def _finish_growth(self, tx: Transaction, batch: Batch, count: int) -> None:
        no = batch.get_session_no(self._session_id)
        if no is not None:
            self._record_usage(tx)
            batch.report.count("grown")
            batch.report.count("messages", count)
            self._report_continuation(batch, sessions.get_by_no(tx, no).session.title)

    def _record_usage(self, tx: Transaction) -> None:
        if self._run.is_trusted:
            for each in self._conversation.usage:
                usage.record_usage(tx, self._session_id, each, self._find_active_at())

    def _write_end(self, tx: Transaction, batch: Batch, columns: Mapping[str, Any], *, is_current: bool) -> None:
        """Show the conversation in lists, with its title, project, parent, usage, readers and lane."""
        no = batch.get_session_no(self._session_id)
        if no is None:
            return
        run, conversation, place = self._run, self._conversation, self._get_place(tx)
        row = sessions.get_by_no(tx, no)
        references = {"parent_no": self._find_parent(tx), "project_no": self._find_project(tx, place)}
        import_rows.update_session(tx, no, {**columns, **references})
        if self._original is not None and references["parent_no"] is not None:
            with suppress(SessionNotFound):  # it is being deleted
                events.append_event(
                    tx, references["parent_no"], EventKind.FORKED, run.now, fork_id=self._session_id, at_seq=None
                )
        self._record_usage(tx)
        if conversation.model is not None:  # after the usage, which names a model, too
            names = {"model": conversation.model, "provider": conversation.provider}
            stored = {key: name and make_storable(name[:_MAX_MODEL_CHARS]) for key, name in names.items()}
            import_rows.update_session(tx, no, stored)
        if (title := clean_imported_title(conversation.title)) is not None:
            title = import_rows.set_free_title(tx, no, title, batch.report)
        for person_id in sorted({*self._author_ids, *([place.person_id] if place.person_id else [])}):
            if place.shared:
                people.join_audience(tx, row.audience_no, person_id, run.now)
            read_marks.mark_read(tx, no, person_id, self._log.counters.last_seq, run.now)
        if is_current:
            self._put_on_lane(tx, batch, no, place, row.audience_no)
        imports.save_progress(tx, self._key, *self._log.progress, is_done=True)
        batch.report.count("conversations")
        batch.report.count("messages", self._log.counters.stored_messages)
        self._report_continuation(batch, title)

    def _report_continuation(self, batch: Batch, title: str | None) -> None:
        if self._original is None:
            return
        batch.report.count("continued")
        batch.report.notes.add(
            f"{describe_conversation(self._original.conversation)} went on both there and here. It stays as it is here."
            f" What was said there since is in the conversation “{title}”, which branches from it."
        )

    def _put_on_lane(self, tx: Transaction, batch: Batch, no: int, place: Place, audience_no: int) -> None:
        if put_on_lane(tx, place, no, audience_no, self._run.now):
            batch.report.count("lanes")
        else:
            sessions.end(tx, no, EndReason.SWITCHED, self._run.now)
            name = describe_conversation(self._conversation)
            batch.report.notes.add(f"{name}: its chat has a conversation here, which continues there.")

    def _find_parent(self, tx: Transaction) -> int | None:
        origin_id = self._conversation.parent_origin_id
        if origin_id is None:
            return None
        for owner in dict.fromkeys((self._key.owner, *(("",) if self._run.is_trusted else ()))):
            item = imports.find(tx, imports.make_key(self._key.format, self._key.kind, owner, origin_id))
            if item is not None and item.session_id is not None:
                return import_rows.find_session_no(tx, item.session_id)
        return None

    def _find_project(self, tx: Transaction, place: Place) -> int | None:
        project = self._conversation.project
        name = clean_imported_title(project.name) if project is not None else None
        if project is None or name is None or place.person_id is None or place.shared:
            return None
        found = projects.find_id(tx, place.person_id, name)
        if found is None:
            try:
                created = projects.create(tx, place.person_id, name, project.color, self._run.now)
            except InvalidInput:  # a color that is none
                created = projects.create(tx, place.person_id, name, None, self._run.now)
            found = projects.find_id(tx, place.person_id, created.name)
        return found and found[0]


def make_continuation(
    conversation: ImportedConversation, stored_count: int, *, created_at: datetime, title: str
) -> ImportedConversation:
    """Return what a conversation has after its first entries, as a branch of it: its chat stays on the other one."""

    def open_rest() -> Iterator[ImportedEntry | ImportProblem]:
        count = 0
        for entry in conversation.open_entries():
            count += not isinstance(entry, ImportProblem)
            if count > stored_count:
                yield entry

    return replace(
        conversation,
        origin_id=f"{conversation.origin_id}#rest",
        open_entries=open_rest,
        created_at=created_at,
        title=title,
        is_current=False,
        pinned=False,
        parent_origin_id=conversation.origin_id,
        usage=(),
        folded=(),
    )


def _find_next_title(tx: Transaction, session_no: int) -> str:
    """Return the title of a session here with the next number that is free."""
    row = sessions.get_by_no(tx, session_no)
    title = row.session.title or row.session.auto_title or "Imported conversation"
    free = sessions.find_free_title(tx, row, title)
    return number_title(title, 2) if row.session.title is None and free == strip_title_number(title) else free


def _find_known(tx: Transaction, key: ItemKey) -> tuple[ItemProgress | None, int | None]:
    item = imports.find(tx, key)
    return item, import_rows.find_session_no(tx, item.session_id if item else None)


def check_settings(run: ImportRun, conversation: ImportedConversation) -> dict[str, str | None]:
    """Return the settings of the conversation that exist here; the others are reported."""
    options, report = run.options, run.report
    settings: dict[str, str | None] = dict.fromkeys(("workspace", "profile", "personality"))
    if conversation.workspace:
        try:
            settings["workspace"] = clean_workspace(conversation.workspace)
        except InvalidInput as error:
            report.notes.add(f"{describe_conversation(conversation)}: its workspace was left out. {error}.")
    for setting, name, known in (
        ("profile", conversation.profile, options.profiles),
        ("personality", conversation.personality, options.personalities),
    ):
        if name in known:
            settings[setting] = name
        elif name:
            report.notes.add(
                f"{describe_conversation(conversation)}: there is no {setting} {name!r} here; the default applies."
            )
    return settings


def describe_conversation(conversation: ImportedConversation) -> str:
    """Name a conversation in a report."""
    title = f" ({conversation.title[:_MAX_SHOWN_CHARS]!r})" if conversation.title else ""
    return f"Conversation {conversation.origin_id[:_MAX_SHOWN_CHARS]!r}{title}"


def clean_imported_title(title: str | None) -> str | None:
    if not title:
        return None
    try:
        return clean_title(title)
    except InvalidTitle:
        return make_words_title(title, MAX_TITLE_CHARS)
