"""Finishes an imported conversation: shows it in lists, with title, project, parent, usage, readers and lane."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.profiles import clean_workspace
from palaver.core.errors import InvalidInput, InvalidTitle
from palaver.core.text import make_storable
from palaver.core.timestamps import to_micros
from palaver.core.titles import MAX_TITLE_CHARS, clean_title, make_words_title
from palaver.people import table as people
from palaver.sessions import projects_table as projects, read_marks, table as sessions, usage_table as usage
from palaver.sessions.model import EndReason
from palaver.transfer import import_rows, imports_table as imports
from palaver.transfer.conversation_place import put_on_lane

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, SessionId
    from palaver.transfer.conversation_log import LogProgress
    from palaver.transfer.conversation_place import Place
    from palaver.transfer.import_request import ImportRun
    from palaver.transfer.imported import ImportedConversation, ImportedProject
    from palaver.transfer.imports_table import ItemKey
    from palaver.transfer.write_queue import Batch

_MAX_MODEL_CHARS: Final = 200
_MAX_SHOWN_CHARS: Final = 80  # of an id or a title, in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEnd:
    """Everything that the last transaction of a conversation writes."""

    run: ImportRun
    conversation: ImportedConversation
    key: ItemKey
    session_id: SessionId
    place: Place
    columns: Mapping[str, Any]  # of the session
    is_current: bool
    author_ids: frozenset[PersonId]
    progress: LogProgress
    last_seq: int
    message_count: int

    def write(self, tx: Transaction, batch: Batch, no: int) -> None:
        run, conversation, place = self.run, self.conversation, self.place
        row = sessions.get_by_no(tx, no)
        references = {"parent_no": self._find_parent(tx), "project_no": self._find_project(tx, conversation.project)}
        import_rows.update_session(tx, no, {**self.columns, **references})
        if run.is_trusted:
            for each in conversation.usage:
                usage.record_usage(tx, self.session_id, each, self.columns["active_at"])
        if conversation.model is not None:  # after the usage, which names a model, too
            model, provider = clean_model_name(conversation.model), clean_model_name(conversation.provider)
            import_rows.update_session(tx, no, {"model": model, "provider": provider})
        self._set_title(tx, batch, no)
        for person_id in sorted({*self.author_ids, *([place.person_id] if place.person_id else [])}):
            if place.shared:
                people.join_audience(tx, row.audience_no, person_id, run.now)
            read_marks.mark_read(tx, no, person_id, self.last_seq, run.now)
        if self.is_current:
            self._put_on_lane(tx, batch, no, row.audience_no)
        imports.save_progress(
            tx,
            self.key,
            entry_count=self.progress.entry_count,
            digest=self.progress.digest,
            last_seq=self.progress.last_seq,
            is_done=True,
        )
        batch.add_outcome(("conversations", 1))
        batch.add_outcome(("messages", self.message_count))

    def _set_title(self, tx: Transaction, batch: Batch, no: int) -> None:
        title = clean_imported_title(self.conversation.title)
        if title is not None:
            free = import_rows.set_free_title(tx, no, title)
            if free != title:
                batch.add_outcome(f"The title “{title}” is taken here: the conversation is now “{free}”.")

    def _put_on_lane(self, tx: Transaction, batch: Batch, no: int, audience_no: int) -> None:
        if put_on_lane(tx, self.place, no, audience_no, self.run.now):
            batch.add_outcome("lanes")
        else:
            sessions.end(tx, no, EndReason.SWITCHED, self.run.now)
            where = describe_conversation(self.conversation)
            batch.add_outcome(f"{where}: its chat has a conversation here, which continues there.")

    def _find_parent(self, tx: Transaction) -> int | None:
        origin_id = self.conversation.parent_origin_id
        if origin_id is None:
            return None
        for owner in dict.fromkeys((self.key.owner, *(("",) if self.run.is_trusted else ()))):
            item = imports.find(tx, imports.make_key(self.key.format, self.key.kind, owner, origin_id))
            if item is not None and item.session_id is not None:
                no: int | None = import_rows.find_value(tx, "session", "no", {"id": item.session_id})
                return no
        return None

    def _find_project(self, tx: Transaction, project: ImportedProject | None) -> int | None:
        place = self.place
        name = clean_imported_title(project.name) if project is not None else None
        if project is None or name is None or place.person_id is None or place.shared:
            return None
        found = projects.find_id(tx, place.person_id, name)
        if found is None:
            try:
                created = projects.create(tx, place.person_id, name, project.color, self.run.now)
            except InvalidInput:  # a color that is none
                created = projects.create(tx, place.person_id, name, None, self.run.now)
            found = (projects.get_by_id(tx, created.id)[0], created.id)
        return found[0]


def check_settings(run: ImportRun, conversation: ImportedConversation) -> dict[str, str | None]:
    """Return the settings of the conversation that exist here; the others are reported."""
    options, report = run.options, run.report
    settings: dict[str, str | None] = {"workspace": None, "profile": None, "personality": None}
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
    title = conversation.title
    return f"Conversation {conversation.origin_id[:_MAX_SHOWN_CHARS]!r}" + (
        f" ({title[:_MAX_SHOWN_CHARS]!r})" if title else ""
    )


def clean_model_name(name: str | None) -> str | None:
    """Return the name of a model or provider as it can be stored."""
    return None if name is None else make_storable(name[:_MAX_MODEL_CHARS])


def clean_imported_title(title: str | None) -> str | None:
    if not title:
        return None
    try:
        return clean_title(title)
    except InvalidTitle:
        return make_words_title(title, MAX_TITLE_CHARS)


def to_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def to_utc_micros(moment: datetime) -> int:
    return to_micros(to_utc(moment))
