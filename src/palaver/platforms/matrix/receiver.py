"""Receives: sync → every event of the batch is accepted → the position is stored with the last one.

Always true: the position moves only after everything before it is stored. A homeserver that leaves out events of a busy
room (`limited`) is asked for them, back to the stored position. The first start reads no old messages, but accepts
invitations. An encrypted message whose key is missing is noted before the position moves, and read when the key comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
import time
from collections import deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from palaver.core.dataclass import dataclass
from palaver.core.errors import DeliveryError
from palaver.core.recent_entries import RecentEntries
from palaver.core.source import ChatType
from palaver.core.tasks import BackgroundTasks
from palaver.core.texts import chat_language, say, translate
from palaver.gateway.intake import Intake
from palaver.platforms.common.failures import RequestError
from palaver.platforms.common.inbound import accept_updates
from palaver.platforms.matrix.client import MatrixClient, RequestRefused
from palaver.platforms.matrix.inbound import (
    JsonObject,
    Reader,
    Room,
    RoomDirectory,
    SeenEvent,
    describe_event,
    find_references,
    read_event,
    read_events,
    read_object,
    read_text,
    read_verification_request,
)
from palaver.sessions.inbound import AnyUpdate, ChatMoved, Cursor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from palaver.delivery.adapter import AccountLink
    from palaver.platforms.matrix.encryption import RoomEncryption

log = logging.getLogger(__name__)

TIMELINE_LIMIT = 100  # events of one room in one sync; more of them make a gap
OWN_TRANSACTION_PREFIX = "x-"  # of events that are no delivery: edits, reactions, these notices
MAX_GAP_EVENTS = 5_000  # that are fetched for one room; older ones of a longer gap are left out
MAX_EVENTS_BEFORE_JOIN = 500  # that are searched for our invitation
PAGE_EVENTS = 100
MAX_SEEN_EVENTS = 5_000
MAX_INVITES_PER_HOUR = 60
MAX_VERIFICATIONS_PER_HOUR = 60  # that are canceled; others end by themselves after ten minutes
MAX_WAITING_EVENTS = 500
MAX_RATE_LIMIT_SECONDS = 60.0
KEY_GRACE_SECONDS = 20.0  # keys often arrive shortly after the message
KEY_WAIT_SECONDS = 7 * 24 * 3600.0
WAITING = "waiting"  # the name of the cursor that lists the events without a key

_ROOM_STATES = ("name", "topic", "canonical_alias", "encryption", "tombstone", "member")
_STATE_TYPES = [f"m.room.{name}" for name in _ROOM_STATES]
_EVENT_TYPES = [*_STATE_TYPES, "m.room.message", "m.room.encrypted", "m.sticker", "m.reaction", "m.room.redaction"]
_NOTHING: dict[str, Any] = {"not_types": ["*"]}
EVENT_FILTER: dict[str, Any] = {"types": _EVENT_TYPES, "lazy_load_members": True}

CANNOT_READ_ROOM = say(
    "matrix.cannot_read_room",
    "I can't read messages in this room, because it is encrypted and encryption isn't set up for me."
    " Write to me in a room without encryption, or ask the operator of this server to install"
    " palaver[matrix-encryption].",
)
CANNOT_READ_MESSAGE = say(
    "matrix.cannot_read_message",
    "I can't read your message yet: I haven't received its encryption key. I'll answer as soon as the key"
    " arrives. If that takes long, send the message again.",
)

CANNOT_VERIFY = say(
    "matrix.cannot_verify",
    "I can't verify devices, because that needs a person who compares emoji or scans a code. You don't need it to"
    " talk to me: just write your message.",
)


def build_sync_filter(limit: int = TIMELINE_LIMIT) -> dict[str, Any]:
    """Return a filter for what this adapter reads. Members are sent only if they have written something."""
    return {
        "presence": _NOTHING,
        "account_data": {"types": ["m.direct"]},
        "room": {
            "timeline": {**EVENT_FILTER, "limit": limit},
            "state": {"types": _STATE_TYPES, "lazy_load_members": True, "include_redundant_members": True},
            "ephemeral": _NOTHING,
            "account_data": _NOTHING,
        },
    }


def build_snapshot_filter() -> dict[str, Any]:
    """Return a filter for the current state of all rooms.

    It excludes a room that does not exist, so that each one differs: Synapse answers an equal request with what it
    said up to two minutes before, and we would start with a state that is older than our position.
    """
    sync_filter = build_sync_filter(limit=1)
    sync_filter["room"]["not_rooms"] = [f"!{secrets.token_hex(8)}:invalid"]
    return sync_filter


def find_invitation(events: Sequence[JsonObject], own_user_id: str) -> int | None:
    """Return the index of the event from which on a room that we have just joined is for us; None: not among these.

    It is our invitation, because people invite an account and write to it at once; without an invitation it is the
    event in which we joined.
    """
    joined = _find_last(events, own_user_id, "join")
    invited = _find_last(events if joined is None else events[:joined], own_user_id, "invite")
    if invited is not None or joined is None:
        return invited
    before = read_object(events[joined], "unsigned", "prev_content").get("membership")
    return None if before == "invite" else joined


def _find_last(events: Sequence[JsonObject], own_user_id: str, membership: str) -> int | None:
    """Return the index of the last event in which we joined, or were invited; None: it is not among these."""
    for index, event in reversed(list(enumerate(events))):
        if event.get("type") == "m.room.member" and event.get("state_key") == own_user_id:
            previous = read_object(event, "unsigned", "prev_content").get("membership")
            if previous != membership == read_object(event, "content").get("membership"):
                return index
    return None


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An encrypted event whose key has not arrived."""

    room: str
    event: str
    since: float
    is_told: bool = False


