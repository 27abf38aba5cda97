"""Runs `palaver doctor` for the page: in a process of its own, one at a time and with a time limit.

In a process of its own, because some checks read the file of the database directly: closing it in the server's process
would drop the locks that SQLite holds there. It also means that a check that hangs can be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import socket
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.invocation import format_command
from palaver.core.logs import RECENT_RECORDS, LogRecord, RecentRecords
from palaver.operation.doctor.finding import Finding, FindingCode, make_problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


MAX_CHECK_SECONDS: Final = 45.0
REUSE_SECONDS: Final = 3.0  # several tabs get the same report
_MAX_OUTPUT_BYTES: Final = 1_000_000
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
MAX_PAGE_RECORDS: Final = 500
MAX_TEXT_CHARS: Final = 200
_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,15})")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HealthReport:
    findings: Sequence[Finding]
    checked_at: datetime
    duration_seconds: float


class HealthCheck:
    def __init__(self, home: Path, command: Sequence[str] = (sys.executable, "-m", "palaver")) -> None:
        self._command = [*command, "--home", str(home), "doctor", "--json"]
        self._lock = asyncio.Lock()
        self._last: dict[bool, tuple[float, HealthReport]] = {}  # by whether the model was asked

    async def run(self, *, asks_model: bool = False) -> HealthReport:
        """Return a report that is a few seconds old at most. A check that takes too long becomes a finding."""
        async with self._lock:
            last = self._last.get(asks_model)
            if last is not None and time.monotonic() - last[0] < REUSE_SECONDS:
                return last[1]
            started = time.monotonic()
            findings = await self._run_doctor([] if asks_model else ["--offline"])
            report = HealthReport(findings, datetime.now(UTC), time.monotonic() - started)
            self._last[asks_model] = (time.monotonic(), report)
            return report

    async def _run_doctor(self, options: Sequence[str]) -> Sequence[Finding]:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            log.warning("health_check_failed", extra={"error": str(error)})
            return [_make_failure(FindingCode.CHECKS_NOT_STARTED, error=error.strerror or type(error).__name__)]
        assert process.stdout is not None  # noqa: S101
        try:
            async with asyncio.timeout(MAX_CHECK_SECONDS):
                output = await process.stdout.read(_MAX_OUTPUT_BYTES)
                while more := await process.stdout.read(_MAX_OUTPUT_BYTES - len(output)):
                    output += more
                await process.wait()
        except TimeoutError:
            log.warning("health_check_timeout", extra={"seconds": MAX_CHECK_SECONDS})
            return [_make_failure(FindingCode.CHECKS_TOO_SLOW, seconds=f"{MAX_CHECK_SECONDS:.0f}")]
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return _parse_findings(output)


def _parse_findings(output: bytes) -> Sequence[Finding]:
    try:
        found = json.loads(output)["findings"]
        return [Finding.from_json(each) for each in found]
    except (ValueError, KeyError, TypeError):
        log.warning("health_check_unreadable", extra={"bytes": len(output)})
        return [_make_failure(FindingCode.CHECKS_WITHOUT_RESULT)]


def _make_failure(code: FindingCode, **facts: object) -> Finding:
    return make_problem(code, command=format_command("doctor"), **facts)


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
