"""The lines between Palaver and the process that runs the WhatsApp library. Each line is a JSON object.

    Palaver → child                      child → Palaver
    {"id": 7, "do": "send_text", …}      {"re": 7, "ok": {…}}  or  {"re": 7, "error": {"kind": …, "text": …}}
    {"ack": 1790000000000000042}         {"seq": 1790000000000000042, "event": {…}}
                                         {"state": "connected", …}

The child sends a `ready` or `failed` state first. An event is on the child's disk until it was acknowledged, and is
sent again after a restart of either side. States are sent once: what counts is the latest.

This module is imported by the child: it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from palaver.core.files import flush_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Report = Callable[["State", dict[str, Any]], None]  # what has become of the connection
    Receive = Callable[[dict[str, Any]], None]  # an event; returns when it is durable

MAX_LINE_BYTES: Final = 1024 * 1024
MAX_TEXT_CHARS: Final = 70_000  # of a received message; WhatsApp allows 65,536
MAX_UNACKNOWLEDGED_EVENTS: Final = 64  # sent to Palaver, and not stored there yet
MAX_WAITING_REQUESTS: Final = 32
MAX_EVENTS: Final = 20_000  # in the spool; then nothing more is received
HEARTBEAT_SECONDS: Final = 10.0

SPOOL_FOLDER: Final = "received"
FILES_FOLDER: Final = "files"  # what is being sent and downloaded; emptied at every start
ATTEMPTS_FOLDER: Final = "attempts"  # a file for each download that is running, or at which the child has crashed
SESSION_FILE: Final = "session.db"  # the keys of the linked device
LOCK_FILE: Final = "lock"


class State(StrEnum):
    """A report of the child about its connection."""

    READY = "ready"  # the library is loaded
    FAILED = "failed"  # the library can't be loaded
    QR_CODE = "qr_code"
    PAIRING_CODE = "pairing_code"
    LINKING_ENDED = "linking_ended"  # the codes were not used in time
    CONNECTED = "connected"
    ALIVE = "alive"  # the connection that receives works, repeated
    UNREADABLE = "unreadable"  # something was received that can't be read
    DISCONNECTED = "disconnected"  # the library connects again by itself
    LOGGED_OUT = "logged_out"
    REPLACED = "replaced"
    BANNED = "banned"
    OUTDATED = "outdated"
    UNAVAILABLE = "unavailable"  # WhatsApp refuses the connection for now
    ENDED = "ended"  # the library has given up


class ErrorKind(StrEnum):
    """The reason why the child did not do what it was asked."""

    NOT_SENT = "not_sent"  # certainly; it can be tried again
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"  # certainly not sent, and never will be
    UNREACHABLE = "unreachable"  # the chat is gone, or we are not in it
    UNCERTAIN = "uncertain"
    IN_USE = "in_use"  # another process runs this account
    TOO_LARGE = "too_large"


class RequestError(Exception):
    """The child did not do what it was asked."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


def encode_line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """Read a line; raises ValueError if it is not an object, or not complete."""
    if not line.endswith(b"\n"):
        raise ValueError("The line is not complete.")
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("The line is not an object.")
    return fields


class Spool:
    """Keeps what was received from WhatsApp on disk until Palaver has stored it.

    The library tells WhatsApp that a message has arrived before Palaver has stored it. So the child writes each event
    into a file of its own, and only then hands it on; the file is deleted when Palaver has acknowledged it. It may be
    used by several threads; one process at a time holds the account's lock.

    Always true: an event whose `append` has returned is read again after any crash, in the order of their numbers,
    until it was removed. Only numbers are kept in memory.
    """

    def __init__(self, folder: Path, *, max_events: int = MAX_EVENTS) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._max_events = max_events
        self._lock = threading.Lock()
        for path in folder.glob("*.new"):  # it was being written, and not handed on yet
            path.unlink()
        self._stored = {int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()}
        self._waiting = deque(sorted(self._stored))  # not taken yet
        self._last = max(self._stored, default=0)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def is_full(self) -> bool:
        """Whether no more should be received for now. What comes nevertheless is kept."""
        return len(self._stored) >= self._max_events

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def append(self, event: dict[str, Any]) -> int:
        """Store an event durably; return its number. Raises OSError if the disk is full."""
        with self._lock:
            number = max(self._last + 1, time.time_ns())  # never one that was used before, also after a restart
            new = self._folder / f"{number}.new"
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(encode_line(event))
                file.flush()
                os.fsync(file.fileno())
            new.rename(self._get_path(number))
            flush_folder(self._folder)  # the name of the new file is durable, too
            self._last = number
            self._stored.add(number)
            self._waiting.append(number)
        return number

    def take(self) -> tuple[int, dict[str, Any]] | None:
        """Return the oldest event that was not taken yet, and its number.

        What is no event is put aside. Raises OSError if the disk fails: the event stays, and is read again later.
        """
        while True:
            with self._lock:
                if not self._waiting:
                    return None
                number = self._waiting.popleft()
            path = self._get_path(number)
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                with contextlib.suppress(ValueError):
                    event = json.loads(data)
                    if isinstance(event, dict):
                        return number, event
                path.rename(path.with_suffix(".unreadable"))
            with self._lock:
                self._stored.discard(number)

    def remove(self, number: int) -> None:
        """Delete an event that Palaver has stored; one that is gone is no error."""
        self._get_path(number).unlink(missing_ok=True)
        with self._lock:
            self._stored.discard(number)

    def _get_path(self, number: int) -> Path:
        return self._folder / f"{number}.json"
