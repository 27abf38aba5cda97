"""The parts of a message that people send: text, and files that they uploaded.

A part is a closed type. Whatever else a sender writes into it would be stored and shown to everyone in the
conversation. A part with the URL of some other server would make us, or a provider, fetch that URL for the sender.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from palaver.core.errors import InvalidMessage
from palaver.sessions.attachment import ATTACHMENT_PART_TYPE
from palaver.sessions.speech import MAX_TRANSCRIPT_CHARS, TRANSCRIPT_ERROR_KEY, TRANSCRIPT_KEY

MAX_MESSAGE_CHARS: Final = 200_000  # of its text
MAX_MESSAGE_PARTS: Final = 100
MAX_FIELD_CHARS: Final = 1000  # of the id, the name and the type of a file
TEXT_PART_TYPE: Final = "text"

# The keys of a part, by its type, and the types of their values. Name, media type and size of a file are accepted, so
# that a part can be sent as it was received, and are replaced by what was found in the upload. The transcript of a
# recording is kept: it is what its sender says.
_REQUIRED_KEYS: Final[Mapping[str, Mapping[str, type]]] = {
    TEXT_PART_TYPE: {"text": str},
    ATTACHMENT_PART_TYPE: {"id": str},
}
_OPTIONAL_KEYS: Final[Mapping[str, Mapping[str, type]]] = {
    TEXT_PART_TYPE: {},
    ATTACHMENT_PART_TYPE: {
        "name": str,
        "media_type": str,
        "size": int,
        TRANSCRIPT_KEY: str,
        TRANSCRIPT_ERROR_KEY: str,
    },
}
_HOW_TO_FIX: Final = (
    'Send text as {"type": "text", "text": …}, and a file you uploaded as {"type": "attachment", "id": …}.'
)


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
    required, optional = _REQUIRED_KEYS[part_type], _OPTIONAL_KEYS[part_type]
    for key in required:
        if key not in part:
            raise InvalidMessage(f"{name}.{key}: this key is missing. {_HOW_TO_FIX}", key=f"{name}.{key}")
    expected_types = {**required, **optional}
    for key, value in part.items():
        if key != "type":
            _check_value(f"{name}.{_shorten_key(key)}", value, expected_types.get(key), part_type)


def _check_value(name: str, value: object, expected: type | None, part_type: str) -> None:
    if expected is None:
        known = ", ".join(["type", *_REQUIRED_KEYS[part_type], *_OPTIONAL_KEYS[part_type]])
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


def _shorten_key(key: object) -> str:
    return str(key)[:40]
