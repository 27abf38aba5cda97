"""Surfaces: the chats in which a conversation continues, and notices to them when it continues elsewhere.

A conversation is one log. Any number of lanes may be on it, and people may write from all of them; an answer goes to
the chat where the question was asked. So nothing is taken away where a conversation was: people there are told, once,
where it continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown
from palaver.core.source import ChatType, Platform
from palaver.delivery.notices import send_notice, send_notice_to_address
from palaver.sessions import lanes_table as lanes, turns_table as turns
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.keys import DmScope

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.sessions.gateway_config import GatewayConfig

MAX_NOTIFIED_SURFACES = 10

CONTINUES_TEXT = "This conversation continues {place}. Messages you send here still reach it."


def list_surfaces(tx: Transaction, session_no: int) -> list[SessionSource]:
    """List the places of a session's lanes; of the page, where every conversation has a lane of its own, none."""
    return [source for _, source in lanes.list_on_session(tx, session_no) if _is_chat(source)]


def describe_place(source: SessionSource) -> str:
    """Say where a chat is: `in your direct messages on Matrix`, `in “Family” on Telegram`, `on the web page`."""
    if source.platform in {Platform.WEB, Platform.API}:
        return "on the web page" if source.platform == Platform.WEB else "in an app"
    if source.platform == Platform.LOCAL:
        return "in the terminal"
    if source.chat_type is ChatType.DM:
        return f"in your direct messages on {source.platform.label}"
    name = f"“{escape_markdown(source.chat_name)}”" if source.chat_name else f"a {source.chat_type}"
    return f"in {name} on {source.platform.label}"


def announce_move(tx: Transaction, session_no: int, source: SessionSource, except_key: str, now: int) -> int:
    """Tell the chats whose lanes are on one person's session that it continues at `source`; return how many."""
    text = CONTINUES_TEXT.format(place=describe_place(source))
    here = find_delivery_address(source)
    others = [
        other
        for key, other in lanes.list_on_session(tx, session_no)
        if key != except_key and find_delivery_address(other) not in {None, here}
    ]
    for other in others[:MAX_NOTIFIED_SURFACES]:
        send_notice(tx, other, text, now, session_no=session_no)
    return len(others)


def announce_page(tx: Transaction, session_no: int, source: SessionSource, config: GatewayConfig, now: int) -> None:
    """Tell the chat of a session that it continues on the page, if the message before was answered in that chat."""
    last_address = turns.find_last_address(tx, session_no)
    if last_address is None:
        return
    for _, place in lanes.list_on_session(tx, session_no):
        takes_all_chats = config.get_dm_scope(place) is DmScope.PERSON and place.chat_type is ChatType.DM
        if takes_all_chats or str(find_delivery_address(place)) == last_address:
            text = CONTINUES_TEXT.format(place=describe_place(source))
            send_notice_to_address(tx, last_address, text, now, session_no=session_no)
            return


def _is_chat(source: SessionSource) -> bool:
    return source.platform not in {Platform.WEB, Platform.API}
