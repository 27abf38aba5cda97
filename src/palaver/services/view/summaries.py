"""Conversations as a list shows them, with unread and busy state: `view.summaries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.person import Action
from palaver.domain.session import Page
from palaver.services.operation import R, operation
from palaver.services.view.listing import load_session_page
from palaver.services.view.part import ViewPart
from palaver.storage import session_summaries
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.domain.session import Session
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
        text: str | None = None,
    ) -> Work[Page[SessionSummary]]:
        """List conversations with messages that meet every given condition, newest first.

        `text` is looked for in the title, the last line and the name of the place. With `platform` or `text` a page may
        be short or even empty and still have a cursor that continues the list.
        """
        matches = _build_condition(platform, text)

        def run(tx: Transaction) -> Page[SessionSummary]:
            page = load_session_page(
                tx,
                self._scope,
                state=state,
                limit=limit,
                cursor=cursor,
                project=project,
                person=person,
                matches=matches,
            )
            return Page(session_summaries.load_summaries(tx, page, self._scope.person_id), page.cursor)

        return Read(run)


def _build_condition(platform: str | None, text: str | None) -> Callable[[Session], bool] | None:
    """Build the condition for a session; None if every session meets it."""
    words = (text or "").casefold().split()
    if platform is None and not words:
        return None

    def matches(session: Session) -> bool:
        if platform is not None and session.platform != platform.lower():
            return False
        if not words:
            return True
        origin = session.origin
        searched = f"{session.title or ''} {session.preview} {origin.chat_name or ''} {origin.user_name or ''}"
        return all(word in searched.casefold() for word in words)

    return matches
