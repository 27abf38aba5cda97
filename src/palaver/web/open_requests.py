"""Requests in progress: how many each person may have, and which live stream makes room for another.

Always true: one person has never more than an eighth of all connections in use, and far fewer live streams; all live
streams together leave a quarter of the connections to other requests. A person's new stream takes the place of their
oldest one, unless that is young: with more open tabs than places, each tab reconnects now and then, and not all the
time. If there are as many streams as there may be, a person gets a place from the one who has most, as long as that
makes the two more equal. Only live streams make room for others: their clients come back and miss nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.web.errors import TooManyRequests, TooManyStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver.core.ids import PersonId

MAX_STREAMS_PER_PERSON: Final = 64
MIN_PLACES: Final = 4  # for each person, however few connections there are
MIN_STREAM_SECONDS: Final = 60.0  # a younger stream does not make room for another one of its person
RETRY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The numbers of requests that may be in progress at once."""

    per_person: int
    streams: int  # of all people together
    streams_per_person: int

    @classmethod
    def from_connections(cls, total: int) -> RequestLimits:
        """Derive the limits from the number of connections that there may be."""
        streams_per_person = max(MIN_PLACES, min(MAX_STREAMS_PER_PERSON, total // 16))
        return cls(
            per_person=max(2 * MIN_PLACES, total // 8),
            streams=max(MIN_PLACES, total * 3 // 4),
            streams_per_person=streams_per_person,
        )


class LiveStreamPlace:
    def __init__(self, person_id: PersonId, opened_at: float) -> None:
        self.person_id = person_id
        self.opened_at = opened_at
        self._is_taken_away = False
        self._close: Callable[[], None] = lambda: None

    def on_taken_away(self, close: Callable[[], None]) -> None:
        """Call `close` when another stream needs this place; at once if that has happened already."""
        self._close = close
        if self._is_taken_away:
            close()

    def take_away(self) -> None:
        self._is_taken_away = True
        self._close()


class OpenRequests:
    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._counts: dict[PersonId, int] = {}
        self._streams: dict[PersonId, dict[LiveStreamPlace, None]] = {}  # the oldest first
        self._stream_count = 0

    @contextlib.contextmanager
    def hold_request(self, person_id: PersonId) -> Iterator[None]:
        """Count a request of a person inside the block; raises `TooManyRequests`."""
        count = self._counts.get(person_id, 0)
        if count >= self._limits.per_person:
            raise TooManyRequests(
                f"You have {count} requests in progress, which is the limit. Wait until some of them have ended.",
                retry_after=RETRY_SECONDS,
                limit=self._limits.per_person,
            )
        self._counts[person_id] = count + 1
        try:
            yield
        finally:
            self._counts[person_id] -= 1
            if not self._counts[person_id]:
                del self._counts[person_id]

    @contextlib.contextmanager
    def hold_stream(self, person_id: PersonId) -> Iterator[LiveStreamPlace]:
        """Hold a place for a live stream inside the block; raises `TooManyStreams`."""
        self._make_room(person_id)
        place = LiveStreamPlace(person_id, asyncio.get_running_loop().time())
        self._streams.setdefault(person_id, {})[place] = None
        self._stream_count += 1
        try:
            yield place
        finally:
            self._remove(place)

    def _make_room(self, person_id: PersonId) -> None:
        own = self._streams.get(person_id, {})
        if len(own) >= self._limits.streams_per_person:
            oldest = next(iter(own))
            wait = oldest.opened_at + MIN_STREAM_SECONDS - asyncio.get_running_loop().time()
            if wait > 0:
                raise TooManyStreams(
                    f"You have {len(own)} live streams open, which is the limit. Close some pages or programs that"
                    " use them.",
                    retry_after=min(wait, RETRY_SECONDS),
                    limit=self._limits.streams_per_person,
                )
            self._take_away(oldest)
        elif self._stream_count >= self._limits.streams:
            most = max(self._streams.values(), key=len)
            if len(most) <= len(own) + 1:
                raise TooManyStreams(
                    "This server has as many live streams open as it can. Try again in a moment.",
                    retry_after=RETRY_SECONDS,
                    limit=self._limits.streams,
                )
            self._take_away(next(iter(most)))

    def _take_away(self, place: LiveStreamPlace) -> None:
        self._remove(place)
        place.take_away()

    def _remove(self, place: LiveStreamPlace) -> None:
        places = self._streams.get(place.person_id, {})
        if place in places:
            del places[place]
            self._stream_count -= 1
            if not places:
                del self._streams[place.person_id]
