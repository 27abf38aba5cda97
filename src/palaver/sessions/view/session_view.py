"""The verbs on sessions: those that the store has as well, and a principal's view with its parts."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from palaver.core.engines.base import Engine, Transaction, Work, Write
from palaver.core.errors import NotAllowed, NotFound, SessionNotFound
from palaver.core.operation import (
    AsyncRunner,
    BlockingRunner,
    Operations,
    Page,
    R,
    ReadAfterWork,
    TransactionRunner,
    WriteThenWork,
    check_count,
    operation,
    read_operation,
    write_operation,
)
from palaver.people import access_table as audience_members
from palaver.people.model import Action, NamedPerson, Principal, can_use_command
from palaver.sessions import (
    activity_table as session_activity,
    deletion_table as session_deletion,
    list_table as session_summaries,
    log_table as events,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.deletions import HiddenRow, build_deletion
from palaver.sessions.export import export_markdown, export_session
from palaver.sessions.search_text import NO_FILTER, SearchFilter
from palaver.sessions.view.listing import (
    ListCriteria,
    SummaryOperations,
    load_session_page,
    resolve_session,
)
from palaver.sessions.view.scope import SessionScope, ViewPart, ViewScope
from palaver.sessions.view.search import MAX_LISTED_PEOPLE, build_search
from palaver.sessions.view.transcripts import ProjectOperations, TranscriptOperations, UsageOperations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.sessions.events import Event
    from palaver.sessions.model import SearchHits, Session, SessionSummary, UndoResult
    from palaver.sessions.table import SessionRow
    from palaver.sessions.turn import BusyPolicy, Turn


# Each setting, its name for people, and the slash command that changes it too: who may use that may change the setting.
_SETTINGS = (
    ("model", "model", "model"),
    ("profile", "profile", "profile"),
    ("personality", "personality", "personality"),
    ("workspace", "workspace", "workspace"),
    ("busy_policy", "busy policy", "busy"),
    ("toolsets", "tools", "tools"),
)


class SessionChanges(TypedDict, total=False):
    """Changes of a conversation; a key that is missing changes nothing."""

    title: str | None
    pinned: bool
    archived: bool
    project: str | None
    model: str | None  # already checked by the agent
    profile: str | None  # already checked
    personality: str | None  # already checked
    workspace: str | None  # already checked
    busy_policy: BusyPolicy | None
    toolsets: Mapping[str, bool] | None  # which to turn on or off; None turns all of them on


class SessionOperations(Operations[R]):
    """The operations that the store and every view have. Some have another name there: they are described here."""

    _scope: SessionScope

    def _get(self, tx: Transaction, session_id: str) -> Session:
        return self._scope.get_session_row(tx, session_id, Action.READ).session

    @read_operation
    def export(self, tx: Transaction, session_id: str) -> dict[str, Any]:
        """Export a session with its complete log as JSON-ready data."""
        return export_session(tx, self._scope.get_session_row(tx, session_id, Action.READ))

    def _rename(self, tx: Transaction, session_id: str, title: str | None) -> Session:
        """Set the title of a session, unique for its owner; None removes it."""
        row = self._scope.get_session_row(tx, session_id, Action.RENAME)
        return sessions.rename(tx, row, title, self._scope.now(), self._scope.person_id)

    @write_operation
    def pin(self, tx: Transaction, session_id: str, pinned: bool = True) -> Session:
        """Pin or unpin a session."""
        return self._set_flag(tx, session_id, "pinned", pinned)

    @write_operation
    def archive(self, tx: Transaction, session_id: str, archived: bool = True) -> Session:
        """Archive or unarchive a session."""
        return self._set_flag(tx, session_id, "archived", archived)

    def _set_flag(self, tx: Transaction, session_id: str, flag: sessions.SessionFlag, value: bool) -> Session:
        row = self._scope.get_session_row(tx, session_id, Action.ORGANIZE)
        return sessions.set_flag(tx, row, flag, value, self._scope.now(), self._scope.person_id)

    def _move(self, tx: Transaction, session_id: str, project: str | None) -> Session:
        """Move a session into a project; None takes it out of any."""
        row = self._scope.get_session_row(tx, session_id, Action.ORGANIZE)
        return move_to_project(tx, self._scope, row, project, self._scope.now())

    @write_operation
    def undo(self, tx: Transaction, session_id: str, turns: int = 1) -> UndoResult:
        """Hide the last complete turns; `redo` shows them again. A view refuses it while the agent is answering."""
        check_count("turns", turns)
        scope = self._scope
        return events.undo_turns(tx, scope.lock_idle_session(tx, session_id), turns, scope.now(), scope.person_id)

    @write_operation
    def redo(self, tx: Transaction, session_id: str) -> UndoResult:
        """Show again what the last undo hid. A view refuses it while the agent is answering."""
        scope = self._scope
        return events.redo_turns(tx, scope.lock_idle_session(tx, session_id), scope.now(), scope.person_id)

    @write_operation
    def fork(self, tx: Transaction, session_id: str, at: int | None = None) -> Session:
        """Start a new session as a copy of this one, up to and including the turn of message number `at`.

        In a view, the copy belongs to the person alone.
        """
        check_count("at", at, minimum=0)
        row = self._scope.get_session_row(tx, session_id, Action.FORK)
        fork_row = fork_session(tx, self._scope, row, at, self._scope.now())
        self._expect_messages()
        return fork_row.session

    def _delete_completely(self, session_id: str) -> WriteThenWork[HiddenRow, None]:
        """Delete a session and its log permanently, and return when the last row of a long one is gone, too.

        It disappears at once; a later write to it is refused.
        """
        return build_deletion(lambda tx: self._delete_or_hide(tx, session_id))

    def _delete_or_hide(self, tx: Transaction, session_id: str) -> None:
        session_deletion.delete(tx, self._scope.get_session_row(tx, session_id, Action.DELETE))

    def _expect_messages(self) -> None:
        """Called before messages are stored that have to be indexed."""


class ViewOperations(SessionOperations[R], ViewPart[R]):
    """The operations that every kind of view has."""

    _scope: ViewScope

    def __init__(self, runner: R, scope: ViewScope) -> None:
        ViewPart.__init__(self, runner, scope)
        self.summaries = SummaryOperations(runner, scope)
        self.transcripts = TranscriptOperations(runner, scope)
        self.projects = ProjectOperations(runner, scope)
        self.usage = UsageOperations(runner, scope)

    @read_operation
    def list(
        self, tx: Transaction, *, limit: int = 50, cursor: str | None = None, **criteria: Unpack[ListCriteria]
    ) -> Page[Session]:
        """List conversations with messages that meet every given condition, newest first; see `summaries.list`."""
        return load_session_page(tx, self._scope, limit, cursor, criteria)

    get = read_operation(SessionOperations._get)

    @read_operation
    def find(self, tx: Transaction, text: str) -> Session:
        """Find a conversation by id, by the beginning of its id, or by title (the newest of a numbered line)."""
        return resolve_session(tx, self._scope, text.strip())

    @read_operation
    def load_messages(
        self, tx: Transaction, session_id: str, *, before: int | None = None, limit: int | None = 50
    ) -> Sequence[Event]:
        """Load the last visible messages before a number in the log, oldest first (limit None: all of them)."""
        check_count("before", before, minimum=0)
        check_count("limit", limit)
        session_no = self._scope.get_session_row(tx, session_id, Action.READ).no
        return events.list_messages(tx, session_no, before=before, limit=limit)

    @operation
    def search(
        self,
        text: str,
        *,
        limit: int = 20,
        cursor: str | None = None,
        within: str | None = None,
        search_filter: SearchFilter = NO_FILTER,
        is_typing: bool = False,
    ) -> ReadAfterWork[Any, SearchHits]:
        """Find the newest messages with these words that pass the filter.

        The `cursor` of a hit continues the search after it; `within` is the id of one conversation.
        With `is_typing`, the last word may be the beginning of a longer one.
        """
        return build_search(
            self._scope,
            text,
            limit=limit,
            cursor=cursor,
            within=within,
            search_filter=search_filter,
            is_typing=is_typing,
        )

    @read_operation
    def list_people(self, tx: Transaction) -> Sequence[NamedPerson]:
        """List the people who take part in the conversations of this view, by name; at most `MAX_LISTED_PEOPLE`."""
        return audience_members.list_members(tx, self._scope.list_audiences(tx), MAX_LISTED_PEOPLE)

    @read_operation
    def get_turn(self, tx: Transaction, turn_id: str) -> Turn:
        turn = turns.find(tx, turn_id)
        if turn is not None:
            with suppress(SessionNotFound):
                self._scope.get_session_row(tx, turn.session_id, Action.READ)
                return turn
        raise NotFound(f"There is no turn {turn_id}.", turn_id=turn_id)

    @read_operation
    def export_markdown(self, tx: Transaction, session_id: str) -> str:
        """Export what people see of a conversation as a Markdown document."""
        return export_markdown(tx, self._scope.get_session_row(tx, session_id, Action.READ))

    @write_operation
    def update(self, tx: Transaction, session_id: str, changes: SessionChanges) -> SessionSummary:
        """Change several things of a conversation together: all of them, or none."""
        check_may_change_settings(self._scope.principal, changes)
        row = apply_changes(tx, self._scope, session_id, changes, self._scope.now())
        return session_summaries.load_summaries(tx, [row.session], self._scope.person_id)[0]

    rename = write_operation(SessionOperations._rename)
    move = write_operation(SessionOperations._move)
    delete_completely = operation(SessionOperations._delete_completely)

    @operation
    def delete(self, session_id: str) -> Work[None]:
        """Delete a conversation and its log permanently. Of a long one, what is left is deleted by the cleanup."""
        return Write(lambda tx: self._delete_or_hide(tx, session_id), frees_space=True)


class SessionView(ViewOperations[BlockingRunner]):
    """A view whose operations block until they are done."""

    def __init__(self, engine: Engine, scope: ViewScope) -> None:
        super().__init__(BlockingRunner(engine), scope)


class AsyncSessionView(ViewOperations[AsyncRunner]):
    """A view whose operations are awaited."""

    def __init__(self, engine: Engine, scope: ViewScope) -> None:
        super().__init__(AsyncRunner(engine), scope)


class SessionViewInTransaction(ViewOperations[TransactionRunner]):
    """A view whose operations run inside an open transaction."""

    def __init__(self, tx: Transaction, scope: ViewScope) -> None:
        super().__init__(TransactionRunner(tx), scope)


def check_may_change_settings(principal: Principal, changes: SessionChanges) -> None:
    for setting, name, command in _SETTINGS:
        if setting in changes and not can_use_command(principal.role, command):
            raise NotAllowed(f"Guests can't change the {name} of a conversation.", setting=setting)


def apply_changes(tx: Transaction, scope: ViewScope, session_id: str, changes: SessionChanges, now: int) -> SessionRow:
    """Apply every change; raises, and so changes nothing, if the principal may not make one of them."""
    person_id = scope.person_id
    row = scope.get_session_row(tx, session_id, Action.READ)
    if "title" in changes:
        scope.get_session_row(tx, session_id, Action.RENAME)
        sessions.rename(tx, row, changes["title"], now, person_id)
    if changes.keys() & {"pinned", "archived", "project"}:
        scope.get_session_row(tx, session_id, Action.ORGANIZE)
    if "pinned" in changes:
        sessions.set_flag(tx, row, "pinned", changes["pinned"], now, person_id)
    if "archived" in changes:
        sessions.set_flag(tx, row, "archived", changes["archived"], now, person_id)
    if "project" in changes:
        move_to_project(tx, scope, row, changes["project"], now)
    for setting in session_settings.TEXT_SETTINGS:
        if setting in changes:
            session_settings.change(tx, row.no, setting, changes[setting], now, person_id)
    if "profile" in changes and row.session.last_human_at is not None:  # its reset policy counts from now
        session_activity.mark_active(tx, row.no, now)
    if "toolsets" in changes:
        session_settings.switch_toolsets(tx, row.no, changes["toolsets"], now, person_id)
    return sessions.get_by_no(tx, row.no)


def fork_session(
    tx: Transaction, scope: SessionScope, row: SessionRow, at: int | None, now: int, *, is_empty: bool = False
) -> SessionRow:
    """Start a session as a copy of another with its settings, up to the turn of message `at`; or without messages."""
    audience_no = scope.find_fork_audience(tx, row)
    fork_row = sessions.fork(tx, row, at, now, person_id=scope.person_id, audience_no=audience_no, is_empty=is_empty)
    session_settings.copy_settings(tx, row.no, fork_row.no, now, scope.person_id)
    return fork_row


def move_to_project(tx: Transaction, scope: SessionScope, row: SessionRow, project: str | None, now: int) -> Session:
    """Move a session into a project; None takes it out of any."""
    project_no, project_id = None, None
    if project is not None:
        project_no, found = scope.get_project(tx, project)
        project_id = found.id
    return sessions.move_to_project(tx, row, project_id, project_no, now, scope.person_id)
