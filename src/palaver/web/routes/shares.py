"""Shares: read-only copies of conversations, which anyone with the link can read."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, cast

from fastapi import Query, Response
from pydantic import Field

from palaver.core.wire import Doc, Time, TypedDict
from palaver.sessions.share import MAX_SHARES_PER_PERSON
from palaver.sessions.view_wire import ShareJson, share_to_json
from palaver.web.api_route import make_router
from palaver.web.auth import Caller, IncludeAll
from palaver.web.errors import error_responses
from palaver.web.state import Cursor, Moment, RequestModel, State, WebState

router = make_router("shares", "/api")


class SharesJson(TypedDict):
    """Shares, newest first."""

    shares: list[ShareJson]
    next_cursor: Annotated[str | None, Doc("Pass this as `cursor` to get the next page; null on the last page.")]
    default_days: Annotated[
        int | None, Doc("After how many days a new link expires by default (`web.shared_link_days`); null: never.")
    ]


class ShareExpiryIn(RequestModel):
    """When a link expires."""

    expires_at: Moment | None = Field(description="null: never.")


class NewShareIn(RequestModel):
    """A new shared link."""

    expires_at: Moment | None = Field(None, description="null: never. Without it, as `web.shared_link_days` says.")


class SharedMessageJson(TypedDict):
    """A message in a shared conversation."""

    role: Literal["assistant", "user"]
    name: Annotated[
        str | None,
        Doc(
            "The name of the person who shares it; for others `Person`, with a number if there are several;"
            " null for the agent."
        ),
    ]
    text: str


class SharedConversationJson(TypedDict):
    """A conversation as it was when it was shared, without ids, names of other people, tool calls and files."""

    title: str | None
    shared_at: Time
    messages: list[SharedMessageJson]


@router.post("/sessions/{session_id}/shares", status_code=201, responses=error_responses(401, 403, 404, 409, 422, 503))
async def create_share(
    session_id: str, state: State, caller: Caller, include_all: IncludeAll, body: NewShareIn | None = None
) -> ShareJson:
    """Share a conversation: make a read-only copy of its current state for anyone who has the link."""
    if body is not None and "expires_at" in body.model_fields_set:
        expires_at = body.expires_at
    else:
        days = _get_default_days(state)
        expires_at = None if days is None else state.gateway.store.clock.now() + timedelta(days=days)
    share = await state.shares.create(caller.principal, session_id, everything=include_all, expires_at=expires_at)
    return share_to_json(share, state.base_path)


@router.get("/shares", responses=error_responses(401, 403, 422))
async def list_shares(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    limit: Annotated[int, Query(ge=1, le=MAX_SHARES_PER_PERSON)] = 100,
    cursor: Cursor = None,
) -> SharesJson:
    """List your shares. Owners list everybody's with `all`."""
    shares = await state.shares.list(caller.principal, everything=include_all, limit=limit, cursor=cursor)
    return SharesJson(
        shares=[share_to_json(each, state.base_path) for each in shares],
        next_cursor=shares.cursor,
        default_days=_get_default_days(state),
    )


@router.patch("/shares/{share_id}", responses=error_responses(401, 403, 404, 422, 503))
async def change_share(
    share_id: str, body: ShareExpiryIn, state: State, caller: Caller, include_all: IncludeAll
) -> ShareJson:
    """Change when a link expires. One that has expired works again, until its copy is deleted 7 days later."""
    share = await state.shares.set_expiry(caller.principal, share_id, body.expires_at, everything=include_all)
    return share_to_json(share, state.base_path)


@router.delete("/shares/{share_id}", status_code=204, responses=error_responses(401, 403, 404, 422, 503))
async def delete_share(share_id: str, state: State, caller: Caller, include_all: IncludeAll) -> None:
    """Stop sharing a copy. The link stops working."""
    await state.shares.revoke(caller.principal, share_id, everything=include_all)


@router.get("/shared/{secret}", responses=error_responses(404, 410, 422))
async def get_shared_conversation(secret: str, state: State, response: Response) -> SharedConversationJson:
    """Read a shared conversation. Anyone with its secret can; no sign-in is needed. A link that has expired: 410."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    return cast("SharedConversationJson", await state.shares.open(secret))


def _get_default_days(state: WebState) -> int | None:
    return state.settings.current.settings.web.shared_link_days
