"""Listening to the conversation that the talk is in, all the time, whichever that is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession, StoreError
from palaver.domain.feed_events import Happened

if TYPE_CHECKING:
    from palaver.cli.chat.chat_session import Talk
    from palaver.domain.feed_events import FeedItem
    from palaver.domain.ids import SessionId

AGAIN_AFTER = 1.0  # seconds, when the store could not be reached
DELETED = "this conversation was deleted; what you say next begins another"


@dataclass(frozen=True, slots=True)
class Moved:
    """From here on another conversation is heard; None when there is none yet."""

    session_id: SessionId | None


@dataclass(frozen=True, slots=True)
class Gone:
    """The conversation is not there any more."""

    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Trouble:
    """It cannot be heard at the moment."""

    text: str


class Ear:
    """What is heard comes out of `next`, in order; what was left behind does not."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._heard: asyncio.Queue[tuple[SessionId | None, FeedItem | Moved | Gone | Trouble]] = asyncio.Queue()
        self._session_id: SessionId | None = None
        self._task: asyncio.Task[None] | None = None

    async def next(self) -> FeedItem | Moved | Gone | Trouble:
        """What is heard next. A message is held back until it is known whether it was said right here."""
        while True:
            session_id, item = await self._heard.get()
            if isinstance(item, Happened):
                async with self._talk.speaking:
                    pass
            if session_id == self._session_id:
                return item

    def turn(self, after: int | None = None) -> None:
        """Listen where the talk is now, if that is another place: from a number of its log, or from now on."""
        session_id = self._talk.session_id
        if session_id == self._session_id:
            return
        self.close()
        self._session_id = session_id
        self._heard.put_nowait((session_id, Moved(session_id)))
        if session_id is not None:
            self._task = asyncio.create_task(self._listen(session_id, after), name="palaver-chat-ear")

    def close(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()

    async def _listen(self, session_id: SessionId, after: int | None) -> None:
        talk = self._talk
        while True:
            try:
                async for item in talk.gateway.feed.follow(talk.owner.principal, session_id, after=after):
                    if isinstance(item, Happened):
                        after = item.event.seq
                    self._heard.put_nowait((session_id, item))
            except NoSuchSession:
                self._heard.put_nowait((session_id, Gone(session_id)))
                return
            except StoreError as error:
                self._heard.put_nowait((session_id, Trouble(str(error))))
                await asyncio.sleep(AGAIN_AFTER)
            else:
                return  # the gateway stops
