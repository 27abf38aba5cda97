"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from palaver.operation.doctor.finding_texts import FINDING_TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.operation.doctor.finding_texts import FindingCode


class Severity(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works, but not as well or as safely as it could
    PROBLEM = "problem"  # something does not work


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the diagnosis."""

    code: FindingCode
    severity: Severity
    subject: str  # what was checked, in a word or two
    text: str  # what was found
    fix: str = ""  # a command, or a key of the settings with what to write there
    facts: Mapping[str, str] = field(default_factory=dict)  # what the texts mention

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "subject": self.subject,
            "severity": self.severity,
            "text": self.text,
            "fix": self.fix or None,
            "facts": dict(self.facts),
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found, in the order in which it was checked."""

    findings: tuple[Finding, ...]

    @property
    def has_problems(self) -> bool:
        return any(finding.severity is Severity.PROBLEM for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": not self.has_problems, "findings": [finding.to_json() for finding in self.findings]}


def make_ok(code: FindingCode, **facts: object) -> Finding:
    return _make_finding(code, Severity.OK, facts)


def make_warning(code: FindingCode, **facts: object) -> Finding:
    return _make_finding(code, Severity.WARNING, facts)


def make_problem(code: FindingCode, **facts: object) -> Finding:
    return _make_finding(code, Severity.PROBLEM, facts)


def _make_finding(code: FindingCode, severity: Severity, facts: Mapping[str, object]) -> Finding:
    texts = FINDING_TEXTS[code]
    values = {name: str(value) for name, value in facts.items()}
    return Finding(
        code=code,
        severity=severity,
        subject=texts.subject.format_map(values),
        text=texts.text.format_map(values),
        fix=texts.fix.format_map(values),
        facts=values,
    )
