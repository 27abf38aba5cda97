"""Which events of a room are new to us: filters for the homeserver, gaps, and what came before we joined. Pure."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from palaver.platforms.matrix.rooms import JsonObject, read_object

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMELINE_LIMIT = 100  # events of one room in one sync; more of them make a gap

_STATE_TYPES = [
    "m.room.name",
    "m.room.topic",
    "m.room.canonical_alias",
    "m.room.encryption",
    "m.room.tombstone",
    "m.room.member",
]
_EVENT_TYPES = [
    *_STATE_TYPES,
    "m.room.message",
    "m.room.encrypted",
    "m.sticker",
    "m.reaction",
    "m.room.redaction",
]
_NOTHING: dict[str, Any] = {"not_types": ["*"]}

EVENT_FILTER: dict[str, Any] = {"types": _EVENT_TYPES, "lazy_load_members": True}


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


def read_events(section: object) -> list[JsonObject]:
    """Return the events of a part of a sync."""
    events = read_object(section).get("events")
    return [event for event in events if read_object(event)] if isinstance(events, list) else []


def find_invitation(events: Sequence[JsonObject], own_user_id: str) -> int | None:
    """Return the index of the event from which on a room that we have just joined is for us; None: not among these.

    It is our invitation, because people invite an account and write to it at once; without an invitation it is the
    event in which we joined.
    """
    joined = _find_last(events, own_user_id, "join")
    invited = _find_last(events if joined is None else events[:joined], own_user_id, "invite")
    if invited is not None or joined is None:
        return invited
    was_invited = read_object(read_object(events[joined].get("unsigned")).get("prev_content"))
    return None if was_invited.get("membership") == "invite" else joined


def find_join(events: Sequence[JsonObject], own_user_id: str) -> int | None:
    """Return the index of the event in which we joined; None: it is not among these."""
    return _find_last(events, own_user_id, "join")


def _find_last(events: Sequence[JsonObject], own_user_id: str, membership: str) -> int | None:
    indexes = range(len(events) - 1, -1, -1)
    return next((index for index in indexes if _is_own_membership(events[index], own_user_id, membership)), None)


def _is_own_membership(event: JsonObject, own_user_id: str, membership: str) -> bool:
    if event.get("type") != "m.room.member" or event.get("state_key") != own_user_id:
        return False
    previous = read_object(read_object(event.get("unsigned")).get("prev_content"))
    return (
        read_object(event.get("content")).get("membership") == membership and previous.get("membership") != membership
    )
