"""Tells a person something outside of a conversation, such as that a job fails, in a chat where they read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.clock import from_micros
from palaver.core.errors import InvalidInput
from palaver.delivery import table as deliveries
from palaver.delivery.reachable_chats import resolve_chat
from palaver.people import table as people
from palaver.sessions import lanes_table as lanes
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.targets import format_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource
    from palaver.people.table import PersonRow
    from palaver.sessions.delivery import Button
    from palaver.sessions.gateway_config import GatewayConfig


def send_notice(tx: Transaction, source: SessionSource, text: str, now: int, *, session_no: int | None = None) -> bool:
    """Queue a notice to the chat of a source; False where people read conversations directly, as on the page."""
    address = find_delivery_address(source)
    if address is None:
        return False
    send_notice_to_address(tx, str(address), text, now, session_no=session_no)
    return True


def send_notice_to_address(
    tx: Transaction,
    address: str,
    text: str,
    now: int,
    *,
    session_no: int | None = None,
    reply_to: str | None = None,
    attachment_ids: Sequence[str] = (),
    buttons: Sequence[Button] = (),
) -> None:
    """Queue a notice to an address, as deliveries store it."""
    notice = deliveries.NewDelivery(
        address=address,
        content=text,
        kind=DeliveryKind.NOTICE,
        session_no=session_no,
        reply_to=reply_to,
        attachment_ids=attachment_ids,
        buttons=buttons,
    )
    deliveries.enqueue(tx, notice, now)


def notify_person(
    tx: Transaction,
    config: GatewayConfig,
    person_id: PersonId,
    text: str,
    now: int,
    *,
    preferred: SessionSource | None = None,
    session_no: int | None = None,
) -> bool:
    """Queue a notice to the preferred chat or, if that is none, to the person's latest direct messages.

    False if the person writes in no chat: then they see it on the page or in the terminal.
    """
    person_row = people.find_by_id(tx, person_id)
    if person_row is None:
        return False
    source = _find_preferred(tx, config, person_row, preferred, now) or _find_latest_dm(tx, config, person_row, now)
    return source is not None and send_notice(tx, source, text, now, session_no=session_no)


def _find_preferred(
    tx: Transaction, config: GatewayConfig, person_row: PersonRow, preferred: SessionSource | None, now: int
) -> SessionSource | None:
    """Return the preferred place if it is a chat that the person may still send to."""
    address = None if preferred is None else find_delivery_address(preferred)
    if address is None:
        return None
    try:
        return resolve_chat(tx, person_row.person.principal, format_target(address), config, now).source
    except InvalidInput:
        return None


def _find_latest_dm(tx: Transaction, config: GatewayConfig, person_row: PersonRow, now: int) -> SessionSource | None:
    """Return the chat of the direct messages in which the person wrote last."""
    identities = people.list_identities(tx, person_row.person.id)
    sources = [each.dm_source for each in identities if each.dm_source and find_delivery_address(each.dm_source)]
    return max(sources, key=lambda source: _get_last_activity(tx, config, source, now), default=None)


def _get_last_activity(tx: Transaction, config: GatewayConfig, source: SessionSource, now: int) -> float:
    arrival = lanes.Arrival(source=source, config=config, now=from_micros(now), busy_since=lambda _session_id: None)
    row = lanes.find_current_session(tx, lanes.resolve_key(tx, arrival))
    last_human_at = row.session.last_human_at if row else None
    return last_human_at.timestamp() if last_human_at else 0.0
