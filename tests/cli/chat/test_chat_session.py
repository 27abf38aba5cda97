"""Tests of which session a chat is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.cli.chat.chat_session import ChatSession
from palaver.cli.chat.feed_listener import FeedListener, SessionDeleted

if TYPE_CHECKING:
    from support.gateway import StartGateway


async def test_the_deletion_of_an_earlier_session_does_not_end_the_current_one(
    start_gateway: StartGateway,
) -> None:
    gateway = await start_gateway()
    chat = ChatSession(gateway, await gateway.store.aio.get_owner())
    listener = FeedListener(chat)
    deleted = (await chat.send("hello")).session_id
    assert deleted is not None
    listener.follow_session()
    current = (await chat.send("/new")).session_id
    assert current is not None
    await gateway.store.aio.delete_session(deleted)
    while not isinstance(item := await listener.next_item(), SessionDeleted):
        pass
    assert not await chat.leave_session(item.session_id)
    assert chat.session_id == current != deleted
    assert await chat.leave_session(current)
    assert await chat.load_session() is None
    listener.close()
