"""The deliveries of a conversation's answers: `view.deliveries`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.core.clock import from_micros, to_micros
from palaver.core.engines.base import Read, Transaction, Work, Write
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.operation import Page, R, check_count, operation
from palaver.core.text import is_storable
from palaver.delivery import table as deliveries
from palaver.people.model import Action
from palaver.sessions import delivery_queries
from palaver.sessions.delivery import Address
from palaver.sessions.targets import parse_target
from palaver.sessions.view.scope import ViewPart

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.sessions.delivery import DeliveryStatus, Resolution, UndeliveredMessage


MAX_UNDELIVERED_AGE = timedelta(days=30)  # of messages that are listed, if the caller says nothing else


class DeliveryOperations(ViewPart[R]):
    """Shows deliveries, sends an answer again, and settles what failed or is uncertain."""

    @operation
    def list_undelivered(
        self,
        *,
        state: str | None = None,
        platform: str | None = None,
        target: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Work[Page[UndeliveredMessage]]:
        """List what failed or is uncertain in the conversations of the view, and was not dismissed, the last one first.

        An owner who sees everything also sees notices outside of conversations.
        """
        check_count("limit", limit)
        is_filter_valid = all(each is None or is_storable(each) for each in (state, platform, target))
        address = _parse_address(target) if target is not None and is_filter_valid else None
        oldest = after or from_micros(self._scope.now()) - MAX_UNDELIVERED_AGE
        last = (2**62, 0) if before is None else (to_micros(before), 0)
        if cursor is not None:
            last = min(last, _parse_undelivered_cursor(cursor))

        def run(tx: Transaction) -> Page[UndeliveredMessage]:
            audiences = self._scope.list_audiences(tx)
            if not is_filter_valid or audiences == []:
                return Page([], None)
            found = delivery_queries.list_undelivered(
                tx,
                audiences,
                after=to_micros(oldest),
                before=last,
                limit=limit + 1,
                state=state,
                platform=platform,
                address=address,
                lane_key=self._scope.lane_key,
            )
            page = found[:limit]
            following = f"{to_micros(page[-1][1].ended_at)}-{page[-1][0]}" if len(found) > limit else None
            return Page([each for _, each in page], following)

        return Read(run)

    @operation
    def get_undelivered(self, delivery_id: str) -> Work[UndeliveredMessage]:
        """Return a message of the list. Raises NotFound if it is not there."""

        def run(tx: Transaction) -> UndeliveredMessage:
            audiences = self._scope.list_audiences(tx)
            found = (
                delivery_queries.list_undelivered(
                    tx, audiences, before=(2**62, 0), limit=1, delivery_id=delivery_id, lane_key=self._scope.lane_key
                )
                if is_storable(delivery_id) and audiences != []
                else []
            )
            if not found:
                raise NotFound(f"Undelivered message {delivery_id} not found.", delivery_id=delivery_id)
            return found[0][1]

        return Read(run)

    @operation
    def resolve(self, delivery_id: str, resolution: Resolution) -> Work[None]:
        """Settle a delivery that failed or is uncertain. Raises NotFound, and NothingToDo if it is settled."""
        if not is_storable(delivery_id):
            raise NotFound(f"Delivery {delivery_id} not found.", delivery_id=delivery_id)
        scope, now = self._scope, self._scope.now()

        def run(tx: Transaction) -> None:
            audiences = scope.list_audiences(tx)
            deliveries.resolve(tx, delivery_id, resolution, audiences, now, scope.person_id, scope.lane_key)

        return Write(run)

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


def _parse_address(target: str) -> str:
    parsed = parse_target(target)
    if parsed.kind != "chat":
        raise InvalidInput.say("delivery.no_chat", "{target} names no chat. Use platform:chat_id.", target=target[:100])
    return str(Address(parsed.platform, parsed.chat_id, parsed.thread_id, parsed.account))


def _parse_undelivered_cursor(cursor: str) -> tuple[int, int]:
    time, _, no = cursor.partition("-")
    if not all(each.isascii() and each.isdigit() and len(each) < 19 for each in (time, no)):
        raise _make_cursor_error()
    return int(time), int(no)


def _find_cursor(tx: Transaction, session_no: int, cursor: str) -> int:
    no = delivery_queries.find_no(tx, session_no, cursor) if is_storable(cursor) else None
    if no is None:
        raise _make_cursor_error()
    return no


def _make_cursor_error() -> InvalidInput:
    return InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.", key="cursor")
