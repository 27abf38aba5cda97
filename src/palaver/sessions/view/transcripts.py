"""The log of a conversation, page by page, and how far a person has read it: `view.transcripts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.argument_checks import check_count
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput
from palaver.core.operation import R, operation
from palaver.people import table as people
from palaver.people.model import Action
from palaver.sessions import log_table as events, read_marks, transcript_table as transcript_pages
from palaver.sessions.view.part import ViewPart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction, Work
    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.session_summary import TranscriptPage

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
