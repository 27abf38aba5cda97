"""Runs `palaver doctor` for the page: in a process of its own, one at a time and with a time limit.

In a process of its own, because some checks read the file of the database directly: closing it in the server's process
would drop the locks that SQLite holds there. It also means that a check that hangs can be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from palaver.core.invocation import format_command
from palaver.operation.doctor.finding import Finding, Severity, make_problem
from palaver.operation.doctor.finding_texts import FindingCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_CHECK_SECONDS: Final = 45.0
REUSE_SECONDS: Final = 3.0  # several tabs get the same report
_MAX_OUTPUT_BYTES: Final = 1_000_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What was found, and when."""

    findings: Sequence[Finding]
    checked_at: datetime
    duration_seconds: float


class HealthCheck:
    """Checks the installation in a home folder."""

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
        return [
            Finding(
                code=FindingCode(each["code"]),
                subject=each["subject"],
                severity=Severity(each["severity"]),
                text=each["text"],
                fix=each["fix"] or "",
                facts=each["facts"],
            )
            for each in found
        ]
    except (ValueError, KeyError, TypeError):
        log.warning("health_check_unreadable", extra={"bytes": len(output)})
        return [_make_failure(FindingCode.CHECKS_WITHOUT_RESULT)]


def _make_failure(code: FindingCode, **facts: object) -> Finding:
    return make_problem(code, command=format_command("doctor"), **facts)
