"""One message of a conversation, as a value.

A message is read from a plain dict in the format of chat models and is written back in the same format, with
nothing lost: keys that this module does not know are kept in `extra`. Invalid input is rejected here, before
anything is stored. Two messages with equal content are two messages; the log gives each its number.

The parts of a message that people send: text, and files that they uploaded.

A part is a closed type. Whatever else a sender writes into it would be stored and shown to everyone in the
conversation. A part with the URL of some other server would make us, or a provider, fetch that URL for the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Final

from palaver.core.clock import format_time
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidMessage
from palaver.core.text import MAX_JSON_DEPTH, JsonTooDeep, is_storable, measure_json, strip_markdown
from palaver.core.texts import Text, say
from palaver.sessions.sent_message import SENT_BY_KEY, find_sent_by
from palaver.sessions.speech import ATTACHMENT_PART_TYPE, MAX_TRANSCRIPT_CHARS, TRANSCRIPT_ERROR_KEY, TRANSCRIPT_KEY

MESSAGE_ROLES = frozenset({"system", "user", "assistant", "tool"})
MAX_PREVIEW_CHARS = 120
MAX_MESSAGE_BYTES = 10_000_000  # of the message as JSON
MAX_BYTES_PER_CHAR = 4  # in UTF-8
_NUMBER_CHARS = 25  # more than most numbers have

# The optional keys of a message and the types of their values.
_OPTIONAL_KEYS: dict[str, type | tuple[type, ...]] = {
    "tool_calls": (list, tuple),
    "tool_call_id": str,
    "tool_name": str,
    "reasoning": str,
    "platform_message_id": (str, int),
    "author": Mapping,
}
MAX_MESSAGE_CHARS: Final = 200_000  # of its text
MAX_MESSAGE_PARTS: Final = 100
MAX_FIELD_CHARS: Final = 1000  # of the id, the name and the type of a file
TEXT_PART_TYPE: Final = "text"
_REQUIRED_KEYS: Final = {TEXT_PART_TYPE: "text", ATTACHMENT_PART_TYPE: "id"}
_HOW_TO_FIX: Final = (
    'Send text as {"type": "text", "text": …}, and a file you uploaded as {"type": "attachment", "id": …}.'
)


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a message, where several people write."""

    name: str = ""
    id: str | None = None

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name} if self.id is None else {"id": self.id, "name": self.name}


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str | Sequence[Any] | None
    author: Author | None = None
    platform_message_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # tool calls, reasoning, and all other keys

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read a message in the format of chat models; raise InvalidMessage when it is not valid."""
        if not isinstance(data, Mapping):
            raise InvalidMessage(f"A message is a mapping with role and content, not {type(data).__name__}.")
        role = data.get("role")
        if role not in MESSAGE_ROLES:
            raise InvalidMessage(f"role: {role!r} is not allowed ({', '.join(sorted(MESSAGE_ROLES))})", key="role")
        content = data.get("content")
        if content is not None and not isinstance(content, str | list | tuple):
            raise InvalidMessage(
                f"content: {type(content).__name__} is not allowed (text, a list of parts, or null)",
                key="content",
            )
        if len(data) == 2 and content is not None:
            return cls(role, content)
        return cls(role, content, _read_author(data), _read_platform_message_id(data), _read_extra(data))

    @property
    def text(self) -> str:
        """The text of the message, for search and previews."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return join_text_parts(self.content)

    def with_edited_text(self, text: str) -> Message:
        """Return the message as its author has edited it: with another text, and the same files."""
        content: str | list[Any] = text
        if self.content is not None and not isinstance(self.content, str):
            files = [
                part for part in self.content if isinstance(part, Mapping) and not isinstance(part.get("text"), str)
            ]
            content = [*([{"type": "text", "text": text}] if text else []), *files]
        return replace(self, content=content, extra={**self.extra, "edited": True})

    def check_limits(self) -> None:
        """Raise InvalidMessage if the message is too large, or nested too deeply, to be stored."""
        if _is_clearly_small(self):
            return
        sizes = {key: _measure_field(key, value) for key, value in self.to_dict().items()}
        if sum(sizes.values()) > MAX_MESSAGE_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            raise InvalidMessage(
                f"{largest}: this makes the message larger than {MAX_MESSAGE_BYTES} bytes. Shorten it, or store it"
                " elsewhere and refer to it.",
                key=largest,
                limit=MAX_MESSAGE_BYTES,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the message in the format of chat models; `from_dict` reads it back without loss."""
        data: dict[str, Any] = {"role": self.role, "content": self.content, **self.extra}
        if self.author is not None:
            data["author"] = self.author.to_dict()
        if self.platform_message_id is not None:
            data["platform_message_id"] = self.platform_message_id
        return data


def message_to_json(message: Message) -> dict[str, Any]:
    """Convert a message for people; keys that Palaver does not know are included as they were stored.

    What only a provider can read of its reasoning is left out.
    """
    author, content = message.author, message.content
    data = {
        "role": message.role,
        "content": list(content) if isinstance(content, tuple) else content,
        "author": None if author is None else {"name": author.name, "id": author.id},
        **_JSON_WITHOUT_EXTRA,
    }
    data["platform_message_id"] = message.platform_message_id
    for key, value in message.extra.items():
        if (write := _EXTRA_WRITERS.get(key)) is not None:
            data["answers_seq" if key == "answers" else key] = write(value)
        elif key not in data and key != "provider_reasoning":
            data[key] = value
    return data


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Read a message; keys that Palaver does not know belong to it."""
    fields = {key: value for key, value in data.items() if value is not None}
    for flag in ("interrupted", "is_error", "edited"):
        if fields.get(flag) is False:
            del fields[flag]
    if "answers_seq" in fields:
        fields["answers"] = fields.pop("answers_seq")
    return Message.from_dict({"content": None, **fields})


def _get_quotes(value: object) -> list[dict[str, Any]] | None:
    """Return what was said in a group before a message; None if a program uses the key for something else."""
    quotes = [_get_quote(entry) for entry in value] if isinstance(value, list | tuple) else []
    return [quote for quote in quotes if quote is not None] or None


def _get_quote(value: object) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    author, text = value.get("author"), value.get("text")
    is_valid = isinstance(text, str) and (author is None or isinstance(author, str))
    return dict(value) if is_valid else None


def _get_time(value: object) -> str | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else format_time(moment)


def _get_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _get_number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _describe_sender(value: object) -> dict[str, Any] | None:
    sent_by = find_sent_by({SENT_BY_KEY: value})
    return None if sent_by is None else sent_by.to_dict()


# The JSON of a message without any of these keys, which are in `extra` and written by the functions below.
_JSON_WITHOUT_EXTRA: Final[Mapping[str, Any]] = {
    "tool_calls": None,
    "tool_call_id": None,
    "tool_name": None,
    "reasoning": None,
    "interrupted": False,
    "is_error": False,
    "duration_ms": None,
    "answers_seq": None,
    "platform_message_id": None,
    "edited": False,
    "sent_at": None,
    "context": None,
    "replied_message": None,
    "sent_by": None,
}
_EXTRA_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "tool_calls": lambda value: list(value) if value else None,
    "tool_call_id": _get_text,
    "tool_name": _get_text,
    "reasoning": _get_text,
    "interrupted": bool,
    "is_error": bool,
    "duration_ms": _get_number,
    "answers": _get_number,
    "edited": lambda value: value is True,
    "sent_at": _get_time,
    "context": _get_quotes,
    "replied_message": _get_quote,
    "sent_by": _describe_sender,
}


