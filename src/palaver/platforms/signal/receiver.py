"""Reads the spool of one account, and passes what it finds to the gateway."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.platforms.common.inbound import UNREADABLE_ERRORS, RecentEntries, accept_updates, parse_json_object
from palaver.platforms.signal.inbound import (
    JSON,
    KnownIds,
    MessageRef,
    OpenFile,
    OwnAccount,
    find_revision,
    parse_event,
    read_sender_name,
)
from palaver.platforms.signal.outbound import MAX_QUOTE_CHARS
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, MessageEdited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import AccountLink
    from palaver.gateway.intake import Intake


log = logging.getLogger(__name__)

READ_BYTES: Final = 256 * 1024
MAX_LINE_BYTES: Final = 4 * 1024 * 1024  # a longer one is passed over
_FILE_NAME: Final = re.compile(r"([0-9]{1,18})\.jsonl")


class SpoolPosition(NamedTuple):
    """A place in the spool; stored as the account's cursor."""

    number: int  # of the file
    offset: int  # in bytes

    def __str__(self) -> str:
        return f"{self.number}:{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> SpoolPosition:
        """Read a cursor; the beginning of everything at the first start."""
        number, _, offset = (text or "0:0").partition(":")
        return cls(int(number), int(offset))


@dataclass(frozen=True, slots=True)
class SpoolLine:
    """A complete line, and the position after it."""

    content: bytes
    position: SpoolPosition


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_file(self, after: SpoolPosition) -> tuple[int, SpoolPosition]:
        """Create the next file; return its descriptor, locked for the process that inherits it, and its beginning."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = max([*self.list_numbers(), after.number]) + 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._get_path(number), flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor, SpoolPosition(number, 0)

    def list_numbers(self) -> list[int]:
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _FILE_NAME.fullmatch(name)))

    def measure_size(self, number: int) -> int:
        try:
            return self._get_path(number).stat().st_size
        except FileNotFoundError:
            return 0

    def has_writer(self, number: int) -> bool:
        """Return whether a process still writes into a file."""
        try:
            descriptor = os.open(self._get_path(number), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def has_more(self, position: SpoolPosition) -> bool:
        """Return whether there is something after a position."""
        later = [number for number in self.list_numbers() if number >= position.number]
        read_sizes = {position.number: position.offset}
        return any(self.measure_size(number) > read_sizes.get(number, 0) for number in later)

    def is_written_by(self, pid: int) -> bool:
        """Whether a file is the standard output of a process; where that can't be known, every process may be it."""
        folder = Path("/proc")
        if not (folder / "self" / "fd").exists():
            return True
        for number in self.list_numbers():
            with contextlib.suppress(OSError):
                if self._get_path(number).samefile(folder / str(pid) / "fd" / "1"):
                    return True
        return False

    def read(self, position: SpoolPosition, size: int) -> bytes:
        try:
            with self._get_path(position.number).open("rb") as file:
                file.seek(position.offset)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def delete_before(self, number: int) -> None:
        """Delete the files before one from which everything is stored."""
        for each in self.list_numbers():
            if each < number:
                self._get_path(each).unlink(missing_ok=True)

    def delete_empty(self) -> None:
        """Delete the files of processes that have ended before they wrote anything."""
        for number in self.list_numbers():
            if not self.measure_size(number) and not self.has_writer(number):
                self._get_path(number).unlink(missing_ok=True)

    def _get_path(self, number: int) -> Path:
        return self._folder / f"{number}.jsonl"


