"""Webhooks: requests that chat platforms send to us. Strangers can reach these routes; the adapter verifies each.

Always true: nothing of a body is read before the limit of the account is known, a body that does not arrive keeps no
other request waiting (`WebhookBodies`), and a path without a webhook looks like any other unknown path.
"""

from __future__ import annotations

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from palaver.core.errors import NotFound
from palaver.delivery.adapter import WebhookRequest
from palaver.web.api_route import make_router
from palaver.web.auth import get_client_address
from palaver.web.body_limit import WebhookBodies, set_body_limit
from palaver.web.state import State

router = make_router("webhooks", "")


@router.api_route("/hooks/{platform}", methods=["GET", "POST"], include_in_schema=False)
@router.api_route(
    "/hooks/{platform}/{account}", name="handle_account_webhook", methods=["GET", "POST"], include_in_schema=False
)
async def handle_webhook(platform: str, request: Request, state: State, account: str = "") -> Response:
    """Pass a request to an account, or to the one without a name."""
    accounts = state.gateway.accounts
    bodies: WebhookBodies = request.app.state.webhook_bodies
    try:
        max_bytes = accounts.get_max_webhook_bytes(platform, account)
    except NotFound:
        raise HTTPException(404, "Not found.") from None
    set_body_limit(request.scope, max_bytes)
    async with bodies.read(request, get_client_address(request)) as body:
        webhook_request = WebhookRequest(
            method=request.method,
            headers=dict(request.headers),
            query=dict(request.query_params),
            body=body,
        )
        answer = await accounts.handle_webhook(platform, account, webhook_request)
    headers = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
    if answer.status >= 400 and not answer.body:  # then it gets the form that all errors have
        raise HTTPException(answer.status, headers=headers)
    return Response(answer.body, answer.status, headers, media_type=answer.media_type)


@router.api_route("/hooks/{platform}", methods=["PUT", "PATCH", "DELETE"], include_in_schema=False)
@router.api_route("/hooks/{platform}/{account}", methods=["PUT", "PATCH", "DELETE"], include_in_schema=False)
def refuse_method() -> None:
    raise HTTPException(405, "Use POST.", {"Allow": "GET, POST"})
