"""The duration of voice messages. It is apart from the library, which starts processes when it is imported."""

from __future__ import annotations

from typing import Final

_PAGE: Final = b"OggS"
_OPUS_RATE: Final = 48_000  # samples in a second, whatever the sound was recorded with
_POSITION_OFFSET: Final = 6
_HEADER_BYTES: Final = 27


def measure_seconds(content: bytes) -> int | None:
    """Return how long the sound in an Ogg file with Opus lasts; None if it is none."""
    if not content.startswith(_PAGE) or b"OpusHead" not in content[:200]:
        return None
    start = content.rfind(_PAGE)
    if start < 0 or start + _HEADER_BYTES > len(content):
        return None
    position = int.from_bytes(content[start + _POSITION_OFFSET : start + _POSITION_OFFSET + 8], "little", signed=True)
    return max(1, round(position / _OPUS_RATE)) if position > 0 else None
