"""Matrix events → updates. Pure: what an event refers to is looked up before, and given as `SeenEvent`.

Always true: our own events, notices and event types that say nothing to the agent become None. An edit counts only if
its sender wrote the original; homeservers do not check that. Who is mentioned is read from `m.mentions`. Older clients
do not send it: with them a link to our account counts, and without any such link our name in the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from palaver.core.dataclass import dataclass
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.platforms.common.commands import names_command
from palaver.platforms.common.inbound import describe_place
from palaver.sessions.inbound import (
    AnyUpdate,
    ChatMoved,
    Inbound,
    InboundFile,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    RepliedMessage,
)

JsonObject = Mapping[str, Any]

FILE_TYPES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
VERIFICATION_REQUEST = "m.key.verification.request"
IGNORED_MESSAGE_TYPES = frozenset({"m.notice", VERIFICATION_REQUEST})
MAX_VERIFICATION_AGE_SECONDS = 600.0  # then the other side has given it up
MAX_QUOTED_CHARS = 4_000  # of the message that a person replies to

_MEDIA_URL = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]+)/([A-Za-z0-9_-]+)")
_GEO_URI = re.compile(r"geo:(-?\d{1,3}(?:\.\d{1,20})?),(-?\d{1,3}(?:\.\d{1,20})?)(?![\d.])")
_REPLY_FALLBACK = re.compile(r"\A\s*<mx-reply>.*?</mx-reply>", re.DOTALL)
_PERSON_LINK = re.compile(r"https://matrix\.to/#/(@[^\"'<>\s?]+|%40[^\"'<>\s?]+)", re.IGNORECASE)


def read_object(value: object, *path: str) -> JsonObject:
    """Return a JSON object, or one inside of it; an empty one for anything else: others write what events contain."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def read_text(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def read_events(section: object) -> list[JsonObject]:
    """Return the events of a part of a sync."""
    events = read_object(section).get("events")
    return [event for event in events if read_object(event)] if isinstance(events, list) else []


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

    def apply_state(self, event: JsonObject) -> None:
        """Take over a state event; other events say nothing about the room."""
        if "state_key" not in event:
            return
        content = read_object(event, "content")
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


class RoomDirectory(dict[str, Room]):
    """The rooms that a sync has contained, by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self._direct: frozenset[str] = frozenset()

    def apply_account_data(self, sync: JsonObject) -> None:
        """Read which rooms are marked as direct chats."""
        for event in read_events(sync.get("account_data")):
            if event.get("type") == "m.direct":
                lists = read_object(event, "content").values()
                self._direct = frozenset(str(room) for rooms in lists if isinstance(rooms, list) for room in rooms)
                for room in self.values():
                    room.is_marked_direct = room.room_id in self._direct

    def apply_joined(self, room_id: str, joined: JsonObject) -> Room:
        """Take over the state before the timeline of a room, and its member counts."""
        room = self.setdefault(room_id, Room(room_id, is_marked_direct=room_id in self._direct))
        for event in read_events(joined.get("state")):
            room.apply_state(event)
        summary = read_object(joined, "summary")  # the server leaves out what has not changed
        if isinstance(count := summary.get("m.joined_member_count"), int):
            room.joined_count = count
        if isinstance(count := summary.get("m.invited_member_count"), int):
            room.invited_count = count
        return room


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file on the homeserver. `keys` are those of an encrypted file."""

    server: str
    media_id: str
    size: int | None = None
    keys: Mapping[str, str] | None = None  # key, iv and sha256, all in base64


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event that a later one may refer to."""

    sender: str
    text: str = ""
    reaction_to: str | None = None  # the event that it reacts to
    emoji: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Our own account, and a way to open files."""

    own_user_id: str
    own_name: str
    open_file: Callable[[FileReference], AsyncIterator[bytes]]


def find_references(event: JsonObject) -> list[str]:
    """Return the ids of the events that must be looked up before this one can be read."""
    relation = _get_relation(event)
    related_id = read_text(relation.get("event_id"))
    if relation.get("rel_type") == "m.replace":
        return [related_id] if related_id else []
    found = [reply_id] if (reply_id := _find_replied_id(relation)) else []
    if relation.get("rel_type") == "m.thread" and related_id and related_id not in found:
        found.append(related_id)
    return found


def describe_event(event: JsonObject) -> SeenEvent | None:
    """Return what later events may need of this one; None for events that nothing refers to."""
    sender = read_text(event.get("sender"))
    if not sender:
        return None
    content = read_object(event, "content")
    if event.get("type") == "m.reaction":
        relation = _get_relation(event)
        return SeenEvent(sender, "", read_text(relation.get("event_id")), read_text(relation.get("key")) or "")
    if event.get("type") not in {"m.room.message", "m.sticker", "m.room.encrypted"}:
        return None
    text = _strip_reply_fallback(read_text(content.get("body")) or "", _get_relation(event))
    return SeenEvent(sender, text[:MAX_QUOTED_CHARS])


