"""One message of a conversation, as a value.

A message is read from a plain dict in the format of chat models and is written back in the same format, with
nothing lost: keys that this module does not know are kept in `extra`. Invalid input is rejected here, before
anything is stored. Two messages with equal content are two messages; the log gives each its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palaver.core.errors import InvalidMessage
from palaver.core.json_limits import MAX_JSON_DEPTH, JsonTooDeep, measure_json
from palaver.core.plain_text import strip_markdown
from palaver.core.text import is_storable
from palaver.sessions.speech import TRANSCRIPT_KEY

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


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a message, where several people write."""

    name: str = ""
    id: str | None = None

    def to_dict(self) -> dict[str, str]:
        """Return the author as JSON-ready data."""
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
    """Whether a message is short and has no lists or objects, as most messages; all others are measured."""
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
