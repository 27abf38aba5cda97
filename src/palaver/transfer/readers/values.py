"""Reading values of other programs, which may be missing or of the wrong type, and building our messages from them."""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from palaver.core.text import make_json_storable, make_storable
from palaver.core.titles import MAX_TITLE_CHARS
from palaver.sessions.message import Author, Message
from palaver.transfer.imported import ImportedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNKNOWN_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)  # of a conversation without any time
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MAX_SECONDS: Final = 1e11  # above: milliseconds, microseconds or nanoseconds
_DATA_URL = re.compile(r"data:([\w.+-]{1,60}/[\w.+-]{1,60})?[^,]{0,200};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]++")
FILE_ENDINGS: Final = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
}
MAX_TOKENS: Final = 10**12  # more than any conversation has used
CHUNK_BYTES: Final = 262_144  # a multiple of 4: the unit of base64


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text that can be stored; empty for anything else."""
    return make_storable(value) if isinstance(value, str) else ""


def as_id(value: object) -> str:
    """Return an id as text; programs write some of them as numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value).strip()


def as_count(value: object) -> int:
    """Return a number of tokens; 0 for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    return min(max(int(value), 0), MAX_TOKENS)


def read_time(value: object) -> datetime | None:
    """Read a time in seconds, milliseconds or finer, or in ISO format; None if it is missing or absurd."""
    if isinstance(value, str):
        return _read_iso_time(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    if not math.isfinite(seconds):
        return None
    for _ in range(3):
        if seconds > _MAX_SECONDS:
            seconds /= 1000
    if not _EARLIEST.timestamp() <= seconds < _LATEST.timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _read_iso_time(text: str) -> datetime | None:
    if len(text) > 40:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        return None
    return time if _EARLIEST <= time < _LATEST else None


class Clock:
    """Gives every message a time: one without a time gets that of the message before it."""

    def __init__(self, start: datetime) -> None:
        self._last = start

    def read(self, *values: object) -> datetime:
        """Return the first of the values that is a time."""
        for value in values:
            if time := read_time(value):
                self._last = time
                break
        return self._last


def read_title(value: object) -> str | None:
    """Return a title, shortened to what we can store; None if there is none."""
    title = " ".join(as_text(value).split())
    return (title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1].rstrip() + "…") or None


def build_message(role: str, content: str | Sequence[Any] | None, *, author: str = "", **extra: Any) -> Message:
    """Build a message; keys without a value are left out, and everything can be stored."""
    kept = {key: make_json_storable(value) for key, value in extra.items() if value not in (None, "", [], False)}
    return Message(role, make_json_storable(content), Author(make_storable(author)) if author else None, None, kept)


def build_call(call_id: str, name: str, arguments: object) -> dict[str, Any]:
    """Build a tool call; arguments that are not a JSON object become one."""
    return {"id": call_id, "type": "function", "function": {"name": name or "tool", "arguments": _to_json(arguments)}}


def _to_json(arguments: object) -> str:
    if isinstance(arguments, str):
        stripped = arguments.strip()
        if stripped.startswith("{") and stripped.endswith("}"):
            try:
                if isinstance(json.loads(stripped), dict):
                    return make_storable(stripped)
            except (ValueError, RecursionError):
                pass  # it only looks like JSON: it is kept as text
        arguments = {"input": arguments} if stripped else {}
    if not isinstance(arguments, dict):
        arguments = {"input": arguments}
    return json.dumps(make_json_storable(arguments), ensure_ascii=False, default=str)


def format_json(value: object) -> str:
    """Format data that has no text as a code block, so that nothing of it is lost."""
    return f"```json\n{json.dumps(make_json_storable(value), ensure_ascii=False, indent=1, default=str)}\n```"


def join_paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def join_result_parts(value: object) -> str:
    """Return the text of a tool's result: text, or a list of parts with text."""
    if isinstance(value, str):
        return as_text(value)
    texts = []
    for part in as_list(value):
        if isinstance(part, str):
            texts.append(as_text(part))
        elif isinstance(part, dict):
            text = as_text(part.get("text"))
            texts.append(text or format_json(_drop_data(part)))
    if isinstance(value, dict):
        texts.append(as_text(value.get("text")) or format_json(_drop_data(value)))
    return "\n".join(texts)


def _drop_data(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without its binary data, which has no place in a text."""
    return {
        key: "(data)" if isinstance(value, str) and len(value) > 2000 and " " not in value[:200] else value
        for key, value in part.items()
    }


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: `1 file`, `2,000 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def note_missing_file(name: str) -> str:
    return f"[File: {name} (not in the export)]"


def make_text_file(name: str, text: str) -> ImportedFile:
    data = make_storable(text).encode()
    return ImportedFile(name=name or "pasted.txt", open_chunks=lambda: iter((data,)))


def read_data_url(url: str, name: str = "") -> ImportedFile | None:
    """Return the file in a `data:` address; None if it is none."""
    beginning = _DATA_URL.match(url)
    return make_base64_file(url[beginning.end() :], (beginning[1] or "").lower(), name) if beginning else None


def make_base64_file(data: str, media_type: str, name: str = "") -> ImportedFile | None:
    """Return a file whose content is text in base64; None if that is damaged."""
    clean = "".join(data.split()).rstrip("=")
    if not clean or len(clean) % 4 == 1 or _BASE64.fullmatch(clean) is None:
        return None

    def decode_chunks() -> Iterator[bytes]:
        for position in range(0, len(clean), CHUNK_BYTES):
            chunk = clean[position : position + CHUNK_BYTES]
            yield base64.b64decode(chunk + "=" * (-len(chunk) % 4))

    return ImportedFile(name=name or "file" + FILE_ENDINGS.get(media_type, ""), open_chunks=decode_chunks)
