"""Reads the spool of one account, and passes what it finds to the gateway."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from palaver.core.recent_entries import RecentEntries
from palaver.platforms.common.inbound import UNREADABLE_ERRORS, accept_updates, parse_json_object
from palaver.platforms.signal.inbound import JSON, EventParser, MessageRef, OpenFile, read_sender_name
from palaver.platforms.signal.outbound import MAX_QUOTE_CHARS
from palaver.sessions.inbound import AnyUpdate, Cursor, Inbound, MessageEdited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import AccountLink
    from palaver.gateway.intake import Intake
    from palaver.platforms.signal.linking import LinkedAccount


log = logging.getLogger(__name__)

READ_BYTES: Final = 256 * 1024
MAX_LINE_BYTES: Final = 4 * 1024 * 1024  # a longer one is passed over
MAX_REVISIONS: Final = 500
MAX_REMEMBERED: Final = 1000  # names, texts, messages of ours
MAX_REMEMBERED_CHARS: Final = MAX_QUOTE_CHARS  # of each: only as much of a text as a quote shows is needed
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


SPOOL_START: Final = SpoolPosition(0, 0)


class SpoolLine(NamedTuple):
    """A complete line, and the position after it."""

    content: bytes
    position: SpoolPosition


class Spool:
    """The files of an account, which are written and read one after the other."""

    def __init__(self, folder: Path, position: SpoolPosition = SPOOL_START) -> None:
        self._folder = folder
        self.position = position  # up to which it was read; not all of it may be stored yet
        self._is_passing_over = False  # a line that is too long

    def create_file(self) -> int:
        """Create the next file; return its descriptor, locked for the process that inherits it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = max([*self.list_numbers(), self.position.number]) + 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._get_path(number), flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

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

    def has_more(self) -> bool:
        """Return whether there is something that was not read."""
        number, offset = self.position
        return self.measure_size(number) > offset or any(
            self.measure_size(each) for each in self.list_numbers() if each > number
        )

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

    # ---- reading ---------------------------------------------------------------------------------------------

    def read_lines(self) -> list[SpoolLine]:
        """Return the next complete lines; nothing if there are none yet."""
        while True:
            lines, has_read = self._read_on()
            if lines or not (has_read or self._go_to_next_file()):
                return lines

    def _read_on(self) -> tuple[list[SpoolLine], bool]:
        """Return the next complete lines of this file, and whether anything was read or passed over."""
        start = self.position
        data = self._read(READ_BYTES)
        if b"\n" not in data and len(data) >= READ_BYTES:
            data = self._read(MAX_LINE_BYTES)
        *contents, rest = data.split(b"\n")
        lines: list[SpoolLine] = []
        for content in contents:
            self._advance(len(content) + 1)
            if not self._is_passing_over:
                lines.append(SpoolLine(content, self.position))
            self._is_passing_over = False
        if len(rest) >= MAX_LINE_BYTES:
            if not self._is_passing_over:
                log.warning("signal_line_too_long", extra={"position": str(self.position)})
            self._is_passing_over = True
            self._advance(len(rest))
        return lines, self.position != start

    def _read(self, size: int) -> bytes:
        try:
            with self._get_path(self.position.number).open("rb") as file:
                file.seek(self.position.offset)
                return file.read(size)
        except FileNotFoundError:
            return b""

    def _advance(self, size: int) -> None:
        self.position = self.position._replace(offset=self.position.offset + size)

    def _go_to_next_file(self) -> bool:
        """Go on with the next file if nothing more can come in this one; True if there is more to read."""
        later = [number for number in self.list_numbers() if number > self.position.number]
        if not later or self.has_writer(self.position.number):
            return False
        rest = self._read(MAX_LINE_BYTES)
        if b"\n" in rest:
            return True  # its writer has written this before it ended
        if rest:
            log.warning("signal_line_torn", extra={"position": str(self.position), "size": len(rest)})
        self._is_passing_over = False
        self.position = SpoolPosition(later[0], 0)
        return True


class AdapterState:
    """The file of one account. What it holds is lost without harm, if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changing = threading.Lock()  # edits of ours are noted in another thread than those of people
        self._originals: RecentEntries[MessageRef, int] = RecentEntries(MAX_REVISIONS)  # revision → time of the first
        self.connected_at: datetime | None = None
        fields: dict[str, Any] = {}
        with contextlib.suppress(OSError):
            fields = parse_json_object(path.read_bytes()) or {}
        with contextlib.suppress(TypeError, ValueError):
            for author, original, revision in fields.get("revisions") or ():
                self._originals.remember(MessageRef(str(author), int(revision)), int(original))
        with contextlib.suppress(KeyError, TypeError, ValueError):
            self.connected_at = datetime.fromisoformat(fields["connected_at"]).astimezone(UTC)

    def record_connection(self, now: datetime) -> None:
        with self._changing:
            self.connected_at = now
            self._save()

    def record_revision(self, target: MessageRef, revision: MessageRef) -> None:
        with self._changing:
            original = self.find_original(target)
            if original.timestamp != revision.timestamp:
                self._originals.remember(revision, original.timestamp)
                self._save()

    def find_original(self, ref: MessageRef) -> MessageRef:
        return MessageRef(ref.author, self._originals.get(ref, ref.timestamp))

    def list_revisions(self, ref: MessageRef) -> list[MessageRef]:
        original = self.find_original(ref)
        with self._changing:
            return [each for each in self._originals if self.find_original(each) == original]

    def _save(self) -> None:
        revisions = [(ref.author, original, ref.timestamp) for ref, original in self._originals.items()]
        fields = {"connected_at": self.connected_at and self.connected_at.isoformat(), "revisions": revisions}
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(fields), encoding="utf-8")
        new.replace(self._path)


class Memory(RecentEntries[str, str]):
    """The beginnings of the last values by key."""

    def __init__(self) -> None:
        super().__init__(MAX_REMEMBERED)

    def remember(self, key: str, value: str) -> None:
        super().remember(key, value[:MAX_REMEMBERED_CHARS])


class Receiver:
    """Reads on from where the account has read to."""

    def __init__(
        self,
        account: LinkedAccount,
        spool: Spool,
        state: AdapterState,
        open_file: OpenFile,
        *,
        answers_everybody: bool,
    ) -> None:
        self.own_aci = account.aci
        self._spool = spool
        self._state = state
        self._names = Memory()
        self._parser = EventParser(
            own=account,
            answers_everybody=answers_everybody,
            find_name=self._names.get,
            find_original=state.find_original,
            open_file=open_file,
        )
        self.texts = Memory()  # of messages, by id: for quotes
        self.sent_ids = Memory()  # of messages of ours: their echo is no message

    async def read(self, intake: Intake) -> bool:
        """Read what is there; return whether there was something. Raises what `accept` raises."""
        lines = self._spool.read_lines()
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
            await link.confirm(key, MessageRef(self.own_aci, int(timestamp)).id)

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
            if revision := self._parser.find_revision(event):
                self._state.record_revision(*revision)
            updates = self._parser.parse(event)
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
    if kind == "UntrustedIdentityException":
        log.warning(
            "signal_sender_untrusted",
            extra={"hint": "Their safety number has changed: signal-cli keeps the message until you trust them."},
        )
    else:
        log.warning("signal_message_unreadable", extra={"reason": kind})
