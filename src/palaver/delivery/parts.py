"""The parts of a delivery: the messages of its text, and then its files.

Renders them, decides what follows from an attempt to send one, and stores that in one transaction.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown
from palaver.core.dataclass import dataclass
from palaver.core.errors import (
    ChatMovedAway,
    DeliveryError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.texts import chat_language, say, translate
from palaver.delivery import chat_moves, previews_table as previews, table as deliveries
from palaver.sessions.delivery import (
    MAX_DELIVERY_ATTEMPTS,
    Delivery,
    DeliveryPart,
    DeliveryState,
    NextStep,
    compute_retry_delay,
    decide_part_outcome,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import Adapter
    from palaver.delivery.model import Capabilities
    from palaver.delivery.table import DeliveryLease
    from palaver.sessions.speech import Attachment


log = logging.getLogger(__name__)

MAX_TEXT_PARTS = 100  # messages of one answer in a chat; the rest is read on the web
RENDER_SECONDS = 20.0  # for the messages of one answer
MAX_FILE_NAME_CHARS = 100
STOPPED_WHILE_SENDING = say("delivery.stopped", "Palaver stopped while sending this. It may or may not have arrived.")
STOPPED_TOO_OFTEN = say("delivery.stopped_often", "Palaver stopped again and again while sending this.")
TOO_LONG = say(
    "answer.too_long_for_chat",
    "(The rest of this answer is too long for this chat. Open the conversation on the web to read it.)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    part: DeliveryPart  # as it is from now on
    next_step: NextStep
    error: DeliveryError | None = None
    retry_delay: timedelta = timedelta(0)  # before the same part is sent again
    attempts: int | None = None  # that count from now on; None: as many as there were
    refused_preview_id: str | None = None  # the message that the platform has refused to replace by this part


async def render_text(adapter: Adapter, markdown: str) -> list[str]:
    """Return the messages that a text becomes on a platform, at most `MAX_TEXT_PARTS`. Raises SendRejected.

    It runs in a thread: adapters parse Markdown, and answers are long.
    """
    try:
        async with asyncio.timeout(RENDER_SECONDS):
            return await asyncio.to_thread(_render, adapter, markdown)
    except TimeoutError:
        raise SendRejected.say("delivery.too_slow", "This answer took too long to prepare for the platform.") from None
    except Exception as error:  # an adapter may fail in any way, and then it would fail again
        log.exception("answer_not_rendered", extra={"platform": adapter.platform})
        raise SendRejected.say(
            "delivery.not_prepared",
            "This answer couldn't be prepared for the platform ({error}).",
            error=type(error).__name__,
        ) from error


def _render(adapter: Adapter, markdown: str) -> list[str]:
    bodies = adapter.render(markdown)
    if len(bodies) > MAX_TEXT_PARTS:
        bodies = [*bodies[: MAX_TEXT_PARTS - 1], *adapter.render(translate(TOO_LONG, chat_language.name))[:1]]
    return bodies


async def build_parts(
    adapter: Adapter, delivery: Delivery, files: Sequence[tuple[int, Attachment]]
) -> list[DeliveryPart]:
    """Return the parts of a delivery; a file that cannot be sent becomes a line of the text. Raises SendRejected."""
    limit = adapter.capabilities.max_file_bytes
    notes = [_format_unsent_file(file, limit) for _, file in files if file.size > limit]
    markdown = "\n\n".join([*([delivery.content] if delivery.content.strip() else []), *notes])
    bodies = await render_text(adapter, markdown) if markdown else []
    attachment_nos = [no for no, file in files if file.size <= limit]
    if not bodies and not attachment_nos:
        raise SendRejected.say("delivery.empty", "There is nothing to send: the answer is empty on this platform.")
    parts = [DeliveryPart(no=no, body=body) for no, body in enumerate(bodies, 1)]
    return parts + [
        DeliveryPart(no=no, body="", attachment_no=attachment_no)
        for no, attachment_no in enumerate(attachment_nos, len(bodies) + 1)
    ]


def _format_unsent_file(file: Attachment, limit: int) -> str:
    name = escape_markdown(file.name, MAX_FILE_NAME_CHARS)
    reason = say("file.not_sent", "can't be sent to this chat")
    if limit:
        reason = say("file.too_large", "is too large for this chat ({size} MB)", size=f"{file.size / 1e6:.1f}")
    text = say(
        "file.note",
        "(The file “{name}” {reason}. Open the conversation on the web to get it.)",
        name=name,
        reason=reason,
    )
    return translate(text, chat_language.name)


def decide_outcome(
    before: DeliveryPart,
    result: str | DeliveryError | None,
    *,
    attempt: int,
    sent_at: int,
    capabilities: Capabilities,
    now: int,
    has_progress: bool = False,
) -> PartOutcome:
    """Decide what follows from an attempt to send a part.

    `before` is the part as it was before the attempt, `result` the id of the message or an error. `has_progress` says
    that an earlier part has arrived since the attempts were counted.
    """
    error = result if isinstance(result, DeliveryError) else None
    first_sent_at = before.first_sent_at or sent_at
    attempts = 1 if has_progress else attempt
    is_last_attempt = attempts >= MAX_DELIVERY_ATTEMPTS
    if is_last_attempt and isinstance(error, SendRetryable) and before.first_sent_at and before.edits_id is None:
        error = SendUncertain(error.text)  # an earlier attempt may have arrived
    state, next_step = decide_part_outcome(
        error,
        is_edit=before.edits_id is not None,
        is_resolvable=capabilities.can_resolve(first_sent_at, now),
        is_last_attempt=is_last_attempt,
    )
    # What the platform has refused with certainty has not arrived by this attempt.
    is_uncertain = error is not None and not isinstance(error, SendRetryable | ChatMovedAway)
    part = replace(
        before,
        state=state,
        first_sent_at=first_sent_at if is_uncertain or error is None else before.first_sent_at,
        sent_message_id=None if isinstance(result, DeliveryError) else result,
        error=None if error is None else error.text,
    )
    if next_step is NextStep.SEND_AS_NEW:
        part = replace(part, edits_id=None, first_sent_at=None, error=None)
    retry_delay = timedelta(0)
    if next_step is NextStep.RETRY:
        seconds = error.retry_after if isinstance(error, SendRetryable) else None
        retry_delay = compute_retry_delay(attempts, retry_after=None if seconds is None else timedelta(seconds=seconds))
    return PartOutcome(
        part=part,
        next_step=next_step,
        error=error,
        retry_delay=retry_delay,
        attempts=attempts,
        refused_preview_id=before.edits_id if next_step is NextStep.SEND_AS_NEW else None,
    )


def decide_orphan(orphan: DeliveryLease, capabilities: Capabilities, now: int) -> PartOutcome | None:
    """Decide what follows for the part that a dead process was sending; None if it was sending none."""
    part = next((part for part in orphan.parts if part.state is DeliveryState.SENDING), None)
    if part is None:
        return None
    outcome = decide_outcome(
        part,
        SendUncertain(STOPPED_WHILE_SENDING),
        attempt=orphan.delivery.attempt,
        sent_at=part.first_sent_at or now,
        capabilities=capabilities,
        now=now,
    )
    return replace(outcome, retry_delay=timedelta(0))


def save_outcome(tx: Transaction, lease: DeliveryLease, outcome: PartOutcome, now: int) -> None:
    """Store the outcome of a part, and end or postpone its delivery if that follows.

    After `CONTINUE` and `SEND_AS_NEW` the caller still has the lease; call `finish_delivery` after the last part.
    """
    delivery, part = lease.delivery, outcome.part
    deliveries.save_outcome(tx, lease.no, part)
    match outcome.next_step:
        case NextStep.RETRY | NextStep.MOVE:
            due_at = now + outcome.retry_delay // timedelta(microseconds=1)
            deliveries.retry_later(tx, lease, due_at, part.error, attempts=outcome.attempts)
            if isinstance(outcome.error, ChatMovedAway):
                old = delivery.address
                chat_moves.move_chat(tx, old.platform, old.account, old.chat_id, outcome.error.new_chat_id, now)
        case NextStep.FAIL:
            deliveries.finish(tx, lease, DeliveryState.FAILED, now, error=part.error)
            if isinstance(outcome.error, TargetUnreachable):
                deliveries.mark_target_dead(tx, str(delivery.address), outcome.error.text, now)
        case NextStep.SEND_AS_NEW:
            if delivery.turn_no is not None and outcome.refused_preview_id is not None:
                previews.restore_preview(tx, delivery.turn_no, delivery.address, outcome.refused_preview_id, now)
        case NextStep.CONTINUE:
            pass


def finish_delivery(tx: Transaction, lease: DeliveryLease, now: int) -> None:
    """End a delivery of which nothing is left to send. Its state follows from its parts."""
    state, error = deliveries.compute_delivery_state(deliveries.list_parts(tx, lease.no))
    deliveries.finish(tx, lease, state, now, error=error)
