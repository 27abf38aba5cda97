"""Makes backups of a SQLite store while a server runs, as often as the settings say, and deletes old ones.

One process does it, by a lease. The newest backup in the folder says when the next one is due, whichever process or
person has made it. The work runs on a thread, in small steps: nothing waits for it. A new server waits a while before
its first backup, so that its start is quick, and one that is started for a moment makes none.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from palaver.core import leases as named_leases
from palaver.core.engines.base import Write
from palaver.core.errors import BackupStopped, PalaverError
from palaver.core.process_identity import create_lease_owner, is_owner_dead
from palaver.core.timestamps import to_micros
from palaver.operation.backups import BackupRequest, delete_old_backups, list_backups

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.config.backup_rules import BackupRules
    from palaver.core.engines.base import Transaction
    from palaver.sessions.store import SessionStore

LEASE_NAME: Final = "backup"
LEASE_TIME: Final = timedelta(minutes=15)
FIRST_WAIT_SECONDS: Final = 600.0
MAX_WAIT_SECONDS: Final = 600.0  # between two looks at the clock; shorter than the lease

log = logging.getLogger(__name__)


class BackupScheduler:
    """Makes the backups of one store."""

    def __init__(self, store: SessionStore, database: Path, home: Path, rules: BackupRules) -> None:
        self._store = store
        self._database = database
        self._home = home
        self._rules = rules
        self._owner = create_lease_owner()
        self._stop = threading.Event()

    async def run(self, first_wait: float = FIRST_WAIT_SECONDS) -> None:
        """Make backups until canceled; a backup that is being made then is given up, and nothing is left of it."""
        if self._rules.every_hours == 0:
            return
        wait = first_wait
        try:
            while True:
                await asyncio.sleep(wait)
                wait = await self.run_once()
        finally:
            self._stop.set()

    async def run_once(self) -> float:
        """Make a backup if one is due and this process is the one to do it; return the seconds until the next look."""
        try:
            due_in = await asyncio.to_thread(self._compute_wait)
            if due_in > 0:
                return min(due_in, MAX_WAIT_SECONDS)
            if await self._take_lease():
                await asyncio.to_thread(self._make_backup)
                await self._store.engine.arun(Write(lambda tx: named_leases.release(tx, LEASE_NAME, self._owner)))
        except BackupStopped:
            pass
        except (PalaverError, OSError) as error:
            log.error("backup_failed", extra={"error": str(error)})
        return MAX_WAIT_SECONDS

    def _compute_wait(self) -> float:
        """Return the seconds until the next backup is due; less than one if it is due now."""
        backups = list_backups(self._database)
        if not backups:
            return 0.0
        age = self._store.clock.now() - backups[0].created_at
        return (timedelta(hours=self._rules.every_hours) - age).total_seconds()

    async def _take_lease(self) -> bool:
        now = to_micros(self._store.clock.now())
        until = now + LEASE_TIME // timedelta(microseconds=1)

        def take(tx: Transaction) -> bool:
            return named_leases.take(tx, LEASE_NAME, self._owner, until, now, is_owner_dead)

        return await self._store.engine.arun(Write(take))

    def _make_backup(self) -> None:
        if self._compute_wait() > 0:  # another process was faster
            return
        backup = BackupRequest(self._database, self._home, should_stop=self._stop.is_set).run()
        deleted = delete_old_backups(self._database, self._rules.keep)
        log.info(
            "backup_made",
            extra={"path": str(backup.path), "bytes": backup.manifest.database_bytes, "deleted": len(deleted)},
        )
        if backup.manifest.missing_attachments:
            log.warning("backup_incomplete", extra={"missing_files": len(backup.manifest.missing_attachments)})
