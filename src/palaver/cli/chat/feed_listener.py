"""Following the feed of the conversation that the chat is in, also when the chat switches to another one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.errors import SessionNotFound, StoreError
from palaver.live.feed_events import EventAppended, FeedItem

if TYPE_CHECKING:
    from palaver.cli.chat.chat_session import ChatSession
    from palaver.core.ids import SessionId

RETRY_SECONDS = 1.0  # after the store could not be reached
SESSION_DELETED_TEXT = "This conversation was deleted. Your next message starts a new one."


@dataclass(frozen=True, slots=True)
class SessionSwitched:
    """All following items belong to another session."""


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class FeedUnavailable:
    """The store cannot be reached at the moment; the listener tries again."""

    text: str


ListenerItem = FeedItem | SessionSwitched | SessionDeleted | FeedUnavailable


class FeedListener:
    """Follows one session at a time and drops items of sessions that the chat has left."""

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat
        self._items: asyncio.Queue[tuple[SessionId | None, ListenerItem]] = asyncio.Queue()
        self._session_id: SessionId | None = None
        self._task: asyncio.Task[None] | None = None

    async def next_item(self) -> ListenerItem:
        """Wait for the next item. An event is held back until it is known whether it was sent from here."""
        while True:
            session_id, item = await self._items.get()
            if isinstance(item, EventAppended):
                async with self._chat.send_lock:
                    pass
            if session_id == self._session_id:
                return item

    def follow_session(self, after: int | None = None) -> None:
        """Follow the session that the chat is in now: from a number in its log, or from now on."""
        session_id = self._chat.session_id
        if session_id == self._session_id:
            return
        self.close()
        self._session_id = session_id
        self._items.put_nowait((session_id, SessionSwitched()))
        if session_id is not None:
            self._task = asyncio.create_task(self._listen(session_id, after), name="palaver-chat-feed")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _listen(self, session_id: SessionId, after: int | None) -> None:
        chat = self._chat
        while True:
            try:
                async for item in chat.gateway.feed.follow(chat.owner.principal, session_id, after=after):
                    if isinstance(item, EventAppended):
                        after = item.event.seq
                    self._items.put_nowait((session_id, item))
            except SessionNotFound:
                self._items.put_nowait((session_id, SessionDeleted(session_id)))
                return
            except StoreError as error:
                self._items.put_nowait((session_id, FeedUnavailable(str(error))))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return  # the gateway stops
