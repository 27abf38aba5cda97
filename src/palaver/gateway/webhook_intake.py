"""Accepts the updates of requests to a webhook, and says in time whether all of them are stored.

A platform waits only seconds for its answer, and the download of a file may take longer. Such an update is accepted in
the background; the request is not answered with a success, and the one that the platform sends again finds it done.
Each chat keeps its order: a message must not overtake the file before it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.core.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from palaver.delivery.adapter import AccountLink
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.platform_updates import AnyUpdate, Cursor

    OnAccepted = Callable[[AnyUpdate, Receipt], Awaitable[None]]

log = logging.getLogger(__name__)

ACCEPT_SECONDS: Final = 15.0  # for one request; platforms do not wait much longer


@dataclass(slots=True)
class _ChatLock:
    """The lock of a chat, and how many requests use it or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class WebhookIntake:
    """Accepts what arrives at the webhook of one adapter."""

    def __init__(self, on_accepted: OnAccepted | None = None) -> None:
        self._on_accepted = on_accepted
        self._tasks: set[asyncio.Task[None]] = set()
        self._chat_locks: dict[str, _ChatLock] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being accepted."""
        return not self._tasks and not self._chat_locks

    async def accept(self, link: AccountLink, updates: Sequence[AnyUpdate], *, cursor: Cursor | None = None) -> bool:
        """Accept the updates of a request; return False if it takes too long.

        The cursor is stored with the last update, unless updates of other chats or of earlier requests are still being
        accepted: it must not run ahead of them. Raises what `AccountLink.accept` raises.
        """
        chats: dict[str, list[AnyUpdate]] = {}
        for update in updates:
            chats.setdefault(update.source.chat_id, []).append(update)
        if not chats:
            return True
        if self._tasks or len(chats) > 1:
            cursor = None
        tasks = {asyncio.create_task(self._accept_chat(link, own, cursor)) for own in chats.values()}
        self._tasks |= tasks
        for task in tasks:
            task.add_done_callback(self._end_task)
        done, pending = await asyncio.wait(tasks, timeout=ACCEPT_SECONDS)
        errors = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
        if errors:
            raise next((each for each in errors if isinstance(each, LeaseLost)), errors[0])
        return not pending and not any(task.cancelled() for task in done)

    async def close(self) -> None:
        """Stop accepting. The platform sends again what is not stored."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("webhook_update_not_accepted", extra={"reason": repr(error)})

    async def _accept_chat(self, link: AccountLink, updates: Sequence[AnyUpdate], cursor: Cursor | None) -> None:
        async with self._lock_chat(updates[0].source.chat_id):
            for update in updates:
                receipt = await link.accept(update, cursor=cursor if update is updates[-1] else None)
                if self._on_accepted is not None:
                    await self._on_accepted(update, receipt)

    @asynccontextmanager
    async def _lock_chat(self, chat_id: str) -> AsyncIterator[None]:
        lock = self._chat_locks.setdefault(chat_id, _ChatLock())
        lock.users += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                del self._chat_locks[chat_id]
