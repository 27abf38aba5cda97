"""Notices from the gateway to a chat other than the one where something was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.delivery import table as deliveries
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import find_delivery_address

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource


def send_notice(tx: Transaction, source: SessionSource, text: str, now: int, *, session_no: int | None = None) -> bool:
    """Queue a notice to the chat of a source; False where people read conversations directly, as on the page."""
    address = find_delivery_address(source)
    if address is None:
        return False
    send_notice_to_address(tx, str(address), text, now, session_no=session_no)
    return True


def send_notice_to_address(
    tx: Transaction, address: str, text: str, now: int, *, session_no: int | None = None
) -> None:
    """Queue a notice to an address, as deliveries store it."""
    delivery = deliveries.NewDelivery(address=address, content=text, kind=DeliveryKind.NOTICE, session_no=session_no)
    deliveries.enqueue(tx, delivery, now)
