"""Conversations as a list shows them, with unread and busy state: `view.summaries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.page import Page
from palaver.domain.person import Action
from palaver.services.operation import R, operation
from palaver.services.view.listing import ListCriteria, load_session_page
from palaver.services.view.part import ViewPart
from palaver.storage import session_summaries
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.domain.session_summary import SessionSummary
    from palaver.storage.engines.base import Transaction, Work


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
