"""What one principal sees of answers that are sent somewhere, and what they may want to be done about them.

These are operations of a principal's view (`view.py`), kept apart by their subject.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NotFound
from palaver.domain.person import Action
from palaver.domain.text import is_storable
from palaver.services.argument_checks import check_count
from palaver.services.operation import operation
from palaver.storage import deliveries
from palaver.storage.engines.base import Read, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.delivery import DeliveryStatus
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Transaction, Work
    from palaver.storage.session_rows import SessionRow


class DeliveryOperations:
    """Deliveries of a conversation; the view that it belongs to says what may be seen."""

    if TYPE_CHECKING:  # what the view gives

        @property
        def _person(self) -> PersonId: ...
        def _now(self) -> int: ...
        def _seen(self, tx: Transaction, session_id: str, action: Action) -> SessionRow: ...

    @operation
    def deliveries(self, session_id: str, *, limit: int = 50) -> Work[Sequence[DeliveryStatus]]:
        """How the deliveries of the newest answers stand, oldest first."""
        check_count("limit", limit)

        def run(tx: Transaction) -> Sequence[DeliveryStatus]:
            found = deliveries.latest(tx, self._seen(tx, session_id, Action.READ).no, limit)
            return [status for _, status in found]

        return Read(run)

    @operation
    def send_again(self, session_id: str, delivery_id: str) -> Work[DeliveryStatus]:
        """Send an answer again that failed, or that may not have arrived."""
        if not is_storable(delivery_id):
            raise NotFound(f"there is no delivery {delivery_id}", delivery_id=delivery_id)
        now = self._now()

        def run(tx: Transaction) -> DeliveryStatus:
            session_no = self._seen(tx, session_id, Action.READ).no
            return deliveries.repeat(tx, session_no, delivery_id, now, self._person)

        return Write(run)
