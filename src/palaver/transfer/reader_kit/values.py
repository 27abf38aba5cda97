"""Reading values of other programs, which may be missing or of the wrong type, and building our messages from them."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import math
import os
import re
import stat
from dataclasses import field
from datetime import UTC, datetime, tzinfo
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from palaver.core.dataclass import dataclass
from palaver.core.text import make_json_storable, make_storable
from palaver.core.titles import MAX_TITLE_CHARS
from palaver.memory.model import MAX_MEMORY_CHARS
from palaver.sessions.message import Author, Message
from palaver.transfer.imported import ImportedFile, ImportedMemory, ImportedMessage, ImportProblem
from palaver.transfer.reader_kit.export_files import UnreadableItem, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


UNKNOWN_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)  # of a conversation without any time; no time is earlier
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
MAX_FILE_BYTES: Final = 256_000_000
_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_HEADING = re.compile(r"#{1,6}\s+(\S.*)|\*\*([^*]+)\*\*:?$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return 0
    return min(int(value), MAX_TOKENS)


def read_time(value: object, zone: tzinfo | None = UTC) -> datetime | None:
    """Read a time in seconds, milliseconds or finer, or in ISO format; None if it is missing or absurd.

    `zone` is that of a text without a time zone; None: of this machine.
    """
    if isinstance(value, str):
        return _read_iso_time(value, zone)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MAX_SECONDS * 1e9:
        return None
    seconds = float(value)
    for _ in range(3):
        if seconds > _MAX_SECONDS:
            seconds /= 1000
    is_known = UNKNOWN_TIME.timestamp() <= seconds < _LATEST.timestamp()
    return datetime.fromtimestamp(seconds, UTC) if is_known else None


def _read_iso_time(text: str, zone: tzinfo | None) -> datetime | None:
    if len(text) > 40:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
        time = (time.replace(tzinfo=zone) if time.tzinfo is None else time).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time if UNKNOWN_TIME <= time < _LATEST else None


def find_first_time(values: Iterable[object]) -> datetime | None:
    return min(filter(None, map(read_time, values)), default=None)


class Clock:
    """Gives every message a time: one without a time gets that of the message before it."""

    def __init__(self, start: datetime) -> None:
        self._last = start

    def read(self, *values: object) -> datetime:
        self._last = next(filter(None, map(read_time, values)), self._last)
        return self._last


def index_by_id(items: object, *keys: str) -> dict[str, dict[str, Any]]:
    """Return the items of a list by their ids; one without an id, or with that of another, gets its number."""
    indexed: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(map(as_dict, as_list(items)), 1):
        item_id = next(filter(None, (as_id(item.get(key)) for key in keys)), "")
        indexed[item_id if item_id and item_id not in indexed else f"#{number}"] = item
    return indexed


def read_title(value: object) -> str | None:
    """Return a title, shortened to what we can store; None if there is none."""
    title = " ".join(as_text(value).split())
    return (title if len(title) <= MAX_TITLE_CHARS else title[: MAX_TITLE_CHARS - 1].rstrip() + "…") or None


def build_message(role: str, content: str | Sequence[Any] | None, *, author: str = "", **extra: Any) -> Message:
    """Build a message; keys without a value are left out, and everything can be stored."""
    kept = {key: make_json_storable(value) for key, value in drop_empty(extra).items() if value is not False}
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


def drop_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}


def join_paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def join_result_parts(value: object) -> str:
    """Return the text of a tool's result: text, or a list of parts with text."""
    if isinstance(value, str):
        return as_text(value)
    texts = []
    for part in [value] if isinstance(value, dict) else as_list(value):
        if isinstance(part, str):
            texts.append(as_text(part))
        elif isinstance(part, dict):
            texts.append(as_text(part.get("text")) or format_json(_drop_data(part)))
    return "\n".join(texts)