def read_event(event: JsonObject, room: Room, reader: Reader, seen: Mapping[str, SeenEvent]) -> AnyUpdate | None:
    """Return the update that an event of a room's timeline is; None if the gateway need not know of it."""
    sender, event_id = read_text(event.get("sender")), read_text(event.get("event_id"))
    if not sender or not event_id:
        return None
    update: AnyUpdate | None = None
    match event.get("type"):
        case "m.room.member":
            update = _read_member(event, room, reader)
        case "m.room.tombstone":
            if replacement := read_text(read_object(event, "content").get("replacement_room")):
                update = ChatMoved(source=build_source(room), new_chat_id=replacement)
        case _ if sender == reader.own_user_id:
            pass
        case "m.room.message" | "m.sticker":
            is_edit = _get_relation(event).get("rel_type") == "m.replace"
            update = (_read_edit if is_edit else _read_message)(event, room, reader, seen)
        case "m.room.redaction":
            update = _read_redaction(event, room, seen)
        case "m.reaction":
            update = _read_reaction(event, room)
    return update


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """A request to compare emoji or to scan a code, so that another account or device trusts ours."""

    sender: str
    id: str  # of the transaction between devices, or of the event in a room
    device_id: str | None = None  # between devices; None: in a room


def read_verification_request(event: JsonObject, own_user_id: str, now: float) -> VerificationRequest | None:
    """Return the request that an event is, in a room or between devices; None for anything else, and for old ones."""
    content, sender = read_object(event, "content"), read_text(event.get("sender"))
    event_id, device_id = read_text(event.get("event_id")), read_text(content.get("from_device"))
    if event.get("type") == "m.room.message":
        if content.get("msgtype") != VERIFICATION_REQUEST or content.get("to") != own_user_id:
            return None
        sent_at, request_id, device_id = event.get("origin_server_ts"), event_id, None
    elif event.get("type") in {VERIFICATION_REQUEST, "m.key.verification.start"} and event_id is None and device_id:
        sent_at, request_id = content.get("timestamp", now * 1000), read_text(content.get("transaction_id"))
    else:
        return None
    is_recent = isinstance(sent_at, int | float) and abs(now - sent_at / 1000) < MAX_VERIFICATION_AGE_SECONDS
    return VerificationRequest(sender, request_id, device_id) if sender and request_id and is_recent else None


def build_source(room: Room, user_id: str | None = None, thread_id: str | None = None) -> SessionSource:
    """Return the source of what a member does in a room."""
    chat_type = room.chat_type
    is_group = chat_type is not ChatType.DM
    return SessionSource(
        Platform.MATRIX,
        room.room_id,
        chat_type=chat_type,
        chat_name=room.title if is_group else None,
        chat_topic=room.topic if is_group else None,
        user_id=user_id,
        user_name=room.get_member_name(user_id) if user_id else None,
        thread_id=thread_id,
    )


def _get_relation(event: JsonObject) -> JsonObject:
    return read_object(event, "content", "m.relates_to")


def _find_replied_id(relation: JsonObject) -> str | None:
    """Return the event that this one replies to. In a thread, clients without threads get a reply that is none."""
    if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back") is True:
        return None
    return read_text(read_object(relation, "m.in_reply_to").get("event_id"))


