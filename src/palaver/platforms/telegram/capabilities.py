"""What a Telegram bot can do."""

from __future__ import annotations

from typing import Final

from palaver.delivery.capabilities import Capabilities, LengthUnit, Pace

MAX_MESSAGE_UNITS: Final = 4096
MAX_UPLOAD_BYTES: Final = 50 * 1024 * 1024

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_UNITS,
    length_unit=LengthUnit.UTF16,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=5.0,
    max_buttons=8,
    max_file_bytes=MAX_UPLOAD_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    has_native_stream=True,
    pace_per_chat=Pace(1.0),
    pace_per_account=Pace(1 / 30, burst=30),
    edit_pace=Pace(3.0),  # private chats have drafts, and a group allows 20 messages and edits a minute
)