class SpoolReader:
    """Reads the files of a spool one after the other."""

    def __init__(self, spool: Spool, position: SpoolPosition) -> None:
        self._spool = spool
        self.position = position
        self._is_passing_over = False  # a line that is too long

    def read_lines(self) -> list[SpoolLine]:
        """Return the next complete lines; nothing if there are none yet."""
        while True:
            lines, is_at_end = self._read_on()
            if lines or not is_at_end or not self._go_to_next_file():
                return lines

    def _read_on(self) -> tuple[list[SpoolLine], bool]:
        """Return the next complete lines of this file, and whether there is no further one yet."""
        data = self._spool.read(self.position, READ_BYTES)
        while b"\n" not in data and len(data) >= READ_BYTES:
            data = self._read_long_line(data)
        lines: list[SpoolLine] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self.position = SpoolPosition(self.position.number, self.position.offset + end + 1 - start)
            if not self._is_passing_over:
                lines.append(SpoolLine(data[start:end], self.position))
            self._is_passing_over = False
            start = end + 1
        return lines, start == 0

    def _read_long_line(self, beginning: bytes) -> bytes:
        """Return more of a line, or what follows after a piece of it that is passed over."""
        if not self._is_passing_over:
            data = self._spool.read(self.position, MAX_LINE_BYTES)
            if b"\n" in data or len(data) < MAX_LINE_BYTES:
                return data if b"\n" in data else b""
            log.warning("signal_line_too_long", extra={"position": str(self.position)})
            beginning, self._is_passing_over = data, True
        self.position = SpoolPosition(self.position.number, self.position.offset + len(beginning))
        return self._spool.read(self.position, READ_BYTES)

    def _go_to_next_file(self) -> bool:
        """Go on with the next file if nothing more can come in this one; True if there is more to read."""
        later = [number for number in self._spool.list_numbers() if number > self.position.number]
        if not later or self._spool.has_writer(self.position.number):
            return False
        rest = self._spool.read(self.position, MAX_LINE_BYTES)
        if b"\n" in rest:
            return True  # its writer has written this before it ended
        if rest:
            log.warning("signal_line_torn", extra={"position": str(self.position), "size": len(rest)})
        self._is_passing_over = False
        self.position = SpoolPosition(later[0], 0)
        return True


MAX_REVISIONS: Final = 500
MAX_REMEMBERED: Final = 1000  # names, texts, messages of ours
MAX_REMEMBERED_CHARS: Final = MAX_QUOTE_CHARS  # of each: only as much of a text as a quote shows is needed
UNTRUSTED_ERROR: Final = "UntrustedIdentityException"


