"""The outbox: sends every delivery to its address, in order per address, and never silently twice.

It sends for the accounts that are live in this process; the deliveries of all others wait. `sender.py` sends one
delivery, `previews.py` shows answers while they are being written, `pace.py` keeps to the limits of the platforms.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from palaver.core.background import PollLoop, create_lease_owner, is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Row, Transaction, Write
from palaver.core.errors import LeaseLost, SendRejected, TargetUnreachable
from palaver.core.tasks import cancel_tasks
from palaver.delivery import previews_table as previews, sender, table as deliveries
from palaver.delivery.notices import report_uncertain
from palaver.delivery.pace import Pacers
from palaver.delivery.parts import STOPPED_TOO_OFTEN, decide_orphan, finish_delivery, save_outcome
from palaver.delivery.previews import Previews
from palaver.delivery.sender import DeliverySender
from palaver.sessions.delivery import MAX_DELIVERY_ATTEMPTS, AccountKey, DeliveryState, NextStep, parse_part_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.core.source import Platform
    from palaver.delivery.adapter import Adapter
    from palaver.delivery.model import Capabilities
    from palaver.delivery.table import DeliveryLease, SentPart
    from palaver.live.feed import Feed
    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

MAX_SENDS_PER_ACCOUNT = 16  # concurrent sends of one process; separate, so that one account does not block another
RECOVERY_SECONDS = 10.0  # between two searches for orphaned deliveries
REPORT_DELAY_SECONDS = 120  # after which people are told of an uncertain answer
MAX_REPORT_AGE_SECONDS = 7 * 24 * 3600  # of an uncertain answer of which they are told when the platform is back

log = logging.getLogger(__name__)


class Outbox:
    """Sends the pending deliveries of the accounts that are live in this process."""

    def __init__(
        self,
        store: SessionStore,
        list_adapters: Callable[[], Mapping[AccountKey, Adapter]],
        feed: Feed,
        *,
        files: Attachments | None = None,
        get_unstreamed_platforms: Callable[[], frozenset[Platform]] = frozenset,
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._list_adapters = list_adapters  # of the accounts that are live in this process, as of now
        self._feed = feed
        self._files = files
        self._owner = create_lease_owner()
        self._pacers = Pacers()
        self._previews = Previews(store, list_adapters, feed, self._pacers, self._owner, get_unstreamed_platforms)
        self._active_sends: dict[asyncio.Task[None], DeliverySender] = {}
        self._known_accounts: frozenset[AccountKey] = frozenset()  # their orphans were recovered since they are live
        self._send_loop = PollLoop(
            self._start_due_sends, "palaver-outbox", log=log, failure_event="delivery_poll_failed"
        )
        self._recovery_loop = PollLoop(
            self._recover_regularly, "palaver-outbox-recovery", log=log, failure_event="delivery_recovery_failed"
        )

    async def start(self) -> None:
        """Start sending for the accounts that are live, as soon as they are."""
        self._feed.add_work_listener(self.wake)
        self._previews.start()
        self._send_loop.start()
        self._recovery_loop.start()

    def wake(self) -> None:
        """Look now for deliveries to send and answers to show: some of them, or an account, may have changed."""
        self._send_loop.wake()
        self._previews.wake()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Start no further send, and give the active ones some time to finish."""
        await self._send_loop.stop()
        if self._active_sends:
            await asyncio.wait(self._active_sends, timeout=grace_seconds)
        await cancel_tasks(self._active_sends)
        await self._recovery_loop.cancel()
        await self._previews.stop()

    # -- recovery ------------------------------------------------------------------------------------------

    async def recover_orphans(self) -> int:
        """Recover the deliveries that a dead process was sending; return how many there were.

        A message that may have arrived is sent again only if that is safe. Deliveries that are postponed only because
        the clock was set back become due, and count too.
        """
        adapters = self._list_adapters()
        if not adapters:
            return 0
        now = self._now()
        accounts = list(adapters)
        capabilities = {account: adapter.capabilities for account, adapter in adapters.items()}
        active = frozenset(send.lease.no for send in self._active_sends.values() if send.holds_lease)

        def list_orphans(tx: Transaction) -> list[DeliveryLease]:
            """List orphans of the live accounts: only their adapters know whether sending again is safe.

            An active send of this process is no orphan, even if the clock was set forward and its lease looks expired.
            """
            return [
                orphan
                for orphan in deliveries.list_orphans(tx, now, is_owner_dead)
                if (orphan.owner != self._owner or orphan.no not in active)
                and orphan.delivery.address.account_key in capabilities
            ]

        def recover(tx: Transaction, delivery_no: int) -> int:
            found = [orphan for orphan in list_orphans(tx) if orphan.no == delivery_no]
            for orphan in found:
                _recover_orphan(tx, orphan, capabilities[orphan.delivery.address.account_key], now)
            return len(found)

        crash_point("delivery.before_recovery")
        recovered = 0
        find_work = Read(lambda tx: (list_orphans(tx), deliveries.has_postponed(tx, accounts, now)))
        orphans, has_postponed = await self._engine.arun(find_work)
        if has_postponed:
            recovered += await self._engine.arun(Write(lambda tx: deliveries.retry_postponed_now(tx, accounts, now)))
        for orphan in orphans:
            with contextlib.suppress(LeaseLost):  # another process was quicker: nothing of this transaction is stored
                recovered += await self._engine.arun(Write(partial(recover, delivery_no=orphan.no)))
        crash_point("delivery.recovered")
        if recovered:
            self.wake()
        return recovered

    async def _recover_regularly(self) -> float:
        """Recover orphans at a steady interval, however much there is to send."""
        await asyncio.sleep(RECOVERY_SECONDS)
        await self.recover_orphans()
        await self._report_uncertain()
        return 0.0

    async def _report_uncertain(self) -> None:
        """Tell people of answers that may not have arrived, but not at once: an echo may still confirm them."""
        accounts, now = self._list_adapters().keys(), self._now()
        after, before = (now - seconds * 1_000_000 for seconds in (MAX_REPORT_AGE_SECONDS, REPORT_DELAY_SECONDS))

        def find(tx: Transaction) -> list[Row]:
            return deliveries.list_unreported(tx, accounts, after, before) if accounts else []

        work = Write(lambda tx: report_uncertain(tx, find(tx), now), read_first=lambda tx: None if find(tx) else 0)
        if await self._engine.arun(work):
            self.wake()

    # -- confirmations -------------------------------------------------------------------------------------

    async def confirm(self, account: AccountKey, key: str, message_id: str) -> None:
        """Record that a message has arrived, because its echo or receipt came: it is no longer uncertain.

        Keys that are unknown, or of messages whose arrival is known, are ignored.
        """
        part_key = parse_part_key(key)

        def find(tx: Transaction) -> bool:
            if part_key is None:
                return previews.has_unknown_id(tx, key, account)
            part = deliveries.find_part(tx, account, *part_key)
            return part is not None and part.is_unconfirmed

        def confirm(tx: Transaction) -> bool:
            if part_key is None:
                previews.save_message_id(tx, key, account, message_id)
                return True
            part = deliveries.find_part(tx, account, *part_key)
            if part is None or not part.is_unconfirmed:
                return False
            deliveries.confirm_part(tx, part.delivery_no, part_key[1], message_id)
            return True

        crash_point("delivery.before_confirmation")
        if await self._engine.arun(Write(confirm, read_first=lambda tx: None if find(tx) else False)):
            log.info("delivery_confirmed", extra={"key": key})
        crash_point("delivery.confirmed")

    async def report_failed(self, account: AccountKey, key: str, error: SendRejected) -> bool:
        """Record that a message has not arrived, because the platform said so after it had taken it.

        Return False while it is being sent: its outcome is not stored yet. Unknown keys are ignored.
        """
        part_key = parse_part_key(key)
        if part_key is None:
            return True
        now = self._now()

        def find_taken(tx: Transaction) -> SentPart | bool:
            """Return the part; True if there is nothing to record, False while it is being sent."""
            found = deliveries.find_part(tx, account, *part_key)
            if found is None or found.state not in {DeliveryState.SENDING, DeliveryState.SENT, DeliveryState.UNCERTAIN}:
                return True
            return False if found.state is DeliveryState.SENDING else found

        def fail(tx: Transaction) -> bool:
            found = find_taken(tx)
            if isinstance(found, bool):
                return found
            deliveries.fail_part(tx, found.delivery_no, part_key[1], error.text, now)
            if isinstance(error, TargetUnreachable):
                deliveries.mark_target_dead(tx, found.address, error.text, now)
            return True

        def try_without_write(tx: Transaction) -> bool | None:
            found = find_taken(tx)
            return found if isinstance(found, bool) else None

        is_recorded = await self._engine.arun(Write(fail, read_first=try_without_write))
        log.warning("delivery_failed_later", extra={"key": key, "error": str(error), "recorded": is_recorded})
        return is_recorded

    # -- sending -------------------------------------------------------------------------------------------

    async def _start_due_sends(self) -> float:
        """Claim the deliveries that are due and start sending them; return the seconds until the next is due."""
        adapters = self._list_adapters()
        if not adapters.keys() <= self._known_accounts:  # what a dead process was sending comes first
            await self.recover_orphans()
        self._known_accounts = frozenset(adapters)
        pacers = {key: self._pacers.get(key, adapter.capabilities) for key, adapter in adapters.items()}
        pauses = {key: pacer.pause_seconds for key, pacer in pacers.items()}
        wait = min([RECOVERY_SECONDS, *(pause for pause in pauses.values() if pause)])
        busy = Counter(send.lease.delivery.address.account_key for send in self._active_sends.values())
        free = {key: count for key in adapters if not pauses[key] and (count := MAX_SENDS_PER_ACCOUNT - busy[key]) > 0}
        if not free:
            return wait
        now = self._now()
        until = now + round(sender.LEASE_SECONDS * 1e6)
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
            key = lease.delivery.address.account_key
            send = DeliverySender(self._store, adapters[key], pacers[key], lease, self._files)
            task = asyncio.create_task(self._send(send), name=f"palaver-{lease.delivery.id}")
            self._active_sends[task] = send
            task.add_done_callback(self._forget_send)
        return wait if next_due is None else min(wait, max(0.0, (next_due - now) / 1e6))

    async def _send(self, send: DeliverySender) -> None:
        turn_no = send.lease.delivery.turn_no
        if turn_no is not None:
            await self._previews.end_growth(turn_no)
        await send.run()

    def _forget_send(self, task: asyncio.Task[None]) -> None:
        del self._active_sends[task]
        self.wake()

    def _now(self) -> int:
        return to_micros(self._store.clock.now())


def _recover_orphan(tx: Transaction, orphan: DeliveryLease, capabilities: Capabilities, now: int) -> None:
    """Let a delivery of a dead process go on where it was, or end it."""
    outcome = decide_orphan(orphan, capabilities, now)
    if outcome is None:  # it was sending nothing: nothing can have arrived that is not recorded
        if orphan.delivery.attempt < MAX_DELIVERY_ATTEMPTS:
            deliveries.retry_later(tx, orphan, now, None)
        else:
            deliveries.finish(tx, orphan, DeliveryState.FAILED, now, error=STOPPED_TOO_OFTEN)
        return
    save_outcome(tx, orphan, outcome, now)
    if outcome.next_step is not NextStep.CONTINUE:
        return
    if all(part.has_ended for part in orphan.parts if part.no != outcome.part.no):
        finish_delivery(tx, orphan, now)
    else:
        deliveries.retry_later(tx, orphan, now, None, attempts=0)
