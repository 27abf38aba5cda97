"""What is known about the rooms that the account is in: names, members, encryption. Pure: it reads state events.

A room is a direct chat while it has at most two members, invited ones included: no other person reads along. With
a third member it is a group, even if a member has marked it as a direct chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.core.source import ChatType

JsonObject = Mapping[str, Any]


def read_object(value: object) -> JsonObject:
    """Return a JSON object; an empty one for anything else, because other people write what events contain."""
    return value if isinstance(value, Mapping) else {}


def read_text(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


@dataclass(slots=True)
class Room:
    """A room, as far as its state has been seen."""

    room_id: str
    name: str | None = None
    alias: str | None = None
    topic: str | None = None
    is_encrypted: bool = False
    is_marked_direct: bool = False  # in the account data of our account
    replacement: str | None = None  # the room that has replaced this one
    joined_count: int | None = None
    invited_count: int | None = None
    member_names: dict[str, str] = field(default_factory=dict)  # of members who have been seen

    @property
    def title(self) -> str | None:
        return self.name or self.alias

    @property
    def chat_type(self) -> ChatType:
        if self.joined_count is None:
            return ChatType.DM if self.is_marked_direct else ChatType.GROUP
        return ChatType.DM if self.joined_count + (self.invited_count or 0) <= 2 else ChatType.GROUP

    def get_member_name(self, user_id: str) -> str:
        """Return the display name of a member, or the first part of the user id."""
        return self.member_names.get(user_id) or user_id.removeprefix("@").partition(":")[0]

    def apply_summary(self, summary: object) -> None:
        """Take over the member counts; the server leaves out what has not changed."""
        fields = read_object(summary)
        for name, attribute in (("m.joined_member_count", "joined_count"), ("m.invited_member_count", "invited_count")):
            if isinstance(count := fields.get(name), int):
                setattr(self, attribute, count)

    def apply_state(self, event: JsonObject) -> None:
        """Take over a state event; other events say nothing about the room."""
        if "state_key" not in event:
            return
        content = read_object(event.get("content"))
        match event.get("type"):
            case "m.room.name":
                self.name = read_text(content.get("name"))
            case "m.room.topic":
                self.topic = read_text(content.get("topic"))
            case "m.room.canonical_alias":
                self.alias = read_text(content.get("alias"))
            case "m.room.encryption":
                self.is_encrypted = True  # there is no way back
            case "m.room.tombstone":
                self.replacement = read_text(content.get("replacement_room"))
            case "m.room.member":
                if (user_id := read_text(event.get("state_key"))) and (name := read_text(content.get("displayname"))):
                    self.member_names[user_id] = name


class RoomDirectory:
    """All rooms that the account is in."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._direct: frozenset[str] = frozenset()

    def get(self, room_id: str) -> Room | None:
        """Return a room; None if no sync has contained it."""
        return self._rooms.get(room_id)

    def get_or_add(self, room_id: str) -> Room:
        """Return a room, a new one if it is not known."""
        if room_id not in self._rooms:
            self._rooms[room_id] = Room(room_id, is_marked_direct=room_id in self._direct)
        return self._rooms[room_id]

    def list_rooms(self) -> list[Room]:
        return list(self._rooms.values())

    def remove(self, room_id: str) -> None:
        self._rooms.pop(room_id, None)

    def apply_account_data(self, sync: JsonObject) -> None:
        """Read which rooms are marked as direct chats."""
        events = read_object(sync.get("account_data")).get("events")
        for event in events if isinstance(events, list) else ():
            if read_object(event).get("type") == "m.direct":
                lists = read_object(event.get("content")).values()
                self._direct = frozenset(room for rooms in lists if isinstance(rooms, list) for room in map(str, rooms))
                for room in self._rooms.values():
                    room.is_marked_direct = room.room_id in self._direct

    def apply_joined(self, room_id: str, joined: JsonObject) -> Room:
        """Take over the state before the timeline of a room, and its member counts."""
        room = self.get_or_add(room_id)
        events = read_object(joined.get("state")).get("events")
        for event in events if isinstance(events, list) else ():
            room.apply_state(read_object(event))
        room.apply_summary(joined.get("summary"))
        return room
