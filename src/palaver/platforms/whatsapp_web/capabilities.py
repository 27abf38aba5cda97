"""What a linked WhatsApp account can do.

WhatsApp names no limits for accounts of private people, and bans accounts that behave like programs. So the pace is
that of a person who types fast. Answers are not shown while they grow, although messages can be edited: phones mark
every edited message, and silently ignore an edit that comes more than 15 minutes after the message.

The library chooses the ids of messages itself: a message whose answer was lost can't be sent again without the risk of
a double.
"""

from __future__ import annotations

from typing import Final

from palaver.delivery.capabilities import Capabilities, LengthUnit, Pace

MAX_MESSAGE_CHARS: Final = 4096
MAX_FILE_BYTES: Final = 64 * 1024 * 1024  # the library holds a file in memory several times while it encrypts it
TYPING_SECONDS: Final = 10.0

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_CHARS,
    length_unit=LengthUnit.UTF16,
    can_delete=True,
    can_react=True,
    typing_seconds=TYPING_SECONDS,
    max_file_bytes=MAX_FILE_BYTES,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(2.0, burst=3),
    pace_per_account=Pace(1.0, burst=3),
)
