"""Places for costly work that many people want at once, such as reading a document or verifying a password.

Always true: there are never more holders than places, nor more of one key (a person, an address) than its share, and
those who wait get the next free place in turns, key by key. So one key never keeps the others from all places,
however much it asks for: another key's next wish comes right after the work that is being done. With `min_pause`, a key
also pauses after each piece of work (`core/fair_slots.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from palaver.core.clock import compute_pause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class QueueFull(Exception):
    """Too many with the same key are waiting already."""


class FairSlots:
    """A number of places, of which one key gets at most `per_key` at the same time.

    With `min_pause`, in seconds, a key gets its next place only after a pause; other keys can have it at once.
    """

    def __init__(
        self, total: int, *, per_key: int, max_waiting_per_key: int | None = None, min_pause: float | None = None
    ) -> None:
        self._free = total
        self._per_key = per_key
        self._max_waiting_per_key = max_waiting_per_key
        self._min_pause = min_pause
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the key whose turn is next comes first

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Hold a place inside the block. Raises QueueFull."""
        await self._acquire(key)
        started = time.perf_counter()
        try:
            yield
        finally:
            self._free += 1
            if self._min_pause is not None:
                pause = compute_pause(time.perf_counter() - started, self._min_pause)
                asyncio.get_running_loop().call_later(pause, self._end_hold, key)
                self._give_free_places()
            else:
                self._end_hold(key)

    async def _acquire(self, key: str) -> None:
        if key not in self._waiting and self._free and self._held[key] < self._per_key:
            self._take(key)
            return
        queue = self._waiting.get(key, deque())
        if self._max_waiting_per_key is not None and len(queue) >= self._max_waiting_per_key:
            raise QueueFull
        place = asyncio.get_running_loop().create_future()
        queue.append(place)
        self._waiting[key] = queue
        try:
            await place
        except asyncio.CancelledError:
            self._remove(key, place)
            if not place.cancelled():  # it was given a place at the same moment
                self._free += 1
                self._end_hold(key)
            raise

    def _take(self, key: str) -> None:
        self._free -= 1
        self._held[key] += 1

    def _end_hold(self, key: str) -> None:
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
        self._give_free_places()

    def _give_free_places(self) -> None:
        while self._free:
            key = next((key for key in self._waiting if self._held[key] < self._per_key), None)
            if key is None:
                return
            place = self._waiting[key][0]
            self._remove(key, place)
            if place.cancelled():
                continue
            if key in self._waiting:
                self._waiting[key] = self._waiting.pop(key)  # behind all others
            self._take(key)
            place.set_result(None)

    def _remove(self, key: str, place: asyncio.Future[None]) -> None:
        queue = self._waiting.get(key, deque())
        if place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[key]
