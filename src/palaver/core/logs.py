"""Logging: one event per line on standard error, with all secrets removed.

At a terminal the lines are formatted for people, otherwise each line is a JSON document. All logging goes through here,
from Palaver and from other packages.

Always true: secrets are removed just before output, from all text of a line and its traceback, so that it does not
matter who logged them or how. Removed are the values of fields with names such as `password`, API tokens of Palaver and
of other services, the secret of a sign-in link or a shared conversation, passwords in URLs, and the secrets of accounts
on platforms.

What goes wrong thousands of times a second, or what a stranger can cause, cannot fill a disk: within `INTERVAL_SECONDS`
a warning with the same fields is written once, and warnings of one kind with different fields `MAX_LINES_PER_KIND`
times. How many were left out is written afterwards, with the next line or when logging stops. Lines below a warning are
not limited.

The last `MAX_KEPT_RECORDS` lines stay in memory, for owners who look at them on the page: exactly what was written,
after secrets were removed.
"""

from __future__ import annotations

import json
import logging
import re
import secrets as secrets_module
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO
from urllib.parse import quote

from palaver.core.dataclass import dataclass
from palaver.core.text import shorten

REMOVED: Final = "[removed]"
INTERVAL_SECONDS: Final = 10.0
MAX_LINES_PER_KIND: Final = 50
MAX_KEPT_RECORDS: Final = 2000
MAX_RECORD_CHARS: Final = 4000  # of the fields of a kept record, so that all of them take a few megabytes at most
_STANDARD_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_PLAIN_VALUE: Final = r"[^\s\x00-\x1f\x7f-\x9f'\"=]+"  # others are quoted
_LEVEL_COLORS: Final = {"info": "32", "warning": "33", "error": "31", "critical": "31"}

# A field is secret if its name ends like this: `token` and `api_token` are secret, `input_tokens` is not.
_SECRET_FIELD = re.compile(
    r"(?:^|[_\-.])(?:authorization|cookies?|set-cookie|password|passwd|passphrase|secrets?|token|credentials?"
    r"|api[_-]?key|private[_-]?key|access[_-]?key)$",
    re.IGNORECASE,
)

# Log lines may contain any text, so every pattern takes time in proportion to it: a run of characters is tried once,
# from its beginning, and never given back (`++`, `*+`).
_HEADERS = "authorization|set-cookie|cookie"
_ASSIGNED_NAMES = "password|passwd|passphrase|secret|token|api[_-]?key"
_ASSIGNMENT = r"""\\*["']?\s*[:=]\s*"""
_QUOTED_VALUE = r"""\\*"[^"]*"|\\*'[^']*'"""

_SECRETS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # A header or an assignment in text: `Authorization: Bearer x`, `password=x`, `"api_key": "x"`.
        (rf"""(?i)((?:{_HEADERS}){_ASSIGNMENT})(?:{_QUOTED_VALUE}|[^"'\\\r\n]+)""", rf"\1{REMOVED}"),
        (rf"""(?i)((?:{_ASSIGNED_NAMES}){_ASSIGNMENT})(?:{_QUOTED_VALUE}|[^\s"',;&}})\]]+)""", rf"\1{REMOVED}"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", rf"\1 {REMOVED}"),
        (r"(sign-in#)[\w-]+", rf"\1{REMOVED}"),
        (r"(/shared/)[\w-]{8,}", rf"\1{REMOVED}"),
        (r"(://[^\s/:@\"']*+:)[^\s/@\"']++(@)", rf"\1{REMOVED}\2"),
        (r"\bpal_[A-Za-z0-9_-]{16,}", REMOVED),
        (r"\b(?:sk|pk|rk|xox[abposr]|gh[pousr]|github_pat|AIza|glpat|hf)[-_][A-Za-z0-9_-]{8,}", REMOVED),
        (r"\bAIza[A-Za-z0-9_-]{30,}", REMOVED),
        (r"(?<!\d)\d{5,}+:[A-Za-z0-9_-]{30,}", REMOVED),  # the token of a Telegram bot
        (  # a JSON web token
            r"(?<![A-Za-z0-9_-])(?>([A-Za-z0-9_-]*?)\beyJ)[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+",
            rf"\1{REMOVED}",
        ),
    )
)


_known_secrets: set[str] = set()
_MIN_KNOWN_SECRET_CHARS: Final = 6  # a shorter one would remove parts of ordinary words


def hide_in_logs(secrets: Iterable[str]) -> None:
    """Remove these texts from all lines from now on: secrets of the settings, which an SDK may put into its errors."""
    _known_secrets.update(
        form
        for secret in secrets
        if len(secret) >= _MIN_KNOWN_SECRET_CHARS
        for form in (secret, quote(secret, safe=""))
    )


