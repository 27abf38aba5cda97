"""The live stream: every open page has one, and receives everything that changes through it.

The cursor, sent as `id:`, holds for each followed conversation the number of the last event sent and the turns that
were open at that point. The client sends it back as `Last-Event-ID` when it reconnects; browsers do so by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from fastapi import Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.responses import Response

from palaver.core.errors import InvalidInput
from palaver.core.ids import SESSION_ID_PATTERN
from palaver.core.tasks import run_together
from palaver.core.text import make_json_storable
from palaver.core.texts import current_language, translate_all
from palaver.core.wire import build_json
from palaver.delivery.wire import DeliveryJson
from palaver.live.channels import FollowCursor, FollowedItem, ListsChanged, LiveItem, SessionChanged, SessionRemoved
from palaver.live.clients import MAX_FOLLOWED_SESSIONS, FollowRequest
from palaver.live.feed_events import DeliveryChanged, DraftGrew, EventAppended, FeedItem, NoticeSent, TurnChanged
from palaver.sessions.view_wire import TurnJson
from palaver.web.api_route import hold_until_sent, make_router
from palaver.web.auth import Caller, IncludeAll, wait_until_signed_out
from palaver.web.errors import error_responses
from palaver.web.state import State, WebState
from palaver.web.wire import LogEventJson, log_event_to_json, summary_to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from starlette.types import Receive, Scope, Send

    from palaver.people.model import SignedInPerson
    from palaver.web.open_requests import LiveStreamPlace, OpenRequests


router = make_router("live", "/api")

T = TypeVar("T")

HEARTBEAT_SECONDS: Final = 15.0
_RETRY_MILLISECONDS: Final = 1000
_HEARTBEAT_COMMENT = b": heartbeat\n\n"
_FOLLOW_PATTERN = r"^\d{8}_\d{6}_[0-9a-f]{8}(:\d{1,15})?$"
_MAX_OPEN_TURNS = 1001  # in a cursor: the next ones, of a backlog that may be longer
_CURSOR_ENTRY = re.compile(
    rf"({SESSION_ID_PATTERN.pattern}):(\d{{1,15}})((?:\+t_[0-9a-f]{{16}}){{0,{_MAX_OPEN_TURNS}}})"
)

_STREAM_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": (
            "Server-sent events: `session`, `session_removed`, `event`, `turn`, `draft`, `notice`, `delivery`,"
            " `lists_changed`."
        ),
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def encode_event(name: str, data: str) -> bytes:
    """Encode one event. `data` is JSON without line breaks."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def encode_stream_start(cursor: str) -> bytes:
    """Encode the start of a stream: how soon to reconnect after a lost connection, and from which position."""
    return f"retry: {_RETRY_MILLISECONDS}\nid: {cursor}\n\n".encode()


class EventStream(Response):
    """Sends a generator's chunks until it ends, the client disconnects, or the caller is signed out.

    In that last case the client gets `signed_out_chunk` before the stream ends.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        state: WebState,
        caller: SignedInPerson,
        signed_out_chunk: bytes = b"",
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks
        self._state = state
        self._caller = caller
        self._signed_out_chunk = signed_out_chunk
        self._last_chunk = b""
        self._is_quiet = True  # since the last heartbeat was due

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._chunks):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await run_together(
                self._send_chunks(send),
                self._send_heartbeats(send),
                self._watch_sign_in(),
                _wait_for_disconnect(receive),
            )
        with contextlib.suppress(TimeoutError):  # a client that does not read gets no end of the stream
            async with asyncio.timeout(1):
                await send({"type": "http.response.body", "body": self._last_chunk, "more_body": False})

    async def _watch_sign_in(self) -> None:
        await wait_until_signed_out(self._state, self._caller)
        self._last_chunk = self._signed_out_chunk

    async def _send_chunks(self, send: Send) -> None:
        async for chunk in self._chunks:
            self._is_quiet = False
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._signed_out_chunk = self._last_chunk = b""  # the stream is complete

    async def _send_heartbeats(self, send: Send) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self._is_quiet:
                await send({"type": "http.response.body", "body": _HEARTBEAT_COMMENT, "more_body": True})
            self._is_quiet = True


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@router.get(
    "/live", response_class=StreamingResponse, responses={**_STREAM_RESPONSE, **error_responses(401, 403, 422, 429)}
)
async def open_live_stream(
    request: Request,
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    follow: Annotated[
        list[Annotated[str, Query(pattern=_FOLLOW_PATTERN)]] | None,
        Query(
            max_length=MAX_FOLLOWED_SESSIONS,
            description="A conversation to follow: its id, optionally with a colon and the number of the last event"
            " that you have.",
        ),
    ] = None,
    last_event_id: Annotated[
        str | None,
        Header(
            description="The last `id:` of an earlier stream; empty if there was none and you want a `lists_changed`"
            " as soon as no change is missed any more."
        ),
    ] = None,
) -> EventStream:
    """Stream everything that changes in the conversations you can see.

    You receive each event of a followed conversation once and in order. After a lost connection, reconnect with the
    last `id:` as `Last-Event-ID` to receive what you missed first. `session`, `turn`, `draft` and `delivery` carry the
    current state and may be repeated. A `draft` with `replaces_draft` contains the whole draft and replaces what you
    have. `lists_changed` means that lists may have changed while you were disconnected: fetch them again. With too many
    streams, your oldest one ends, or the new one is refused with 429.
    """
    follows = _parse_follows(follow or [], last_event_id)
    open_requests: OpenRequests = request.app.state.open_requests
    place = hold_until_sent(request, open_requests.hold_stream(caller.person.id))
    chunks = _encode_stream(
        state, caller, place, follows, include_all=include_all, is_reconnect=last_event_id is not None
    )
    return EventStream(chunks, state, caller)


async def _encode_stream(
    state: WebState,
    caller: SignedInPerson,
    place: LiveStreamPlace,
    follows: Sequence[FollowRequest],
    *,
    include_all: bool,
    is_reconnect: bool,
) -> AsyncGenerator[bytes, None]:
    cursor, connected, language = _Cursor(follows), state.gateway.platforms, current_language.get()
    async with state.live.connect(caller.principal, follows, everything=include_all) as client:
        place.on_taken_away(client.close)
        yield encode_stream_start(str(cursor))
        if is_reconnect:
            yield _encode_item(ListsChanged(), connected, language)
        while items := await client.take_items():
            yield b"".join(cursor.encode(item, connected, language) for item in items)


class _Cursor:
    """A client's position in each conversation that it follows."""

    def __init__(self, follows: Sequence[FollowRequest]) -> None:
        self._seq = {follow.session_id: follow.after for follow in follows}
        self._turns = {follow.session_id: dict.fromkeys(follow.open_turn_ids) for follow in follows}

    def advance(self, item: LiveItem) -> bool:
        """Move past an item that is about to be sent; return whether that changes the position."""
        match item:
            case FollowCursor(session_id, seq):
                self._seq[session_id] = seq
            case FollowedItem(session_id, EventAppended(event)):
                self._seq[session_id] = event.seq
            case FollowedItem(session_id, TurnChanged(turn)):
                if turn.state.has_ended:
                    self._turns[session_id].pop(turn.id, None)
                else:
                    self._turns[session_id][turn.id] = None
            case SessionRemoved(session_id):
                self._seq.pop(session_id, None)
            case _:
                return False
        return True

    def encode(self, item: LiveItem, connected: frozenset[str], language: str) -> bytes:
        """Encode an item for this client, with its new position if that changes."""
        has_moved = self.advance(item)
        if isinstance(item, FollowCursor):
            return encode_stream_start(str(self))
        event = _encode_item(item, connected, language)
        return f"id: {self}\n".encode() + event if has_moved else event

    def __str__(self) -> str:
        return ",".join(
            f"{session_id}:{seq}" + "".join(f"+{turn}" for turn in islice(self._turns[session_id], _MAX_OPEN_TURNS))
            for session_id, seq in self._seq.items()
            if seq is not None
        )


