"""Keeps every account on every platform connected; the failure of one never affects another."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.domain.inbound import Inbound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.domain.delivery import AccountKey
    from palaver.domain.inbound import Receipt
    from palaver.domain.platform_updates import AnyUpdate, Cursor
    from palaver.services.inbox import Inbox
    from palaver.services.platforms.adapter import Adapter

log = logging.getLogger(__name__)


class Supervisor:
    """Runs the adapters of this process."""

    def __init__(self, adapters: Sequence[Adapter], inbox: Inbox) -> None:
        self.adapters: Mapping[AccountKey, Adapter] = {
            (adapter.platform, adapter.account): adapter for adapter in adapters
        }
        self._inbox = inbox
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for adapter in self.adapters.values():
            self._tasks.append(asyncio.create_task(adapter.run(_Link(adapter, self._inbox))))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for adapter in self.adapters.values():
            await adapter.close()


class _Link:
    """What an adapter is given to reach the gateway."""

    def __init__(self, adapter: Adapter, inbox: Inbox) -> None:
        self._adapter = adapter
        self._inbox = inbox

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        update = replace(update, source=replace(update.source, account=self._adapter.account))
        assert isinstance(update, Inbound)  # noqa: S101
        return await self._inbox.accept(update)

    async def load_cursor(self, name: str = "") -> str | None:
        return None

    async def save_cursor(self, cursor: Cursor) -> None:
        pass

    async def confirm(self, key: str, message_id: str) -> None:
        pass

    def report_connected(self) -> None:
        pass
