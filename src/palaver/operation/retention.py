"""Deletes conversations that were not used for long, if the operator wants that; by age, by size, or on request.

Always true: nothing is deleted by default; a conversation goes only when its newest message, and everything else that a
person did in it, is older than the limit; pinned ones, and those in which something runs, waits or is on its way, stay.
Each conversation is deleted in transactions of its own, with everything that a person's own deletion deletes.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from palaver.core.clock import from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, StoreBusy
from palaver.jobs.table import ALL_PIECES
from palaver.operation import retention_table as retention
from palaver.people.model import Principal, check_is_owner
from palaver.sessions.deletions import finish_deletions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from palaver.config.agent_rules import RetentionRules
    from palaver.operation.retention_table import OldSession, Position
    from palaver.sessions.store import SessionStore

ROWS_PER_READ: Final = 200
BATCH_PAUSE_SECONDS: Final = 0.02  # after each deletion, so that messages are stored in between
MIN_AGE_BY_SIZE: Final = timedelta(days=7)  # for lack of space, too, nothing goes that was used in the last days
MEGABYTE: Final = 1_000_000
_AGE = re.compile(r"\s*([1-9][0-9]{0,4})\s*(d|days?|w|weeks?|m|months?|y|years?)?\s*")
_DAYS: Final = {"d": 1, "w": 7, "m": 30, "y": 365}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    sessions: int = 0
    messages: int = 0
    bytes: int = 0  # of the logs, about
    oldest: datetime | None = None  # the last activity of the conversation that was unused for longest
    newest: datetime | None = None
    is_dry_run: bool = False
    is_complete: bool = True  # False: the time was up, and there may be more

    def add(self, session: OldSession, size: int) -> PruneReport:
        active_at = from_micros(session.active_at)
        return replace(
            self,
            sessions=self.sessions + 1,
            messages=self.messages + session.message_count,
            bytes=self.bytes + size,
            oldest=active_at if self.oldest is None else min(self.oldest, active_at),
            newest=active_at if self.newest is None else max(self.newest, active_at),
        )

    def to_dict(self) -> dict[str, object]:
        times = {"oldest": self.oldest, "newest": self.newest}
        return asdict(self) | {name: None if time is None else time.isoformat() for name, time in times.items()}


def parse_age(text: str) -> timedelta:
    """Read an age such as `90d`, `12 weeks` or `1y`; a bare number is days."""
    match = _AGE.fullmatch(text.lower())
    if match is None:
        raise InvalidInput.say(
            "operation.bad_age",
            "{name} is not an age. Use days, weeks, months or years, such as 90d, 12w, 6m or 1y.",
            name=repr(text),
        )
    return timedelta(days=int(match[1]) * _DAYS[(match[2] or "d")[0]])


class Retention:
    def __init__(self, store: SessionStore, get_rules: Callable[[], RetentionRules]) -> None:
        self._store = store
        self._engine = store.engine
        self._get_rules = get_rules  # they may change while a server runs
        self._rewriting = asyncio.Lock()

    @property
    def rules(self) -> RetentionRules:
        return self._get_rules()

    async def prune(
        self,
        principal: Principal,
        age: timedelta,
        *,
        platform: str | None = None,
        dry_run: bool = True,
        time_limit: timedelta | None = None,
    ) -> PruneReport:
        """Delete, or with `dry_run` only count, all people's conversations that were not used for `age`.

        With `time_limit`, it returns after about so long what it has done until then: calling it again goes on. Of long
        conversations, the rows that are left are then deleted by the cleanup of a server.
        """
        check_is_owner(principal)
        before = to_micros(self._store.clock.now() - age)
        end = None if time_limit is None else time.monotonic() + time_limit.total_seconds()
        report = PruneReport(is_dry_run=dry_run)
        async for session in self._iterate_old(before, platform):
            if end is not None and report.sessions > 0 and time.monotonic() >= end:
                return replace(report, is_complete=False)
            report = await self._delete(report, session, before, dry_run=dry_run, finish=end is None)
        return report

    async def rewrite_file(self, principal: Principal) -> int | None:
        check_is_owner(principal)
        if self._rewriting.locked():
            raise StoreBusy("The database file is being rewritten already. Wait until that has finished.")
        async with self._rewriting:
            saved_bytes = await asyncio.to_thread(rewrite_database_file, self._store)
        log.info("database_file_rewritten", extra={"saved_bytes": saved_bytes, "person": principal.person_id})
        return saved_bytes

    async def apply_rules(self) -> PruneReport:
        """Delete what the operator's settings say; returns what has gone."""
        rules, report = self.rules, PruneReport()
        if rules.max_age_days is not None:
            before = to_micros(self._store.clock.now() - timedelta(days=rules.max_age_days))
            async for session in self._iterate_old(before):
                report = await self._delete(report, session, before)
        if rules.max_database_mb is not None:
            report = await self._delete_until_small(report, rules.max_database_mb * MEGABYTE)
        if report.sessions:
            log.info("old_conversations_deleted", extra=report.to_dict())
        return report

    async def measure_database(self) -> int | None:
        """Return how many bytes of the database are in use; None on PostgreSQL."""
        return await self._engine.arun(Read(retention.measure_database, is_long=True))

    async def _delete_until_small(self, report: PruneReport, max_bytes: int) -> PruneReport:
        size = await self.measure_database()
        if size is None:
            log.warning("retention_size_ignored", extra={"reason": "PostgreSQL does not tell how much is in use"})
            return report
        if size <= max_bytes:
            return report
        before = to_micros(self._store.clock.now() - MIN_AGE_BY_SIZE)
        async for session in self._iterate_old(before):
            report = await self._delete(report, session, before)
            size = await self.measure_database()
            if size is None or size <= max_bytes:
                return report
        log.warning("database_above_limit", extra={"bytes": size, "limit_bytes": max_bytes})
        return report

    async def _iterate_old(self, before: int, platform: str | None = None) -> AsyncIterator[OldSession]:
        """Yield the conversations that may be deleted, those that were unused for longest first."""
        position: Position | None = retention.START
        while position is not None:
            read = partial(retention.list_old, before=before, after=position, limit=ROWS_PER_READ, platform=platform)
            found, position = await self._engine.arun(Read(read))
            for session in found:
                if self._store.get_busy_since(session.id) is None:
                    yield session

    async def _delete(
        self, report: PruneReport, session: OldSession, before: int, *, dry_run: bool = False, finish: bool = True
    ) -> PruneReport:
        size = await self._engine.arun(Read(lambda tx: retention.measure_session(tx, session.no)))
        if not dry_run:
            work = Write(partial(retention.delete_if_unused, session_no=session.no, before=before), frees_space=True)
            deleted = await self._engine.arun(work)
            if finish:
                await finish_deletions(self._engine, ALL_PIECES)
            await asyncio.sleep(BATCH_PAUSE_SECONDS)
            if not deleted:  # it is used again
                return report
        return report.add(session, size)


def rewrite_database_file(store: SessionStore) -> int | None:
    """Rewrite a SQLite file, so that it has no bytes of what was deleted; writers wait. None on PostgreSQL.

    Returns how many bytes smaller it is.
    """
    from palaver.core.engines.sqlite import SqliteEngine  # neither is needed on PostgreSQL
    from palaver.core.engines.sqlite_backup import rewrite_file

    return rewrite_file(store.engine.path) if isinstance(store.engine, SqliteEngine) else None
