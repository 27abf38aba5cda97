"""The outbox: sends every delivery to its address, in order per address, and never silently twice.

The outbox durably marks a delivery as `sending` before it calls the adapter. If the process dies between that and the
platform's answer, it is unknown whether the message arrived: a platform with idempotency keys gets it again, any other
platform does not, and the delivery is shown as uncertain.
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

from palaver.domain.crash_points import crash_point
from palaver.domain.delivery import MAX_DELIVERY_ATTEMPTS, DeliveryState, compute_retry_delay
from palaver.domain.errors import (
    DeliveryError,
    LeaseLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    StoreError,
    TargetUnreachable,
)
from palaver.services.platforms.adapter import OutgoingMessage
from palaver.services.poll_loop import run_poll_loop
from palaver.services.process_identity import create_lease_owner, is_owner_dead
from palaver.storage import deliveries
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.delivery import AccountKey, Delivery
    from palaver.services.live.feed import Feed
    from palaver.services.platforms.adapter import Adapter
    from palaver.services.store import SessionStore
    from palaver.storage.deliveries import DeliveryLease
    from palaver.storage.engines.base import Transaction

MAX_SENDS_PER_ACCOUNT = 16  # concurrent sends of one process; separate, so that one account does not block another
LEASE_SECONDS = 60.0
SEND_TIMEOUT_SECONDS = 45.0  # for one call of an adapter
RECOVERY_SECONDS = 10.0  # between two searches for orphaned deliveries

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _ActiveSend:
    """A delivery that this process is sending."""

    lease: DeliveryLease
    started: float = field(default_factory=time.monotonic)

    @property
    def age_seconds(self) -> float:
        """The age by the monotonic clock: setting the system clock does not change it."""
        return time.monotonic() - self.started


class Outbox:
    """Sends the pending deliveries of the connected platforms."""

    def __init__(self, store: SessionStore, adapters: Mapping[AccountKey, Adapter], feed: Feed) -> None:
        self._store = store
        self._engine = store.engine
        self._adapters = adapters
        self._feed = feed
        self._owner = create_lease_owner()
        self._wake_event = asyncio.Event()
        self._active_sends: dict[asyncio.Task[None], _ActiveSend] = {}
        self._send_loop: asyncio.Task[None] | None = None
        self._recovery_loop: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def start(self) -> None:
        """Recover the deliveries of dead processes, then start sending."""
        if not self._adapters:
            return
        await self.recover_orphans()
        self._feed.add_work_listener(self.wake)
        self._send_loop = asyncio.create_task(self._run_send_loop(), name="palaver-outbox")
        self._recovery_loop = asyncio.create_task(self._run_recovery_loop(), name="palaver-outbox-recovery")

    def wake(self) -> None:
        """Look for pending deliveries now."""
        self._wake_event.set()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Start no further send, and give the active ones some time to finish."""
        self._is_stopping = True
        self._wake_event.set()
        if self._send_loop is not None:
            await self._send_loop  # not canceled: what it has just claimed must not be forgotten
        if self._active_sends:
            await asyncio.wait(self._active_sends, timeout=grace_seconds)
        rest = [*self._active_sends, *([self._recovery_loop] if self._recovery_loop is not None else [])]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def recover_orphans(self) -> int:
        """Retry the deliveries that a dead process was sending, or mark them as uncertain; return how many there were.

        Deliveries that are postponed only because the clock was set back become due, and count too.
        """
        now = self._now()
        accounts = list(self._adapters)
        active = frozenset(send.lease.no for send in self._active_sends.values() if send.age_seconds < LEASE_SECONDS)

        def recover(tx: Transaction) -> int:
            orphans = self._list_orphans(tx, now, active)
            for orphan in orphans:
                with contextlib.suppress(LeaseLost):  # another process was quicker
                    if self._may_send_again(orphan.delivery):
                        deliveries.retry_later(tx, orphan, now, "Palaver stopped while sending this.")
                    else:
                        error = "Palaver stopped while sending this. It may or may not have arrived."
                        deliveries.finish(tx, orphan, DeliveryState.UNCERTAIN, now, error=error)
            return len(orphans) + deliveries.retry_postponed_now(tx, accounts, now)

        def try_without_write(tx: Transaction) -> int | None:
            has_work = self._list_orphans(tx, now, active) or deliveries.has_postponed(tx, accounts, now)
            return None if has_work else 0

        crash_point("delivery.before_recovery")
        recovered = await self._engine.arun(Write(recover, read_first=try_without_write))
        crash_point("delivery.recovered")
        if recovered:
            self.wake()
        return recovered

    def _list_orphans(self, tx: Transaction, now: int, active: frozenset[int]) -> list[DeliveryLease]:
        """List orphans of the connected platforms: only a connected process knows whether sending again is safe.

        An active send of this process is no orphan, even if the clock was set forward and its lease looks expired.
        """
        orphans = deliveries.list_orphans(tx, now, is_owner_dead)
        return [
            orphan
            for orphan in orphans
            if (orphan.owner != self._owner or orphan.no not in active)
            and orphan.delivery.address.account_key in self._adapters
        ]

    # -- sending -------------------------------------------------------------------------------------------

    async def _run_send_loop(self) -> None:
        await run_poll_loop(
            self._start_due_sends,
            self._wake_event,
            is_stopped=lambda: self._is_stopping,
            log=log,
            failure_event="delivery_poll_failed",
        )

    async def _run_recovery_loop(self) -> None:
        """Recover orphans at a steady interval, however much there is to send."""
        while True:
            await asyncio.sleep(RECOVERY_SECONDS)
            try:
                await self.recover_orphans()
            except StoreError as error:  # the next round finds them
                log.warning("delivery_recovery_failed", extra={"error": str(error)})
            except Exception:  # whatever it is, the next round finds them
                log.exception("delivery_recovery_failed")

    async def _start_due_sends(self) -> float:
        """Claim the deliveries that are due and start sending them; return the seconds until the next is due."""
        busy = Counter(send.lease.delivery.address.account_key for send in self._active_sends.values())
        free = {key: count for key in self._adapters if (count := MAX_SENDS_PER_ACCOUNT - busy[key]) > 0}
        if not free:
            return RECOVERY_SECONDS
        now = self._now()
        until = now + round(LEASE_SECONDS * 1e6)
        accounts = list(free)

        def claim(tx: Transaction) -> tuple[list[DeliveryLease], int | None]:
            claimed = [
                lease
                for key, limit in free.items()
                for lease in deliveries.claim_due(tx, self._owner, now, until, limit, key)
            ]
            return claimed, deliveries.find_next_due(tx, accounts)

        def try_without_write(tx: Transaction) -> tuple[list[DeliveryLease], int | None] | None:
            next_due = deliveries.find_next_due(tx, accounts)
            return None if next_due is not None and next_due <= now else ([], next_due)

        crash_point("delivery.before_claim")
        claimed, next_due = await self._engine.arun(Write(claim, read_first=try_without_write, is_quick=True))
        for lease in claimed:
            crash_point("delivery.claimed")
            task = asyncio.create_task(self._send(lease), name=f"palaver-{lease.delivery.id}")
            self._active_sends[task] = _ActiveSend(lease)
            task.add_done_callback(self._forget_send)
        return RECOVERY_SECONDS if next_due is None else min(RECOVERY_SECONDS, max(0.0, (next_due - now) / 1e6))

    def _forget_send(self, task: asyncio.Task[None]) -> None:
        del self._active_sends[task]
        self._wake_event.set()

    async def _send(self, lease: DeliveryLease) -> None:
        try:
            await self._save_outcome(lease, await self._call_adapter(lease.delivery))
        except LeaseLost:
            log.warning("delivery_lease_lost", extra={"delivery": lease.delivery.id})
        except StoreError as error:  # it stays `sending`, and is recovered when the lease has expired
            log.error("delivery_outcome_not_saved", extra={"delivery": lease.delivery.id, "error": str(error)})

    async def _call_adapter(self, delivery: Delivery) -> str | DeliveryError | None:
        adapter = self._adapters[delivery.address.account_key]
        crash_point("delivery.before_send")
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                receipt = None
                for body in adapter.render(delivery.content):
                    receipt = await adapter.send(
                        OutgoingMessage(
                            key=delivery.id,
                            address=delivery.address,
                            body=body,
                            kind=delivery.kind,
                            reply_to=delivery.reply_to,
                            attempt=delivery.attempt,
                        )
                    )
        except DeliveryError as error:
            return error
        except Exception as error:  # platform libraries raise errors of their own; the message may have arrived
            log.exception("adapter_failed", extra={"platform": delivery.address.platform, "delivery": delivery.id})
            return SendUncertain(f"Unexpected error while sending ({type(error).__name__}).")
        crash_point("delivery.sent")
        return receipt

    async def _save_outcome(self, lease: DeliveryLease, outcome: str | DeliveryError | None) -> None:
        now = self._now()
        delivery = lease.delivery

        def save(tx: Transaction) -> None:
            if not isinstance(outcome, DeliveryError):
                deliveries.finish(tx, lease, DeliveryState.SENT, now, sent_message_id=outcome)
            elif isinstance(outcome, SendRetryable) and delivery.attempt < MAX_DELIVERY_ATTEMPTS:
                retry_after = None if outcome.retry_after is None else timedelta(seconds=outcome.retry_after)
                delay = compute_retry_delay(delivery.attempt, retry_after=retry_after)
                deliveries.retry_later(tx, lease, now + delay // timedelta(microseconds=1), str(outcome))
            elif isinstance(outcome, SendRetryable | SendRejected):
                deliveries.finish(tx, lease, DeliveryState.FAILED, now, error=str(outcome))
                if isinstance(outcome, TargetUnreachable):
                    deliveries.mark_target_dead(tx, str(delivery.address), str(outcome), now)
            elif self._may_send_again(delivery):
                delay = compute_retry_delay(delivery.attempt)
                deliveries.retry_later(tx, lease, now + delay // timedelta(microseconds=1), str(outcome))
            else:
                deliveries.finish(tx, lease, DeliveryState.UNCERTAIN, now, error=str(outcome))

        crash_point("delivery.before_outcome_save")
        await self._engine.arun(Write(save))
        crash_point("delivery.outcome_saved")

    def _may_send_again(self, delivery: Delivery) -> bool:
        """Whether a delivery that may have arrived may be sent again: the platform drops duplicates; not forever."""
        adapter = self._adapters[delivery.address.account_key]
        return bool(adapter.capabilities.key_lifetime) and delivery.attempt < MAX_DELIVERY_ATTEMPTS

    def _now(self) -> int:
        return to_micros(self._store.clock.now())
