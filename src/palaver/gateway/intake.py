"""Accepts updates of many chats at once, so that no person waits for another person's file.

A message with files is accepted only when they are downloaded, which takes as long as the platform wants; a command may
have to make a file for its reply. So such messages are accepted in the background, while other chats go on. Each chat
keeps its order: what follows such a message in its chat waits for it.

Always true: a cursor is stored only when everything before it is stored. If the process dies, the platform sends the
rest again, and what was stored already is recognized.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import field
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import LeaseLost
from palaver.core.tasks import cancel_tasks, wait_for_event
from palaver.inbox.registry import REGISTRY
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, Receipt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from palaver.delivery.adapter import AccountLink

    OnAccepted = Callable[[AnyUpdate, Receipt], Awaitable[None]]

MAX_WAITING_UPDATES: Final = 100  # accepted in the background; then the next one waits
ACCEPT_SECONDS: Final = 15.0  # for one request to a webhook; platforms do not wait much longer

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Update:
    """An update that was given to the intake, in the order of the platform."""

    update: AnyUpdate
    cursors: dict[str, Cursor]  # by name: those that may be stored after it
    is_stored: bool = False
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Intake:
    """Accepts the updates of one connection; use it as a context manager inside `Adapter.run`."""

    def __init__(self, link: AccountLink, on_accepted: OnAccepted | None = None) -> None:
        self._link = link
        self._on_accepted = on_accepted
        self._updates: deque[_Update] = deque()  # from the first that is not stored on
        self._last_in_chat: dict[str, _Update] = {}  # that is accepted in the background
        self._storing = asyncio.Lock()  # of cursors, one after the other
        self._changed = asyncio.Event()
        self._error: BaseException | None = None
        self.cursor: str | None = None  # the last one without a name that was stored

    @property
    def is_busy(self) -> bool:
        """Whether an update is being accepted in the background."""
        return bool(self._updates)

    async def __aenter__(self) -> Intake:
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel_tasks(each.task for each in self._updates if each.task is not None)

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> None:
        """Accept an update, or begin to. Raises what an earlier one has raised in the background."""
        self._raise_error()
        while len(self._updates) >= MAX_WAITING_UPDATES:
            await self.wait_for_change()
        previous = self._last_in_chat.get(update.source.chat_id)
        waits = previous is not None or _takes_long(update)
        if not waits and not self._updates:
            await self._accept_now(update, cursor)
            self._record_cursor(cursor)
            return
        entry = _Update(update, {cursor.name: cursor} if cursor else {})
        self._updates.append(entry)
        if waits:
            self._last_in_chat[update.source.chat_id] = entry
            entry.task = asyncio.create_task(self._accept_later(entry, previous), name="palaver-intake")
            return
        await self._accept_now(update, None)
        entry.is_stored = True
        await self._store_cursors()

    async def save_cursor(self, cursor: Cursor) -> None:
        """Store a cursor, as soon as everything before it is stored."""
        self._raise_error()
        if self._updates:
            self._updates[-1].cursors[cursor.name] = cursor
        else:
            await self._link.save_cursor(cursor)
            self._record_cursor(cursor)

    async def wait_for_change(self, seconds: float | None = None) -> None:
        """Wait until an update was accepted in the background, at most so long. Raises what it has raised."""
        self._raise_error()
        self._changed.clear()
        await wait_for_event(self._changed, seconds)
        self._raise_error()

    async def watch(self) -> None:
        """Raise what fails in the background, also while nothing new arrives. It runs beside the receiving itself."""
        while True:
            await self.wait_for_change()

    async def wait_until_stored(self) -> None:
        while self._updates:
            await self.wait_for_change()
        self._raise_error()

    async def _accept_now(self, update: AnyUpdate, cursor: Cursor | None) -> None:
        receipt = await self._link.accept(update, cursor=cursor)
        if self._on_accepted is not None:
            await self._on_accepted(update, receipt)

    async def _accept_later(self, entry: _Update, previous: _Update | None) -> None:
        try:
            if previous is not None and previous.task is not None:
                await asyncio.wait({previous.task})
            if self._error is not None:
                return  # what came before it is not stored
            await self._accept_now(entry.update, None)
            entry.is_stored = True
            if self._last_in_chat.get(entry.update.source.chat_id) is entry:
                del self._last_in_chat[entry.update.source.chat_id]
            await self._store_cursors()
        except Exception as error:  # noqa: BLE001  (raised where the adapter waits)
            self._error = self._error or error
        finally:
            self._changed.set()

    async def _store_cursors(self) -> None:
        """Store the cursors of the last updates before which everything is stored."""
        async with self._storing:
            cursors: dict[str, Cursor] = {}
            while self._updates and self._updates[0].is_stored:
                cursors |= self._updates.popleft().cursors
            for cursor in cursors.values():
                await self._link.save_cursor(cursor)
                self._record_cursor(cursor)

    def _record_cursor(self, cursor: Cursor | None) -> None:
        if cursor is not None and not cursor.name:
            self.cursor = cursor.value

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _takes_long(update: AnyUpdate) -> bool:
    """Whether others must not wait for an update: its files have to be downloaded, or a file is made for its reply."""
    if not isinstance(update, Inbound):
        return False
    return bool(update.files) or (isinstance(update.content, str) and REGISTRY.makes_file(update.content))


class WebhookIntake:
    """Accepts the updates of requests to a webhook, and says in time whether all of them are stored.

    A platform waits only seconds for its answer, and the download of a file may take longer. Such an update is accepted
    in the background; the request is not answered with a success, and the one that the platform sends again finds it
    done. Each chat keeps its order: a message must not overtake the file before it.
    """

    def __init__(self, on_accepted: OnAccepted | None = None) -> None:
        self._on_accepted = on_accepted
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_in_chat: dict[str, asyncio.Task[None]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being accepted."""
        return not self._tasks

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
        tasks = {self._start(link, chat_id, own, cursor) for chat_id, own in chats.items()}
        done, pending = await asyncio.wait(tasks, timeout=ACCEPT_SECONDS)
        errors = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
        if errors:
            raise next((each for each in errors if isinstance(each, LeaseLost)), errors[0])
        return not pending and not any(task.cancelled() for task in done)

    async def close(self) -> None:
        """Stop accepting. The platform sends again what is not stored."""
        await cancel_tasks(self._tasks)

    def _start(
        self, link: AccountLink, chat_id: str, updates: Sequence[AnyUpdate], cursor: Cursor | None
    ) -> asyncio.Task[None]:
        """Accept the updates of a chat, after those of earlier requests."""

        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if self._last_in_chat.get(chat_id) is task:
                del self._last_in_chat[chat_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                log.info("webhook_update_not_accepted", extra={"reason": repr(error)})

        previous = self._last_in_chat.get(chat_id)
        task = asyncio.create_task(self._accept_chat(link, updates, cursor, previous))
        self._tasks.add(task)
        self._last_in_chat[chat_id] = task
        task.add_done_callback(end)
        return task

    async def _accept_chat(
        self,
        link: AccountLink,
        updates: Sequence[AnyUpdate],
        cursor: Cursor | None,
        previous: asyncio.Task[None] | None,
    ) -> None:
        if previous is not None:
            await asyncio.wait({previous})
        for update in updates:
            receipt = await link.accept(update, cursor=cursor if update is updates[-1] else None)
            if self._on_accepted is not None:
                await self._on_accepted(update, receipt)
