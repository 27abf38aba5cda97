"""Sends one delivery that this process has claimed: its parts, one after the other.

The sender durably marks a part as `sending` before it calls the adapter. If the process dies between that and the
platform's answer, it is unknown whether the message arrived. To keep the number of transactions low, the outcome of
a part and the mark of the next one are stored together, and so are the last outcome and the end of the delivery.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from palaver.core.background import is_owner_dead
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import (
    AttachmentsUnavailable,
    DeliveryError,
    LeaseLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    StoreError,
)
from palaver.core.texts import chat_language, say, translate
from palaver.delivery import previews_table as previews, table as deliveries
from palaver.delivery.adapter import Adapter, OutgoingFile, OutgoingMessage
from palaver.delivery.parts import (
    STOPPED_WHILE_SENDING,
    PartOutcome,
    build_parts,
    decide_outcome,
    finish_delivery,
    save_outcome,
)
from palaver.media import table as attachments
from palaver.sessions.delivery import (
    Button,
    DeliveryPart,
    DeliveryState,
    NextStep,
    format_part_key,
    make_unexpected_error,
)
from palaver.sessions.speech import AttachmentNotFound
from palaver.sessions.turn import TurnState

if TYPE_CHECKING:
    from palaver.delivery.pace import Pacer
    from palaver.delivery.previews_table import AnsweredTurn, Preview
    from palaver.delivery.table import DeliveryLease
    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

LEASE_SECONDS = 60.0
SEND_TIMEOUT_SECONDS = 45.0  # for one call of an adapter
MIN_UPLOAD_BYTES_PER_SECOND = 200_000  # a file gets as much time as it takes at this rate
MAX_PACE_WAIT_SECONDS = 5.0  # a delivery that has to wait longer for its chat or account goes back to the others

log = logging.getLogger(__name__)


class DeliverySender:
    def __init__(
        self, store: SessionStore, adapter: Adapter, pacer: Pacer, lease: DeliveryLease, files: Attachments | None
    ) -> None:
        self.lease = lease
        self._store = store
        self._engine = store.engine
        self._adapter = adapter
        self._pacer = pacer
        self._files = files
        self._delivery = lease.delivery
        self._chat_id = lease.delivery.address.chat_id
        self._parts = list(lease.parts)
        self._turn: AnsweredTurn | None = None
        self._has_progress = False  # a part has arrived since the delivery was claimed
        self._lease_ends = time.monotonic() + LEASE_SECONDS

    @property
    def holds_lease(self) -> bool:
        """Whether the lease lasts by the monotonic clock: setting the system clock does not change it."""
        return time.monotonic() < self._lease_ends

    async def run(self) -> None:
        """Send what is left of the delivery, and store every outcome."""
        try:
            if (turn_no := self._delivery.turn_no) is not None:
                load = Read(lambda tx: previews.load_answered_turn(tx, turn_no), is_quick=True)
                self._turn = await self._engine.arun(load)
            is_marked = False
            if not self._parts:
                is_marked = await self._prepare_parts()
            while (part := self._find_next_part()) is not None:
                is_marked = await self._send_part(part, is_marked=is_marked)
            await self._engine.arun(Write(lambda tx: finish_delivery(tx, self.lease, self._now())))
        except _Ended:
            pass
        except LeaseLost:
            log.warning("delivery_lease_lost", extra={"delivery": self._delivery.id})
        except StoreError as error:  # it stays `sending`, and is recovered when the lease has expired
            log.error("delivery_outcome_not_saved", extra={"delivery": self._delivery.id, "error": str(error)})

    def _find_next_part(self) -> DeliveryPart | None:
        """Return the first part that is not sent yet. One that failed after it was sent stays failed."""
        open_states = {DeliveryState.PENDING, DeliveryState.SENDING}
        return next((part for part in self._parts if part.state in open_states), None)

    # -- before the first part -----------------------------------------------------------------------------

    async def _prepare_parts(self) -> bool:
        """Store the parts of the delivery; return whether the first of them is marked as `sending`."""
        ids = self._delivery.attachment_ids
        files = await self._engine.arun(Read(lambda tx: attachments.list_by_id(tx, ids))) if ids else []
        preview = self._turn.preview if self._turn else None
        if preview is not None and preview.address != self._delivery.address:
            preview = None
        try:
            parts = await build_parts(self._adapter, self._delivery, files)
            if preview is not None and preview.message_id is None:
                preview = await self._find_lost_preview(preview, parts[0])
        except DeliveryError as error:
            await self._give_up_before_parts(error)
        has_text = parts[0].attachment_no is None
        if preview is not None and has_text and self._can_replace(preview):
            parts[0] = replace(parts[0], edits_id=preview.message_id)
        is_forgotten = preview is not None and (parts[0].edits_id is not None or preview.message_id is None)
        mark = self._try_take_pace()
        now = self._now()
        lease_until = self._start_lease(parts[0], now)

        def save(tx: Transaction) -> None:
            deliveries.extend_lease(tx, self.lease, lease_until)
            deliveries.add_parts(tx, self.lease.no, parts)
            if preview is not None and is_forgotten:
                previews.delete_preview(tx, preview.no)
            if mark:
                deliveries.mark_sending(tx, self.lease.no, parts[0].no, now)

        crash_point("delivery.before_parts_save")
        await self._engine.arun(Write(save))
        crash_point("delivery.parts_saved")
        self._parts = parts
        return mark

    def _can_replace(self, preview: Preview) -> bool:
        """Whether the answer can be put into a preview. If another process may still be editing it, it is deleted."""
        if preview.message_id is None or not self._adapter.capabilities.can_edit:
            return False
        return preview.can_be_claimed(self.lease.owner, is_owner_dead)

    async def _find_lost_preview(self, preview: Preview, first: DeliveryPart) -> Preview | None:
        """Find out the id of a preview whose process has died, where the platform recognizes its key.

        Sending it again returns the id of the message that has arrived, or sends the message now. Otherwise the answer
        becomes a message of its own, and the preview may stay beside it.
        """
        capabilities = self._adapter.capabilities
        if not capabilities.recognizes_key(preview.created_at, self._now()) or not capabilities.can_edit:
            log.warning("preview_lost", extra={"delivery": self._delivery.id, "platform": self._adapter.platform})
            return preview
        claimed = await self._claim_preview()
        if claimed is None or claimed.message_id is not None:
            return claimed
        await self._wait_for_pace()
        message = OutgoingMessage(
            key=preview.key,
            address=self._delivery.address,
            body=first.body,
            reply_to=self._delivery.reply_to,
            is_preview=True,
        )
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                return replace(claimed, message_id=await self._adapter.send(message))
        except SendRejected:
            log.warning("preview_lost", extra={"delivery": self._delivery.id, "platform": self._adapter.platform})
            return claimed
        except DeliveryError:
            raise
        except Exception as error:  # platform libraries raise errors of their own; it has a key, and can be sent again
            log.exception("adapter_failed", extra={"platform": self._adapter.platform, "delivery": self._delivery.id})
            raise make_unexpected_error(error) from error

    async def _claim_preview(self) -> Preview | None:
        """Let no other process edit the preview from now on; None if it is not there, or one may be editing it."""
        turn_no = self._delivery.turn_no
        if turn_no is None:
            return None
        return await self._engine.arun(
            Write(lambda tx: previews.claim_preview(tx, turn_no, self.lease.owner, is_owner_dead))
        )

    async def _give_up_before_parts(self, error: DeliveryError) -> NoReturn:
        """Retry or fail a delivery that has no parts yet: nothing of it was sent. Raises _Ended."""
        now = self._now()
        outcome = decide_outcome(
            DeliveryPart(no=1, body=""),
            error if isinstance(error, SendRejected | SendRetryable) else SendRetryable(error.text),
            attempt=self._delivery.attempt,
            sent_at=now,
            capabilities=self._adapter.capabilities,
            now=now,
        )
        await self._engine.arun(Write(lambda tx: save_outcome(tx, self.lease, outcome, now)))
        raise _Ended

    # -- one part ------------------------------------------------------------------------------------------

    async def _send_part(self, part: DeliveryPart, *, is_marked: bool) -> bool:
        """Send a part, and store its outcome; return whether the next part is marked as `sending`."""
        if not is_marked:
            sent_at, capabilities = part.first_sent_at, self._adapter.capabilities
            is_safe = sent_at is None or capabilities.recognizes_key(sent_at, self._now())
            if part.edits_id is None and not is_safe:
                return await self._save_outcome(part, SendUncertain(part.error or STOPPED_WHILE_SENDING), 0)
            await self._wait_for_pace()
            await self._mark(part)
        sent_at = self._now()
        return await self._save_outcome(part, await self._call_adapter(part), sent_at)

    async def _mark(self, part: DeliveryPart) -> None:
        now = self._now()
        lease_until = self._start_lease(part, now)

        def mark(tx: Transaction) -> None:
            deliveries.extend_lease(tx, self.lease, lease_until)
            deliveries.mark_sending(tx, self.lease.no, part.no, now)

        await self._engine.arun(Write(mark))

    async def _call_adapter(self, part: DeliveryPart) -> str | DeliveryError | None:
        """Send a part; return the platform's id of the message, or its error."""
        crash_point("delivery.before_send")
        fields = {"platform": self._adapter.platform, "delivery": self._delivery.id, "part": part.no}
        try:
            message = await self._build_message(part)
            upload_seconds = message.file.size / MIN_UPLOAD_BYTES_PER_SECOND if message.file else 0
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS + upload_seconds):
                if part.edits_id is not None:
                    await self._adapter.edit(part.edits_id, message)
                    message_id: str | None = part.edits_id
                else:
                    message_id = await self._adapter.send(message)
        except DeliveryError as error:
            return error
        except Exception as error:  # platform libraries raise errors of their own; the message may have arrived
            log.exception("adapter_failed", extra=fields)
            return make_unexpected_error(error)
        crash_point("delivery.sent")
        return message_id

    async def _build_message(self, part: DeliveryPart) -> OutgoingMessage:
        return OutgoingMessage(
            key=format_part_key(self._delivery.id, part.no),
            address=self._delivery.address,
            body=part.body,
            file=await self._open_file(part),
            kind=self._delivery.kind,
            reply_to=self._delivery.reply_to if part.no == 1 else None,
            buttons=self._list_buttons(part),
            attempt=self._delivery.attempt,
        )

    async def _open_file(self, part: DeliveryPart) -> OutgoingFile | None:
        if part.body:
            return None
        no, files = part.attachment_no, self._files
        file = None if no is None else await self._engine.arun(Read(lambda tx: attachments.find_by_no(tx, no)))
        try:
            if file is None or files is None:
                raise AttachmentNotFound
            await asyncio.to_thread(files.get_path, file)
        except (AttachmentNotFound, AttachmentsUnavailable) as error:
            raise SendRejected.say("delivery.no_file", "The file no longer exists.") from error
        return OutgoingFile(file.name, file.media_type, file.size, lambda: files.read(file))

    def _list_buttons(self, part: DeliveryPart) -> tuple[Button, ...]:
        """List the buttons of a delivery under its last message; an answer that has failed offers to answer again."""
        if part.no != self._parts[-1].no:
            return ()
        buttons = self._delivery.buttons
        if self._turn is not None and self._turn.state is TurnState.FAILED:
            label = translate(say("button.retry", "Retry"), chat_language.name)
            buttons = (*buttons, Button(label, f"retry:{self._turn.id}"))
        return buttons[: self._adapter.capabilities.max_buttons]

    async def _save_outcome(self, before: DeliveryPart, result: str | DeliveryError | None, sent_at: int) -> bool:
        """Store an outcome, and mark the next part with it if that can be sent now. Raises _Ended at the end."""
        now = self._now()
        outcome = decide_outcome(
            before,
            result,
            attempt=self._delivery.attempt,
            sent_at=sent_at,
            capabilities=self._adapter.capabilities,
            now=now,
            has_progress=self._has_progress,
        )
        self._parts[before.no - 1] = outcome.part
        following = self._find_next_part() if outcome.next_step is NextStep.CONTINUE else None
        is_complete = outcome.next_step is NextStep.CONTINUE and following is None
        mark = following is not None and following.first_sent_at is None and self._try_take_pace()
        keeps_lease = not is_complete and outcome.next_step in {NextStep.CONTINUE, NextStep.SEND_AS_NEW}
        lease_until = self._start_lease(following or before, now) if keeps_lease else 0

        def save(tx: Transaction) -> None:
            if keeps_lease:
                deliveries.extend_lease(tx, self.lease, lease_until)
            save_outcome(tx, self.lease, outcome, now)
            if following is not None and mark:
                deliveries.mark_sending(tx, self.lease.no, following.no, now)
            if is_complete:
                finish_delivery(tx, self.lease, now)

        crash_point("delivery.before_outcome_save")
        await self._engine.arun(Write(save))
        crash_point("delivery.outcome_saved")
        self._handle_outcome(outcome)
        if not keeps_lease:
            raise _Ended
        return mark

    def _handle_outcome(self, outcome: PartOutcome) -> None:
        self._has_progress |= outcome.part.state is DeliveryState.SENT
        error = outcome.error
        if isinstance(error, SendRetryable) and error.whole_account:
            self._pacer.pause(error.retry_after or outcome.retry_delay.total_seconds())
        if outcome.part.state is DeliveryState.UNCERTAIN:
            fields = {"delivery": self._delivery.id, "part": outcome.part.no, "platform": self._adapter.platform}
            log.warning("delivery_uncertain", extra=fields)

    # -- pace and lease ------------------------------------------------------------------------------------

    def _try_take_pace(self) -> bool:
        """Take the right to send a message now; False if it has to wait."""
        if self._pacer.compute_wait(self._chat_id):
            return False
        self._pacer.take(self._chat_id)
        return True

    async def _wait_for_pace(self) -> None:
        """Wait until a message may be sent. If that takes long, the delivery is postponed, and _Ended is raised."""
        while not self._try_take_pace():
            wait = self._pacer.compute_wait(self._chat_id)
            if wait > MAX_PACE_WAIT_SECONDS:
                await self._postpone(wait)
                raise _Ended
            await asyncio.sleep(wait)

    async def _postpone(self, seconds: float) -> None:
        """Give the delivery back, to be sent later; this is no attempt."""
        due_at = self._now() + round(seconds * 1e6)
        attempts = 0 if self._has_progress else self._delivery.attempt - 1
        await self._engine.arun(
            Write(lambda tx: deliveries.retry_later(tx, self.lease, due_at, None, attempts=attempts))
        )

    def _start_lease(self, part: DeliveryPart, now: int) -> int:
        """Return until when the lease has to last to send a part."""
        seconds = LEASE_SECONDS
        if part.attachment_no is not None:
            seconds += self._adapter.capabilities.max_file_bytes / MIN_UPLOAD_BYTES_PER_SECOND
        self._lease_ends = time.monotonic() + seconds
        return now + round(seconds * 1e6)

    def _now(self) -> int:
        return to_micros(self._store.clock.now())


class _Ended(Exception):
    """The delivery has ended or goes on later, and that is stored."""