class AdapterState:
    """The file of one account. What it holds is lost without harm, if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changing = threading.Lock()  # edits of ours are noted in another thread than those of people
        fields = _read(path)
        self.connected_at = _read_time(fields.get("connected_at"))
        self._originals: OrderedDict[str, int] = OrderedDict()  # id of a revision → time of the original
        self._latest: dict[str, int] = {}  # id of an original → time of its last revision
        self._counts: Counter[str] = Counter()  # of revisions, by the id of the original
        with contextlib.suppress(TypeError, ValueError):
            for author, original, revision in fields.get("revisions") or ():
                self._add(MessageRef(str(author), int(original)), int(revision))

    def record_connection(self, now: datetime) -> None:
        with self._changing:
            self.connected_at = now
            self._save()

    def record_revision(self, target: MessageRef, revision: MessageRef) -> None:
        """Remember that a message was replaced by another."""
        with self._changing:
            original = self.find_original(target)
            if original.timestamp != revision.timestamp:
                self._add(original, revision.timestamp)
                self._save()

    def find_original(self, ref: MessageRef) -> MessageRef:
        return MessageRef(ref.author, self._originals.get(ref.id, ref.timestamp))

    def find_latest(self, ref: MessageRef) -> MessageRef:
        original = self.find_original(ref)
        return MessageRef(ref.author, self._latest.get(original.id, original.timestamp))

    def count_revisions(self, ref: MessageRef) -> int:
        return self._counts[self.find_original(ref).id]

    def _add(self, original: MessageRef, revision: int) -> None:
        self._originals[MessageRef(original.author, revision).id] = original.timestamp
        self._latest[original.id] = max(revision, self._latest.get(original.id, 0))
        self._counts[original.id] += 1
        while len(self._originals) > MAX_REVISIONS:
            revision_id, timestamp = self._originals.popitem(last=False)
            oldest = MessageRef(revision_id.rpartition(":")[0], timestamp).id
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest], self._latest[oldest]

    def _save(self) -> None:
        ids = ((*revision_id.rpartition(":"), original) for revision_id, original in self._originals.items())
        revisions = [(author, original, int(revision)) for author, _, revision, original in ids]
        connected_at = self.connected_at.isoformat() if self.connected_at else None
        fields = {"connected_at": connected_at, "revisions": revisions}
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(fields), encoding="utf-8")
        new.replace(self._path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_json_object(path.read_bytes()) or {}
    except OSError:
        return {}


def _read_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC) if value else None
    except ValueError:
        return None


class Memory(RecentEntries[str, str]):
    """The beginnings of the last values by key."""

    def __init__(self) -> None:
        super().__init__(MAX_REMEMBERED)

    def remember(self, key: str, value: str) -> None:
        super().remember(key, value[:MAX_REMEMBERED_CHARS])


class Receiver:
    """Reads on from where the account has read to."""

    def __init__(
        self, own: OwnAccount, spool: Spool, position: SpoolPosition, state: AdapterState, open_file: OpenFile
    ) -> None:
        self._own = own
        self._spool = spool
        self._reader = SpoolReader(spool, position)
        self._state = state
        self._open_file = open_file
        self._names = Memory()
        self._known = KnownIds(find_name=self._names.get, find_original=state.find_original)
        self.texts = Memory()  # of messages, by id: for quotes
        self.sent_ids = Memory()  # of messages of ours: their echo is no message

    @property
    def own_aci(self) -> str:
        return self._own.aci

    @property
    def position(self) -> SpoolPosition:
        """The place up to which it was read; not all of it may be stored yet."""
        return self._reader.position

    async def read(self, intake: Intake) -> bool:
        """Read what is there; return whether there was something. Raises what `accept` raises."""
        lines = self._reader.read_lines()
        unsaved: SpoolPosition | None = None
        for line in lines:
            updates = self._parse(line)
            if updates:
                await accept_updates(intake, updates, Cursor(str(line.position)))
            unsaved = None if updates else line.position
        if unsaved is not None:
            await intake.save_cursor(Cursor(str(unsaved)))
        if lines and intake.cursor is not None:
            self._spool.delete_before(SpoolPosition.parse(intake.cursor).number)
        return bool(lines)

    async def confirm(self, answer: JSON, link: AccountLink) -> None:
        """Report a message of ours whose answer came after its caller stopped waiting."""
        key = str(answer["id"]).partition("#")[0]
        result = answer.get("result")
        if key and isinstance(result, dict) and (timestamp := result.get("timestamp")):
            await link.confirm(key, MessageRef(self._own.aci, int(timestamp)).id)

    def _parse(self, line: SpoolLine) -> Sequence[AnyUpdate]:
        """Return the updates of a line. One that cannot be read is left out, so that it does not stop the rest."""
        event = parse_json_object(line.content)
        if event is None:
            log.warning("signal_line_unreadable", extra={"position": str(line.position), "size": len(line.content)})
            return []
        try:
            _log_error(event)
            if sender := read_sender_name(event):
                self._names.remember(*sender)
            if revision := find_revision(event, self._own):
                self._state.record_revision(*revision)
            updates = parse_event(event, self._own, self._known, self._open_file)
        except UNREADABLE_ERRORS as error:
            log.warning("signal_event_unreadable", extra={"reason": type(error).__name__})
            return []
        return [update for update in updates if not self._is_own_echo(update)]

    def _is_own_echo(self, update: AnyUpdate) -> bool:
        if isinstance(update, Inbound) and update.message_id:
            self.texts.remember(update.message_id, str(update.content))
            return update.message_id in self.sent_ids
        return isinstance(update, MessageEdited) and update.message_id in self.sent_ids


def _log_error(event: JSON) -> None:
    """Log that signal-cli could not decrypt a message, without what it was."""
    error = event.get("exception")
    if not error:
        return
    kind = str(error.get("type"))
    if kind == UNTRUSTED_ERROR:
        log.warning(
            "signal_sender_untrusted",
            extra={"hint": "Their safety number has changed: signal-cli keeps the message until you trust them."},
        )
    else:
        log.warning("signal_message_unreadable", extra={"reason": kind})
