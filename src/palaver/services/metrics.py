"""What has ended in the store since the last look, for whoever counts.

Looks a few seconds behind the present, so that what is being stored just now is not passed over.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.storage import metrics
from palaver.storage.engines.base import Read
from palaver.storage.metrics import Counted
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from palaver.services.store import SessionStore

__all__ = ["Counted", "Counting"]

BEHIND = timedelta(seconds=2)


class Counting:
    """Keeps the place up to which everything has been counted."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._mark = self._until()

    async def since_last(self) -> Counted:
        """What has ended since the last time, or since the beginning of this object."""
        after, until = self._mark, max(self._mark, self._until())
        counted = await self._store.engine.arun(Read(lambda tx: metrics.between(tx, after, until)))
        self._mark = until
        return counted

    def _until(self) -> int:
        return to_micros(self._store.clock.now() - BEHIND)
