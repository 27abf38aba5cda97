"""What is said: one message of a conversation, as a value.

A message comes in as a plain dict in the shape chat models use and goes out in the same shape, with nothing
lost on the way: keys this module has no name for are kept in `extra`. Bad input is refused here, before
anything is stored. Two messages with equal content are two messages; identity belongs to the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palaver.domain.errors import InvalidMessage
from palaver.domain.text import is_storable

ROLES = frozenset({"system", "user", "assistant", "tool"})
PREVIEW_LENGTH = 120

# What a message may carry beside role and content, as (key, kind of value).
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "tool_calls": (list, tuple),
    "tool_call_id": str,
    "tool_name": str,
    "reasoning": str,
    "platform_message_id": (str, int),
    "author": Mapping,
}


@dataclass(frozen=True, slots=True)
class Author:
    """Who said it, where several people speak."""

    name: str = ""
    id: str | None = None

    def to_dict(self) -> dict[str, str]:
        """The author as JSON-ready data."""
        return {"name": self.name} if self.id is None else {"id": self.id, "name": self.name}


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who, what, and what came with it."""

    role: str
    content: str | Sequence[Any] | None
    author: Author | None = None
    platform_message_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # tool calls, results, reasoning, and what we do not know

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read a message in the shape chat models use; refuse what a conversation cannot hold."""
        if not isinstance(data, Mapping):
            raise InvalidMessage(f"a message is a mapping with a role and content, not {type(data).__name__}")
        role = data.get("role")
        if role not in ROLES:
            raise InvalidMessage(f"role: {role!r} is not allowed; use one of {', '.join(sorted(ROLES))}", key="role")
        content = data.get("content")
        if content is not None and not isinstance(content, str | list | tuple):
            raise InvalidMessage(
                f"content: text, a list of parts or nothing is allowed, not {type(content).__name__}",
                key="content",
            )
        if len(data) == 2 and content is not None:
            return cls(role, content)
        return cls(role, content, _author(data), _platform_id(data), _extra(data))

    @property
    def text(self) -> str:
        """The words of the message: what is searched, previewed and read aloud."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return text_of_parts(self.content)

    def to_dict(self) -> dict[str, Any]:
        """The message in the shape chat models use."""
        data: dict[str, Any] = {"role": self.role, "content": self.content, **self.extra}
        if self.author is not None:
            data["author"] = self.author.to_dict()
        return data


def text_of_parts(parts: Sequence[Any]) -> str:
    """The text among the parts of a message, joined by spaces."""
    found = []
    for part in parts:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            found.append(part["text"])
    return " ".join(found)


def preview(text: str) -> str:
    """The first words of a text on one line, for lists."""
    return " ".join(text[: PREVIEW_LENGTH * 2].split())[:PREVIEW_LENGTH]


def _author(data: Mapping[str, Any]) -> Author | None:
    given = data.get("author")
    if given is None:
        return None
    if isinstance(given, Author):
        return given
    if not isinstance(given, Mapping):
        raise InvalidMessage("author: a mapping with id and name is allowed", key="author")
    identity = given.get("id")
    return Author(str(given.get("name") or ""), None if identity is None else str(identity))


def _platform_id(data: Mapping[str, Any]) -> str | None:
    given = data.get("platform_message_id")
    if given is not None and not is_storable(str(given)):
        raise InvalidMessage(f"platform_message_id: {given!r} cannot be an id", key="platform_message_id")
    return None if given is None else str(given)


def _extra(data: Mapping[str, Any]) -> dict[str, Any]:
    extra = {}
    for key, value in data.items():
        if key in {"role", "content", "author", "platform_message_id"} or value is None:
            continue
        if not isinstance(key, str):
            raise InvalidMessage(f"{key!r}: the keys of a message are text")
        wanted = _OPTIONAL.get(key)
        if wanted is not None and not isinstance(value, wanted):
            raise InvalidMessage(f"{key}: {type(value).__name__} is not allowed here", key=key)
        extra[key] = value
    return extra
