"""What Signal can do, as signal-cli offers it."""

from __future__ import annotations

from typing import Final

from palaver.delivery.capabilities import Capabilities, LengthUnit, Pace

MAX_MESSAGE_BYTES: Final = 2000  # of UTF-8; apps move the rest into a text file
MAX_UPLOAD_BYTES: Final = 100 * 1024 * 1024  # the apps refuse larger ones

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_BYTES,
    length_unit=LengthUnit.BYTES,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=15.0,
    max_file_bytes=MAX_UPLOAD_BYTES,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0, burst=3),
    pace_per_account=Pace(0.5, burst=10),
    # The apps accept ten edits of a message and ignore further ones, so a growing answer is edited rarely.
    edit_pace=Pace(15.0),
)
