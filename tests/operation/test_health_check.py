"""The health check of the page runs `palaver doctor` in its own process, with a time limit."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest

from palaver.operation import health_check
from palaver.operation.doctor.finding import Severity
from palaver.operation.health_check import HealthCheck

if TYPE_CHECKING:
    from pathlib import Path


async def test_it_reports_what_doctor_finds(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("turns:\n  max_running: many\n")
    report = await HealthCheck(tmp_path).run()
    [problem] = [finding for finding in report.findings if finding.subject == "Configuration"]
    assert problem.severity is Severity.PROBLEM
    assert "turns.max_running" in problem.text
    assert problem.fix
    assert "Model" not in {finding.subject for finding in report.findings}


async def test_a_check_that_hangs_is_killed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_check, "MAX_CHECK_SECONDS", 0.5)
    pid_file = tmp_path / "pid"
    program = f"import os, pathlib, time; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); time.sleep(600)"
    check = HealthCheck(tmp_path, [sys.executable, "-c", program])
    [finding] = (await check.run()).findings
    assert finding.severity is Severity.PROBLEM
    assert "did not end" in finding.text
    assert "doctor" in finding.fix
    if pid_file.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)


@pytest.mark.parametrize("command", [[sys.executable, "-c", "print('no JSON')"], ["/does/not/exist"]])
async def test_a_check_that_fails_is_reported(tmp_path: Path, command: list[str]) -> None:
    [finding] = (await HealthCheck(tmp_path, command).run()).findings
    assert finding.severity is Severity.PROBLEM


async def test_several_requests_at_once_share_one_check(tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'runs')!r}, 'a').write('x'); print('{{\"findings\": []}}')"
    check = HealthCheck(tmp_path, [sys.executable, "-c", program])
    reports = await asyncio.gather(check.run(), check.run(), check.run())
    assert {id(report) for report in reports} == {id(reports[0])}
    assert (tmp_path / "runs").read_text() == "x"
