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
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.config.agent_rules import TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Transaction, WorkKind, Write, write_kind
from palaver.core.errors import StoreError
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
from palaver.sessions.share import MAX_EXPIRED_AGE
from palaver.transfer import imports_table as imports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

CLEANUP_INTERVAL: Final = timedelta(hours=1)
DELETION_INTERVAL: Final = timedelta(seconds=5)  # between two looks for rows of what has disappeared
# No platform sends a message again after so long: most give up within a day.
MAX_RECEIPT_AGE: Final = timedelta(days=30)
MAX_GROUP_MESSAGE_AGE: Final = timedelta(days=7)  # of messages that were not for the agent
MAX_PROPOSAL_AGE: Final = timedelta(days=7)  # of jobs that wait for a person's confirmation
MAX_SENT_BODY_AGE: Final = timedelta(days=30)  # nothing is sent again after so long without being rendered again
MAX_NOTICE_AGE: Final = timedelta(days=30)  # of messages outside of conversations: no platform reports on them later
MAX_UNDONE_AGE: Final = timedelta(days=30)  # of moves of a chat that were undone with /restore
MAX_UNFINISHED_IMPORT_AGE: Final = timedelta(days=30)  # after that, it is not expected to be run again
MAX_REPORT_AGE: Final = timedelta(days=400)  # of erasures: only numbers
MAX_WINDOW_AGE: Final = timedelta(days=400)  # of budgets: a year and a month can be looked at
ROWS_PER_BATCH: Final = 500  # deleted in one transaction, so that no message waits for long
RUNS_PER_BATCH: Final = 20  # each with its conversation
BATCH_PAUSE_SECONDS: Final = 0.05

log = logging.getLogger(__name__)


class _OldRows(NamedTuple):
    """Rows that are deleted when they are old."""

    max_age: timedelta
    has_older: Callable[[Transaction, int], bool]
    delete_older: Callable[[Transaction, int, int], int]
    batch_size: int | None = None


_OLD_ROWS: Final = {
    # The messages by which we recognize one that is sent again.
    "receipts": _OldRows(
        MAX_RECEIPT_AGE, inbound_messages.has_received_before, inbound_messages.delete_received_before
    ),
    # What was said in groups and not to the agent.
    "group_messages": _OldRows(MAX_GROUP_MESSAGE_AGE, inbound_messages.has_older, inbound_messages.delete_older),
    # What an import has left that was interrupted and never run again.
    "unfinished_imports": _OldRows(
        MAX_UNFINISHED_IMPORT_AGE, imports.has_unfinished, imports.delete_unfinished, RUNS_PER_BATCH
    ),
    # Jobs, and changes of jobs, that were not confirmed.
    "proposals": _OldRows(MAX_PROPOSAL_AGE, jobs.has_expired, jobs.delete_expired),
    # What was used in days and months long ago; the usage itself stays.
    "budget_windows": _OldRows(MAX_WINDOW_AGE, budget_windows.has_older, budget_windows.delete_older),
    # The rendered texts of messages that were sent: the answers are in the log.
    "sent_bodies": _OldRows(MAX_SENT_BODY_AGE, deliveries.has_sent_body_before, deliveries.empty_sent_bodies),
    # What was sent to chats outside of conversations, such as notices.
    "notices": _OldRows(MAX_NOTICE_AGE, deliveries.has_ended_notice_before, deliveries.delete_ended_notices),
    # Moves of lanes that were undone: nothing undoes them again.
    "undone_moves": _OldRows(MAX_UNDONE_AGE, lanes.has_move_undone_before, lanes.delete_undone_moves),
    # The numbers of people who were erased.
    "erasure_reports": _OldRows(MAX_REPORT_AGE, erasures.has_ended_before, erasures.delete_ended_before),
    # Copies whose links have expired.
    "expired_shares": _OldRows(MAX_EXPIRED_AGE, shares.has_expired_before, shares.delete_expired_before),
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
            *(partial(self.delete_old, kind) for kind in _OLD_ROWS),
            self.delete_old_job_runs,
            self._retention.apply_rules,
            self.finish_deletions,
            self.clean_search_index,
        ]
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
        """Delete the old rows of one kind; return how many there were."""
        return await self._delete_in_batches(_OLD_ROWS[kind])

    async def delete_old_job_runs(self) -> int:
        """Delete old runs of jobs with their untouched conversations, and jobs that are over; return how many."""
        keep_days = self._get_rules().jobs.keep_days
        if keep_days == 0:
            return 0
        delete = partial(jobs.delete_old, project_key=PROJECT_NAME.casefold())
        return await self._delete_in_batches(_OldRows(timedelta(days=keep_days), jobs.has_old, delete, RUNS_PER_BATCH))

    async def _delete_in_batches(self, rows: _OldRows) -> int:
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