def _drop_data(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without its binary data, which has no place in a text."""
    return {
        key: "(data)" if isinstance(value, str) and len(value) > 2000 and " " not in value[:200] else value
        for key, value in part.items()
    }


def limit_tokens(counts: Mapping[str, int]) -> dict[str, Any]:
    return {name: min(int(count), MAX_TOKENS) for name, count in counts.items()}


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: `1 file`, `2,000 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_missing_file(name: str) -> str:
    return f"[File: {name} (not in the export)]"


@dataclass(slots=True)
class ConvertedMessage:
    """The messages that one message of another program becomes; none if it is empty. The files belong to the last."""

    messages: list[Message]
    files: list[ImportedFile] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    is_hidden: bool = False

    def name_missing_files(self, role: str) -> None:
        """Name missing files in the last message; files without a message get one of this role."""
        if not self.messages and (self.files or self.missing_files):
            self.messages.append(build_message(role, ""))
        if self.missing_files:
            last = self.messages[-1]
            text = join_paragraphs(last.text, *map(format_missing_file, self.missing_files))
            self.messages[-1] = build_message(last.role, text, **last.extra)


def read_tree(
    parents: Mapping[str, str | None],
    current: str | None,
    convert: Callable[[str], tuple[datetime, ConvertedMessage]],
    where: str,
    missing_reason: str,
) -> Iterator[ImportedMessage | ImportProblem]:
    """Read the messages of a conversation in the order of `order_tree`; the reason says why files are missing."""
    missing: list[str] = []
    for message_id, is_hidden in order_tree(parents, current):
        try:
            at, converted = convert(message_id)
        except RecursionError:
            yield ImportProblem(where=f"{where}, message {message_id}", what="It is nested too deeply.")
            continue
        missing += converted.missing_files
        for number, message in enumerate(converted.messages, 1):
            files = tuple(converted.files) if number == len(converted.messages) else ()
            yield ImportedMessage(message=message, at=at, hidden=is_hidden or converted.is_hidden, files=files)
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        yield ImportProblem(where=where, what=f"{missing_reason}, so their messages only name them: {listed}.")


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


def is_plain(path: Path) -> bool:
    """Return whether neither the file nor a folder above it is a link.

    Always true: of a folder that another program or person has filled, only what is really inside of it is read. A
    link in it may lead to any file of this machine, and a pipe or a device never ends. Readers resolve the path of the
    folder itself once; below it, no link is followed.
    """
    return os.path.realpath(path) == os.fspath(path)


def open_plain_file(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError if it is a link, below one, or no ordinary file."""
    if not is_plain(path):
        raise OSError(errno.ELOOP, "it is a link, or in a folder that is one", str(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain_file(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole file; raise OSError also if it is larger than `max_bytes`."""
    with open_plain_file(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1_000_000} MB", str(path))
    return content


def read_text_file(path: Path, name: str, problems: list[ImportProblem], max_chars: int) -> str | None:
    """Read the beginning of a text file that may be missing; None if it is, or cannot be read."""
    try:
        with TextIOWrapper(open_plain_file(path), encoding="utf-8-sig", errors="replace") as file:
            return file.read(max_chars)
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(ImportProblem(where=name, what=describe_read_error(error, "The file")))
        return None


def read_json_file(
    path: Path, name: str, problems: list[ImportProblem], what: str = "", max_bytes: int = MAX_FILE_BYTES
) -> Any:
    """Read a JSON file that may be missing; None if it is, or cannot be read. Reports name it by `what` it has."""
    try:
        return parse_json(read_plain_file(path, max_bytes).removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        return None
    except (OSError, UnreadableItem) as error:
        problem = f"{what} cannot be read: {error}" if what else describe_read_error(error)
        problems.append(ImportProblem(where=name, what=problem))
        return None


def describe_read_error(error: Exception, file: str = "It") -> str:
    """Return what a report says about a file that cannot be read."""
    return f"{file} cannot be read: {error.strerror or error}." if isinstance(error, OSError) else str(error)


def order_tree(parents: Mapping[str, str | None], current: str | None) -> list[tuple[str, bool]]:
    """Return every id once, with whether it is hidden; linear in the number of ids.

    Programs keep every version of a message: each message names the one before it, and an edited question or a
    regenerated answer is another child of the same message. One path of this tree is shown; the rest is hidden.

    `parents` names for each id the one before it, in the order of the file. A parent that does not exist is replaced
    by the id before it in the file, so that one lost message does not hide everything before it. Visible is the path
    to `current`; without it, the path to the last id. Other versions come right before the one that replaced them,
    and what follows `current` comes last.
    """
    children: dict[str | None, list[str]] = {}
    links: dict[str, str | None] = {}
    previous: str | None = None
    for node, parent in parents.items():
        is_lost = parent is not None and (parent == node or parent not in parents)
        links[node] = previous if is_lost else parent
        children.setdefault(links[node], []).append(node)
        previous = node
    seen: dict[str, None] = {}
    last = current if current in links else previous
    while last is not None and last not in seen:  # a circle is cut where it closes
        seen[last] = None
        last = links[last]
    path = list(reversed(seen))
    ordered: list[tuple[str, bool]] = []
    for before, node in zip([None, *path], path, strict=False):
        ordered += ((hidden, True) for hidden in _walk(children.get(before, []), children, seen))
        ordered.append((node, False))
    # Then what follows the path, and what hangs together in circles: no beginning leads to it.
    for starts in (children.get(path[-1], []) if path else [], list(links)):
        ordered += ((hidden, True) for hidden in _walk(starts, children, seen))
    return ordered


def _walk(starts: list[str], children: Mapping[str | None, list[str]], seen: dict[str, None]) -> Iterator[str]:
    """Yield the ids that were not seen, each before its children."""
    stack = list(reversed(starts))
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            yield node
            stack += reversed(children.get(node, []))


class TurnBuilder:
    """Builds our messages from one answer that consists of blocks: text, reasoning, tool calls and their results.

    Claude and Open WebUI keep a whole turn in one message. We keep what a model and its tools said as messages in
    order: text and calls of the agent, the results, more text, …
    """

    def __init__(self, message_id: str, *, model: str = "") -> None:
        self._message_id = message_id
        self._model = model
        self._messages: list[Message] = []
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._call_count = 0
        self._names: dict[str, str] = {}
        self._open_calls: dict[str, None] = {}  # without a result so far, the oldest first

    def add_text(self, text: str) -> None:
        if self._calls:
            self._flush()  # text after a call belongs to the next step
        self._texts.append(text)

    def add_reasoning(self, text: str) -> None:
        if self._calls or any(map(str.strip, self._texts)):
            self._flush()
        self._reasoning.append(text)

    def add_call(self, call_id: str, name: str, arguments: object) -> None:
        self._call_count += 1
        call_id = call_id or f"{self._message_id}-{self._call_count}"
        self._calls.append(build_call(call_id, name, arguments))
        self._names[call_id] = name
        self._open_calls[call_id] = None

    def add_result(self, call_id: str, name: str, text: str, *, is_error: bool = False) -> None:
        """Add the result of a call; without an id it belongs to the oldest call that has none."""
        self._flush()
        call_id = call_id or next(iter(self._open_calls), "")
        self._open_calls.pop(call_id, None)
        name = name or self._names.get(call_id) or "tool"
        self._messages.append(build_message("tool", text, tool_call_id=call_id, tool_name=name, is_error=is_error))

    def build(self, *, is_interrupted: bool = False) -> list[Message]:
        self._flush(is_interrupted=is_interrupted)
        return self._messages

    def _flush(self, *, is_interrupted: bool = False) -> None:
        text = join_paragraphs(*self._texts)
        reasoning = join_paragraphs(*self._reasoning)
        if text.strip() or reasoning.strip() or self._calls:
            facts: dict[str, Any] = {"tool_calls": self._calls, "interrupted": is_interrupted}
            built = build_message("assistant", text, reasoning=reasoning, model=self._model, **facts)
            self._messages.append(built)
        self._texts, self._reasoning, self._calls = [], [], []


def read_notes(text: str) -> Iterator[ImportedMemory]:
    """Yield a memory for each list item and each paragraph; headings say what the notes under them are about.

    The id of a memory is made of its words, so that a second import knows it.
    """
    heading = ""
    for block in _split_blocks(make_storable(text)):
        if found := _HEADING.fullmatch(block):
            heading = (found[1] or found[2]).strip(" #:")
            continue
        note = f"{heading}: {block}" if heading else block
        for part in _split_long(note):
            yield ImportedMemory(origin_id=hashlib.sha256(part.encode()).hexdigest()[:32], text=part)


def _split_blocks(text: str) -> Iterator[str]:
    """Yield headings, list items (with what is indented under them) and paragraphs, each on one line."""
    block: list[str] = []

    def take() -> str:
        joined = " ".join(" ".join(block).split())
        block.clear()
        return joined

    for line in text.splitlines():
        stripped = line.strip()
        is_start = line[:1] not in {" ", "\t"} and _BULLET.match(stripped)
        if (not stripped or is_start or _HEADING.fullmatch(stripped)) and (joined := take()):
            yield joined
        if not stripped or set(stripped) <= set("-=_*"):  # an empty line, or a rule
            continue
        if _HEADING.fullmatch(stripped):
            yield stripped
            continue
        block.append(_BULLET.sub("", stripped, count=1) if is_start else stripped)
    if joined := take():
        yield joined


def _split_long(note: str) -> Iterator[str]:
    """Split a note that is longer than a memory may be between its sentences."""
    part = ""
    for sentence in _SENTENCE_END.split(note):
        if part and len(part) + len(sentence) + 1 > MAX_MEMORY_CHARS:
            yield part
            part = ""
        if len(sentence) > MAX_MEMORY_CHARS:
            yield from (sentence[at : at + MAX_MEMORY_CHARS] for at in range(0, len(sentence), MAX_MEMORY_CHARS))
        else:
            part = f"{part} {sentence}".strip()
    if part:
        yield part
