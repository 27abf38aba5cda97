"""Sends one delivery that this process has claimed: its parts, one after the other.

A part is durably marked as `sending` at the last moment before it can arrive: by the adapter, when it has a connection
and has uploaded what there is to upload, or before `send` if the adapter does not do that. If the process dies between
the mark and the platform's answer, it is unknown whether the message arrived; before the mark, nothing was sent.

To keep the number of transactions low, the parts are stored with the first mark, the last outcome with the end of the
delivery, and the outcome of a part with the mark of a text that follows it at once on the same connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from palaver.core.background import is_owner_dead
from palaver.core.clock import from_micros, to_micros
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
    from collections.abc import Callable

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
        self._save_parts: Callable[[Transaction], None] | None = None  # not stored yet
        self._marking: asyncio.Future[int] | None = None  # stores the mark of the part that is being sent, and when
        self._lease_ends = time.monotonic() + LEASE_SECONDS
        self._covers_upload = False  # the lease lasts for the upload of a file

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
            if not self._parts:
                await self._prepare_parts()
            is_marked = False
            while (part := self._find_next_part()) is not None:
                is_marked = await self._send_part(part, is_marked=is_marked)
            await self._save(lambda tx: finish_delivery(tx, self.lease, self._now()))
        except _Ended:
            pass
        except LeaseLost:
            log.warning("delivery_lease_lost", extra={"delivery": self._delivery.id})
        except StoreError as error:  # it stays `sending`, and is recovered when the lease has expired
            log.error("delivery_outcome_not_saved", extra={"delivery": self._delivery.id, "error": str(error)})
        finally:
            if self._marking is not None and not self._marking.done():  # canceled: it needs the database
                await asyncio.wait({self._marking})

    def _find_next_part(self) -> DeliveryPart | None:
        """Return the first part that is not sent yet. One that failed after it was sent stays failed."""
        open_states = {DeliveryState.PENDING, DeliveryState.SENDING}
        return next((part for part in self._parts if part.state in open_states), None)

    async def _save(self, change: Callable[[Transaction], None], *, lease_until: int | None = None) -> None:
        """Store a change, before it the parts if they are not stored yet, and extend the lease. Raises LeaseLost."""
        save_parts, now = self._save_parts, self._now()

        def save(tx: Transaction) -> None:
            if lease_until is not None or save_parts is not None:
                deliveries.extend_lease(tx, self.lease, lease_until or now)
            if save_parts is not None:
                save_parts(tx)
            change(tx)

        await self._engine.arun(Write(save))
        self._save_parts = None

    # -- before the first part -----------------------------------------------------------------------------

    async def _prepare_parts(self) -> None:
        """Build the parts of the delivery. They are stored with the next change: the mark of the first of them."""
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

        def save_parts(tx: Transaction) -> None:
            deliveries.add_parts(tx, self.lease.no, parts)
            if preview is not None and is_forgotten:
                previews.delete_preview(tx, preview.no)

        self._parts, self._save_parts = parts, save_parts

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
        self._marking = None
        if is_marked:
            self._marking = asyncio.get_running_loop().create_future()
            self._marking.set_result(self._now())
        else:
            if part.edits_id is None and part.first_sent_at is not None:
                capabilities = self._adapter.capabilities
                if not capabilities.recognizes_key(part.first_sent_at, self._now()):
                    result = await self._find_sent(part, part.first_sent_at)
                    if result is not None:
                        return await self._save_outcome(part, result, part.first_sent_at)
                    part = replace(part, first_sent_at=None)
            await self._wait_for_pace()
            await self._prepare_to_send(part)
        outcome = await self._call_adapter(part)
        if self._marking is None:  # the adapter has not come so far: nothing was sent this time
            unsent = SendRetryable(outcome.text) if isinstance(outcome, SendUncertain) else outcome
            return await self._save_outcome(part, unsent, self._now())
        await asyncio.wait({self._marking})  # if the call has timed out, it may still be running
        return await self._save_outcome(part, outcome, self._marking.result())  # raises if it could not be marked

    async def _find_sent(self, part: DeliveryPart, sent_at: int) -> str | SendUncertain | None:
        """Look for a part that may have arrived: return its id, None if it was certainly not sent, or an error."""
        if not self._adapter.capabilities.finds_sent:
            return SendUncertain(part.error or STOPPED_WHILE_SENDING)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                return await self._adapter.find_sent(await self._build_message(part), from_micros(sent_at))
        except SendUncertain as error:
            return error
        except Exception as error:  # platform libraries raise errors of their own
            log.exception("adapter_failed", extra={"platform": self._adapter.platform, "delivery": self._delivery.id})
            return make_unexpected_error(error)

    async def _prepare_to_send(self, part: DeliveryPart) -> None:
        """Mark a part now if the adapter does not do it in `send`, and let the lease last for the upload of a file."""
        if part.edits_id is not None or not self._adapter.marks_sending:
            await self._mark(part)
        elif part.attachment_no is not None and not self._covers_upload:
            await self._save(lambda _: None, lease_until=self._start_lease(part, self._now()))

    async def _mark(self, part: DeliveryPart) -> None:
        """Mark a part as `sending`, once. Raises LeaseLost or StoreError: then it must not be sent."""
        if self._marking is None:
            self._marking = asyncio.create_task(self._save_mark(part), name=f"palaver-mark-{self._delivery.id}")
        await asyncio.shield(self._marking)  # what is stored has to be known, also if the call is canceled

    async def _save_mark(self, part: DeliveryPart) -> int:
        now = self._now()
        crash_point("delivery.before_mark")
        await self._save(
            lambda tx: deliveries.mark_sending(tx, self.lease.no, part.no, part.first_sent_at or now),
            lease_until=self._start_lease(part, now),
        )
        crash_point("delivery.marked")
        return now

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
        except (LeaseLost, StoreError):  # it could not be marked
            raise
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
            mark_sending=partial(self._mark, part),
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
        mark = following is not None and self._is_sent_at_once(following) and self._try_take_pace()
        keeps_lease = not is_complete and outcome.next_step in {NextStep.CONTINUE, NextStep.SEND_AS_NEW}
        lease_until = self._start_lease(following or before, now) if keeps_lease else None

        def save(tx: Transaction) -> None:
            save_outcome(tx, self.lease, outcome, now)
            if following is not None and mark:
                deliveries.mark_sending(tx, self.lease.no, following.no, now)
            if is_complete:
                finish_delivery(tx, self.lease, now)

        crash_point("delivery.before_outcome_save")
        await self._save(save, lease_until=lease_until)
        crash_point("delivery.outcome_saved")
        self._handle_outcome(outcome)
        if not keeps_lease:
            raise _Ended
        return mark

    def _is_sent_at_once(self, part: DeliveryPart) -> bool:
        """Return whether nothing but its request lies before a part, so that it can be marked with the outcome before.

        A text goes out on the connection that was just used. A file is uploaded first, where the adapter marks it.
        """
        return part.first_sent_at is None and (part.attachment_no is None or not self._adapter.marks_sending)

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
        await self._save(lambda tx: deliveries.retry_later(tx, self.lease, due_at, None, attempts=attempts))

    def _start_lease(self, part: DeliveryPart, now: int) -> int:
        """Return until when the lease has to last to send a part."""
        seconds = LEASE_SECONDS
        self._covers_upload = part.attachment_no is not None
        if self._covers_upload:
            seconds += self._adapter.capabilities.max_file_bytes / MIN_UPLOAD_BYTES_PER_SECOND
        self._lease_ends = time.monotonic() + seconds
        return now + round(seconds * 1e6)

    def _now(self) -> int:
        return to_micros(self._store.clock.now())


class _Ended(Exception):
    """The delivery has ended or goes on later, and that is stored."""
