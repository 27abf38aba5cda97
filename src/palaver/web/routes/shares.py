"""Shared conversations: made and taken back by those who have them, read by whoever has the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from palaver.services.shares import Shares
from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import Out, Time
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.domain.share import Share

router = APIRouter(tags=["shares"])

_Everything = Annotated[bool, Query(alias="all", include_in_schema=False)]


class ShareOut(Out):
    """A copy that you have made."""

    id: str
    session_id: str
    title: str | None
    message_count: int
    created_at: Time


class NewShareOut(ShareOut):
    """A new copy, and what opens it. The secret is told only now."""

    secret: str
    path: str = Field(description="Where the page shows it. The secret stands behind the #, which no server is sent.")


class SharesOut(Out):
    """Your copies, newest first."""

    shares: list[ShareOut]


class SharedMessageOut(Out):
    """Something that was said."""

    role: str = Field(json_schema_extra={"enum": ["assistant", "user"]})
    name: str | None = Field(description="`Person`, or a number for each of several; null for the agent.")
    text: str


class SharedOut(Out):
    """A conversation as it was when it was shared, without ids, names, tools and files."""

    title: str | None
    shared_at: Time
    messages: list[SharedMessageOut]


@router.post("/sessions/{session_id}/shares", status_code=201, responses=answers(401, 403, 404, 409, 422, 503))
async def make_share(
    session_id: str, state: State, signed: SignedIn, _view: SeenBy, everything: _Everything = False
) -> NewShareOut:
    """Make a read-only copy of a conversation as it is now, for whoever you give the secret."""
    fresh = await Shares(state.gateway.store).make(signed.principal, session_id, everything=everything)
    path = f"{state.base_path}/shared#{fresh.secret}"
    return NewShareOut(**_out(fresh.made).model_dump(), secret=fresh.secret, path=path)


@router.get("/shares", responses=answers(401, 403))
async def list_shares(state: State, signed: SignedIn) -> SharesOut:
    """What you share."""
    found = await Shares(state.gateway.store).of(signed.principal)
    return SharesOut(shares=[_out(each) for each in found])


@router.delete("/shares/{share_id}", status_code=204, responses=answers(401, 403, 404, 422, 503))
async def revoke_share(
    share_id: str, state: State, signed: SignedIn, _view: SeenBy, everything: _Everything = False
) -> None:
    """Take a copy back: its secret opens nothing any more."""
    await Shares(state.gateway.store).revoke(signed.principal, share_id, everything=everything)


@router.get("/shared/{secret}", responses=answers(404, 422))
async def read_shared(secret: str, state: State, response: Response) -> SharedOut:
    """A shared conversation, for whoever has its secret; no sign-in is needed."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Robots-Tag"] = "noindex"
    return SharedOut.model_validate(await Shares(state.gateway.store).opened(secret))


def _out(found: Share) -> ShareOut:
    return ShareOut(
        id=found.id,
        session_id=found.session_id,
        title=found.title,
        message_count=found.message_count,
        created_at=found.created_at,
    )
