"""Deletes what is no longer needed, as long as a server runs: unused attachments, receipts, old group messages."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import StoreError
from palaver.storage import group_messages, inbound_messages
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.services.attachments import Attachments
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction

CLEANUP_INTERVAL: Final = timedelta(hours=1)
# No platform sends a message again after so long: most give up within a day.
MAX_RECEIPT_AGE: Final = timedelta(days=30)
MAX_GROUP_MESSAGE_AGE: Final = timedelta(days=7)  # of messages that were not for the agent
ROWS_PER_BATCH: Final = 500  # deleted in one transaction, so that no message waits for long
BATCH_PAUSE_SECONDS: Final = 0.05

log = logging.getLogger(__name__)


class Cleanup:
    """Cleans up one store and its attachments."""

    def __init__(self, store: SessionStore, attachments: Attachments) -> None:
        self._store = store
        self._attachments = attachments

    async def run(self) -> None:
        """Clean up regularly until canceled."""
        while True:
            for clean_up in (self._attachments.clean_up, self.delete_old_receipts, self.delete_old_group_messages):
                try:
                    await clean_up()
                except (StoreError, OSError) as error:  # the next round tries again
                    log.warning("cleanup_failed", extra={"error": str(error)})
            await asyncio.sleep(CLEANUP_INTERVAL.total_seconds())

    async def delete_old_receipts(self) -> int:
        """Forget the messages by which we recognize one that is sent again; return how many there were."""
        return await self._delete_in_batches(
            MAX_RECEIPT_AGE, inbound_messages.has_received_before, inbound_messages.delete_received_before
        )

    async def delete_old_group_messages(self) -> int:
        """Forget what was said in groups and not to the agent; return how many messages there were."""
        return await self._delete_in_batches(
            MAX_GROUP_MESSAGE_AGE, group_messages.has_older, group_messages.delete_older
        )

    async def _delete_in_batches(
        self,
        max_age: timedelta,
        has_older: Callable[[Transaction, int], bool],
        delete_older: Callable[[Transaction, int, int], int],
    ) -> int:
        before = to_micros(self._store.clock.now() - max_age)

        def delete(tx: Transaction) -> int:
            return delete_older(tx, before, ROWS_PER_BATCH)

        def try_without_write(tx: Transaction) -> int | None:
            return None if has_older(tx, before) else 0

        total = 0
        while count := await self._store.engine.arun(Write(delete, read_first=try_without_write)):
            total += count
            await asyncio.sleep(BATCH_PAUSE_SECONDS)
        return total
