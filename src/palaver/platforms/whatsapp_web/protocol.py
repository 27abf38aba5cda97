"""The lines between Palaver and the process that runs the WhatsApp library. Each line is a JSON object.

    Palaver → child                      child → Palaver
    {"id": 7, "do": "send_text", …}      {"re": 7, "ok": {…}}  or  {"re": 7, "error": {"kind": …, "text": …}}
    {"ack": 1790000000000000042}         {"seq": 1790000000000000042, "event": {…}}
                                         {"state": "connected", …}

The child sends a `ready` or `failed` state first. An event is on the child's disk until it was acknowledged, and is
sent again after a restart of either side. States are sent once: what counts is the latest.

This module is imported by the child: it imports nothing but the standard library.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Final

MAX_LINE_BYTES: Final = 1024 * 1024
MAX_TEXT_CHARS: Final = 70_000  # of a received message; WhatsApp allows 65,536
MAX_UNACKNOWLEDGED_EVENTS: Final = 64  # sent to Palaver, and not stored there yet
MAX_WAITING_REQUESTS: Final = 32
HEARTBEAT_SECONDS: Final = 10.0

SPOOL_FOLDER: Final = "received"
FILES_FOLDER: Final = "files"  # what is being sent and downloaded; emptied at every start
ATTEMPTS_FOLDER: Final = "attempts"  # a file for each download that is running, or at which the child has crashed
SESSION_FILE: Final = "session.db"  # the keys of the linked device
LOCK_FILE: Final = "lock"


class State(StrEnum):
    """What the child reports about its connection."""

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
    """Why the child did not do what it was asked."""

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
    """Return an object as a line."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """Read a line; raises ValueError if it is not an object, or not complete."""
    if not line.endswith(b"\n"):
        raise ValueError("The line is not complete.")
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("The line is not an object.")
    return fields
