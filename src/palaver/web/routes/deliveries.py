"""Messages to chat platforms that failed or may not have arrived: listed, and settled many at once."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field

from palaver.core.errors import NotFound, NothingToDo
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.delivery.view import DeliveryOperations
from palaver.delivery.wire import UndeliveredJson
from palaver.sessions.delivery import Resolution
from palaver.web.api_route import make_router
from palaver.web.auth import CallerView
from palaver.web.errors import error_responses
from palaver.web.state import Cursor, Moment, RequestModel, State

MAX_RESOLVED = 200  # in one request

router = make_router("messages", "/api/deliveries", responses=error_responses(401))


class UndeliveredPageJson(TypedDict):
    """A page of undelivered messages, the last one first."""

    deliveries: list[UndeliveredJson]
    next_cursor: Annotated[str | None, Doc("Pass this as `cursor` to get the next page; null if there is none.")]


class ResolutionIn(RequestModel):
    """What to do with undelivered messages."""

    ids: list[Annotated[str, Field(max_length=100)]] = Field(
        min_length=1, max_length=MAX_RESOLVED, description="The ids of deliveries.", examples=[["d_1a2b3c4d5e6f7a8b"]]
    )
    action: Resolution = Field(
        description="`resend`: send them again; one that did arrive is then delivered twice. `sent`, `not_sent`: record"
        " what became of uncertain ones. `dismiss`: take them off the list."
    )


class ResolvedJson(TypedDict):
    """What was done."""

    resolved: Annotated[list[str], Doc("The ids of what was changed.")]
    unchanged: Annotated[list[str], Doc("The ids of what was settled before, or does not exist for you.")]


@router.get("")
async def list_undelivered(
    view: CallerView,
    state: Annotated[Literal["uncertain", "failed"] | None, Query(description="Only these.")] = None,
    platform: Annotated[str | None, Query(max_length=100, description="Only of this platform.")] = None,
    target: Annotated[str | None, Query(max_length=500, description="Only to a chat, such as `telegram:42`.")] = None,
    after: Annotated[Moment | None, Query(description="Only what ended after this; by default, 30 days ago.")] = None,
    before: Annotated[Moment | None, Query(description="Only what ended before this.")] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=MAX_RESOLVED)] = 50,
) -> UndeliveredPageJson:
    """List the messages to chat platforms that failed or may not have arrived, and were not dismissed.

    They are those of your conversations; owners who ask for `all` get those of everybody, and notices.
    """
    page = await view.part(DeliveryOperations).list_undelivered(
        state=state, platform=platform, target=target, after=after, before=before, limit=limit, cursor=cursor
    )
    return {"deliveries": [build_json(UndeliveredJson, each) for each in page], "next_cursor": page.cursor}


@router.post("/resolve")
async def resolve_undelivered(state: State, view: CallerView, body: ResolutionIn) -> ResolvedJson:
    """Settle messages that failed or may not have arrived. One that is settled already is left as it is.

    So two owners who send the same messages again at once send them once.
    """
    resolved, unchanged = [], []
    for delivery_id in dict.fromkeys(body.ids):
        try:
            await view.part(DeliveryOperations).resolve(delivery_id, body.action)
        except (NotFound, NothingToDo):
            unchanged.append(delivery_id)
        else:
            resolved.append(delivery_id)
    if resolved and body.action is Resolution.RESEND:
        state.gateway.outbox.wake()
    return {"resolved": resolved, "unchanged": unchanged}
