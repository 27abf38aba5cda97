"""A principal's view of the store: the verbs on sessions, and the parts with everything else."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotFound, SessionBusy, SessionNotFound
from palaver.core.operation import (
    AsyncRunner,
    BlockingRunner,
    R,
    ReadAfterWork,
    TransactionRunner,
    WriteThenWork,
    check_count,
    operation,
)
from palaver.people.model import Action
from palaver.sessions import (
    deletion_table as session_deletion,
    lanes_table as lanes,
    list_table as session_summaries,
    log_table as events,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.deletions import build_deletion
from palaver.sessions.events import EventKind
from palaver.sessions.export import export_markdown, export_session
from palaver.sessions.indexer import build_search
from palaver.sessions.search_text import NO_FILTER
from palaver.sessions.view.changes import apply_changes, check_may_change_settings, move_to_project
from palaver.sessions.view.listing import (
    ListCriteria,
    SummaryOperations,
    list_visible_people,
    load_session_page,
    resolve_authors,
    resolve_project_no,
    resolve_session,
)
from palaver.sessions.view.scope import ViewPart
from palaver.sessions.view.transcripts import ProjectOperations, TranscriptOperations, UsageOperations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Engine, Transaction, Work
    from palaver.core.operation import Page
    from palaver.people.model import NamedPerson
    from palaver.sessions.deletions import HiddenRow
    from palaver.sessions.events import Event
    from palaver.sessions.model import SearchHits, Session, SessionSummary, UndoResult
    from palaver.sessions.search_text import SearchFilter
    from palaver.sessions.turn import Turn
    from palaver.sessions.view.changes import SessionChanges
    from palaver.sessions.view.scope import ViewScope


class ViewOperations(ViewPart[R]):
    """The operations that every kind of view has."""

    def __init__(self, runner: R, scope: ViewScope) -> None:
        super().__init__(runner, scope)
        self.summaries = SummaryOperations(runner, scope)
        self.transcripts = TranscriptOperations(runner, scope)
        self.projects = ProjectOperations(runner, scope)
        self.usage = UsageOperations(runner, scope)

    # -- finding and reading -------------------------------------------------------------------------------

    @operation
    def list(
        self,
        *,
        state: str = "active",
        limit: int = 50,
        cursor: str | None = None,
        project: str | None = None,
        platform: str | None = None,
        person: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        text: str | None = None,
    ) -> Work[Page[Session]]:
        """List conversations with messages that meet every given condition, newest first.

        States: active, archived, pinned. `after` and `before` limit when they were last active. `text` is described in
        `summaries.list`.
        """
        criteria = ListCriteria(
            state=state, project=project, platform=platform, person=person, after=after, before=before, text=text
        )
        return Read(lambda tx: load_session_page(tx, self._scope, criteria, limit=limit, cursor=cursor))

    @operation
    def get(self, session_id: str) -> Work[Session]:
        return Read(lambda tx: self._scope.get_session_row(tx, session_id, Action.READ).session)

    @operation
    def find(self, text: str) -> Work[Session]:
        """Find a conversation by id, by the beginning of its id, or by title (the newest of a numbered line)."""
        return Read(lambda tx: resolve_session(tx, self._scope, text.strip()))

    @operation
    def load_messages(
        self, session_id: str, *, before: int | None = None, limit: int | None = 50
    ) -> Work[Sequence[Event]]:
        """Load the last visible messages before a number in the log, oldest first (limit None: all of them)."""
        check_count("before", before, minimum=0)
        check_count("limit", limit)

        def run(tx: Transaction) -> Sequence[Event]:
            session_no = self._scope.get_session_row(tx, session_id, Action.READ).no
            return events.list_messages(tx, session_no, before=before, limit=limit)

        return Read(run)

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

        def get_session_no(tx: Transaction) -> int | None:
            if within is not None:
                return self._scope.get_session_row(tx, within, Action.READ).no
            if self._scope.is_personal_lane_in_group:  # only what was said there, because others read the answer
                row = lanes.find_current_session(tx, self._scope.lane_key or "")
                return row.no if row else 0  # 0: no session has this number
            return None

        def get_project_no(tx: Transaction) -> int | None:
            return resolve_project_no(tx, self._scope, search_filter.project)

        def find_session_no(tx: Transaction, session_id: str) -> int:
            return self._scope.get_session_row(tx, session_id, Action.READ).no

        return build_search(
            text,
            self._scope.list_audiences,
            find_session_no,
            limit=limit,
            cursor=cursor,
            is_typing=is_typing,
            get_session_no=get_session_no,
            search_filter=search_filter,
            get_project_no=get_project_no,
            list_authors=lambda tx: resolve_authors(tx, self._scope, search_filter.person),
        )

    @operation
    def list_people(self) -> Work[Sequence[NamedPerson]]:
        """List the people who take part in the conversations of this view, by name; at most `MAX_LISTED_PEOPLE`."""
        return Read(lambda tx: list_visible_people(tx, self._scope))

    @operation
    def get_turn(self, turn_id: str) -> Work[Turn]:
        def run(tx: Transaction) -> Turn:
            turn = turns.find(tx, turn_id)
            if turn is not None:
                with suppress(SessionNotFound):
                    self._scope.get_session_row(tx, turn.session_id, Action.READ)
                    return turn
            raise NotFound(f"There is no turn {turn_id}.", turn_id=turn_id)

        return Read(run)

    @operation
    def export(self, session_id: str) -> Work[dict[str, Any]]:
        """Export a conversation with its complete log as JSON-ready data."""
        return Read(lambda tx: export_session(tx, self._scope.get_session_row(tx, session_id, Action.READ)))

    @operation
    def export_markdown(self, session_id: str) -> Work[str]:
        """Export what people see of a conversation as a Markdown document."""
        return Read(lambda tx: export_markdown(tx, self._scope.get_session_row(tx, session_id, Action.READ)))

    # -- changing ------------------------------------------------------------------------------------------

    @operation
    def update(self, session_id: str, changes: SessionChanges) -> Work[SessionSummary]:
        """Change several things of a conversation together: all of them, or none."""
        check_may_change_settings(self._scope.principal, changes)
        now = self._scope.now()

        def run(tx: Transaction) -> SessionSummary:
            row = apply_changes(tx, self._scope, session_id, changes, now)
            return session_summaries.load_summaries(tx, [row.session], self._scope.person_id)[0]

        return Write(run)

    @operation
    def rename(self, session_id: str, title: str | None) -> Work[Session]:
        """Set the title of a conversation; None removes it."""
        now = self._scope.now()

        def run(tx: Transaction) -> Session:
            row = self._scope.get_session_row(tx, session_id, Action.RENAME)
            return sessions.rename(tx, row, title, now, self._scope.person_id)

        return Write(run)

    @operation
    def pin(self, session_id: str, pinned: bool = True) -> Work[Session]:
        """Pin or unpin a conversation."""
        return self._set_pinned_or_archived(session_id, EventKind.PINNED if pinned else EventKind.UNPINNED)

    @operation
    def archive(self, session_id: str, archived: bool = True) -> Work[Session]:
        """Archive or unarchive a conversation."""
        return self._set_pinned_or_archived(session_id, EventKind.ARCHIVED if archived else EventKind.UNARCHIVED)

    @operation
    def move(self, session_id: str, project: str | None) -> Work[Session]:
        """Move a conversation into one of the person's projects, given by id or name; None takes it out of any."""
        now = self._scope.now()

        def run(tx: Transaction) -> Session:
            row = self._scope.get_session_row(tx, session_id, Action.ORGANIZE)
            return move_to_project(tx, self._scope, row, project, now)

        return Write(run)

    @operation
    def undo(self, session_id: str, turns: int = 1) -> Work[UndoResult]:
        """Hide the last complete turns; refused while the agent is answering."""
        check_count("turns", turns)
        now = self._scope.now()
        return Write(
            lambda tx: events.undo_turns(tx, self._lock_idle_session(tx, session_id), turns, now, self._scope.person_id)
        )

    @operation
    def redo(self, session_id: str) -> Work[UndoResult]:
        """Show again what the last undo hid; refused while the agent is answering."""
        now = self._scope.now()
        return Write(
            lambda tx: events.redo_turns(tx, self._lock_idle_session(tx, session_id), now, self._scope.person_id)
        )

    @operation
    def fork(self, session_id: str, at: int | None = None) -> Work[Session]:
        """Start a conversation of the person's own as a copy, up to and including the turn of message `at`."""
        check_count("at", at, minimum=0)
        now = self._scope.now()

        def run(tx: Transaction) -> Session:
            person_id = self._scope.person_id
            row = self._scope.get_session_row(tx, session_id, Action.FORK)
            audience_no = self._scope.find_fork_audience(tx, row)
            fork = sessions.fork(tx, row, at, now, person_id=person_id, audience_no=audience_no)
            session_settings.copy_settings(tx, row.no, fork.no, now, person_id)
            return fork.session

        return Write(run)

    @operation
    def delete(self, session_id: str) -> Work[None]:
        """Delete a conversation and its log permanently. Of a long one, what is left is deleted by the cleanup."""
        return Write(lambda tx: self._delete(tx, session_id), frees_space=True)

    @operation
    def delete_completely(self, session_id: str) -> WriteThenWork[HiddenRow, None]:
        """Delete a conversation and its log permanently, and return when the last row of a long one is gone, too."""
        return build_deletion(lambda tx: self._delete(tx, session_id))

    # -- shared by the above -------------------------------------------------------------------------------

    def _delete(self, tx: Transaction, session_id: str) -> None:
        session_deletion.delete(tx, self._scope.get_session_row(tx, session_id, Action.DELETE))

    def _set_pinned_or_archived(self, session_id: str, kind: EventKind) -> Write[Session]:
        now = self._scope.now()

        def run(tx: Transaction) -> Session:
            row = self._scope.get_session_row(tx, session_id, Action.ORGANIZE)
            return sessions.set_pinned_or_archived(tx, row, kind, now, self._scope.person_id)

        return Write(run)

    def _lock_idle_session(self, tx: Transaction, session_id: str) -> int:
        """Return the number of a session without open turns, and let no turn open until the transaction ends."""
        session_no = self._scope.get_session_row(tx, session_id, Action.UNDO).no
        if turns.lock_and_summarize_open(tx, session_no).is_busy:
            raise SessionBusy
        return session_no


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
