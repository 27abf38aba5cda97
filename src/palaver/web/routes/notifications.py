"""Notifications to a browser while the page is closed: each subscription belongs to the sign-in of one browser."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from palaver.core.wire import Doc, TypedDict
from palaver.push.model import MAX_ENDPOINT_CHARS
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, State

router = make_router("me", "/api/me", responses=error_responses(401, 403))

_PushKey = Annotated[str, Field(min_length=1, max_length=200)]


class PushKeysIn(RequestModel):
    """The keys of a subscription, in base64url."""

    p256dh: _PushKey
    auth: _PushKey


class PushSubscriptionIn(RequestModel):
    """The result of `PushManager.subscribe()` as JSON."""

    endpoint: Annotated[str, Field(min_length=1, max_length=MAX_ENDPOINT_CHARS)]
    keys: PushKeysIn


class PushStatusJson(TypedDict):
    """The notifications of this browser, and the key to subscribe to."""

    is_enabled: Annotated[bool, Doc("Whether the operator allows notifications.")]
    is_subscribed: bool
    server_key: Annotated[str, Doc("The `applicationServerKey` for `PushManager.subscribe()`.")]


@router.get("/push-subscriptions")
async def get_push_status(caller: BrowserCaller, state: State) -> PushStatusJson:
    """Find out whether this browser gets notifications while the page is closed."""
    return PushStatusJson(
        is_enabled=state.push.is_enabled,
        is_subscribed=await state.push.is_subscribed(caller.credential_id),
        server_key=await state.push.get_public_key(),
    )


@router.post("/push-subscriptions", status_code=204, responses=error_responses(422))
async def subscribe_to_push(body: PushSubscriptionIn, caller: BrowserCaller, state: State) -> None:
    """Subscribe this browser. The subscription ends when you sign out, or when the push service says so."""
    await state.push.subscribe(caller.credential_id, body.endpoint, body.keys.p256dh, body.keys.auth)


@router.delete("/push-subscriptions", status_code=204)
async def unsubscribe_from_push(caller: BrowserCaller, state: State) -> None:
    """End the subscription of this browser."""
    await state.push.unsubscribe(caller.credential_id)


@router.post("/push-subscriptions/test", status_code=204, responses=error_responses(422, 429, 502))
async def send_test_push(caller: BrowserCaller, state: State) -> None:
    """Send a notification to this browser now, and report what its push service says."""
    await state.push.send_test(caller.credential_id, caller.person.id)