def remove_secrets(text: str) -> str:
    """Return the text without known secrets, and without everything that looks like a secret."""
    for secret in _known_secrets:
        text = text.replace(secret, REMOVED)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def configure_logging(stream: TextIO | None = None) -> None:
    """Send all logging of this process to standard error, or to another stream."""
    output = stream or sys.stderr
    handler = _LimitedHandler(output)
    handler.setFormatter(_SecretRemovingFormatter(for_terminal=output.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    for name in ("httpx", "httpx2", "httpcore", "httpcore2", "uvicorn.error", "mcp", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they log every request


class _SecretRemovingFormatter(logging.Formatter):
    """Formats every log line; the last step before the output stream."""

    def __init__(self, *, for_terminal: bool) -> None:
        super().__init__()
        self._for_terminal = for_terminal

    def format(self, record: logging.LogRecord) -> str:
        line = {name: _remove_field_secrets(name, value) for name, value in self._list_fields(record).items()}
        RECENT_RECORDS.add(line)
        return _format_for_terminal(line) if self._for_terminal else json.dumps(line)

    def _list_fields(self, record: logging.LogRecord) -> dict[str, Any]:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        fields = {"event": record.getMessage(), "logger": record.name, "level": record.levelname.lower()}
        fields |= _get_extra_fields(record) | {"timestamp": moment.replace("+00:00", "Z")}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        return fields


def _get_extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}


def _format_for_terminal(line: Mapping[str, Any]) -> str:
    """Return a line for people: the time, the level and the event, then the fields; a traceback below."""
    rest = dict(line)
    timestamp, level, event, logger = (rest.pop(name) for name in ("timestamp", "level", "event", "logger"))
    below = [str(rest.pop(name)) for name in ("stack", "exception") if name in rest]
    fields = [
        f"{name}={value if re.fullmatch(_PLAIN_VALUE, str(value)) else repr(value)}" for name, value in rest.items()
    ]
    color = _LEVEL_COLORS.get(str(level), "0")
    start = f"{timestamp} \x1b[{color}m{level:<8}\x1b[0m \x1b[1m{event}\x1b[0m [{logger}]"
    return "\n".join([" ".join([start, *fields]), *below])


def _remove_field_secrets(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return REMOVED if value is not None and _SECRET_FIELD.search(name) else value
    if _SECRET_FIELD.search(name):
        return REMOVED
    if isinstance(value, Mapping):
        return {str(key): _remove_field_secrets(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_remove_field_secrets("", inner) for inner in value]
    return remove_secrets(str(value))


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A line of the log, without secrets."""

    no: int  # 1, 2, 3 … in this process
    at: str  # ISO 8601, in UTC
    level: str
    logger: str
    event: str
    fields: Mapping[str, str]

    def contains(self, text: str) -> bool:
        """Whether a text, in lower case, occurs anywhere in the line."""
        texts = (self.event, self.logger, *self.fields, *self.fields.values())
        return any(text in each.lower() for each in texts)


class RecentRecords:
    def __init__(self) -> None:
        self.process_id = secrets_module.token_hex(4)  # tells the records of this process from those of others
        self.started_at = datetime.now(UTC)
        self._records: deque[LogRecord] = deque(maxlen=MAX_KEPT_RECORDS)
        self._last_no = 0
        self._lock = threading.Lock()

    def add(self, event: Mapping[str, Any]) -> None:
        known = {"timestamp", "level", "logger", "event"}
        fields, chars_left = {}, MAX_RECORD_CHARS
        for name, value in event.items():
            if name not in known and chars_left > 0:
                text = shorten(str(value), chars_left)
                fields[name[:100]] = text
                chars_left -= len(text) + len(name)
        with self._lock:
            self._last_no += 1
            self._records.append(
                LogRecord(
                    self._last_no,
                    str(event.get("timestamp") or datetime.now(UTC).isoformat()),
                    str(event.get("level", "info")),
                    str(event.get("logger", "")),
                    shorten(str(event.get("event", "")), MAX_RECORD_CHARS),
                    fields,
                )
            )

    def list_records(self) -> list[LogRecord]:
        """List what is kept, oldest first."""
        with self._lock:
            return list(self._records)


RECENT_RECORDS: Final = RecentRecords()


@dataclass(slots=True)
class _Interval:
    """The lines of one kind that were logged since `started_at`."""

    started_at: float
    lines: set[int]  # hashes of the lines that were written
    left_out: int = 0


class _LimitedHandler(logging.StreamHandler[Any]):
    """Writes log lines to a stream, and leaves out those that repeat others."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._intervals: dict[tuple[str, int, str], _Interval] = {}
        self._next_check_at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now >= self._next_check_at:
            self._next_check_at = now + INTERVAL_SECONDS
            self._end_intervals(now)
        if record.levelno < logging.WARNING or self._count(record, now):
            super().emit(record)

    def close(self) -> None:
        self.acquire()
        try:
            self._end_intervals(float("inf"))
        finally:
            self.release()
        super().close()

    def _count(self, record: logging.LogRecord, now: float) -> bool:
        """Count a line, and return whether to write it."""
        kind = (record.name, record.levelno, str(record.msg))  # before its arguments are filled in
        interval = self._intervals.get(kind)
        if interval is not None and now >= interval.started_at + INTERVAL_SECONDS:
            self._write_count(kind, interval)
            interval = None
        if interval is None:
            interval = self._intervals[kind] = _Interval(now, set())
        line = hash(_describe(record))
        if line in interval.lines or len(interval.lines) >= MAX_LINES_PER_KIND:
            interval.left_out += 1
            return False
        interval.lines.add(line)
        return True

    def _end_intervals(self, now: float) -> None:
        for kind, interval in list(self._intervals.items()):
            if now >= interval.started_at + INTERVAL_SECONDS:
                del self._intervals[kind]
                self._write_count(kind, interval)

    def _write_count(self, kind: tuple[str, int, str], interval: _Interval) -> None:
        if interval.left_out:
            name, level, event = kind
            fields = {"name": name, "levelno": level, "levelname": logging.getLevelName(level)}
            counts = {"repeated_event": event, "left_out": interval.left_out}
            super().emit(logging.makeLogRecord({**fields, "msg": "log_lines_left_out", **counts}))


def _describe(record: logging.LogRecord) -> str:
    """Return all that tells this line from others of its kind, without its time."""
    error = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
    return f"{record.args!r} {_get_extra_fields(record)!r} {error!r}"
