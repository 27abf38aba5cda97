"""Turns the parts of a mail into text: chooses and decodes them. Pure.

Sizes are bounded before anything is decoded. Nothing here takes more than time in proportion to the text.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from typing import TYPE_CHECKING, NamedTuple

from palaver.platforms.email.html_text import read_html
from palaver.platforms.email.imap_parsing import MimeGroup, MimePart, decode_charset
from palaver.platforms.email.invitation import read_invitation

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT_BYTES = 256 * 1024  # of one part of the text, encoded
MAX_TEXT_PARTS = 5
MAX_TEXT_CHARS = 100_000
MAX_FILES = 50
MAX_LINE_BYTES = 100_000  # that is kept until its end comes
MIN_PLAIN_BYTES = 3  # a plain text that is shorter is empty: the HTML beside it has the text

_REPLIES = {"reply", "counter", "declinecounter", "refresh"}  # to an invitation
_BASE64_SIGNS = re.compile(rb"[^A-Za-z0-9+/]+")


class MailParts(NamedTuple):
    texts: list[MimePart]  # to read one after the other
    files: list[MimePart]
    is_calendar_reply: bool = False  # a person has accepted or declined an invitation


def choose_parts(structure: MimePart | MimeGroup) -> MailParts:
    """Return the parts that are the text of a mail, and those that are files."""
    texts = _choose_texts(structure)[:MAX_TEXT_PARTS]
    parts = list(_list_parts(structure))
    files = [part for part in parts if not part.is_text and not _is_detail(part)]
    calendars = [part for part in parts if part.media_type == "text/calendar" and not part.is_attachment]
    invitations = [part for part in calendars if part.method not in _REPLIES][:1]
    return MailParts([*invitations, *texts], files[:MAX_FILES], is_calendar_reply=len(calendars) > len(invitations))


def _choose_texts(node: MimePart | MimeGroup) -> list[MimePart]:
    if isinstance(node, MimePart):
        return [node] if node.is_text else []
    choices = [found for part in node.parts if (found := _choose_texts(part))]
    if node.subtype != "alternative":
        return [part for found in choices for part in found]
    plain = [found for found in choices if all(part.media_type == "text/plain" for part in found)]
    filled = [found for found in plain if sum(part.size for part in found) >= MIN_PLAIN_BYTES]
    return filled[0] if filled else (choices or [[]])[-1]


def _list_parts(node: MimePart | MimeGroup) -> Iterator[MimePart]:
    if isinstance(node, MimePart):
        yield node
    else:
        for part in node.parts:
            yield from _list_parts(part)


def _is_detail(part: MimePart) -> bool:
    """Whether a part is no file for people: a signature, an encryption header, or an invitation beside its text."""
    return part.media_type in {"application/pgp-signature", "application/pkcs7-signature", "text/calendar"} and (
        not part.is_attachment
    )


def decode_text(part: MimePart, data: bytes) -> str:
    """Return the text of a part, also a cut or malformed one."""
    raw = decode_transfer(part.encoding, data[:MAX_TEXT_BYTES])
    text = decode_charset(raw, part.charset)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    match part.media_type:
        case "text/html":
            return read_html(text)
        case "text/calendar":
            return read_invitation(text)
    return text


def decode_transfer(encoding: str, data: bytes) -> bytes:
    """Return what a transfer encoding stands for; broken places are left out."""
    if encoding == "base64":
        signs = _BASE64_SIGNS.sub(b"", data)
        signs = signs[: len(signs) // 4 * 4] if len(signs) % 4 == 1 else signs + b"=" * (-len(signs) % 4)
        try:
            return base64.b64decode(signs)
        except binascii.Error:
            return b""
    if encoding == "quoted-printable":
        return quopri.decodestring(data)
    return data


class TransferDecoder:
    """Decodes a part that comes in chunks, which end anywhere."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._rest = b""  # that cannot be decoded without what follows

    def decode(self, data: bytes) -> bytes:
        if self._encoding == "base64":
            signs = self._rest + _BASE64_SIGNS.sub(b"", data)
            end = len(signs) // 4 * 4
        elif self._encoding == "quoted-printable":
            signs = self._rest + data
            end = signs.rfind(b"\n") + 1
            end = end if end or len(signs) < MAX_LINE_BYTES else len(signs)
        else:
            return data
        self._rest = signs[end:]
        return decode_transfer(self._encoding, signs[:end])

    def finish(self) -> bytes:
        return decode_transfer(self._encoding, self._rest) if self._rest else b""


def cut_text(text: str) -> str:
    """Return a text that is short enough for a message, and says so if it was cut."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}\n\n[The mail is longer; the rest was left out.]"
