"""Saying something in a conversation, and what became of answers that are sent somewhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.message_schemas import (
    DeliveriesOut,
    DeliveryOut,
    MessageIn,
    ReceiptOut,
    delivery_out,
    receipt_out,
)
from palaver.web.routes.sessions import SessionId
from palaver.web.state import State
from palaver.web.submit_message import say

router = APIRouter(prefix="/sessions", tags=["messages"], responses=answers(401, 404))


DeliveryId = Annotated[str, Path(description="The id of a delivery.", examples=["d_1a2b3c4d5e6f7a8b"])]


@router.post("/{session_id}/messages", status_code=202, responses=answers(409))
async def send_message(state: State, signed: SignedIn, session_id: SessionId, message: MessageIn) -> ReceiptOut:
    """Say something. When this answers, it is stored; the answer comes later, on the live stream.

    Sent twice with the same key it is one message, and the second time the outcome is `duplicate`. Slash commands work
    here too. Where the receipt says `refused`, nothing was stored, and `reply` says why. With `reply: there` the answer
    is also sent to where the conversation takes place, with the message before it; commands are answered here.
    """
    receipt = await say(
        state,
        signed,
        session_id,
        message.content,
        message.key,
        busy=message.busy,
        attachments=message.attachments,
        reply=message.reply,
    )
    return receipt_out(receipt)


@router.get("/{session_id}/deliveries")
async def list_deliveries(
    seen: SeenBy,
    session_id: SessionId,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeliveriesOut:
    """Answers that were sent to where people read them, and how that stands: the newest, oldest first."""
    found = await seen.deliveries(session_id, limit=limit)
    return DeliveriesOut(deliveries=[delivery_out(each) for each in found])


@router.post("/{session_id}/deliveries/{delivery_id}/again", responses=answers(409))
async def send_delivery_again(
    state: State, signed: SignedIn, session_id: SessionId, delivery_id: DeliveryId
) -> DeliveryOut:
    """Send an answer again that failed. One that is uncertain may have arrived: then it arrives twice."""
    view = state.gateway.store.aio.seen_by(signed.principal)
    delivery = await view.send_again(session_id, delivery_id)
    state.gateway.outbox.wake()
    return delivery_out(delivery)
