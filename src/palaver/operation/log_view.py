"""What owners see of the server's log: the last lines of the process that answers, filtered and page by page."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput
from palaver.core.logs import RECENT_RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.logs import LogRecord, RecentRecords

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
MAX_PAGE_RECORDS: Final = 500
MAX_TEXT_CHARS: Final = 200
_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class LogProcess:
    """The process whose lines are shown. Other servers on the same database have their own."""

    id: str
    host: str
    pid: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines of the log, oldest first, and the cursor that continues after them."""

    process: LogProcess
    records: Sequence[LogRecord]
    cursor: str
    is_continued: bool  # they follow what the given cursor had shown, without a gap


def read_log(
    *,
    min_level: str = "debug",
    text: str = "",
    cursor: str | None = None,
    limit: int = MAX_PAGE_RECORDS,
    source: RecentRecords = RECENT_RECORDS,
) -> LogPage:
    """Return the newest lines that match, or with a cursor those after it.

    A cursor of another process, or one before the oldest line that is kept, starts again with the newest lines.
    """
    match = None if cursor is None else _CURSOR.fullmatch(cursor)
    if cursor is not None and match is None:
        raise InvalidInput("cursor: not a valid cursor. Use the one that the page before returned.", key="cursor")
    kept = source.list_records()
    first_no = kept[0].no if kept else 1
    last_no = kept[-1].no if kept else 0
    is_continued = match is not None and match[1] == source.process_id and first_no - 1 <= int(match[2]) <= last_no
    after = int(match[2]) if match is not None and is_continued else 0
    wanted_levels, wanted_text = LEVELS[LEVELS.index(min_level) :], text.strip().lower()
    found = [
        record
        for record in kept
        if record.no > after
        and (record.level in wanted_levels or record.level not in LEVELS)
        and (not wanted_text or record.contains(wanted_text))
    ]
    if is_continued and len(found) > limit:
        found = found[:limit]
        last_no = found[-1].no
    process = LogProcess(source.process_id, socket.gethostname(), os.getpid(), source.started_at)
    return LogPage(process, found[-limit:], f"{source.process_id}.{last_no}", is_continued)