def join_text_parts(parts: Sequence[Any]) -> str:
    """Return the text in the parts of a message, and what was said in its recordings, joined by spaces."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            texts += [part[key] for key in ("text", TRANSCRIPT_KEY) if isinstance(part.get(key), str)]
    return " ".join(texts)


def _is_clearly_small(message: Message) -> bool:
    """Return whether a message is short and has no lists or objects, as most messages; all others are measured."""
    chars = 0
    for key, value in (("content", message.content), *message.extra.items()):
        if isinstance(value, str):
            chars += len(value)
        elif value is not None and not isinstance(value, int | float):
            return False
        chars += len(key) + _NUMBER_CHARS
    if message.author is not None:
        chars += len(message.author.name) + len(message.author.id or "")
    return chars <= MAX_MESSAGE_BYTES // MAX_BYTES_PER_CHAR


def _measure_field(key: str, value: object) -> int:
    try:
        return measure_json({key: value}, MAX_MESSAGE_BYTES)
    except JsonTooDeep:
        raise InvalidMessage(
            f"{key}: this is nested deeper than {MAX_JSON_DEPTH} levels. Flatten it, or store it as JSON text.",
            key=key,
            limit=MAX_JSON_DEPTH,
        ) from None


def make_preview(text: str) -> str:
    """Return the beginning of a message on one line and without Markdown, for lists."""
    head = text[: MAX_PREVIEW_CHARS * 4]  # marks and the addresses of links are left out
    return make_excerpt(strip_markdown(head)) or make_excerpt(head)


def make_excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: MAX_PREVIEW_CHARS * 2].split())[:MAX_PREVIEW_CHARS]


def _read_author(data: Mapping[str, Any]) -> Author | None:
    author = data.get("author")
    if author is None or isinstance(author, Author):
        return author
    if not isinstance(author, Mapping):
        raise InvalidMessage(
            f"author: {type(author).__name__} is not allowed (a mapping with id and name)", key="author"
        )
    author_id = author.get("id")
    return Author(str(author.get("name") or ""), None if author_id is None else str(author_id))


def _read_platform_message_id(data: Mapping[str, Any]) -> str | None:
    message_id = data.get("platform_message_id")
    if message_id is not None and not is_storable(str(message_id)):
        raise InvalidMessage(f"platform_message_id: {message_id!r} is not a valid id", key="platform_message_id")
    return None if message_id is None else str(message_id)


def _read_extra(data: Mapping[str, Any]) -> dict[str, Any]:
    extra = {}
    for key, value in data.items():
        if key in {"role", "content", "author", "platform_message_id"} or value is None:
            continue
        if not isinstance(key, str):
            raise InvalidMessage(f"{key!r}: the keys of a message must be text")
        expected = _OPTIONAL_KEYS.get(key)
        if expected is not None and not isinstance(value, expected):
            raise InvalidMessage(f"{key}: {type(value).__name__} is not allowed here", key=key)
        extra[key] = value
    return extra


def describe_too_long(length: int) -> Text:
    return say(
        "message.too_long",
        "This message is too long: {length} characters, and the limit is {limit}. It wasn't saved.",
        length=str(length),
        limit=str(MAX_MESSAGE_CHARS),
    )


# The keys of a part, by its type, and the types of their values. Name, media type and size of a file are accepted, so
# that a part can be sent as it was received, and are replaced by what was found in the upload. The transcript of a
# recording is kept: it is what its sender says.
_PART_KEYS: Final[Mapping[str, Mapping[str, type]]] = {
    TEXT_PART_TYPE: {"text": str},
    ATTACHMENT_PART_TYPE: {
        "id": str,
        "name": str,
        "media_type": str,
        "size": int,
        TRANSCRIPT_KEY: str,
        TRANSCRIPT_ERROR_KEY: str,
    },
}


def check_message_parts(content: str | Sequence[Any]) -> None:
    """Raise InvalidMessage for content that is neither text nor a list of parts of the known types."""
    if isinstance(content, str):
        return
    if len(content) > MAX_MESSAGE_PARTS:
        raise InvalidMessage(
            f"content: the message has {len(content)} parts, and the limit is {MAX_MESSAGE_PARTS}. Join parts of text.",
            limit=MAX_MESSAGE_PARTS,
        )
    for index, part in enumerate(content):
        if not isinstance(part, str):
            _check_part(part, f"content[{index}]")


def _check_part(part: object, name: str) -> None:
    if not isinstance(part, Mapping):
        raise InvalidMessage(f"{name}: a part is text or an object. {_HOW_TO_FIX}", key=name)
    part_type = part.get("type")
    if not isinstance(part_type, str) or part_type not in _REQUIRED_KEYS:
        raise InvalidMessage(
            f"{name}.type: {_shorten(part_type)} is not a known type. {_HOW_TO_FIX}", key=f"{name}.type"
        )
    required = _REQUIRED_KEYS[part_type]
    if required not in part:
        raise InvalidMessage(f"{name}.{required}: this key is missing. {_HOW_TO_FIX}", key=f"{name}.{required}")
    for key, value in part.items():
        if key != "type":
            _check_value(f"{name}.{str(key)[:40]}", value, _PART_KEYS[part_type].get(key), part_type)


def _check_value(name: str, value: object, expected: type | None, part_type: str) -> None:
    if expected is None:
        known = ", ".join(["type", *_PART_KEYS[part_type]])
        raise InvalidMessage(f"{name}: unknown key. Remove it; a part of type {part_type} has {known}.", key=name)
    if not isinstance(value, expected) or isinstance(value, bool):
        kind = "text" if expected is str else "a whole number"
        raise InvalidMessage(f"{name}: {type(value).__name__} is not allowed here. Give {kind}.", key=name)
    limit = MAX_TRANSCRIPT_CHARS if name.endswith(f".{TRANSCRIPT_KEY}") else MAX_FIELD_CHARS
    is_short = part_type == TEXT_PART_TYPE or not isinstance(value, str) or len(value) <= limit
    if not is_short:
        raise InvalidMessage(f"{name}: this is longer than {limit} characters. Shorten it.", key=name)


def _shorten(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else type(value).__name__
