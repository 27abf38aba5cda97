"""What a Discord bot can do."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from palaver.delivery.capabilities import Capabilities, Pace

MAX_MESSAGE_CHARS: Final = 2000
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
MAX_BUTTONS: Final = 25  # five rows of five

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_CHARS,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=10.0,
    max_buttons=MAX_BUTTONS,
    max_file_bytes=MAX_FILE_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0, burst=5),
    pace_per_account=Pace(1 / 40, burst=40),
    edit_pace=Pace(1.5),
    key_lifetime=timedelta(minutes=2),  # Discord says "the past few minutes"
)
