"""Lets each person download the archive of their data from the page: one at a time, and not all the time."""

from __future__ import annotations

import time
from collections import deque
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Final

from palaver.core.errors import TooManyAttempts
from palaver.core.work_pause import compute_pause

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.core.clock import Clock
    from palaver.core.ids import PersonId
    from palaver.people.model import Principal
    from palaver.transfer.archive import PersonArchives

MAX_EXPORTS_PER_PERIOD: Final = 5
PERIOD: Final = timedelta(hours=1)


class PersonExports:
    """Counts the downloads of this process."""

    def __init__(self, archives: PersonArchives, clock: Clock) -> None:
        self._archives = archives
        self._clock = clock
        self._lock = Lock()
        self._running: set[PersonId] = set()
        self._started: dict[PersonId, deque[datetime]] = {}

    def start(self, principal: Principal) -> Iterator[bytes]:
        """Return the archive of a person, to be read on a thread; raises `TooManyAttempts`."""
        self._check(principal.person_id)
        return self._iterate(principal)

    def _check(self, person_id: PersonId) -> None:
        now = self._clock.now()
        with self._lock:
            self._started = {each: times for each, times in self._started.items() if now - times[-1] < PERIOD}
            if person_id in self._running:
                raise TooManyAttempts(
                    "Your data is being downloaded already. Wait until that download has ended.", retry_after=10
                )
            times = self._started.setdefault(person_id, deque(maxlen=MAX_EXPORTS_PER_PERIOD))
            if len(times) == MAX_EXPORTS_PER_PERIOD and now - times[0] < PERIOD:
                wait = PERIOD - (now - times[0])
                raise TooManyAttempts(
                    f"You have downloaded your data {MAX_EXPORTS_PER_PERIOD} times within an hour. Try again later.",
                    retry_after=wait.total_seconds(),
                )
            times.append(now)

    def _iterate(self, principal: Principal) -> Iterator[bytes]:
        with self._lock:
            self._running.add(principal.person_id)
        try:
            started = time.perf_counter()
            for chunk in self._archives.iterate(principal):
                pause = compute_pause(time.perf_counter() - started)
                yield chunk
                time.sleep(pause)
                started = time.perf_counter()
        finally:
            with self._lock:
                self._running.discard(principal.person_id)
