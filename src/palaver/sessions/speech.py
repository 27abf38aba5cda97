"""Speech: recordings that become text, and answers that are read aloud. The rules, the limits and the texts; pure.

Always true: everything here takes time in proportion to its text.

Attachments: the files people send, which types are accepted, and how a message refers to them.

The type of a file is detected from its bytes; neither its name nor the sender is trusted. Text is always served as
plain text, whatever language it is written in, so nothing that was uploaded can run in a browser.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime  # noqa: TC003 - the columns of files derive from their types
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, LimitReached, NotFound
from palaver.core.ids import PersonId  # noqa: TC001
from palaver.core.text import is_storable, make_storable, strip_markdown
from palaver.core.texts import say

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
MAX_FILE_BYTES: Final = 20_000_000
MAX_FILES_PER_PERSON: Final = 100_000
MAX_FILES_PER_MESSAGE: Final = 10
MAX_FILE_NAME_CHARS: Final = 120
SNIFF_BYTES: Final = 4096  # how much of a file is read to detect its type
ATTACHMENT_PART_TYPE: Final = "attachment"  # the type of a message part that refers to a file
PLAIN_TEXT_TYPE: Final = "text/plain"
INLINE_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ATTACHMENT_ID = re.compile(r"a_[0-9a-f]{24}")
_BINARY_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_UNSAFE_NAME_CHARS = re.compile(r"[\x00-\x1f\x7f/\\\u200e\u200f\u202a-\u202e\u2066-\u2069]")


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
    path: Path
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class SpokenAudio:
    data: bytes = field(repr=False)
    media_type: str


_SIGNATURES: Final = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("application/pdf", re.compile(rb"%PDF-")),
    ("audio/wav", re.compile(rb"RIFF.{4}WAVE", re.DOTALL)),
    ("audio/ogg", re.compile(rb"OggS")),
    ("audio/flac", re.compile(rb"fLaC")),
    ("audio/mp4", re.compile(rb".{4}ftypM4A", re.DOTALL)),
    # What browsers record: its header, which comes first, names a track of sound and none of pictures.
    ("audio/mp4", re.compile(rb".{4}ftyp(?:iso[0-9m]|mp4[12])(?=.{0,4080}soun)(?!.{0,4080}vide)", re.DOTALL)),
    ("audio/aac", re.compile(rb"\xff[\xf1\xf9]")),
    ("audio/mpeg", re.compile(rb"ID3|\xff[\xfb\xfa\xf3\xf2]")),
    ("audio/webm", re.compile(rb"\x1a\x45\xdf\xa3.{0,64}webm", re.DOTALL)),
)


class AttachmentNotFound(NotFound):
    """File not found. It may have been deleted, or you don't have access."""


class UnsupportedFileType(InvalidInput):
    """This file type isn't supported. Send an image, a PDF, an Office document, an audio file, or text in UTF-8."""


class AttachmentTooLarge(InvalidInput):
    """This file is too large."""


class FileQuotaReached(LimitReached):
    """Your files have used up their space. Delete conversations that have files."""


