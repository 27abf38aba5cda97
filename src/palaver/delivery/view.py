"""The deliveries of a conversation's answers: `view.deliveries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read, Transaction, Work, Write
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.operation import Page, R, check_count, operation
from palaver.core.text import is_storable
from palaver.delivery import table as deliveries
from palaver.people.model import Action
from palaver.sessions import delivery_queries
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from palaver.sessions.delivery import DeliveryStatus


class DeliveryOperations(ViewPart[R]):
    """Shows deliveries, and sends an answer again."""

    @operation
    def list(self, session_id: str, *, limit: int = 50, cursor: str | None = None) -> Work[Page[DeliveryStatus]]:
        """List the deliveries of the newest answers, oldest first; with the cursor of a page, those before it."""
        check_count("limit", limit)

        def run(tx: Transaction) -> Page[DeliveryStatus]:
            session_no = self._scope.get_session_row(tx, session_id, Action.READ).no
            before = 2**62 if cursor is None else _find_cursor(tx, session_no, cursor)
            found = delivery_queries.list_latest_statuses(tx, session_no, limit + 1, before)
            page = [status for _, status in found[-limit:]]
            return Page(page, page[0].id if len(found) > limit else None)

        return Read(run)

    @operation
    def count(self, session_id: str) -> Work[int]:
        """Count the deliveries of a conversation's answers."""

        def run(tx: Transaction) -> int:
            return delivery_queries.count_statuses(tx, self._scope.get_session_row(tx, session_id, Action.READ).no)

        return Read(run)

    @operation
    def send_again(self, session_id: str, delivery_id: str) -> Work[DeliveryStatus]:
        """Send an answer again whose delivery failed or is uncertain."""
        if not is_storable(delivery_id):
            raise NotFound(f"There is no delivery {delivery_id}.", delivery_id=delivery_id)
        now = self._scope.now()

        def run(tx: Transaction) -> DeliveryStatus:
            session_no = self._scope.get_session_row(tx, session_id, Action.READ).no
            return deliveries.resend(tx, session_no, delivery_id, now, self._scope.person_id)

        return Write(run)


def _find_cursor(tx: Transaction, session_no: int, cursor: str) -> int:
    no = delivery_queries.find_no(tx, session_no, cursor) if is_storable(cursor) else None
    if no is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.", key="cursor")
    return no