class Receiver:
    """Reads the account's events, in order, each once."""

    def __init__(
        self,
        client: MatrixClient,
        rooms: RoomDirectory,
        reader: Reader,
        encryption: RoomEncryption | None,
        link: AccountLink,
    ) -> None:
        self._client = client
        self._rooms = rooms
        self._reader = reader
        self._encryption = encryption
        self._link = link
        self._filter = build_sync_filter()
        self._seen: RecentEntries[str, SeenEvent] = RecentEntries(MAX_SEEN_EVENTS)
        self._invite_times: deque[float] = deque(maxlen=MAX_INVITES_PER_HOUR)
        self._waiting: list[WaitingEvent] = []
        self._joins = BackgroundTasks("palaver-matrix-join")
        self._verification_times: deque[float] = deque(maxlen=MAX_VERIFICATIONS_PER_HOUR)

    async def run(self) -> None:
        """Receive until canceled. Raises RequestError when a sync fails."""
        try:
            async with Intake(self._link) as intake:
                await self._receive(intake)
        finally:
            await self._joins.end()

    async def _receive(self, intake: Intake) -> None:
        position = await self._start()
        self._link.report_connected()
        wait = False
        while True:
            try:
                batch = await self._client.sync(position, sync_filter=self._filter, wait=wait)
            except RequestRefused as error:
                if not error.is_rate_limit:
                    raise
                await asyncio.sleep(min(error.retry_after or 1.0, MAX_RATE_LIMIT_SECONDS))
                continue
            position = await self._accept_batch(intake, batch, position)
            self._link.report_connected()
            wait = True

    async def _start(self) -> str:
        """Read the current state of all rooms, and return the position to go on from."""
        position = await self._link.load_cursor()
        snapshot = await self._client.sync(None, sync_filter=build_snapshot_filter(), wait=False)
        self._rooms.apply_account_data(snapshot)
        for room_id, joined in read_object(snapshot, "rooms", "join").items():
            room = self._rooms.apply_joined(room_id, read_object(joined))
            for event in read_events(read_object(joined).get("timeline")):
                room.apply_state(event)
        if position is None:
            if self._encryption is not None:
                self._encryption.receive(snapshot)
            position = str(snapshot["next_batch"])
            await self._link.save_cursor(Cursor(position))
        if self._encryption is not None:
            await self._encryption.exchange_keys()
            stored = json.loads(await self._link.load_cursor(WAITING) or "[]")
            self._waiting = [WaitingEvent(**fields) for fields in stored]
        self._join_invited(snapshot)
        return position

    async def _accept_batch(self, intake: Intake, batch: JsonObject, position: str) -> str:
        next_position = str(batch["next_batch"])
        self._rooms.apply_account_data(batch)
        waiting = list(self._waiting)
        updates: list[AnyUpdate] = []
        if self._encryption is not None and self._encryption.receive(batch):
            updates += await self._read_waiting()
        for event in read_events(batch.get("to_device")):
            await self._refuse_verification(event, None)
        for room_id, joined in read_object(batch, "rooms", "join").items():
            updates += await self._read_joined(room_id, read_object(joined), position)
        for room_id, left in read_object(batch, "rooms", "leave").items():
            if (room := self._rooms.get(room_id)) is not None:
                updates += await self._read_timeline(room, read_events(read_object(left).get("timeline")))
                self._rooms.pop(room_id, None)
        cursor = None if next_position == position else Cursor(next_position)
        await self._accept_updates(intake, updates, waiting, cursor)
        self._join_invited(batch)
        if self._encryption is not None:
            await self._encryption.exchange_keys()
            await self._tell_waiting()
        return next_position

    async def _accept_updates(
        self,
        intake: Intake,
        updates: list[AnyUpdate],
        waiting: list[WaitingEvent],
        cursor: Cursor | None,
    ) -> None:
        """Store updates, then the position. A new waiting event is noted before, one that was read is removed after."""
        added = [event for event in self._waiting if event not in waiting]
        if added:
            await self._save_waiting([*waiting, *added])
        await accept_updates(intake, updates, cursor)
        if any(event not in self._waiting for event in waiting):
            await intake.wait_until_stored()
            await self._save_waiting(self._waiting)

    async def _read_joined(self, room_id: str, joined: JsonObject, position: str) -> list[AnyUpdate]:
        was_known = self._rooms.get(room_id) is not None
        room = self._rooms.apply_joined(room_id, joined)
        timeline = read_object(joined, "timeline")
        events, state = read_events(timeline), read_events(joined.get("state"))
        own_user_id = self._reader.own_user_id
        is_new = not was_known or _find_last([*state, *events], own_user_id, "join") is not None
        previous = read_text(timeline.get("prev_batch"))
        if timeline.get("limited") is True and previous is not None:
            if not is_new:
                events = [*await self._fetch_gap(room_id, previous, position), *events]
            elif find_invitation(events, own_user_id) is None:
                events = [*await self._fetch_since_invitation(room_id, previous, events), *events]
        if is_new:
            start = find_invitation(events, own_user_id)
            start = start if start is not None else _find_last(events, own_user_id, "join") or 0
            for event in events[:start]:
                room.apply_state(event)
            events = events[start:]
            if self._encryption is not None:
                self._encryption.forget_members(room_id)
        return await self._read_timeline(room, events)

    async def _fetch_gap(self, room_id: str, previous: str, position: str) -> list[JsonObject]:
        """Fetch the events between the stored position and a timeline that does not reach back to it."""
        log.info("matrix_gap", extra={"room": room_id})
        found: list[JsonObject] = []
        try:
            async for events in self._iterate_pages(room_id, previous, position):
                if len(found) >= MAX_GAP_EVENTS:
                    log.warning("matrix_gap_too_long", extra={"room": room_id, "events": len(found)})
                    break
                found += events
        except RequestRefused as error:  # we may be no longer in the room
            if error.status not in {403, 404}:
                raise
            log.warning("matrix_gap_not_readable", extra={"room": room_id, "error": str(error)})
        return found[::-1]

    async def _fetch_since_invitation(
        self, room_id: str, previous: str, timeline: list[JsonObject]
    ) -> list[JsonObject]:
        """Fetch the events since our invitation to a room, where so many came since that the timeline lacks it."""
        found: list[JsonObject] = []
        async for events in self._iterate_pages(room_id, previous, None):
            found += events
            if find_invitation([*found[::-1], *timeline], self._reader.own_user_id) is not None:
                return found[::-1]
            if len(found) >= MAX_EVENTS_BEFORE_JOIN:
                break
        return []

    async def _iterate_pages(self, room_id: str, start: str, end: str | None) -> AsyncIterator[list[JsonObject]]:
        """Yield the events before a position, newest first."""
        token: str | None = start
        while token is not None:
            page = await self._client.fetch_messages(room_id, token, end, event_filter=EVENT_FILTER, limit=PAGE_EVENTS)
            yield read_events({"events": page.get("chunk")})
            following = read_text(page.get("end"))
            token = None if following == token else following

    async def _read_timeline(self, room: Room, events: list[JsonObject]) -> list[AnyUpdate]:
        updates: list[AnyUpdate] = []
        for event in events:
            room.apply_state(event)
            if event.get("type") == "m.room.member" and self._encryption is not None:
                self._encryption.forget_members(room.room_id)
            await self._confirm_own(event)
            clear = event
            if event.get("type") == "m.room.encrypted":
                found = await self._decrypt(room, event)
                if found is None:
                    continue
                clear = found
            if (update := await self._read_one(room, clear)) is not None:
                updates.append(update)
        return updates

    async def _confirm_own(self, event: JsonObject) -> None:
        """Report the echo of a message that this device has sent."""
        transaction = read_text(read_object(event, "unsigned").get("transaction_id"))
        event_id = read_text(event.get("event_id"))
        is_own = event.get("sender") == self._reader.own_user_id
        if is_own and transaction and event_id and not transaction.startswith(OWN_TRANSACTION_PREFIX):
            await self._link.confirm(transaction, event_id)

    async def _read_one(self, room: Room, event: JsonObject) -> AnyUpdate | None:
        event_id = read_text(event.get("event_id"))
        if event_id and (description := describe_event(event)) is not None:
            self._seen.remember(event_id, description)
        if event.get("sender") != self._reader.own_user_id:
            await self._refuse_verification(event, room)
            for reference in find_references(event):
                await self._look_up(room, reference)
        update = read_event(event, room, self._reader, self._seen)
        if isinstance(update, ChatMoved):
            self._start_join(update.new_chat_id, read_text(event.get("sender")))
        return update

    async def _look_up(self, room: Room, event_id: str) -> None:
        """Fetch an event that another one refers to, unless it was seen."""
        if event_id in self._seen:
            return
        try:
            event = await self._client.fetch_event(room.room_id, event_id)
        except RequestRefused as error:
            if error.is_bad_token:
                raise
            event = None  # a homeserver that can't read one event must not keep us from all others
        if event is None:
            return
        if event.get("type") == "m.room.encrypted" and self._encryption is not None:
            event = self._encryption.decrypt(room.room_id, event) or event
        if (description := describe_event(event)) is not None:
            self._seen.remember(event_id, description)

    def _join_invited(self, sync: JsonObject) -> None:
        """Accept invitations. Who may talk to the agent is decided when a person writes."""
        for room_id, invited in read_object(sync, "rooms", "invite").items():
            events = read_events(read_object(invited).get("invite_state"))
            own = [event for event in events if event.get("state_key") == self._reader.own_user_id]
            self._start_join(room_id, read_text(own[-1].get("sender")) if own else None)

    def _start_join(self, room_id: str, invited_by: str | None) -> None:
        """Join a room beside everything else: a room on another server can take minutes."""
        if not _count_in_hour(self._invite_times):
            log.warning("matrix_invite_ignored", extra={"room": room_id, "reason": "too many in one hour"})
            return
        self._joins.start(self._join(room_id, (invited_by or "").partition(":")[2] or None))

    async def _join(self, room_id: str, via: str | None) -> None:
        try:
            await self._client.join_room(room_id, via=via)
        except RequestError as error:
            log.warning("matrix_join_failed", extra={"room": room_id, "error": str(error)})

    async def _refuse_verification(self, event: JsonObject, room: Room | None) -> None:
        """Cancel the verification that an event may ask for, so that the other side stops waiting, and say why."""
        request = read_verification_request(event, self._reader.own_user_id, time.time())
        if request is None:
            return
        if not _count_in_hour(self._verification_times):
            log.warning("matrix_verification_ignored", extra={"reason": "too many in one hour"})
            return
        event_type, reason = "m.key.verification.cancel", translate(CANNOT_VERIFY, chat_language.name)
        content: dict[str, Any] = {"code": "m.unknown_method", "reason": reason}
        if room is not None:
            content["m.relates_to"] = {"rel_type": "m.reference", "event_id": request.id}
            await self._send_own_event(room.room_id, event_type, content, request.id)
        else:
            messages = {request.sender: {request.device_id: {**content, "transaction_id": request.id}}}
            try:
                await self._client.send_to_devices(event_type, {"messages": messages})
            except RequestError as error:
                log.warning("matrix_verification_not_canceled", extra={"error": str(error)})
            chats = (each for each in self._rooms.values() if each.chat_type is ChatType.DM)
            room = next((each for each in chats if request.sender in each.member_names), None)
        if room is not None and request.sender != self._reader.own_user_id:
            await self._tell_once(room, "verification", CANNOT_VERIFY)

    async def _decrypt(self, room: Room, event: JsonObject) -> JsonObject | None:
        """Return an event in clear. One without a key waits for it, unless we wrote it ourselves."""
        if self._encryption is not None:
            clear = self._encryption.decrypt(room.room_id, event)
            if clear is not None:
                return clear
        event_id = read_text(event.get("event_id"))
        if event.get("sender") == self._reader.own_user_id or not event_id:
            return None
        if self._encryption is None:
            await self._tell_encrypted(room)
        elif len(self._waiting) < MAX_WAITING_EVENTS and all(known.event != event_id for known in self._waiting):
            self._waiting.append(WaitingEvent(room.room_id, event_id, time.time()))
        return None

    async def _read_waiting(self) -> list[AnyUpdate]:
        """Read the waiting events whose keys have come, and forget those whose keys will not come any more."""
        assert self._encryption is not None  # noqa: S101
        updates: list[AnyUpdate] = []
        for waiting in list(self._waiting):
            room = self._rooms.get(waiting.room)
            event = await self._client.fetch_event(waiting.room, waiting.event) if room is not None else None
            if room is None or event is None or time.time() - waiting.since > KEY_WAIT_SECONDS:
                self._waiting.remove(waiting)
            elif (clear := self._encryption.decrypt(room.room_id, event)) is not None:
                self._waiting.remove(waiting)
                if (update := await self._read_one(room, clear)) is not None:
                    updates.append(update)
        return updates

    async def _save_waiting(self, waiting: list[WaitingEvent]) -> None:
        await self._link.save_cursor(Cursor(json.dumps([asdict(event) for event in waiting]), WAITING))

    async def _tell_waiting(self) -> None:
        """Tell people in direct chats that their message can't be read yet, once for all that wait there."""
        now = time.time()
        late = [event for event in self._waiting if not event.is_told and now - event.since > KEY_GRACE_SECONDS]
        if not late:
            return
        self._waiting = [replace(event, is_told=True) if event in late else event for event in self._waiting]
        await self._save_waiting(self._waiting)
        for room_id in dict.fromkeys(event.room for event in late):
            room = self._rooms.get(room_id)
            if room is not None and room.chat_type is ChatType.DM:
                await self._send_notice(room_id, CANNOT_READ_MESSAGE, late[0].event)

    async def _tell_encrypted(self, room: Room) -> None:
        """Say once in a room that its messages can't be read."""
        if await self._tell_once(room, "encrypted", CANNOT_READ_ROOM):
            log.warning("matrix_room_encrypted", extra={"room": room.room_id})

    async def _tell_once(self, room: Room, about: str, text: str) -> bool:
        """Say something in a room that was never said there; return whether it was said now."""
        name = f"told-{about}:{room.room_id}"
        if await self._link.load_cursor(name) is not None or not await self._send_notice(room.room_id, text, about):
            return False
        await self._link.save_cursor(Cursor("yes", name))
        return True

    async def _send_notice(self, room_id: str, text: str, about: str) -> bool:
        """Send a text of the adapter itself: what can't be read can't be answered in the usual way."""
        content = {"msgtype": "m.notice", "body": translate(text, chat_language.name), "m.mentions": {}}
        return await self._send_own_event(room_id, "m.room.message", content, about)

    async def _send_own_event(self, room_id: str, event_type: str, content: dict[str, Any], about: str) -> bool:
        digest = hashlib.sha256(f"{room_id} {about}".encode()).hexdigest()[:24]
        room = self._rooms.get(room_id)
        try:
            if self._encryption is not None and room is not None and room.is_encrypted:
                content = await self._encryption.encrypt(room_id, event_type, content)
                event_type = "m.room.encrypted"
            await self._client.send_event(room_id, event_type, content, f"{OWN_TRANSACTION_PREFIX}{digest}")
        except (RequestError, DeliveryError) as error:
            log.warning("matrix_notice_not_sent", extra={"room": room_id, "error": str(error)})
            return False
        return True


def _count_in_hour(times: deque[float]) -> bool:
    """Count something; return False if it was done as often as `times` has places within the last hour."""
    now = time.monotonic()
    if len(times) == times.maxlen and now - times[0] < 3600:
        return False
    times.append(now)
    return True
