"""Notices: what people are told in a chat outside of an answer.

A person is told that a job fails, for example, in a chat where they read it. A conversation is one log. Any number of
lanes may be on it, and people may write from all of them; an answer goes to the chat where the question was asked. So
nothing is taken away where a conversation was: people there are told, once, where it continues.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from palaver.commands.reply_text import quote_text
from palaver.core.clock import from_micros
from palaver.core.errors import InvalidInput
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import Text, say
from palaver.delivery import table as deliveries
from palaver.delivery.reachable_chats import ReachableChats
from palaver.people import table as people
from palaver.sessions import lanes_table as lanes, turns_table as turns
from palaver.sessions.delivery import DeliveryKind
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.keys import DmScope
from palaver.sessions.targets import format_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Row, Transaction
    from palaver.core.ids import PersonId
    from palaver.people.table import PersonRow
    from palaver.sessions.gateway_config import GatewayConfig


MAX_NOTIFIED_CHATS = 10
_CHATS_WITHOUT_NAME = {
    ChatType.GROUP: say("place.group", "a group"),
    ChatType.CHANNEL: say("place.channel", "a channel"),
    ChatType.THREAD: say("place.thread", "a thread"),
}


send_notice_to_address = partial(deliveries.enqueue, kind=DeliveryKind.NOTICE)


def send_notice(tx: Transaction, source: SessionSource, text: str, now: int, *, session_no: int | None = None) -> bool:
    """Queue a notice to the chat of a source; False where people read conversations directly, as on the page."""
    address = find_delivery_address(source)
    if address is None:
        return False
    send_notice_to_address(tx, str(address), text, now, session_no=session_no)
    return True


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
    source = _find_preferred(tx, config, person_row, preferred, now)
    if source is None:
        identities = people.list_identities(tx, person_row.person.id)
        sources = [each.dm_source for each in identities if each.dm_source and find_delivery_address(each.dm_source)]
        source = max(sources, key=lambda source: _get_last_activity(tx, config, source, now), default=None)
    return source is not None and send_notice(tx, source, text, now, session_no=session_no)


def report_uncertain(tx: Transaction, found: Sequence[Row], now: int) -> int:
    """Tell the people in each chat, once, that answers of ours may not have arrived there; return how many notices.

    A notice that is uncertain itself is not reported.
    """
    counts: dict[str, int] = {}
    sessions: dict[str, int] = {}
    for no, address, session_no in found:
        if deliveries.mark_reported(tx, no, now):
            counts[address] = counts.get(address, 0) + 1
            sessions[address] = session_no
    for address, count in counts.items():
        text = say(
            "notice.uncertain",
            "I'm not sure that one of my answers arrived here: sending it was interrupted. If you don't see it, ask me"
            " again, or open the conversation on the web and send it again there.",
        )
        if count > 1:
            text = say(
                "notice.uncertain_many",
                "I'm not sure that {count} of my answers arrived here: sending them was interrupted. If you don't see"
                " them, ask me again, or open the conversation on the web and send them again there.",
                count=count,
            )
        send_notice_to_address(tx, address, text, now, session_no=sessions[address])
    return len(counts)


def list_places(tx: Transaction, session_no: int) -> list[SessionSource]:
    """List the places of a session's lanes; of the page, where every conversation has a lane of its own, none."""
    return [
        source
        for _, source in lanes.list_on_session(tx, session_no)
        if source.platform not in {Platform.WEB, Platform.API}
    ]


def describe_continuation(source: SessionSource) -> Text:
    return say(
        "notice.continues",
        "This conversation continues {place}. Messages you send here still reach it.",
        place=describe_place(source),
    )


def describe_place(source: SessionSource) -> Text:
    """Say where a chat is: `in your direct messages on Matrix`, `in “Family” on Telegram`, `on the web page`."""
    if source.platform in {Platform.WEB, Platform.API}:
        is_page = source.platform == Platform.WEB
        return say("place.page", "on the web page") if is_page else say("place.app", "in an app")
    if source.platform == Platform.LOCAL:
        return say("place.terminal", "in the terminal")
    platform = source.platform.label
    if source.chat_type is ChatType.DM:
        return say("place.dm", "in your direct messages on {platform}", platform=platform)
    name = quote_text(source.chat_name) if source.chat_name else _CHATS_WITHOUT_NAME[source.chat_type]
    return say("place.chat", "in {name} on {platform}", name=name, platform=platform)


def announce_move(tx: Transaction, session_no: int, source: SessionSource, except_key: str, now: int) -> None:
    """Tell the chats whose lanes are on one person's session that it continues at `source`."""
    text = describe_continuation(source)
    here = find_delivery_address(source)
    others = [
        other
        for key, other in lanes.list_on_session(tx, session_no)
        if key != except_key and find_delivery_address(other) not in {None, here}
    ]
    for other in others[:MAX_NOTIFIED_CHATS]:
        send_notice(tx, other, text, now, session_no=session_no)


def announce_page(tx: Transaction, session_no: int, source: SessionSource, config: GatewayConfig, now: int) -> None:
    """Tell the chat of a session that it continues on the page, if the message before was answered in that chat."""
    last_address = turns.find_last_address(tx, session_no)
    if last_address is None:
        return
    for _, place in lanes.list_on_session(tx, session_no):
        takes_all_chats = config.get_dm_scope(place) is DmScope.PERSON and place.chat_type is ChatType.DM
        if takes_all_chats or str(find_delivery_address(place)) == last_address:
            send_notice_to_address(tx, last_address, describe_continuation(source), now, session_no=session_no)
            return


def _find_preferred(
    tx: Transaction, config: GatewayConfig, person_row: PersonRow, preferred: SessionSource | None, now: int
) -> SessionSource | None:
    """Return the preferred place if it is a chat that the person may still send to."""
    address = None if preferred is None else find_delivery_address(preferred)
    if address is None:
        return None
    try:
        return ReachableChats(tx, person_row.person.principal, config, now).resolve(format_target(address)).source
    except InvalidInput:
        return None


def _get_last_activity(tx: Transaction, config: GatewayConfig, source: SessionSource, now: int) -> float:
    arrival = lanes.Arrival(source=source, config=config, now=from_micros(now), busy_since=lambda _session_id: None)
    row = lanes.find_current_session(tx, lanes.resolve_key(tx, arrival))
    last_human_at = row.session.last_human_at if row else None
    return last_human_at.timestamp() if last_human_at else 0.0
