"""Sending messages, and the deliveries of their answers to chat platforms."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from palaver.core.wire import Doc, TypedDict, build_json
from palaver.delivery.view import DeliveryOperations
from palaver.delivery.wire import DeliveryJson
from palaver.sessions.inbound import ReplyTo
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.view_wire import ReceiptJson
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, CallerView, OwnView
from palaver.web.errors import error_responses
from palaver.web.routes.sessions import AttachmentIds, Content, SessionId
from palaver.web.state import Cursor, IdempotencyKey, RequestModel, State
from palaver.web.submit_message import submit_message
from palaver.web.wire import receipt_to_json

router = make_router("messages", "/api/sessions", responses=error_responses(401, 404))


DeliveryId = Annotated[str, Path(description="The id of a delivery.", examples=["d_1a2b3c4d5e6f7a8b"])]


class DeliveriesJson(TypedDict):
    """A page of a conversation's deliveries, oldest first."""

    deliveries: list[DeliveryJson]
    total: Annotated[int, Doc("How many deliveries the conversation has in all.")]
    next_cursor: Annotated[
        str | None, Doc("Pass this as `cursor` to get the deliveries before these; null if there are none.")
    ]


class MessageIn(RequestModel):
    """A message to send."""

    content: Content = Field(
        description="Text, or a list of parts: text, `{type: text, text}`, or a file you uploaded, `{type: attachment,"
        " id}`."
    )
    key: IdempotencyKey = Field(
        description="Your own id for this message. Sending it again with the same key has no effect."
    )
    busy_policy: BusyPolicy | None = Field(
        None, description="What to do if the agent is still answering another message."
    )
    attachment_ids: AttachmentIds = Field(default_factory=list, description="Ids of uploaded files to attach.")
    reply_to: ReplyTo = Field(
        ReplyTo.SESSION,
        description="`session`: the answer only appears in the conversation. `origin`: it is also sent to the chat that"
        " the conversation comes from, if that is `reachable`.",
    )


@router.post("/{session_id}/messages", status_code=202, responses=error_responses(409))
async def send_message(state: State, caller: Caller, session_id: SessionId, body: MessageIn) -> ReceiptJson:
    """Send a message. The response confirms that it is stored; the agent's answer arrives on the live stream.

    Sending it again with the same key has no effect; the outcome is then `duplicate`. Slash commands work here too. If
    the outcome is `rejected`, nothing was stored, and `reply` says why. With `reply_to: origin` the answer is also sent
    to the chat that the conversation comes from, with your message quoted above it; replies to commands are not.
    """
    receipt = await submit_message(
        state,
        caller,
        session_id,
        body.content,
        body.key,
        busy_policy=body.busy_policy,
        attachment_ids=body.attachment_ids,
        reply_to=body.reply_to,
    )
    return receipt_to_json(receipt)


@router.get("/{session_id}/deliveries")
async def list_deliveries(
    view: CallerView,
    session_id: SessionId,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeliveriesJson:
    """List the newest deliveries of a conversation, oldest first: answers sent to chat platforms, and their state.

    The next page has those before them.
    """
    page = await view.part(DeliveryOperations).list(session_id, limit=limit, cursor=cursor)
    return {
        "deliveries": [build_json(DeliveryJson, each) for each in page],
        "total": await view.part(DeliveryOperations).count(session_id),
        "next_cursor": page.cursor,
    }


@router.post("/{session_id}/deliveries/{delivery_id}/retry", responses=error_responses(409))
async def retry_delivery(state: State, view: OwnView, session_id: SessionId, delivery_id: DeliveryId) -> DeliveryJson:
    """Send a failed or uncertain delivery again. If an uncertain one did arrive, this delivers it twice."""
    delivery = await view.part(DeliveryOperations).send_again(session_id, delivery_id)
    state.gateway.outbox.wake()
    return build_json(DeliveryJson, delivery)
