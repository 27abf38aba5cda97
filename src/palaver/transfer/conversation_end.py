"""Finishes an imported conversation: shows it in lists, with title, project, parent, usage, readers and lane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.profiles import clean_workspace
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, InvalidTitle
from palaver.core.source import ChatType, SessionSource, encode_source
from palaver.core.text import make_storable
from palaver.core.titles import MAX_TITLE_CHARS, clean_title, make_words_title
from palaver.people import table as people
from palaver.sessions import (
    hidden_ranges as read_marks,
    projects_table as projects,
    table as sessions,
    usage_table as usage,
)
from palaver.sessions.keys import DmScope, build_session_key
from palaver.sessions.model import EndReason
from palaver.transfer import import_rows, imports_table as imports
from palaver.transfer.import_rows import insert_row
from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, SessionId, SessionKey
    from palaver.sessions.message import Author
    from palaver.transfer.conversation_log import LogProgress
    from palaver.transfer.imported import ImportedConversation, ImportedProject
    from palaver.transfer.imports_table import ItemKey
    from palaver.transfer.report import Batch, ImportRun


_MAX_CACHED_PEOPLE: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation takes place."""

    source: SessionSource
    key: SessionKey
    shared: bool
    person_id: PersonId | None  # whose it is; of a shared one, who wrote there
    audience_no: int | None  # of the person; None: that of the shared lane

    def find_audience(self, tx: Transaction, now: int) -> int:
        """Return the audience of the conversation; the first one in a shared place makes it."""
        if self.audience_no is not None:
            return self.audience_no
        audience_no = import_rows.find_shared_audience(tx, self.key)
        if audience_no is None:
            audience_no = people.create_audience(tx, now)
        if self.person_id is not None:
            people.join_audience(tx, audience_no, self.person_id, now)
        return audience_no


class PlaceFinder:
    """Finds the places of conversations, and the people who wrote there; adds people who are not known yet."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run
        self._people: dict[tuple[str, str], tuple[PersonId, int] | None] = {}

    def find(self, conversation: ImportedConversation, session_id: SessionId) -> Place:
        """Find the place of a conversation. Only the operator's import looks at the source that its files name."""
        run = self._run
        if conversation.source is None or not run.is_trusted:
            return self._make_own_place(session_id)
        source = conversation.source
        person = self._find_person(source)
        person_id, audience_no = person or (None, None)
        scope_person = person_id if run.config.get_dm_scope(source) is DmScope.PERSON else None
        shared = run.config.is_shared(source)
        return Place(
            source=source,
            key=run.config.build_session_key(source, person=scope_person),
            shared=shared,
            person_id=person_id,
            audience_no=None if shared else audience_no,
        )

    def _make_own_place(self, session_id: SessionId) -> Place:
        run = self._run
        source = SessionSource(
            run.reader.platform,
            session_id,
            chat_type=ChatType.DM,
            user_id=run.person.id,
            user_name=run.person.name,
        )
        key = build_session_key(source, agent=run.config.agent)
        _, audience_no = self._load_own_audience()
        return Place(source=source, key=key, shared=False, person_id=run.person.id, audience_no=audience_no)

    def _load_own_audience(self) -> tuple[PersonId, int]:
        own = ("", self._run.person.id)
        found = self._people.get(own)
        if found is None:
            row = self._run.store.engine.run(Read(lambda tx: people.find_by_id(tx, self._run.person.id)))
            if row is None:
                raise InvalidImport("The person of this import was erased while it ran.")
            found = self._people[own] = (row.person.id, row.audience_no)
        return found

    def find_author(self, place: Place, author: Author | None) -> PersonId | None:
        """Return the person who wrote a message in a shared place."""
        if not place.shared or author is None or author.id is None:
            return None
        person = self._find_person(replace(place.source, user_id=author.id, user_id_alt=None, user_name=author.name))
        return person[0] if person else None

    def _find_person(self, source: SessionSource) -> tuple[PersonId, int] | None:
        account = people.find_account(source)
        if account is None:
            return None
        if account not in self._people:
            if len(self._people) >= _MAX_CACHED_PEOPLE:
                self._people.clear()
            now = self._run.now
            row = self._run.store.engine.run(Write(lambda tx: people.find_or_add_by_source(tx, source, now)))
            self._people[account] = None if row is None else (row.person.id, row.audience_no)
        return self._people[account]


def put_on_lane(tx: Transaction, place: Place, session_no: int, audience_no: int, now: int) -> bool:
    """Let the next message at the place continue this session, unless people have another conversation there."""
    exists, current_no, has_messages = import_rows.list_lane_state(tx, place.key)
    if has_messages:
        return current_no == session_no
    if not exists:
        columns = {
            "key": place.key,
            "session_no": session_no,
            "source": encode_source(place.source),
            "audience_no": audience_no,
            "shared": int(place.shared),
            "updated_at": now,
        }
        insert_row(tx, "lane", columns)
    else:
        tx.execute(
            "UPDATE lane SET session_no = $2, audience_no = $3, updated_at = $4 WHERE key = $1",
            place.key,
            session_no,
            audience_no,
            now,
        )
        if current_no is not None:
            sessions.end(tx, current_no, EndReason.SWITCHED, now)
    if place.source.chat_type is ChatType.DM:
        people.remember_dm_source(tx, place.source, None)
    return True


# --------------------------------------------------------------------------------------------------

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
