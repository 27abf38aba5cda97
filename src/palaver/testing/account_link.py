"""A gateway in memory, as an adapter sees it: it stores what was accepted, and dies when a test says so."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.core.errors import LeaseLost, SendRejected
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, Outcome, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.model import LinkingPrompt


class MemoryInbox:
    """The things that a gateway would store durably. It outlives the connections and the adapters of a test."""

    def __init__(self) -> None:
        self.updates: list[AnyUpdate] = []  # what was accepted; a message that came twice is in it once
        self.duplicate_count = 0
        self.cursors: dict[str, str] = {}  # by name
        self.confirmed: dict[str, str] = {}  # key of a message of ours → the platform's id
        self.failed: dict[str, SendRejected] = {}  # key of a message of ours → why it has not arrived after all
        self.connected_count = 0  # how often the adapter has reported that it receives
        self.linking_prompts: list[LinkingPrompt] = []  # what it has asked the owner to scan or to type
        self._message_keys: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    @property
    def messages(self) -> list[Inbound]:
        """The messages that were accepted, in this order."""
        return [update for update in self.updates if isinstance(update, Inbound)]

    @property
    def texts(self) -> list[str]:
        return [message.content if isinstance(message.content, str) else "" for message in self.messages]

    async def wait_until(self, condition: Callable[[], object], timeout_seconds: float) -> None:
        """Wait until a condition on this inbox is true."""
        async with asyncio.timeout(timeout_seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def note_change(self) -> None:
        self._changed.set()

    def store(self, update: AnyUpdate, cursor: Cursor | None) -> Receipt:
        """Store an update and its cursor, as in one transaction."""
        if cursor is not None:
            self.cursors[cursor.name] = cursor.value
        key = (update.source.chat_id, update.message_id) if isinstance(update, Inbound) and update.message_id else None
        self.note_change()
        if key in self._message_keys:
            self.duplicate_count += 1
            return Receipt(outcome=Outcome.DUPLICATE)
        if key is not None:
            self._message_keys.add(key)
        self.updates.append(update)
        return Receipt(outcome=Outcome.ACCEPTED, seq=len(self.updates))


class Death(StrEnum):
    """When the process of a gateway dies."""

    BEFORE_STORING = "before storing"
    AFTER_STORING = "after storing"


class MemoryLink:
    """An `AccountLink` to a `MemoryInbox`: one for each time that an adapter runs."""

    def __init__(self, inbox: MemoryInbox, *, death: Death | None = None, has_lease: bool = True) -> None:
        self._inbox = inbox
        self._death = death
        self._has_lease = has_lease
        self._ended = asyncio.Event()
        self.reached_death = asyncio.Event()  # set when the process dies: `accept` does not return after that

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        self._check_lease()
        if self._death is Death.BEFORE_STORING:
            await self._die()
        receipt = self._inbox.store(update, cursor)
        if self._death is Death.AFTER_STORING:
            await self._die()
        return receipt

    async def _die(self) -> None:
        self.reached_death.set()
        await self._ended.wait()
        raise LeaseLost

    def _check_lease(self) -> None:
        if not self._has_lease or self._ended.is_set():
            raise LeaseLost

    def end(self) -> None:
        """Refuse everything from now on: `run` has returned, or was canceled."""
        self._ended.set()

    async def load_cursor(self, name: str = "") -> str | None:
        return self._inbox.cursors.get(name)

    async def save_cursor(self, cursor: Cursor) -> None:
        self._check_lease()
        self._inbox.cursors[cursor.name] = cursor.value
        self._inbox.note_change()

    async def confirm(self, key: str, message_id: str) -> None:
        self._inbox.confirmed[key] = message_id
        self._inbox.note_change()

    async def report_failed(self, key: str, error: SendRejected) -> bool:
        self._inbox.failed[key] = error
        self._inbox.note_change()
        return True

    def report_connected(self) -> None:
        self._inbox.connected_count += 1
        self._inbox.note_change()

    def report_linking(self, prompt: LinkingPrompt) -> None:
        self._inbox.linking_prompts.append(prompt)
        self._inbox.note_change()
