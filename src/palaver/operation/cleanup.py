"""Deletes what is no longer needed, as long as a server runs.

`docs/reference/retention.md` says what bounds every table. Always true: nothing that people wrote or were answered is
deleted, except the conversations of old runs of jobs in which no person has written, those that the operator's
settings under `retention` name, and people whose erasure an owner has begun. Each transaction is small.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.config.agent_rules import TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Transaction, WorkKind, Write, write_kind
from palaver.core.errors import StoreError
from palaver.core.old_rows import OldRows
from palaver.delivery import table as deliveries
from palaver.jobs import table as jobs
from palaver.jobs.firing import PROJECT_NAME
from palaver.jobs.table import ALL_PIECES
from palaver.money import windows_table as budget_windows
from palaver.operation.erasure import Erasures
from palaver.operation.retention import Retention
from palaver.people import erasures_table as erasures
from palaver.sessions import inbound_table as inbound_messages, lanes_table as lanes, shares_table as shares
from palaver.sessions.deletions import clean_search_index, finish_deletions
from palaver.transfer import imports_table as imports
from palaver.transfer.uploads import UPLOADS_FOLDER, ImportUploads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

CLEANUP_INTERVAL: Final = timedelta(hours=1)
DELETION_INTERVAL: Final = timedelta(seconds=5)  # between two looks for rows of what has disappeared
ROWS_PER_BATCH: Final = 500  # deleted in one transaction, so that no message waits for long
RUNS_PER_BATCH: Final = 20  # each with its conversation
BATCH_PAUSE_SECONDS: Final = 0.05

log = logging.getLogger(__name__)


OLD_ROWS: Final[Mapping[str, OldRows]] = {
    **inbound_messages.OLD_ROWS,
    **imports.OLD_ROWS,
    **jobs.OLD_ROWS,
    **budget_windows.OLD_ROWS,
    **deliveries.OLD_ROWS,
    **lanes.OLD_ROWS,
    **erasures.OLD_ROWS,
    **shares.OLD_ROWS,
}


class Cleanup:
    def __init__(
        self,
        store: SessionStore,
        attachments: Attachments,
        get_rules: Callable[[], TurnRules] = TurnRules,
        outputs: Path | None = None,
    ) -> None:
        self._store = store
        self._attachments = attachments
        self._get_rules = get_rules
        self._erasures = Erasures(store, attachments, outputs)
        self._uploads = None if outputs is None else ImportUploads(outputs.parent / UPLOADS_FOLDER, store.clock)
        self._retention = Retention(store, lambda: self._get_rules().retention)

    async def run(self) -> None:
        """Clean up regularly until canceled; what is left of deletions, soon."""
        write_kind.set(WorkKind.BACKGROUND)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(self.run_once, CLEANUP_INTERVAL))
            tasks.create_task(self._repeat(self.finish_deletions, DELETION_INTERVAL))

    async def _repeat(self, clean_up: Callable[[], Awaitable[object]], interval: timedelta) -> None:
        while True:
            try:
                await clean_up()
            except StoreError as error:  # the next round tries again
                log.warning("cleanup_failed", extra={"error": str(error)})
            await asyncio.sleep(interval.total_seconds())

    async def run_once(self) -> None:
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: asyncio.to_thread(self._store.engine.maintain),
            self._erasures.finish_all,
            self._attachments.clean_up,
            *(partial(self.delete_old, kind) for kind in OLD_ROWS),
            self.delete_old_job_runs,
            self._retention.apply_rules,
            self.finish_deletions,
            self.clean_search_index,
        ]
        if self._uploads is not None:
            steps.append(partial(asyncio.to_thread, self._uploads.delete_old))
        for clean_up in steps:
            try:
                await clean_up()
            except (StoreError, OSError) as error:  # the next round tries again
                log.warning("cleanup_failed", extra={"error": str(error)})

    async def finish_deletions(self) -> int:
        """Delete the rows of what has disappeared, such as long conversations; return how many transactions it took."""
        count = await finish_deletions(self._store.engine, ALL_PIECES)
        if count:
            await self.clean_search_index()
        return count

    async def clean_search_index(self) -> int:
        """Let words of deleted messages leave the search index; return how many transactions it took.

        Also wakes the thread that indexes: another process may have left messages that are not indexed.
        """
        self._store.indexer.notify()
        return await clean_search_index(self._store.engine)

    async def delete_old(self, kind: str) -> int:
        return await self._delete_in_batches(OLD_ROWS[kind])

    async def delete_old_job_runs(self) -> int:
        """Delete old runs of jobs with their untouched conversations, and jobs that are over; return how many."""
        keep_days = self._get_rules().jobs.keep_days
        if keep_days == 0:
            return 0
        delete = partial(jobs.delete_old, project_key=PROJECT_NAME.casefold())
        return await self._delete_in_batches(OldRows(timedelta(days=keep_days), jobs.has_old, delete, RUNS_PER_BATCH))

    async def _delete_in_batches(self, rows: OldRows) -> int:
        before = to_micros(self._store.clock.now() - rows.max_age)

        def delete(tx: Transaction) -> int:
            return rows.delete_older(tx, before, rows.batch_size or ROWS_PER_BATCH)

        def try_without_write(tx: Transaction) -> int | None:
            return None if rows.has_older(tx, before) else 0

        total = 0
        while count := await self._store.engine.arun(Write(delete, read_first=try_without_write, frees_space=True)):
            total += count
            await asyncio.sleep(BATCH_PAUSE_SECONDS)
        return total
