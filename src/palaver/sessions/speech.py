"""Speech: recordings that become text, and answers that are read aloud. The rules, the limits and the texts; pure.

Always true: everything here takes time in proportion to its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from palaver.core.plain_text import strip_markdown

if TYPE_CHECKING:
    from pathlib import Path


# What a recording or a spoken text counts in budgets, where a provider does not report tokens. Prices are dollars for
# a million of these: a price of $0.006 a minute is 10, a price of $15 for a million characters is 15.
TOKENS_PER_AUDIO_SECOND: Final = 10
TOKENS_PER_SPOKEN_CHAR: Final = 1
MIN_AUDIO_BYTES_PER_SECOND: Final = 1000  # of speech as phones and browsers record it; less is taken for this much

MAX_TRANSCRIPT_CHARS: Final = 50_000
MAX_TRANSCRIPT_ERROR_CHARS: Final = 500
MAX_PIECE_CHARS: Final = 1500  # of a text that is spoken in one request; providers take about 4000
MAX_SPOKEN_CHARS: Final = 60_000  # of one answer

TRANSCRIPT_KEY: Final = "transcript"  # of the message part of a recording: its words
TRANSCRIPT_ERROR_KEY: Final = "transcript_error"  # instead of it: why that is not known

AUTO: Final = "auto"
OFF: Final = "off"
COMMAND: Final = "command"

_CODE_BLOCK = re.compile(r"^ {0,3}(```|~~~)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_URL = re.compile(r"https?://[^\s<>]{1,2000}")
_BLANK_LINES = re.compile(r"\n\s*\n+")
_SENTENCE_END = re.compile(r"[.!?…:;。!?]\s|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRules:
    """Which engines turn speech into text and text into speech."""

    transcription: str = AUTO  # auto, off, command, or provider:model
    speaking: str = AUTO  # the same
    voice: str | None = None  # None: the engine's own
    language: str | None = None  # that people speak, such as de; None: the engine finds out
    transcribe_voice_notes: bool = True  # of chats, before the agent answers
    max_minutes: int = 15  # of one recording
    transcription_command: tuple[str, ...] = ()  # prints the text of the file {file}
    speaking_command: tuple[str, ...] = ()  # reads text, and writes audio to its output


@dataclass(frozen=True, slots=True)
class Transcript:
    """The words of a recording, or why there are none."""

    text: str = ""
    error: str | None = None

    def to_part_fields(self) -> dict[str, str]:
        """Return the fields of the message part of its file."""
        if self.error is not None:
            return {TRANSCRIPT_ERROR_KEY: self.error[:MAX_TRANSCRIPT_ERROR_CHARS]}
        return {TRANSCRIPT_KEY: self.text[:MAX_TRANSCRIPT_CHARS]}


def estimate_audio_tokens(size_bytes: int) -> int:
    """Return the most that a recording of this size may count."""
    return -(-size_bytes // MIN_AUDIO_BYTES_PER_SECOND) * TOKENS_PER_AUDIO_SECOND


def make_spoken_text(markdown: str) -> str:
    """Return Markdown as it is read aloud: without marks, addresses and code."""
    text = strip_markdown(_CODE_BLOCK.sub("\n", markdown[:MAX_SPOKEN_CHARS]))
    text = _URL.sub(" ", text)
    return _BLANK_LINES.sub("\n", text).strip()


def split_spoken_text(text: str) -> list[str]:
    """Split a text into pieces that are spoken one after the other, at the ends of sentences where possible."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = _find_piece_end(text, start)
        if piece := text[start:end].strip():
            pieces.append(piece)
        start = end
    return pieces


def _find_piece_end(text: str, start: int) -> int:
    limit = start + MAX_PIECE_CHARS
    if len(text) <= limit:
        return len(text)
    end = 0
    for match in _SENTENCE_END.finditer(text, start, limit):
        end = match.end()
    if end == 0:
        space = text.rfind(" ", start, limit)
        end = space + 1 if space > start else limit
    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording on disk."""

    path: Path
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class SpokenAudio:
    """Audio of a spoken text."""

    data: bytes = field(repr=False)
    media_type: str