@dataclass(frozen=True, slots=True)
class FileUsage:
    """The space that the files of a person take. Equal files are stored, and counted, once."""

    size: int  # in bytes
    file_count: int  # also equal ones

    def check_limit(self, max_bytes: int) -> None:
        """Raise `FileQuotaReached` if this is more than a person may store."""
        if self.size > max_bytes:
            raise FileQuotaReached(
                say(
                    "files.full",
                    "Your files use {size} of {limit} MB, with this one. Delete conversations that have files; what you"
                    " have uploaded and not sent is deleted after a day.",
                    size=f"{self.size / 1000000:.0f}",
                    limit=str(f"{max_bytes / 1000000:.0f}"),
                ),
                what="bytes",
                used_bytes=self.size,
                limit_bytes=max_bytes,
            )
        if self.file_count > MAX_FILES_PER_PERSON:
            raise FileQuotaReached(
                say(
                    "files.too_many",
                    "You can store up to {limit} files. Delete conversations that have files.",
                    limit=str(MAX_FILES_PER_PERSON),
                ),
                what="files",
                limit=MAX_FILES_PER_PERSON,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    person_id: PersonId
    created_at: datetime

    @property
    def can_show_inline(self) -> bool:
        """Return whether a browser may show it inside a page: only bitmap images, which cannot hold scripts."""
        return self.media_type in INLINE_IMAGE_TYPES

    @property
    def is_audio(self) -> bool:
        return self.media_type.startswith("audio/")

    def to_part(self) -> dict[str, Any]:
        """Return the message part that refers to this file."""
        return {
            "type": ATTACHMENT_PART_TYPE,
            "id": self.id,
            "name": self.name,
            "media_type": self.media_type,
            "size": self.size,
        }


def new_attachment_id() -> str:
    """Return a new id that is too long to guess."""
    return f"a_{secrets.token_hex(12)}"


def parse_attachment_id(text: object) -> str:
    """Return the id if it looks like one; raise AttachmentNotFound otherwise, because no file can have it."""
    if not isinstance(text, str) or _ATTACHMENT_ID.fullmatch(text) is None:
        raise AttachmentNotFound
    return text


def clean_file_name(name: str | None) -> str:
    """Return a file name that is safe to show: without folders and invisible characters, and not too long."""
    last_segment = re.split(r"[/\\]", make_storable(name or ""))[-1]
    clean = " ".join(_UNSAFE_NAME_CHARS.sub(" ", last_segment).split()).lstrip(".")
    if len(clean) > MAX_FILE_NAME_CHARS:
        stem, dot, extension = clean.rpartition(".")
        suffix = f"{dot}{extension}" if dot and len(extension) <= 10 else ""
        clean = (stem if suffix else clean)[: MAX_FILE_NAME_CHARS - len(suffix)] + suffix
    return clean or "file"


def format_bracketed_name(name: str | None) -> str:
    """Return a file name for a note in square brackets, which it cannot end."""
    return clean_file_name(re.sub(r"[][［］]", "", name or ""))


def detect_media_type(beginning: bytes, *, is_text: bool) -> str:
    """Return the type of a file from its first bytes; `is_text` says that the whole file is text in UTF-8.

    Documents that are archives are recognized by their end (`document_types.find_archive_type`).
    """
    for media_type, signature in _SIGNATURES:
        if signature.match(beginning):
            return media_type
    if is_text:
        return PLAIN_TEXT_TYPE
    raise UnsupportedFileType


def find_attachment_ids(content: object) -> list[str]:
    """Return the ids of the files that the content of a message refers to."""
    if not isinstance(content, list | tuple):
        return []
    return [
        str(part.get("id"))
        for part in content
        if isinstance(part, Mapping) and part.get("type") == ATTACHMENT_PART_TYPE
    ]


def add_attachments(
    content: str | Sequence[Any], files: Sequence[Attachment], transcripts: Mapping[str, Transcript] | None = None
) -> str | list[Any]:
    """Return the content with the files in it, each once: parts that refer to a file are replaced, others appended.

    The part of a recording keeps its transcript, or gets it from `transcripts`, by the id of the file.
    """
    if not files:
        return content if isinstance(content, str) else list(content)
    by_id = {file.id: file for file in files}
    parts: list[Any] = []
    if isinstance(content, str):
        if content.strip():
            parts.append({"type": "text", "text": content})
    else:
        for part in content:
            ids = find_attachment_ids([part])
            if not ids:
                parts.append(part)
            elif isinstance(part, Mapping) and (file := by_id.pop(ids[0], None)):
                parts.append(file.to_part() | _keep_transcript(file, dict(part)))
    found = transcripts or {}
    rest = [file.to_part() | (found[file.id].to_part_fields() if file.id in found else {}) for file in by_id.values()]
    return [*parts, *rest]


def _keep_transcript(file: Attachment, part: Mapping[str, Any]) -> dict[str, str]:
    """Return the transcript of a part that refers to a recording; it is the sender's own text."""
    text = part.get(TRANSCRIPT_KEY)
    return {TRANSCRIPT_KEY: text} if file.is_audio and isinstance(text, str) and text.strip() else {}


def describe_recording(part: Mapping[str, Any]) -> str | None:
    """Return what a model is told instead of a recording; None if the part has no transcript, nor why it has none."""
    text, error = part.get(TRANSCRIPT_KEY), part.get(TRANSCRIPT_ERROR_KEY)
    if isinstance(text, str):
        return f"(voice message, transcribed) {text}" if text.strip() else "(a voice message without words)"
    if isinstance(error, str):
        return f"(a voice message that could not be transcribed: {error})"
    return None


def is_plain_text(data: bytes) -> bool:
    """Return whether bytes are text in UTF-8, without control characters that only binary files contain."""
    if _BINARY_CONTROLS.search(data):
        return False
    try:
        return is_storable(data.decode())
    except UnicodeDecodeError:
        return False
