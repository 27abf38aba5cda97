"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works, but not as well or as safely as it could
    PROBLEM = "problem"  # something does not work


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the diagnosis."""

    subject: str  # what was checked, in a word or two
    severity: Severity
    text: str  # what was found
    fix: str = ""  # a command, or a key of the settings with what to write there

    def to_json(self) -> dict[str, Any]:
        return {"subject": self.subject, "severity": self.severity, "text": self.text, "fix": self.fix or None}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found, in the order in which it was checked."""

    findings: tuple[Finding, ...]

    @property
    def has_problems(self) -> bool:
        return any(finding.severity is Severity.PROBLEM for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": not self.has_problems, "findings": [finding.to_json() for finding in self.findings]}


def make_ok(subject: str, text: str) -> Finding:
    return Finding(subject=subject, severity=Severity.OK, text=text)


def make_warning(subject: str, text: str, fix: str) -> Finding:
    return Finding(subject=subject, severity=Severity.WARNING, text=text, fix=fix)


def make_problem(subject: str, text: str, fix: str) -> Finding:
    return Finding(subject=subject, severity=Severity.PROBLEM, text=text, fix=fix)
