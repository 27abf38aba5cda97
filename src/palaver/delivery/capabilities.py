"""What a platform can do, as a value. Common code decides by it, so that no adapter has to.

Each adapter has one `Capabilities`: how long a message may be, what can be done with a message that was sent, how fast
it may send, and for how long the platform recognizes the key of a message that is sent again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class LengthUnit(StrEnum):
    """How a platform counts the length of a message."""

    CHARACTERS = "characters"
    UTF16 = "utf16"  # code units: an emoji counts as two
    BYTES = "bytes"  # of UTF-8


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast something may be sent: `burst` at once, and then one every `seconds`."""

    seconds: float
    burst: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one account on a platform can do; without arguments: send texts of any length."""

    max_length: int | None = None  # of one message; None: no limit
    length_unit: LengthUnit = LengthUnit.CHARACTERS
    can_edit: bool = False  # a message that was sent
    can_delete: bool = False  # a message that was sent
    can_react: bool = False  # to a message that was received
    typing_seconds: float | None = None  # how long the sign that the agent is typing stays; None: there is no sign
    max_buttons: int = 0  # under one message
    max_file_bytes: int = 0  # of a file that is sent; 0: files cannot be sent
    has_threads: bool = False
    has_groups: bool = False  # it can take part in chats of several people
    receives_files: bool = False
    receives_voice: bool = False  # voice messages, as files
    receives_edits: bool = False  # of messages that people have sent
    reply_window: timedelta | None = None  # after a person's last message, how long we may write; None: always
    has_native_stream: bool = False  # it can show a growing text itself, at least in some chats
    pace_per_chat: Pace | None = None
    pace_per_account: Pace | None = None
    edit_pace: Pace = Pace(1.5)  # of a growing message, per chat
    key_lifetime: timedelta = timedelta(0)  # how long a message that is sent again with the same key arrives once


def measure_length(text: str, unit: LengthUnit) -> int:
    """Return the length of a text in a platform's unit."""
    if unit is LengthUnit.CHARACTERS or text.isascii():
        return len(text)
    match unit:
        case LengthUnit.UTF16:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case LengthUnit.BYTES:
            return len(text.encode("utf-8", "surrogatepass"))
