"""The expiry watcher: ends conversations when their reset policy runs out, rather than with the next message.

One process per database does it, by a lease. That only saves work: each session is checked again in the transaction
that ends it (`sessions/expiry_table.py`), so two watchers, or a watcher and a message, never do it twice. Without a
watcher, the next message does the same (`sessions/lanes_table.py`).

Always true: a session is looked at once or twice for each policy after its last activity, however many there are; those
that continue for good, because a lane without a policy is on them, cost nothing until the next complete pass.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from palaver.core.background import NamedLease, PollLoop
from palaver.core.clock import from_micros, to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, Write
from palaver.memory.model import MemoryTurnKind
from palaver.memory.queue import queue_memory_turn
from palaver.sessions import expiry_table as expiry, table as sessions
from palaver.sessions.expiry_table import ExpiryOutcome, PlaceType, Position
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.sessions.policy import ResetPolicy, compute_reset_cutoff, compute_reset_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from palaver.agent.profiles import CurrentSettings
    from palaver.sessions.store import SessionStore

LEASE_NAME: Final = "expiry"
LEASE_TIME: Final = timedelta(minutes=3)
MAX_WAIT_SECONDS: Final = 60.0  # between two looks at the clock, which can be set and may stand still
MIN_WAIT_SECONDS: Final = 1.0
SESSIONS_PER_READ: Final = 200
MAX_PINNED: Final = 10_000  # remembered, to look at them again; more of them wait for the next complete pass
COMPLETE_PASS_INTERVAL: Final = timedelta(days=1)  # finds what has expired since a lane has left it

log = logging.getLogger(__name__)


class ExpiryWatcher:
    def __init__(
        self, store: SessionStore, settings: CurrentSettings, *, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._settings = settings
        self._on_change = on_change  # called when there may be something to learn from
        self._lease = NamedLease(store.engine, store.clock, LEASE_NAME, LEASE_TIME)
        self._policies = store.config.list_active_policies()
        # How far each range of the index has been looked through, for each policy.
        self._positions: dict[tuple[ResetPolicy, PlaceType], Position] = {}
        self._pinned: dict[int, None] = {}  # numbers of sessions
        self._pass_started_at: datetime | None = None
        self._last_run_at: datetime | None = None
        self._loop = PollLoop(
            self.run_once,
            "palaver-expiry",
            log=log,
            failure_event="expiry_failed",
            is_needed=lambda: bool(self._policies),  # conversations are reset somewhere
        )

    async def start(self) -> None:
        self._loop.start()

    def reload_policies(self) -> None:
        """Apply the reset policies of the store. With other policies, all is looked at again."""
        policies = self._store.config.list_active_policies()
        if policies != self._policies:
            self._policies = policies
            self._positions = {}
            self._pass_started_at = None
        self.wake()

    async def stop(self) -> None:
        """Finish with the session in hand, and let another process watch."""
        was_running = self._loop.is_running
        await self._loop.stop()
        if was_running:
            await self._lease.release()

    def wake(self) -> None:
        self._loop.wake()

    async def run_once(self) -> float:
        """End what has expired, if this process is the one to do it; return the seconds until the next time."""
        if not self._policies or not await self._lease.take():
            return MAX_WAIT_SECONDS
        now = self._store.clock.now()
        if self._should_start_pass(now):
            self._positions.clear()
            self._pass_started_at = now
        self._last_run_at = now
        ended_count = 0
        for session_no in list(self._pinned):
            ended_count += await self._check(session_no)
        async for session_no in self._iterate_silent_sessions(now):
            ended_count += await self._check(session_no)
        if ended_count:
            log.info("sessions_expired", extra={"count": ended_count})
            self._on_change()
        return await self._store.engine.arun(Read(self._compute_wait))

    def _should_start_pass(self, now: datetime) -> bool:
        """Return whether to look at all sessions again: once in a while, and when the clock was set back."""
        if self._pass_started_at is None or self._last_run_at is None or now < self._last_run_at:
            return True
        return now - self._pass_started_at >= COMPLETE_PASS_INTERVAL

    async def _iterate_silent_sessions(self, now: datetime) -> AsyncIterator[int]:
        """Yield the numbers of open sessions that have become silent for long enough since the last time."""
        for place_type in await self._store.engine.arun(Read(_list_place_types)):
            for policy in self._policies:
                cutoff = to_micros(compute_reset_cutoff(policy, now) or now)
                key = policy, place_type
                while batch := await self._read_batch(place_type, self._positions.get(key, expiry.START), cutoff):
                    for each in batch:
                        if self._loop.is_stopping:
                            return
                        if each.is_silent:
                            yield each.position.session_no
                        self._positions[key] = each.position
                    await self._bring_up_to_date([each.position.session_no for each in batch if not each.is_silent])
                    if len(batch) < SESSIONS_PER_READ:
                        break
                    if not await self._lease.take():
                        return

    async def _read_batch(self, place_type: PlaceType, after: Position, cutoff: int) -> list[expiry.OpenSession]:
        read = Read(lambda tx: expiry.list_open_sessions(tx, place_type, after, cutoff, SESSIONS_PER_READ))
        return await self._store.engine.arun(read)

    async def _bring_up_to_date(self, session_nos: list[int]) -> None:
        if not session_nos:
            return

        def find_nothing(tx: Transaction) -> bool | None:
            return None if expiry.has_any_behind(tx, session_nos) else True

        def run(tx: Transaction) -> bool:
            expiry.bring_up_to_date(tx, session_nos)
            return True

        await self._store.engine.arun(Write(run, read_first=find_nothing))

    async def _check(self, session_no: int) -> bool:
        """End a session if it has expired and nothing pins it; return whether it was ended now."""
        now = self._store.clock.now()

        def end(tx: Transaction) -> ExpiryOutcome:
            row = sessions.find_by_no(tx, session_no, tx.for_update)
            checked = expiry.check_session(tx, self._store.config, row, now, self._store.get_busy_since)
            if isinstance(checked, ExpiryOutcome):
                return checked
            sessions.end_on_lanes(tx, session_no, checked, to_micros(now))
            queue_memory_turn(tx, self._settings.rules, session_no, MemoryTurnKind.EXPIRY, to_micros(now))
            return ExpiryOutcome.ENDED

        def try_without_write(tx: Transaction) -> ExpiryOutcome | None:
            row = sessions.find_by_no(tx, session_no)
            checked = expiry.check_session(tx, self._store.config, row, now, self._store.get_busy_since)
            return checked if isinstance(checked, ExpiryOutcome) else None

        crash_point("expiry.before_end")
        outcome = await self._store.engine.arun(Write(end, read_first=try_without_write))
        crash_point("expiry.ended")
        if outcome is ExpiryOutcome.CONTINUES:
            await self._bring_up_to_date([session_no])
        if outcome is not ExpiryOutcome.PINNED:
            self._pinned.pop(session_no, None)
        elif len(self._pinned) < MAX_PINNED:
            self._pinned[session_no] = None
        return outcome is ExpiryOutcome.ENDED

    def _compute_wait(self, tx: Transaction) -> float:
        """Return the seconds until the next session may expire."""
        now = self._store.clock.now()
        wait = MAX_WAIT_SECONDS
        for place_type in _list_place_types(tx):
            for policy in self._policies:
                since = to_micros(compute_reset_cutoff(policy, now) or now)
                base = expiry.find_first_base(tx, place_type, since)
                due_at = None if base is None else compute_reset_time(policy, from_micros(base))
                if due_at is not None:
                    wait = min(wait, (due_at - now).total_seconds())
        return max(wait, MIN_WAIT_SECONDS)


def _list_place_types(tx: Transaction) -> list[PlaceType]:
    return [each for each in expiry.list_place_types(tx) if each.platform not in MULTI_SESSION_PLATFORMS]
