"""What a Matrix account can do."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from palaver.delivery.capabilities import Capabilities, LengthUnit, Pace

MAX_CONTENT_BYTES: Final = 44_000  # of a rendered message; splitting leaves a tenth of it free
TYPING_SECONDS: Final = 30.0
MAX_FILE_BYTES: Final = 50 * 1024 * 1024  # unless the homeserver says otherwise

CAPABILITIES: Final = Capabilities(
    max_length=MAX_CONTENT_BYTES,
    length_unit=LengthUnit.BYTES,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=TYPING_SECONDS,
    max_file_bytes=MAX_FILE_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    edit_pace=Pace(5.0),  # each is an event, of which homeservers allow one in five seconds; sends wait when told to
    key_lifetime=timedelta(hours=12),  # Synapse remembers transaction ids for a day
)
