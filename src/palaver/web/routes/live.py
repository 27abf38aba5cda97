"""The live stream: one for each page that is open, with everything that changes in it.

The cursor that goes out as `id:` holds, for every conversation that is followed, the last event that was sent and the
turns that were open then. It comes back as `Last-Event-ID`, from a browser by itself.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from palaver.domain.errors import InvalidInput, StoreError
from palaver.domain.feed_events import DeliveryChanged, Drafted, Happened, Noticed, TurnChanged
from palaver.domain.ids import SESSION_ID
from palaver.services.live.channels import Followed, ListsChanged, Placed, SessionChanged, SessionGone
from palaver.services.live.clients import MOST_FOLLOWED, Place
from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.message_schemas import delivery_out, event_out, turn_out
from palaver.web.schemas import clean
from palaver.web.session_schemas import session_out
from palaver.web.sse import EventStream, beginning, frame
from palaver.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from palaver.domain.account import Signed
    from palaver.domain.feed_events import FeedItem
    from palaver.services.live.channels import LiveItem
    from palaver.web.state import WebState

router = APIRouter(tags=["live"])

_FOLLOW = r"^\d{8}_\d{6}_[0-9a-f]{8}(:\d{1,15})?$"
_MOST_OPEN = 1001  # turns: one that runs, and as many as `turns.queue_limit` may let wait
_ENTRY = re.compile(rf"({SESSION_ID.pattern}):(\d{{1,15}})((?:\+t_[0-9a-f]{{16}}){{0,{_MOST_OPEN}}})")

_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": (
            "Server-sent events: `session`, `gone`, `event`, `turn`, `draft`, `notice`, `delivery`, `lists`."
        ),
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/live", response_class=StreamingResponse, responses={**_STREAM, **answers(401, 403, 422)})
async def follow_live(
    state: State,
    signed: SignedIn,
    _view: SeenBy,  # refuses `all` to whoever may not ask for it
    follow: Annotated[
        list[Annotated[str, Query(pattern=_FOLLOW)]] | None,
        Query(
            max_length=MOST_FOLLOWED,
            description="A conversation to follow: its id and, after a colon, the number of the last event you have.",
        ),
    ] = None,
    everything: Annotated[bool, Query(alias="all", include_in_schema=False)] = False,
    last_event_id: Annotated[str | None, Header(description="Where an earlier stream ended.")] = None,
) -> EventStream:
    """Everything that changes in what you see, for as long as you listen.

    Every event of a conversation that you follow comes once and in order. After a cut, come back with the last `id:` as
    `Last-Event-ID`: what you have missed comes first. `session`, `turn`, `draft` and `delivery` say how something
    stands now; they may come again. A `draft` with `afresh` holds all there is so far: forget what was drafted before.
    `lists` means that lists may have changed meanwhile: fetch them again.
    """
    places = _places(follow or [], last_event_id)
    chunks = _chunks(state, signed, places, everything=everything, again=last_event_id is not None)

    async def still_allowed() -> bool:
        try:
            return await state.accounts.still_signed_in(signed)
        except StoreError:  # nobody knows: they come back, and are asked again who they are
            return False

    return EventStream(chunks, still_allowed=still_allowed)


async def _chunks(
    state: WebState, signed: Signed, places: Sequence[Place], *, everything: bool, again: bool
) -> AsyncGenerator[bytes, None]:
    cursor, connected = _Cursor(places), state.gateway.platforms
    async with state.live.client(signed.principal, places, everything=everything) as client:
        yield beginning(str(cursor))
        if again:
            yield frame(*_encoded(ListsChanged(), connected))
        async for item in client.items():
            moved = cursor.move(item)
            if isinstance(item, Placed):
                yield beginning(str(cursor))
            else:
                name, data = _encoded(item, connected)
                yield frame(name, data, str(cursor) if moved else None)


# ---- the cursor ------------------------------------------------------------------------------------------


class _Cursor:
    """Where a client is in the conversations it follows, as far as it was told."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._seq = {place.session_id: place.after for place in places}
        self._turns = {place.session_id: dict.fromkeys(place.turns) for place in places}

    def move(self, item: LiveItem) -> bool:
        """Go on with what is told now; whether that is another place than before."""
        match item:
            case Placed(session_id, seq):
                self._seq[session_id] = seq
            case Followed(session_id, Happened(event)):
                self._seq[session_id] = event.seq
            case Followed(session_id, TurnChanged(turn)):
                if turn.state.ended:
                    self._turns[session_id].pop(turn.id, None)
                else:
                    self._turns[session_id][turn.id] = None
            case SessionGone(session_id):
                self._seq.pop(session_id, None)
            case _:
                return False
        return True

    def __str__(self) -> str:
        return ",".join(
            f"{session_id}:{seq}" + "".join(f"+{turn}" for turn in self._turns[session_id])
            for session_id, seq in self._seq.items()
            if seq is not None
        )


def _places(follow: Sequence[str], cursor: str | None) -> list[Place]:
    """What to follow, and from where: a cursor knows better than the address, which is as old as the page."""
    known = {}
    for entry in cursor.split(",") if cursor else ():
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise InvalidInput("Last-Event-ID: this is not a cursor that a stream has given; leave it out")
        known[match[1]] = Place(match[1], int(match[2]), tuple(match[3].split("+")[1:]))
    found = {}
    for wanted in follow:
        session_id, _, after = wanted.partition(":")
        found[session_id] = known.get(session_id) or Place(session_id, int(after) if after else None)
    return list(found.values())


# ---- on the wire -----------------------------------------------------------------------------------------


@lru_cache(maxsize=512)  # several clients are told the same thing, which is the same object
def _encoded(
    item: SessionChanged | SessionGone | ListsChanged | Followed, connected: frozenset[str]
) -> tuple[str, str]:
    match item:
        case SessionChanged(overview):
            return "session", session_out(overview, connected, with_owner=True).model_dump_json()
        case SessionGone(session_id):
            return "gone", json.dumps({"id": session_id})
        case ListsChanged():
            return "lists", "{}"
        case Followed():
            return _followed(item, item.item)


def _followed(told: Followed, item: FeedItem) -> tuple[str, str]:
    session = f'{{"session_id":"{told.session_id}"'
    match item:
        case Happened(event):
            return "event", f'{session},"event":{event_out(event, told.names).model_dump_json()}}}'
        case TurnChanged(turn):
            return "turn", f'{session},"turn":{turn_out(turn).model_dump_json()}}}'
        case Drafted(turn_id, pieces, afresh):
            data = {"turn_id": turn_id, "afresh": afresh, "pieces": clean([piece.to_dict() for piece in pieces])}
            return "draft", f"{session},{json.dumps(data)[1:]}"
        case DeliveryChanged(delivery):
            return "delivery", f'{session},"delivery":{delivery_out(delivery).model_dump_json()}}}'
        case Noticed(turn_id, text):
            return "notice", f"{session},{json.dumps(clean({'turn_id': turn_id, 'text': text}))[1:]}"
