"""Files that people add to what they say: which are taken, what they are, and how a message names them.

What a file is, its bytes say; neither its name nor the sender is believed. Text is always plain text, whatever language
it is written in, so nothing that was sent here can run in a browser.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.domain.errors import InvalidInput, InvalidMessage, NotFound
from palaver.domain.text import is_storable, storable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.domain.ids import PersonId

LARGEST: Final = 20_000_000  # bytes in one file
MOST_OF_A_PERSON: Final = 2_000_000_000  # bytes of all their files
MOST_IN_A_MESSAGE: Final = 10
LONGEST_NAME: Final = 120
BEGINNING: Final = 4096  # bytes that say what a file is
PART: Final = "attachment"  # the type of a message's part that names a file
TEXT: Final = "text/plain"

SHOWN_IN_PLACE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_KNOWN: Final = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("application/pdf", re.compile(rb"%PDF-")),
    ("audio/wav", re.compile(rb"RIFF.{4}WAVE", re.DOTALL)),
    ("audio/ogg", re.compile(rb"OggS")),
    ("audio/flac", re.compile(rb"fLaC")),
    ("audio/mp4", re.compile(rb".{4}ftypM4A", re.DOTALL)),
    ("audio/mpeg", re.compile(rb"ID3|\xff[\xfb\xf3\xf2]")),
)
_ID = re.compile(r"a_[0-9a-f]{24}")
_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f/\\\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class NoSuchAttachment(NotFound):
    """There is no such file."""


class AttachmentRefused(InvalidInput):
    """Files of this kind are not taken: send an image, a PDF, a sound, or text in UTF-8."""


class AttachmentTooLarge(InvalidInput):
    """This file is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that somebody has sent."""

    id: str
    name: str
    type: str
    size: int
    sha256: str
    person_id: PersonId
    created_at: datetime

    @property
    def shown_in_place(self) -> bool:
        """Whether a browser may show it inside a page: images of dots, which hold no script."""
        return self.type in SHOWN_IN_PLACE

    def to_part(self) -> dict[str, Any]:
        """The part of a message that names it."""
        return {"type": PART, "id": self.id, "name": self.name, "media_type": self.type, "size": self.size}


def new_attachment_id() -> str:
    """A fresh id, too long to be guessed."""
    return f"a_{secrets.token_hex(12)}"


def known_attachment_id(text: object) -> str:
    """An id from outside. What does not even look like one names no file."""
    if not isinstance(text, str) or _ID.fullmatch(text) is None:
        raise NoSuchAttachment
    return text


def clean_name(name: str | None) -> str:
    """A name for people to read: no folder, nothing invisible, not too long."""
    last = re.split(r"[/\\]", storable(name or ""))[-1]
    clean = " ".join(_NOT_IN_A_NAME.sub(" ", last).split()).lstrip(".")
    if len(clean) > LONGEST_NAME:
        stem, dot, ending = clean.rpartition(".")
        short = f"{dot}{ending}" if dot and len(ending) <= 10 else ""
        clean = (stem if short else clean)[: LONGEST_NAME - len(short)] + short
    return clean or "file"


def type_of(beginning: bytes, *, is_text: bool) -> str:
    """What a file is by its first bytes; `is_text` when all of it is text in UTF-8."""
    for name, pattern in _KNOWN:
        if pattern.match(beginning):
            return name
    if is_text:
        return TEXT
    raise AttachmentRefused


def check_parts(content: str | Sequence[Any]) -> None:
    """Refuse parts of a message that are neither text nor one of our files.

    A part that names a place elsewhere would be fetched from there on our behalf, by us or by a provider.
    """
    for part in () if isinstance(content, str) else content:
        kind = part.get("type") if isinstance(part, Mapping) else "text" if isinstance(part, str) else None
        words = not isinstance(part, Mapping) or isinstance(part.get("text"), str)
        if kind not in {"text", PART} or (kind == "text" and not words):
            raise InvalidMessage(
                "content: its parts are text, or files that were sent before: {type: attachment, id: …}", part=kind
            )


def attachment_ids(content: object) -> list[str]:
    """The ids of the files that the content of a message names."""
    if content is None or isinstance(content, str) or not isinstance(content, list | tuple):
        return []
    return [str(part.get("id")) for part in content if isinstance(part, Mapping) and part.get("type") == PART]


def with_attachments(content: str | Sequence[Any], files: Sequence[Attachment]) -> str | list[Any]:
    """What somebody says, together with files: parts that name a file are written anew, others are added."""
    if not files:
        return content if isinstance(content, str) else list(content)
    by_id = {file.id: file for file in files}
    parts: list[Any] = []
    if isinstance(content, str):
        if content.strip():
            parts.append({"type": "text", "text": content})
    else:
        for part in content:
            file = by_id.pop("".join(attachment_ids([part])), None)
            parts.append(part if file is None else file.to_part())
    return [*parts, *(file.to_part() for file in by_id.values())]


def is_plain_text(data: bytes) -> bool:
    """Whether bytes are text: UTF-8, with no signs that only programs have a use for."""
    if _NOT_IN_TEXT.search(data):
        return False
    try:
        return is_storable(data.decode())
    except UnicodeDecodeError:
        return False