def _parse_follows(follow: Sequence[str], cursor: str | None) -> list[FollowRequest]:
    """Parse what to follow and from which event. The cursor wins over the URL, which is as old as the page."""
    from_cursor = {}
    for entry in cursor.split(",") if cursor else ():
        match = _CURSOR_ENTRY.fullmatch(entry)
        if match is None:
            raise InvalidInput(
                "Last-Event-ID: not a valid cursor. Use the `id:` of an earlier stream, or leave it out."
            )
        from_cursor[match[1]] = FollowRequest(match[1], int(match[2]), tuple(match[3].split("+")[1:]))
    follows = {}
    for value in follow:
        session_id, _, after = value.partition(":")
        follows[session_id] = from_cursor.get(session_id) or FollowRequest(session_id, int(after) if after else None)
    return list(follows.values())


_EVENT, _TURN, _DELIVERY = TypeAdapter(LogEventJson), TypeAdapter(TurnJson), TypeAdapter(DeliveryJson)


def _dump(adapter: TypeAdapter[T], data: T) -> str:
    """Encode a shape, without the keys that it does not declare."""
    return adapter.dump_json(data).decode()


@lru_cache(maxsize=32)  # several clients receive the same object at about the same time; items can be large
def _encode_item(
    item: SessionChanged | SessionRemoved | ListsChanged | FollowedItem, connected: frozenset[str], language: str
) -> bytes:
    """Encode an item in the language of the request, which is part of what the cache goes by."""
    match item:
        case SessionChanged(summary):
            return encode_event("session", to_json(summary_to_json(summary, connected, with_owner=True)).decode())
        case SessionRemoved(session_id):
            return encode_event("session_removed", json.dumps({"id": session_id}))
        case ListsChanged():
            return encode_event("lists_changed", "{}")
        case FollowedItem():
            return encode_event(*_encode_feed_item(item, item.item, language))


def _encode_feed_item(followed: FollowedItem, item: FeedItem, language: str) -> tuple[str, str]:
    session = f'{{"session_id":"{followed.session_id}"'
    match item:
        case EventAppended(event):
            return "event", f'{session},"event":{_dump(_EVENT, log_event_to_json(event, followed.person_names))}}}'
        case TurnChanged(turn):
            return "turn", f'{session},"turn":{_dump(_TURN, build_json(TurnJson, turn))}}}'
        case DraftGrew(turn_id, pieces, replaces_draft):
            data = {
                "turn_id": turn_id,
                "replaces_draft": replaces_draft,
                "pieces": make_json_storable([piece.to_dict() for piece in pieces]),
            }
            return "draft", f"{session},{json.dumps(data)[1:]}"
        case DeliveryChanged(delivery):
            return "delivery", f'{session},"delivery":{_dump(_DELIVERY, build_json(DeliveryJson, delivery))}}}'
        case NoticeSent(turn_id, text, code, facts):
            notice = {"turn_id": turn_id, "text": text, "code": code, "facts": dict(facts)}
            return "notice", f"{session},{json.dumps(make_json_storable(translate_all(notice, language)))[1:]}"
