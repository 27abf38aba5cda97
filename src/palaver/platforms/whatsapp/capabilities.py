"""What a business number on WhatsApp can do."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from palaver.delivery.capabilities import Capabilities, Pace

MAX_TEXT_CHARS: Final = 4096
MAX_DOCUMENT_BYTES: Final = 100 * 1024 * 1024
REPLY_WINDOW: Final = timedelta(hours=24)
SECONDS_PER_PERSON: Final = 6.0  # between two messages to one person, in the long run; a few may follow each other
SENDS_PER_SECOND: Final = 80

CAPABILITIES: Final = Capabilities(
    max_length=MAX_TEXT_CHARS,
    can_react=True,
    typing_seconds=25.0,
    max_buttons=10,
    max_file_bytes=MAX_DOCUMENT_BYTES,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    reply_window=REPLY_WINDOW,
    pace_per_chat=Pace(SECONDS_PER_PERSON, burst=5),
    pace_per_account=Pace(1 / SENDS_PER_SECOND, burst=SENDS_PER_SECOND),
)
