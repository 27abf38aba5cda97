"""What a Slack app can do."""

from __future__ import annotations

from typing import Final

from palaver.delivery.capabilities import Capabilities, Pace

MAX_MESSAGE_CHARS: Final = 12_000  # of a Markdown block
MAX_UPLOAD_BYTES: Final = 200 * 1024 * 1024  # Slack takes 1 GB; larger files than this take too long to send

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_CHARS,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=60.0,  # in threads with the app; Slack ends the sign after two minutes, or with the answer
    max_buttons=5,
    max_file_bytes=MAX_UPLOAD_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0),
    edit_pace=Pace(1.5),  # Slack allows about 50 updates a minute
)
