"""The outbox: brings what is to be delivered to its address, in order, and never silently twice.

A delivery is marked as being sent, durably, before it is handed to its adapter. If the process dies between that and
the platform's answer, nobody knows whether it arrived: a platform that knows deliveries by their key gets it again,
any other one does not, and the delivery is shown as uncertain.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain import crash_points
from palaver.domain.delivery import MOST_ATTEMPTS, DeliveryState, delay_before
from palaver.domain.errors import (
    DeliveryError,
    LeaseLost,
    SendLater,
    SendRejected,
    SendUncertain,
    StoreError,
    TargetGone,
)
from palaver.services.poll_loop import keep_looking
from palaver.services.process_identity import is_dead, new_owner
from palaver.storage import deliveries
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.delivery import Delivery
    from palaver.domain.source import Platform
    from palaver.services.live.feed import Feed
    from palaver.services.ports import Adapter
    from palaver.services.store import SessionStore
    from palaver.storage.deliveries import Sending
    from palaver.storage.engines.base import Transaction

AT_ONCE = 16  # deliveries being sent by one process on one platform, so that none keeps another waiting
LEASE = 60.0  # seconds
LONGEST_SEND = 45.0  # seconds an adapter may take
LOOK = 10.0  # seconds between two looks for what the dead have left

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """Something that is being sent by this process."""

    sending: Sending
    since: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds, whatever happens to the clock."""
        return time.monotonic() - self.since


