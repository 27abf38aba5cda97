"""The deliveries of a conversation's answers: `view.deliveries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NotFound
from palaver.domain.person import Action
from palaver.domain.text import is_storable
from palaver.services.argument_checks import check_count
from palaver.services.operation import R, operation
from palaver.services.view.part import ViewPart
from palaver.storage import deliveries, delivery_queries
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.delivery import DeliveryStatus
    from palaver.storage.engines.base import Transaction, Work


class DeliveryOperations(ViewPart[R]):
    """Shows deliveries, and sends an answer again."""

    @operation
    def list(self, session_id: str, *, limit: int = 50) -> Work[Sequence[DeliveryStatus]]:
        """List the deliveries of the newest answers, oldest first."""
        check_count("limit", limit)

        def run(tx: Transaction) -> Sequence[DeliveryStatus]:
            session_no = self._scope.get_session_row(tx, session_id, Action.READ).no
            return [status for _, status in delivery_queries.list_latest_statuses(tx, session_no, limit)]

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
