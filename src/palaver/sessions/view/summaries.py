"""Conversations as a list shows them, with unread and busy state: `view.summaries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read
from palaver.core.operation import R, operation
from palaver.core.page import Page
from palaver.people.model import Action
from palaver.sessions import summaries_table as session_summaries
from palaver.sessions.view.listing import ListCriteria, load_session_page
from palaver.sessions.view.part import ViewPart

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Transaction, Work
    from palaver.sessions.session_summary import SessionSummary


class SummaryOperations(ViewPart[R]):
    """Summaries for the principal: the read marks in them are theirs."""

    @operation
    def get(self, session_id: str) -> Work[SessionSummary]:
        def run(tx: Transaction) -> SessionSummary:
            session = self._scope.get_session_row(tx, session_id, Action.READ).session
            return session_summaries.load_summaries(tx, [session], self._scope.person_id)[0]

        return Read(run)

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
        title: str | None = None,
        text: str | None = None,
    ) -> Work[Page[SessionSummary]]:
        """List conversations with messages that meet every given condition, newest first.

        `after` and `before` limit when they were last active. The words of `title` are beginnings of words in it.
        The words of `text` are looked for in the title, the last line and the name of the place. `-word` must not occur
        there. With one of the two, a page may be short or even empty and still have a cursor that continues the list.
        """
        criteria = ListCriteria(
            state=state,
            project=project,
            platform=platform,
            person=person,
            after=after,
            before=before,
            title=title,
            text=text,
        )

        def run(tx: Transaction) -> Page[SessionSummary]:
            page = load_session_page(tx, self._scope, criteria, limit=limit, cursor=cursor)
            return Page(session_summaries.load_summaries(tx, page, self._scope.person_id), page.cursor)

        return Read(run)