class Outbox:
    """Sends what waits."""

    def __init__(self, store: SessionStore, adapters: Mapping[Platform, Adapter], feed: Feed) -> None:
        self._store = store
        self._engine = store.engine
        self._adapters = adapters
        self._feed = feed
        self._owner = new_owner()
        self._woken = asyncio.Event()
        self._sending: dict[asyncio.Task[None], _UnderWay] = {}
        self._serving: asyncio.Task[None] | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Settle what the dead have left, then begin to send."""
        if not self._adapters:
            return
        await self.recover()
        self._feed.on_work(self.wake)
        self._serving = asyncio.create_task(self._serve(), name="palaver-outbox")
        self._recovering = asyncio.create_task(self._keep_recovering(), name="palaver-outbox-recovery")

    def wake(self) -> None:
        """There may be something to send."""
        self._woken.set()

    async def stop(self, patience: float = 10.0) -> None:
        """Begin nothing more, and let what is being sent arrive."""
        self._stopping = True
        self._woken.set()
        if self._serving is not None:
            await self._serving  # not cancelled: what it has just claimed must not be forgotten
        if self._sending:
            await asyncio.wait(self._sending, timeout=patience)
        rest = [*self._sending, *([self._recovering] if self._recovering is not None else [])]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def recover(self) -> int:
        """Settle what was being sent by somebody who is gone; how many those were."""
        now = self._now()
        platforms = list(self._adapters)
        ours = frozenset(each.sending.no for each in self._sending.values() if each.age < LEASE)

        def settle(tx: Transaction) -> int:
            orphans = self._orphans(tx, now, ours)
            for orphan in orphans:
                with contextlib.suppress(LeaseLost):  # another process was quicker
                    if self._may_repeat(orphan.delivery):
                        deliveries.again(tx, orphan, now, "Palaver was stopped while sending it")
                    else:
                        error = "Palaver was stopped while sending it; whether it arrived is not known"
                        deliveries.end(tx, orphan, DeliveryState.UNCERTAIN, now, error=error)
            return len(orphans) + deliveries.hasten(tx, platforms, now)

        def look(tx: Transaction) -> int | None:
            return None if self._orphans(tx, now, ours) or deliveries.any_to_hasten(tx, platforms, now) else 0

        crash_points.crash_point("delivery.before_recovery")
        found = await self._engine.arun(Write(settle, look=look))
        crash_points.crash_point("delivery.recovered")
        if found:
            self.wake()
        return found

    def _orphans(self, tx: Transaction, now: int, ours: frozenset[int]) -> list[Sending]:
        """Those of our own platforms: only who is connected to one knows whether it takes a delivery twice.

        What is being sent here is no orphan, however late a clock that was set says it is.
        """
        found = deliveries.orphans(tx, now, is_dead)
        orphans = [each for each in found if each.owner != self._owner or each.no not in ours]
        return [each for each in orphans if each.delivery.address.platform in self._adapters]

    # -- sending -------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        await keep_looking(
            self._begin, self._woken, is_over=lambda: self._stopping, log=log, trouble="deliveries cannot be read"
        )

    async def _keep_recovering(self) -> None:
        """However much there is to send, what the dead have left is not forgotten."""
        while True:
            await asyncio.sleep(LOOK)
            try:
                await self.recover()
            except StoreError as error:  # the next look finds them
                log.warning("what was being sent cannot be settled: %s", error)
            except Exception:  # whatever it is, the same
                log.exception("what was being sent cannot be settled")

    async def _begin(self) -> float:
        """Begin to send what is due; how long there is nothing else to do."""
        busy = Counter(each.sending.delivery.address.platform for each in self._sending.values())
        free = {platform: AT_ONCE - busy[platform] for platform in self._adapters if busy[platform] < AT_ONCE}
        if not free:
            return LOOK
        now = self._now()
        until = now + round(LEASE * 1e6)
        platforms = list(free)

        def claim(tx: Transaction) -> tuple[list[Sending], int | None]:
            claimed = [
                sending
                for platform, most in free.items()
                for sending in deliveries.claim(tx, self._owner, now, until, most, platform)
            ]
            return claimed, deliveries.next_due(tx, platforms)

        def nothing(tx: Transaction) -> tuple[list[Sending], int | None] | None:
            due = deliveries.next_due(tx, platforms)
            return None if due is not None and due <= now else ([], due)

        crash_points.crash_point("delivery.before_claim")
        claimed, due = await self._engine.arun(Write(claim, look=nothing, quick=True))
        for sending in claimed:
            crash_points.crash_point("delivery.claimed")
            task = asyncio.create_task(self._send(sending), name=f"palaver-{sending.delivery.id}")
            self._sending[task] = _UnderWay(sending)
            task.add_done_callback(self._sent)
        return LOOK if due is None else min(LOOK, max(0.0, (due - now) / 1e6))

    def _sent(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._woken.set()

    async def _send(self, sending: Sending) -> None:
        try:
            await self._settle(sending, await self._outcome(sending.delivery))
        except LeaseLost:
            log.warning("delivery %s was settled by somebody else", sending.delivery.id)
        except StoreError as error:  # it stays `sending`, and is settled when the lease has run out
            log.error("delivery %s could not be settled: %s", sending.delivery.id, error)

    async def _outcome(self, delivery: Delivery) -> str | DeliveryError | None:
        adapter = self._adapters[delivery.address.platform]
        crash_points.crash_point("delivery.before_send")
        try:
            async with asyncio.timeout(LONGEST_SEND):
                receipt = await adapter.send(delivery)
        except DeliveryError as error:
            return error
        except Exception as error:  # the libraries of platforms have errors of their own; it may have arrived
            log.exception("the %s adapter broke on delivery %s", delivery.address.platform, delivery.id)
            return SendUncertain(f"{type(error).__name__} while sending")
        crash_points.crash_point("delivery.sent")
        return receipt

    async def _settle(self, sending: Sending, outcome: str | DeliveryError | None) -> None:
        now = self._now()
        delivery = sending.delivery

        def write(tx: Transaction) -> None:
            if not isinstance(outcome, DeliveryError):
                deliveries.end(tx, sending, DeliveryState.SENT, now, receipt=outcome)
            elif isinstance(outcome, SendLater) and delivery.attempt < MOST_ATTEMPTS:
                retry_after = None if outcome.retry_after is None else timedelta(seconds=outcome.retry_after)
                wait = delay_before(delivery.attempt, retry_after=retry_after)
                deliveries.again(tx, sending, now + wait // timedelta(microseconds=1), str(outcome))
            elif isinstance(outcome, SendLater | SendRejected):
                deliveries.end(tx, sending, DeliveryState.FAILED, now, error=str(outcome))
                if isinstance(outcome, TargetGone):
                    deliveries.bury(tx, str(delivery.address), str(outcome), now)
            elif self._may_repeat(delivery):
                wait = delay_before(delivery.attempt)
                deliveries.again(tx, sending, now + wait // timedelta(microseconds=1), str(outcome))
            else:
                deliveries.end(tx, sending, DeliveryState.UNCERTAIN, now, error=str(outcome))

        crash_points.crash_point("delivery.before_receipt")
        await self._engine.arun(Write(write))
        crash_points.crash_point("delivery.settled")

    def _may_repeat(self, delivery: Delivery) -> bool:
        """Whether what may have arrived may be sent again: where it would be known, and not for ever."""
        return self._adapters[delivery.address.platform].knows_keys and delivery.attempt < MOST_ATTEMPTS

    def _now(self) -> int:
        return to_micros(self._store.clock.now())