def _strip_reply_fallback(body: str, relation: JsonObject) -> str:
    """Remove the quote of the replied message that older clients put before the text."""
    if "m.in_reply_to" not in relation or not body.startswith(("> <@", "> * <@")):
        return body
    lines = body.split("\n")
    quoted = next((index for index, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[quoted:]).removeprefix("\n")


def _list_mentioned(content: JsonObject) -> set[str]:
    """Return the people whom a message mentions in a way that its app marks."""
    if "m.mentions" in content:
        mentioned = read_object(content["m.mentions"]).get("user_ids")
        return {each for each in mentioned if isinstance(each, str)} if isinstance(mentioned, list) else set()
    html = _REPLY_FALLBACK.sub("", read_text(content.get("formatted_body")) or "")
    return {unquote(link[1]) for link in _PERSON_LINK.finditer(html)}


def _is_mentioned(content: JsonObject, relation: JsonObject, reader: Reader) -> bool:
    mentioned = _list_mentioned(content)
    if mentioned or "m.mentions" in content:
        return reader.own_user_id in mentioned
    body = _strip_reply_fallback(read_text(content.get("body")) or "", relation)
    return _build_name_pattern(reader.own_user_id, reader.own_name).search(body) is not None


def _mentions_others(content: JsonObject, own_user_id: str) -> bool:
    is_to_room = read_object(content, "m.mentions").get("room") is True
    return is_to_room or bool(_list_mentioned(content) - {own_user_id})


def _replies_to_others(replied: RepliedMessage | None, sender: str, seen: Mapping[str, SeenEvent]) -> bool:
    if replied is None or replied.is_own:
        return False
    original = seen.get(replied.message_id)
    return original is None or original.sender != sender


@functools.cache
def _build_name_pattern(user_id: str, name: str) -> re.Pattern[str]:
    """Return what finds our name or our user id as whole words, but not the user id of another account."""
    end = r"(?!\w|[-.]\w)"
    names = [rf"{re.escape(user_id)}{end}(?!:\d)"]
    if name.strip():
        names += [rf"{re.escape(name.strip())}{end}", rf"@{re.escape(name.strip())}{end}(?!:\w)"]
    return re.compile(rf"(?<![\w@.-])(?:{'|'.join(names)})", re.IGNORECASE)


def _strip_mention(text: str, reader: Reader) -> str:
    """Remove our own name from the start of a text that is addressed to us, so that `Palaver: /stop` is a command."""
    link = f"](https://matrix.to/#/{reader.own_user_id})"
    names = (reader.own_user_id, reader.own_name, reader.own_user_id.partition(":")[0].removeprefix("@"))
    for name in (*(f"[{name}{link}" for name in names), reader.own_user_id, *(f"@{name}" for name in names), *names):
        if text.startswith(name) and not (rest := text[len(name) :])[:1].isalnum():
            return rest.lstrip(":, \t\n") or text
    return text


def _read_command(text: str) -> str:
    """Return a text with the slash of its command: Element keeps texts with a slash, so `!stop` is `/stop`."""
    return f"/{text[1:]}" if text.startswith("!") and names_command(text) else text


def _read_message(event: JsonObject, room: Room, reader: Reader, seen: Mapping[str, SeenEvent]) -> Inbound | None:
    content, relation, sender = read_object(event, "content"), _get_relation(event), str(event["sender"])
    message_type = "m.image" if event.get("type") == "m.sticker" else content.get("msgtype")
    if message_type in IGNORED_MESSAGE_TYPES or not isinstance(message_type, str):
        return None
    files = _read_files(content, reader) if message_type in FILE_TYPES else ()
    is_mentioned = _is_mentioned(content, relation, reader)
    text = _read_text_of(content, message_type, sender, room)
    text = _read_command(_strip_mention(text, reader) if is_mentioned else text)
    if not text and not files:
        return None
    is_threaded = relation.get("rel_type") == "m.thread"
    thread_id = read_text(relation.get("event_id")) if is_threaded else None
    replied = _read_replied(relation, room, reader, seen)
    thread_root = seen.get(thread_id) if thread_id else None
    is_in_own_thread = thread_root is not None and thread_root.sender == reader.own_user_id
    is_command = text.startswith("/") and names_command(text)
    is_reply = replied is not None and replied.is_own
    is_addressed = room.chat_type is ChatType.DM or is_mentioned or is_command or is_reply
    addresses_others = _mentions_others(content, reader.own_user_id) or _replies_to_others(replied, sender, seen)
    return Inbound(
        source=build_source(room, sender, thread_id),
        content=text,
        message_id=str(event["event_id"]),
        is_addressed=is_addressed or (is_in_own_thread and not addresses_others),
        is_in_own_thread=is_in_own_thread and not is_addressed,
        addresses_others=addresses_others,
        replied_message=replied,
        sent_at=_read_time(event),
        is_sent_at_reliable=_get_server(sender) == _get_server(reader.own_user_id),  # else another server says it
        files=files,
    )


def _read_text_of(content: JsonObject, message_type: str, sender: str, room: Room) -> str:
    body = _strip_reply_fallback(read_text(content.get("body")) or "", read_object(content, "m.relates_to"))
    if message_type in FILE_TYPES:  # the body is a caption only beside a file name
        return body if body != (read_text(content.get("filename")) or body) else ""
    if message_type == "m.location":
        return _describe_location(content, body)
    if message_type == "m.emote":
        return f"* {room.get_member_name(sender)} {body}"
    return body


def _describe_location(content: JsonObject, body: str) -> str:
    """Return a place as a line of text. Clients write its position into the body too, which then says nothing more."""
    location = read_object(content.get("m.location") or content.get("org.matrix.msc3488.location"))
    found = _GEO_URI.match(read_text(location.get("uri") or content.get("geo_uri")) or "")
    if found is None:
        return body
    name = read_text(location.get("description")) or body
    return f"[{describe_place(found[1], found[2], ' '.join(name.split()) if 'geo:' not in name else '')}]"


def _read_files(content: JsonObject, reader: Reader) -> tuple[InboundFile, ...]:
    reference = read_file_reference(content)
    if reference is None:
        return ()
    media_type = read_text(read_object(content, "info").get("mimetype"))
    return (
        InboundFile(
            read_text(content.get("filename")) or read_text(content.get("body")),
            lambda: reader.open_file(reference),
            media_type=media_type,
            size=reference.size,
            is_voice="org.matrix.msc3245.voice" in content or "m.voice" in content,
        ),
    )


def read_file_reference(content: JsonObject) -> FileReference | None:
    """Return where the file of a message is; None if the message does not say so in a valid way."""
    encrypted = read_object(content, "file")
    found = _MEDIA_URL.fullmatch(read_text(encrypted.get("url") or content.get("url")) or "")
    if not found:
        return None
    size = read_object(content, "info").get("size")
    keys: dict[str, Any] | None = None
    if encrypted:
        keys = {
            "key": read_object(encrypted, "key").get("k"),
            "iv": encrypted.get("iv"),
            "sha256": read_object(encrypted, "hashes").get("sha256"),
        }
        if not all(map(read_text, keys.values())):
            return None
    return FileReference(found[1], found[2], size if isinstance(size, int) and size >= 0 else None, keys)


def _read_replied(
    relation: JsonObject, room: Room, reader: Reader, seen: Mapping[str, SeenEvent]
) -> RepliedMessage | None:
    replied_id = _find_replied_id(relation)
    if not replied_id:
        return None
    replied = seen.get(replied_id)
    if replied is None:
        return RepliedMessage(replied_id)
    return RepliedMessage(
        replied_id, room.get_member_name(replied.sender), replied.text, is_own=replied.sender == reader.own_user_id
    )


def _read_edit(event: JsonObject, room: Room, reader: Reader, seen: Mapping[str, SeenEvent]) -> MessageEdited | None:
    content, sender = read_object(event, "content"), str(event["sender"])
    new_content = read_object(content, "m.new_content")
    original_id = read_text(_get_relation(event).get("event_id")) or ""
    original, message_type = seen.get(original_id), new_content.get("msgtype")
    if original is None or original.sender != sender:
        return None
    if not isinstance(message_type, str) or message_type in IGNORED_MESSAGE_TYPES:
        return None
    text = _read_text_of(new_content, message_type, sender, room)
    if any(_is_mentioned(each, _get_relation(event), reader) for each in (new_content, content)):
        text = _strip_mention(text, reader)
    return MessageEdited(source=build_source(room, sender), message_id=original_id, content=_read_command(text))


def _read_redaction(
    event: JsonObject, room: Room, seen: Mapping[str, SeenEvent]
) -> MessageDeleted | MessageReaction | None:
    # Room versions before 11 have it beside the content.
    redacted_id = read_text(read_object(event, "content").get("redacts")) or read_text(event.get("redacts"))
    if not redacted_id:
        return None
    redacted = seen.get(redacted_id)
    if redacted is not None and redacted.reaction_to is not None:
        return MessageReaction(
            source=build_source(room, redacted.sender),
            message_id=redacted.reaction_to,
            emoji=redacted.emoji,
            is_removed=True,
        )
    return MessageDeleted(source=build_source(room, str(event["sender"])), message_id=redacted_id)


def _read_reaction(event: JsonObject, room: Room) -> MessageReaction | None:
    relation = _get_relation(event)
    target, emoji = read_text(relation.get("event_id")), read_text(relation.get("key"))
    if relation.get("rel_type") != "m.annotation" or not target or not emoji:
        return None
    return MessageReaction(source=build_source(room, str(event["sender"])), message_id=target, emoji=emoji)


def _read_member(event: JsonObject, room: Room, reader: Reader) -> MembersChanged | None:
    user_id = read_text(event.get("state_key"))
    content = read_object(event, "content")
    previous = read_object(event, "unsigned", "prev_content")
    was_joined, is_joined = previous.get("membership") == "join", content.get("membership") == "join"
    if not user_id or was_joined == is_joined:
        return None  # a new name or picture, an invitation
    name = read_text(content.get("displayname")) or read_text(previous.get("displayname"))
    names = (name or room.get_member_name(user_id),)
    return MembersChanged(
        source=build_source(room, user_id),
        joined=names if is_joined else (),
        left=() if is_joined else names,
        is_own_account=user_id == reader.own_user_id,
    )


def _get_server(user_id: str) -> str:
    return user_id.partition(":")[2]


def _read_time(event: JsonObject) -> datetime | None:
    milliseconds = event.get("origin_server_ts")
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC) if isinstance(milliseconds, int) else None
    except (OverflowError, OSError, ValueError):
        return None
