"""Turns the parts of a mail into text: chooses and decodes them, and cuts the quoted mail off a reply. Pure.

Sizes are bounded before anything is decoded. Nothing here takes more than time in proportion to the text.

Cut off is what follows a line such as "On Monday Ada wrote:", the header block of Outlook, or "Original message", and
quoted lines at the end. If the person has written between quoted lines, everything stays: the answers make no sense
without the questions.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.media.documents.html_text import Tag, iterate_tokens
from palaver.platforms.email.imap_parsing import MimeGroup, MimePart, decode_charset

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT_BYTES = 256 * 1024  # of one part of the text, encoded
MAX_TEXT_PARTS = 5
MAX_TEXT_CHARS = 100_000
MAX_FILES = 50
MAX_LINE_BYTES = 100_000  # that is kept until its end comes
MIN_PLAIN_BYTES = 3  # a plain text that is shorter is empty: the HTML beside it has the text
MAX_ATTRIBUTION_CHARS = 400
MAX_ATTRIBUTION_LINES = 3

_BASE64_SIGNS = re.compile(rb"[^A-Za-z0-9+/]+")
_SPACES = re.compile(r"[ \t\n\r\f\xa0]+")
_SKIPPED_TAGS = {"script", "style", "title", "head", "noscript", "template"}
_BLOCK_TAGS = {
    *("p", "div", "li", "ul", "ol", "blockquote", "pre", "table", "tr", "hr", "section", "article", "header", "footer"),
    *("h1", "h2", "h3", "h4", "h5", "h6"),
}
_PARAGRAPH_TAGS = {"p", "blockquote", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6"}
# The first word and a later word of a line that introduces a quote: "On …, Ada wrote:".
_ATTRIBUTIONS: Final = (
    ("on ", "wrote"),
    ("am ", "schrieb"),
    ("le ", "écrit"),
    ("il ", "ha scritto"),
    ("el ", "escribió"),
    ("op ", "schreef"),
    ("em ", "escreveu"),
)
_HEADER_NAMES: Final = (
    (("from:",), ("sent:", "date:", "to:", "subject:")),
    (("von:",), ("gesendet:", "datum:", "an:", "betreff:")),
    (("de :", "de:"), ("envoyé :", "envoyé:", "date :", "date:", "à :", "à:", "objet :", "objet:")),
    (("da:",), ("inviato:", "data:", "a:", "oggetto:")),
    (("van:",), ("verzonden:", "datum:", "aan:", "onderwerp:")),
)
_SEPARATORS: Final = (
    "original message",
    "ursprüngliche nachricht",
    "originalnachricht",
    "weitergeleitete nachricht",
    "message d'origine",
    "message d’origine",
    "mensaje original",
    "messaggio originale",
)


def read_html(html: str) -> str:
    """Return the text of an HTML mail, without what is not shown."""
    writer = _TextWriter()
    skipped_tag = ""  # up to its end
    for token in iterate_tokens(html):
        if skipped_tag:
            if isinstance(token, Tag) and token.is_end and token.name == skipped_tag:
                skipped_tag = ""
        elif isinstance(token, str):
            writer.add_text(token)
        elif token.name in _SKIPPED_TAGS and not token.is_end:
            skipped_tag = token.name
        else:
            writer.add_tag(token)
    return writer.finish()


class _TextWriter:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._words: list[str] = []  # of the current line
        self._depth = 0  # of quotes
        self._preformatted = 0
        self._links: list[str] = []

    def add_text(self, text: str) -> None:
        if self._preformatted:
            first, *others = text.split("\n")
            self._words.append(first)
            for line in others:
                self._end_line()
                self._words.append(line)
        else:
            self._words.append(_SPACES.sub(" ", text))

    def add_tag(self, tag: Tag) -> None:
        if tag.name == "a":
            self._add_link(tag)
        elif tag.name in {"td", "th"}:
            self._words.append(" ")
        elif tag.name == "br":
            self._end_line()
        elif tag.name in _BLOCK_TAGS:
            self._start_block(tag.name, is_end=tag.is_end)

    def _start_block(self, tag: str, *, is_end: bool) -> None:
        self._finish_line()
        if tag in _PARAGRAPH_TAGS and self._lines and self._lines[-1]:
            self._lines.append("")
        if tag == "blockquote":
            self._depth = max(0, self._depth + (-1 if is_end else 1))
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if is_end else 1))
        elif tag == "li" and not is_end:
            self._words.append("- ")

    def _add_link(self, tag: Tag) -> None:
        if not tag.is_end:
            self._links.append(tag.attributes.get("href", ""))
        elif self._links:
            address = self._links.pop()
            shown = "".join(self._words[-3:])
            if address.startswith(("http://", "https://")) and address not in shown:
                self._words.append(f" ({address[:500]})")

    def _finish_line(self) -> None:
        if "".join(self._words).strip():
            self._end_line()
        self._words = []

    def _end_line(self) -> None:
        text = "".join(self._words)
        self._words = []
        text = text.rstrip() if self._preformatted else text.strip()
        self._lines.append(f"{'> ' * min(self._depth, 5)}{text}".rstrip())

    def finish(self) -> str:
        self._finish_line()
        return "\n".join(self._lines).strip()


class MailParts(NamedTuple):
    texts: list[MimePart]  # to read one after the other
    files: list[MimePart]


def choose_parts(structure: MimePart | MimeGroup) -> MailParts:
    """Return the parts that are the text of a mail, and those that are files."""
    texts = _choose_texts(structure)[:MAX_TEXT_PARTS]
    files = [part for part in _list_parts(structure) if not part.is_text and not _is_detail(part)]
    return MailParts(texts, files[:MAX_FILES])


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
    return read_html(text) if part.media_type == "text/html" else text


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


def cut_quotes(text: str) -> str:
    """Return what the person has written in this mail."""
    lines = [line.rstrip() for line in text.split("\n")]
    everything = "\n".join(lines).strip()
    start = _find_quote(lines)
    if start is None or _has_answers_between(lines[start:]):
        return everything
    return "\n".join(lines[:start]).strip() or everything


def _find_quote(lines: list[str]) -> int | None:
    """Return the number of the first line that belongs to a quoted mail."""
    for number, line in enumerate(lines):
        if line and (_is_separator(line) or _is_header_block(lines, number) or _is_attribution(lines, number)):
            return number
    end = len(lines)
    while end and (not lines[end - 1] or lines[end - 1].startswith(">")):
        end -= 1
    return end if any(line.startswith(">") for line in lines[end:]) else None


def _is_separator(line: str) -> bool:
    return line.startswith("--") and len(line) <= MAX_ATTRIBUTION_CHARS and line.strip("- ").lower() in _SEPARATORS


def _is_header_block(lines: list[str], number: int) -> bool:
    """Return whether a block such as From, Sent, To, Subject begins here."""
    first = _simplify(lines[number])
    for starts, others in _HEADER_NAMES:
        if first.startswith(starts):
            following = [_simplify(line) for line in lines[number + 1 : number + 6]]
            return len({other for line in following for other in others if line.startswith(other)}) >= 2
    return False


def _simplify(line: str) -> str:
    return line[:40].lstrip("> *").replace("*", "").lower()


def _is_attribution(lines: list[str], number: int) -> bool:
    """Return whether a line such as "On Monday, Ada wrote:" begins here, also one that is broken into several."""
    first = _simplify(lines[number])
    verb = next((verb for start, verb in _ATTRIBUTIONS if first.startswith(start)), None)
    if verb is None:
        return False
    text = ""
    for line in lines[number : number + MAX_ATTRIBUTION_LINES]:
        text += " " + line
        if len(text) > MAX_ATTRIBUTION_CHARS or not line:
            return False
        if line.endswith(":"):
            return verb in text.lower()
    return False


def _has_answers_between(lines: list[str]) -> bool:
    """Return whether something stands below a quoted line that is neither quoted nor a signature."""
    has_quote = False
    for line in lines:
        if line.startswith(">"):
            has_quote = True
        elif line in {"--", "-- "}:
            return False
        elif line and has_quote:
            return True
    return False
