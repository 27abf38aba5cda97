"""The log of a conversation, page by page, and how far a person has read it: `view.transcripts`."""

from __future__ import annotations

from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING

from palaver.core.clock import to_micros
from palaver.core.engines.base import Transaction, Work, Write
from palaver.core.errors import InvalidInput
from palaver.core.operation import R, WriteThenWork, check_count, operation, read_operation, write_operation
from palaver.people import table as people
from palaver.people.model import Action
from palaver.sessions import (
    hidden_ranges as read_marks,
    log_table as events,
    projects_table as projects,
    transcript_table as transcript_pages,
    usage_table as usage_reports,
)
from palaver.sessions.deletions import HiddenRow, build_deletion
from palaver.sessions.search_text import start_of_day
from palaver.sessions.usage import UsageGrouping, UsageReport
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.model import Project, TranscriptPage


MAX_PAGE_EVENTS = 500
MAX_READ_MARK_WAIT_SECONDS = 2.0  # for other writers: a mark that is not stored is set again the next time
DEFAULT_PERIOD = timedelta(days=30)
MAX_PERIOD = timedelta(days=3660)
MAX_ROWS = 1000


class TranscriptOperations(ViewPart[R]):
    """Reads logs, and keeps the principal's read marks."""

    @read_operation
    def load_page(
        self,
        tx: Transaction,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        limit: int = 50,
    ) -> TranscriptPage:
        """Load a page without hidden messages: the end of the log, or what is before, after or around a number."""
        if sum(seq is not None for seq in (before, after, around)) > 1:
            raise InvalidInput("Give only one of before, after and around.")
        for name, seq in (("before", before), ("after", after), ("around", around)):
            check_count(name, seq, minimum=0)
        check_count("limit", limit, maximum=MAX_PAGE_EVENTS)
        session_no = self._get_session_no(tx, session_id)
        return transcript_pages.load_page(tx, session_no, before=before, after=after, around=around, limit=limit)

    @read_operation
    def load_log_page(self, tx: Transaction, session_id: str, *, after: int = 0, limit: int = 100) -> TranscriptPage:
        """Load a page of the complete log after a number, with hidden messages."""
        check_count("after", after, minimum=0)
        check_count("limit", limit, maximum=MAX_PAGE_EVENTS)
        return transcript_pages.load_log_page(tx, self._get_session_no(tx, session_id), after=after, limit=limit)

    @read_operation
    def load_events(self, tx: Transaction, session_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[Event]:
        """Load the events of the complete log after a number, with hidden messages."""
        check_count("after", after, minimum=0)
        check_count("limit", limit)
        return events.list_events(tx, self._get_session_no(tx, session_id), after=after, limit=limit)

    @read_operation
    def load_person_names(self, tx: Transaction, session_id: str, log: Sequence[Event]) -> Mapping[PersonId, str]:
        """Load the names of the people who caused these events of a session."""
        self._get_session_no(tx, session_id)
        return people.load_names(tx, {event.person_id for event in log if event.person_id is not None})

    @operation
    def mark_read(self, session_id: str, seq: int) -> Work[int]:
        """Record that the person has read up to an event; returns how far they have read, which never goes back."""
        check_count("seq", seq, minimum=0)
        now, person_id = self._scope.now(), self._scope.person_id

        def find_unchanged(tx: Transaction) -> int | None:
            read_seq = read_marks.get_read_seq(tx, self._get_session_no(tx, session_id), person_id)
            return read_seq if read_seq >= seq else None

        def run(tx: Transaction) -> int:
            return read_marks.mark_read(tx, self._get_session_no(tx, session_id), person_id, seq, now)

        return Write(run, read_first=find_unchanged, max_wait_seconds=MAX_READ_MARK_WAIT_SECONDS)

    def _get_session_no(self, tx: Transaction, session_id: str) -> int:
        return self._scope.get_session_row(tx, session_id, Action.READ).no


_EARLIEST_DAY, _LATEST_DAY = date(1970, 1, 1), date(9990, 1, 1)


class UsageOperations(ViewPart[R]):
    """Reports what the conversations in the view's scope used."""

    @read_operation
    def report(
        self,
        tx: Transaction,
        by: str = "day",
        *,
        first: date | None = None,
        last: date | None = None,
        limit: int = MAX_ROWS,
    ) -> UsageReport:
        """Report the usage from the first day to the last, both included, in UTC; by default of the last 30 days."""
        if by not in list(UsageGrouping):
            raise InvalidInput(f"by: {by!r} is not allowed. Use one of {', '.join(UsageGrouping)}.", by=by)
        check_count("limit", limit, maximum=MAX_ROWS)
        end_day = last or self._scope.clock.now().astimezone(UTC).date()
        start_day = first or max(end_day - DEFAULT_PERIOD, _EARLIEST_DAY) + timedelta(days=1)
        if not _EARLIEST_DAY <= start_day <= end_day <= _LATEST_DAY or end_day - start_day > MAX_PERIOD:
            raise InvalidInput("from and to: give two days, the earlier one first, at most ten years apart.")
        start, stop = (to_micros(start_of_day(day, UTC)) for day in (start_day, end_day + timedelta(days=1)))
        audiences = self._scope.list_audiences(tx)
        return usage_reports.load_report(tx, UsageGrouping(by), start, stop, audiences, limit)


class ProjectOperations(ViewPart[R]):
    """The principal's own projects. An owner who sees everything still sees only their own."""

    @read_operation
    def list(self, tx: Transaction) -> Sequence[Project]:
        """List the projects by name."""
        return projects.list_projects(tx, self._scope.person_id)

    @write_operation
    def create(self, tx: Transaction, name: str, color: str | None = None) -> Project:
        return projects.create(tx, self._scope.person_id, name, color, self._scope.now())

    @write_operation
    def update(
        self,
        tx: Transaction,
        project: str,
        *,
        name: str | None = None,
        color: str | None = None,
        instructions: str | None = None,
    ) -> Project:
        """Change the name, color or instructions of a project, given by id or name; empty instructions remove them."""
        return projects.update(tx, self._scope.person_id, project, name, color, instructions)

    @operation
    def delete(self, project: str) -> Work[Project]:
        """Delete a project, given by id or name. Its conversations stay; many of them leave it in the cleanup."""
        return Write(lambda tx: projects.delete(tx, self._scope.person_id, project), frees_space=True)

    @operation
    def delete_completely(self, project: str) -> WriteThenWork[HiddenRow, Project]:
        """Delete a project, and return when the last of its conversations has left it, too."""
        return build_deletion(lambda tx: projects.delete(tx, self._scope.person_id, project))
