"""The log of a conversation, page by page, and how far a person has read it: `view.transcripts`."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Transaction, Work, Write
from palaver.core.errors import InvalidInput
from palaver.core.operation import R, WriteThenWork, check_count, operation
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
from palaver.sessions.usage import UsageGrouping, UsageReport
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.model import Project, TranscriptPage


MAX_PAGE_EVENTS = 500
MAX_READ_MARK_WAIT_SECONDS = 2.0  # for other writers: a mark that is not stored is set again the next time


class TranscriptOperations(ViewPart[R]):
    """Reads logs, and keeps the principal's read marks."""

    @operation
    def load_page(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        limit: int = 50,
    ) -> Work[TranscriptPage]:
        """Load a page without hidden messages: the end of the log, or what is before, after or around a number."""
        if sum(seq is not None for seq in (before, after, around)) > 1:
            raise InvalidInput("Give only one of before, after and around.")
        for name, seq in (("before", before), ("after", after), ("around", around)):
            check_count(name, seq, minimum=0)
        check_count("limit", limit, maximum=MAX_PAGE_EVENTS)

        def run(tx: Transaction) -> TranscriptPage:
            session_no = self._get_session_no(tx, session_id)
            if after is not None:
                return transcript_pages.load_page_after(tx, session_no, after=after, limit=limit)
            if around is not None:
                return transcript_pages.load_page_around(tx, session_no, seq=around, limit=limit)
            return transcript_pages.load_page_before(tx, session_no, before=before, limit=limit)

        return Read(run)

    @operation
    def load_log_page(self, session_id: str, *, after: int = 0, limit: int = 100) -> Work[TranscriptPage]:
        """Load a page of the complete log after a number, with hidden messages."""
        check_count("after", after, minimum=0)
        check_count("limit", limit, maximum=MAX_PAGE_EVENTS)

        def run(tx: Transaction) -> TranscriptPage:
            session_no = self._get_session_no(tx, session_id)
            return transcript_pages.load_log_page(tx, session_no, after=after, limit=limit)

        return Read(run)

    @operation
    def load_events(self, session_id: str, *, after: int = 0, limit: int = 1000) -> Work[Sequence[Event]]:
        """Load the events of the complete log after a number, with hidden messages."""
        check_count("after", after, minimum=0)
        check_count("limit", limit)
        return Read(lambda tx: events.list_events(tx, self._get_session_no(tx, session_id), after=after, limit=limit))

    @operation
    def load_person_names(self, session_id: str, log: Sequence[Event]) -> Work[Mapping[PersonId, str]]:
        """Load the names of the people who caused these events of a session."""
        person_ids = {event.person_id for event in log if event.person_id is not None}

        def run(tx: Transaction) -> Mapping[PersonId, str]:
            self._get_session_no(tx, session_id)
            return people.load_names(tx, person_ids)

        return Read(run)

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


DEFAULT_PERIOD = timedelta(days=30)
MAX_PERIOD = timedelta(days=3660)
MAX_ROWS = 1000
_EARLIEST_DAY = datetime(1970, 1, 1, tzinfo=UTC).date()
_LATEST_DAY = datetime(9990, 1, 1, tzinfo=UTC).date()


class UsageOperations(ViewPart[R]):
    """Reports what the conversations in the view's scope used."""

    @operation
    def report(
        self, by: str = "day", *, first: date | None = None, last: date | None = None, limit: int = MAX_ROWS
    ) -> Work[UsageReport]:
        """Report the usage from the first day to the last, both included, in UTC; by default of the last 30 days."""
        if by not in list(UsageGrouping):
            raise InvalidInput(f"by: {by!r} is not allowed. Use one of {', '.join(UsageGrouping)}.", by=by)
        check_count("limit", limit, maximum=MAX_ROWS)
        end_day = last or self._scope.clock.now().astimezone(UTC).date()
        start_day = first or max(end_day - DEFAULT_PERIOD, _EARLIEST_DAY) + timedelta(days=1)
        if not _EARLIEST_DAY <= start_day <= end_day <= _LATEST_DAY or end_day - start_day > MAX_PERIOD:
            raise InvalidInput("from and to: give two days, the earlier one first, at most ten years apart.")
        start, stop = _get_start_of_day(start_day), _get_start_of_day(end_day + timedelta(days=1))

        def run(tx: Transaction) -> UsageReport:
            audiences = self._scope.list_audiences(tx)
            return usage_reports.load_report(tx, UsageGrouping(by), start, stop, audiences, limit)

        return Read(run)


def _get_start_of_day(day: date) -> int:
    return to_micros(datetime.combine(day, time(), tzinfo=UTC))


class ProjectOperations(ViewPart[R]):
    """The principal's own projects. An owner who sees everything still sees only their own."""

    @operation
    def list(self) -> Work[Sequence[Project]]:
        """List the projects by name."""
        return Read(lambda tx: projects.list_projects(tx, self._scope.person_id))

    @operation
    def create(self, name: str, color: str | None = None) -> Work[Project]:
        now = self._scope.now()
        return Write(lambda tx: projects.create(tx, self._scope.person_id, name, color, now))

    @operation
    def update(
        self, project: str, *, name: str | None = None, color: str | None = None, instructions: str | None = None
    ) -> Work[Project]:
        """Change the name, color or instructions of a project, given by id or name; empty instructions remove them."""
        return Write(lambda tx: projects.update(tx, self._scope.person_id, project, name, color, instructions))

    @operation
    def delete(self, project: str) -> Work[Project]:
        """Delete a project, given by id or name. Its conversations stay; many of them leave it in the cleanup."""
        return Write(lambda tx: projects.delete(tx, self._scope.person_id, project), frees_space=True)

    @operation
    def delete_completely(self, project: str) -> WriteThenWork[HiddenRow, Project]:
        """Delete a project, and return when the last of its conversations has left it, too."""
        return build_deletion(lambda tx: projects.delete(tx, self._scope.person_id, project))
