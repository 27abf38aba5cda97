"""Stores when sign-ins and tokens were last used, behind the requests: none of them waits for it or fails with it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from palaver.core.engines.base import Write
from palaver.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.engines.base import Engine, Transaction

    Mark = Callable[[Transaction, str, int], None]  # writes when a credential was used

MAX_PENDING: Final = 10_000
RETRY_SECONDS: Final = 5.0  # after a failure; uses that come meanwhile are written together

log = logging.getLogger(__name__)


class LastUses:
    """The uses that are not stored yet: one for each credential, written in one transaction at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pending: dict[tuple[Mark, str], int] = {}
        self._task: asyncio.Task[None] | None = None

    def record(self, mark: Mark, credential_id: str, used_at: int) -> None:
        if len(self._pending) < MAX_PENDING:
            self._pending[mark, credential_id] = used_at
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="palaver-last-uses")

    async def _write(self) -> None:
        while self._pending:
            uses, self._pending = self._pending, {}
            try:
                await self._engine.arun(Write(lambda tx, uses=uses: _mark_all(tx, uses)))  # type: ignore[misc]
            except StoreError as error:  # the disk is full, or the database is locked: a later use is written
                log.info("last_uses_not_written", extra={"count": len(uses), "error": error.code})
                await asyncio.sleep(RETRY_SECONDS)


def _mark_all(tx: Transaction, uses: dict[tuple[Mark, str], int]) -> None:
    for (mark, credential_id), used_at in uses.items():
        mark(tx, credential_id, used_at)
