"""Saying something in a conversation."""

from __future__ import annotations

from fastapi import APIRouter

from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.message_wire import MessageIn, ReceiptOut, receipt_out
from palaver.web.routes.sessions import SessionId
from palaver.web.saying import say
from palaver.web.state import State

router = APIRouter(prefix="/sessions", tags=["messages"], responses=answers(401, 404))


@router.post("/{session_id}/messages", status_code=202)
async def send_message(state: State, signed: SignedIn, session_id: SessionId, message: MessageIn) -> ReceiptOut:
    """Say something. When this answers, it is stored; the answer comes later, on the live stream.

    Sent twice with the same key it is one message, and the second time the outcome is `duplicate`. Slash commands work
    here too. Where the receipt says `refused`, nothing was stored, and `reply` says why.
    """
    receipt = await say(
        state, signed, session_id, message.content, message.key, busy=message.busy, attachments=message.attachments
    )
    return receipt_out(receipt)
