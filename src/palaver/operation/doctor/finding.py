"""Everything that a check can find: a code for programs, and its texts with the names of their facts in braces."""

from __future__ import annotations

import re
import shlex
from dataclasses import field, fields
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from palaver.core.dataclass import dataclass
from palaver.core.errors import PalaverError
from palaver.core.invocation import format_command
from palaver.core.texts import Text, join_texts, name_text, pack_text, say, unpack_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_GAP: Final = re.compile(r"\{(\w+)\}")
_NTP: Final = "Set the clock by NTP: sudo timedatectl set-ntp true"
_FREE_SPACE: Final = "Free some space on the disk of {folder}."
_BACK_TO_BACKUP: Final = "Go back to a backup: {command}"


def _name_words(code: str, template: str) -> str:
    """Name a template that has words besides its gaps."""
    return name_text(code, template) if re.search(r"[a-z]{2}", _GAP.sub("", template)) else template


class FindingCode(StrEnum):
    """Everything that can be found: the code, what was checked, what was found, and how to fix it."""

    subject: str  # in a word or two
    text: str
    fix: str  # a command, or what to change and how

    def __new__(cls, code: str, subject: str, text: str, fix: str = "") -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.subject = _name_words(f"finding.subject.{subject.lower().replace(' ', '_')}", subject)
        member.text, member.fix = _name_words(f"finding.{code}", text), _name_words(f"finding.{code}.fix", fix)
        return member

    CHECK_FAILED = "check_failed", "{subject}", "{problem}", "Fix what the message names, and run this again."
    CHECK_BROKEN = "check_broken", "{subject}", "This could not be checked ({error}).", "Report this as a bug."
    CHECKS_NOT_STARTED = "checks_not_started", "Checks", "The checks could not be started: {error}.", "{command}"
    CHECKS_TOO_SLOW = "checks_too_slow", "Checks", "The checks did not end within {seconds} seconds.", "{command}"
    CHECKS_WITHOUT_RESULT = "checks_without_result", "Checks", "The checks ended without a result.", "{command}"

    VERSIONS = "versions", "Versions", "Palaver {palaver}, Python {python}, {sqlite}. Extras: {extras}."
    CLOCK_WRONG = "clock_wrong", "Clock", "This machine's clock says {date}.", _NTP
    CLOCK_DIFFERS = (
        "clock_differs",
        "Clock",
        "This machine and the PostgreSQL server differ by {seconds} s. Palaver uses the server's.",
        _NTP,
    )
    CLOCK_AGREES = "clock_agrees", "Clock", "This machine and the PostgreSQL server differ by {seconds} s."
    CLOCK = "clock", "Clock", "{time} UTC."
    TIME_ZONE = "time_zone", "Time zone", "{timezone} (the setting `timezone`)."
    SERVER_RUNS = "server_runs", "Server", "It runs at {url}."
    SERVER_PROBLEM = (
        "server_problem",
        "Server",
        "It runs at {url}, with a problem: {problem}",
        "Fix what the message names, and run this again.",
    )
    SERVER_SILENT = (
        "server_silent",
        "Server",
        "It runs at {url}, but does not answer ({error}).",
        "Look at its log, and start it again.",
    )
    SERVER_STOPPED = "server_stopped", "Server", "It isn't running."
    TURNS_WAITING = (
        "turns_waiting",
        "Messages",
        "A message has been waiting for the agent for {minutes} minutes: no server takes it, or all are busy.",
        "Start a server ({command}), or raise `turns.max_running` in the server settings.",
    )
    PORT_FREE = "port_free", "Server", "It isn't running; port {port} is free."
    PORT_TAKEN = (
        "port_taken",
        "Server",
        "It isn't running, and another program{user} uses port {port}.",
        "Stop that program, or set `web.port` to another port than {port}.",
    )
    SANDBOX = "sandbox", "Sandbox", "Available: {programs}."
    SANDBOX_MISSING = (
        "sandbox_missing",
        "Sandbox",
        "Neither bubblewrap nor Landlock works here, so commands of the agent could not be contained.",
        "Install bubblewrap (sudo apt install bubblewrap), or use Linux 5.13 or newer.",
    )
    DOCUMENTS_CONTAINED = (
        "documents_contained",
        "Documents",
        "The process that reads a document can open no files, use no network and start no programs.",
    )
    DOCUMENTS_NOT_CONTAINED = (
        "documents_not_contained",
        "Documents",
        "The process that reads a document has limits of time and memory, but nothing here keeps it from: {calls}.",
        "Run Palaver on Linux 5.13 or newer (x86_64 or aarch64), where seccomp and Landlock are allowed.",
    )

    CONFIGURATION_VALID = "configuration_valid", "Configuration", "{file} is valid."
    CONFIGURATION_MISSING = (
        "configuration_missing",
        "Configuration",
        "{file} is valid. It doesn't exist, so the defaults apply.",
    )
    CONFIGURATION_PROBLEM = "configuration_problem", "Configuration", "{problem}", "Edit {file}."
    SETTING_PROBLEM = "setting_problem", "Configuration", "{problem}", "{command}"

    HOME_MISSING = "home_missing", "Home folder", "{folder} doesn't exist yet. It is made at the first start."
    HOME_NOT_FOLDER = "home_not_folder", "Home folder", "{folder} is not a folder.", "Move it away: {command}"
    HOME_OF_OTHER_USER = "home_of_other_user", "Home folder", "{folder} belongs to another user.", "{command}"
    HOME_NOT_WRITABLE = (
        "home_not_writable",
        "Home folder",
        "{folder} can't be read and written by this user.",
        "{command}",
    )
    HOME_PRIVATE = "home_private", "Home folder", "{folder} belongs to you, and others can't read it."
    HOME_READABLE = "home_readable", "Home folder", "Other users of this machine can read {files}.", "{command}"
    DISK_FULL = "disk_full", "Disk", "{free} free; the database has {size}.", _FREE_SPACE
    DISK_SMALL = "disk_small", "Disk", "{free} free; the database has {size}. A backup may not fit.", _FREE_SPACE
    DISK = "disk", "Disk", "{free} free; the database has {size}."
    BACKUP_MISSING = "backup_missing", "Backups", "There is no backup.", "{command}"
    BACKUP_OLD = "backup_old", "Backups", "The newest backup is from {date} ({name}).", "{command}"
    BACKUP = "backup", "Backups", "The newest backup is from {date} ({name})."
    FILES_MISSING = (
        "files_missing",
        "Attached files",
        "{count} of {checked} attached files are missing in {folder}, such as {example}.",
        "Bring the folder back from a backup: {command}",
    )
    FILES = "files", "Attached files", "{checked} checked, all in place."

    DATABASE_MISSING = "database_missing", "Database", "{path} doesn't exist yet. It is made at the first start."
    DATABASE_DRIVER_MISSING = (
        "database_driver_missing",
        "Database",
        "The driver for PostgreSQL is missing.",
        "pip install 'palaver[postgres]'",
    )
    DATABASE_OLD = (
        "database_old",
        "Database",
        "{name} has an older schema; the next start of the server upgrades it ({migrations}).",
        "{backup}, and then {serve}",
    )
    DATABASE = "database", "Database", "{name}{server} opens, and its schema is up to date."
    DATABASE_TOO_NEW = "database_too_new", "Database", "{problem}", "pip install --upgrade palaver"
    DATABASE_DAMAGED = "database_damaged", "Database", "{problem}", "{command}"
    DATABASE_ERROR = "database_error", "Database", "{problem}", "{advice}"
    INTEGRITY_OK = "integrity_ok", "{subject}", "No errors."
    INTEGRITY_PROBLEM = "integrity_problem", "{subject}", "Errors ({count}): {problems}.", _BACK_TO_BACKUP
    INTEGRITY_REPAIRABLE = "integrity_repairable", "{subject}", "Errors ({count}): {problems}.", "Repair it: {command}"

    PLATFORMS_NONE = "platforms_none", "Platforms", "No chat platform is set up."
    ACCOUNT_PROBLEM = "account_problem", "{subject}", "{problem}", "Change its settings: {command}"
    ACCOUNT_IDLE = (
        "account_idle",
        "{subject}",
        "Set up. No server runs it at the moment; --online tests the connection.",
    )
    ACCOUNT_FAILED = "account_failed", "{subject}", "{state}: {problem}", "{command}"
    ACCOUNT_RUNS = "account_runs", "{subject}", "{state}{details}"
    ACCOUNT_WARNING = "account_warning", "{subject}", "{problem}", "{command}"
    DELIVERIES_FAILED = (
        "deliveries_failed",
        "{subject}",
        "Messages since yesterday: {failed} failed, {uncertain} with an unknown status.",
        "{command}",
    )
    SIGN_IN_FAILED = "sign_in_failed", "{subject}", "{problem}", "Change its settings, and try again."
    SIGN_IN_TOO_SLOW = (
        "sign_in_too_slow",
        "{subject}",
        "No answer within {seconds} s.",
        "Check the network of this machine.",
    )
    SIGN_IN_ERROR = "sign_in_error", "{subject}", "{problem}", "Check its settings and the network of this machine."
    SIGN_IN_WARNING = "sign_in_warning", "{subject}", "Signed in as {name}.", "{problem}"
    SIGN_IN = "sign_in", "{subject}", "Signed in as {name}{details}"

    MODEL_UNUSABLE = (
        "model_unusable",
        "Model",
        "{problem}",
        "Set `model` in the server settings, or the environment variable PALAVER_MODEL.",
    )
    MODEL_DEMO = (
        "model_demo",
        "Model",
        "No model is connected: a demo answers.",
        "Set `model` in the server settings to a real one, and the API key of its provider.",
    )
    MODEL_NOT_TRIED = (
        "model_not_tried",
        "Model",
        "{model} was not tried, because the database can't be used.",
        "Fix the database first, then try again.",
    )
    MODEL_TOO_SLOW = (
        "model_too_slow",
        "Model",
        "{model} did not answer within {seconds} s.",
        "Check the network, or choose another `model` in the server settings.",
    )
    MODEL_OVER_BUDGET = (
        "model_over_budget",
        "Model",
        "{model} was not tried: {problem}",
        "Raise the limit in `budgets` in the server settings, or wait until it starts again.",
    )
    MODEL_FAILED = (
        "model_failed",
        "Model",
        "{problem}{detail}",
        "Check `model` and `providers` in the server settings, or the environment variable with the API key.",
    )
    MODEL_EMPTY = (
        "model_empty",
        "Model",
        "{model} gave an empty answer.",
        "Choose another `model` in the server settings.",
    )
    MODEL_ANSWERS = "model_answers", "Model", "{model} answered in {seconds} s."


FINDING_CODES: Final = {code.value: code for code in FindingCode}
_SUBJECTS: Final = {str(code.subject): code.subject for code in FindingCode}  # of a finding that can be about any


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
        packed_facts = {name: pack_text(fact) for name, fact in self.facts.items()}
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {"fix": self.fix or None, "packed_facts": packed_facts}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Finding:
        """Return a finding of another process, which can be translated here."""
        facts = {name: unpack_text(fact) for name, fact in found["packed_facts"].items()}
        return make_finding(Severity(found["severity"]), FINDING_CODES[found["code"]], **facts)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was found, in the order in which it was checked."""

    findings: tuple[Finding, ...]

    @property
    def has_problems(self) -> bool:
        return any(finding.severity is Severity.PROBLEM for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": not self.has_problems, "findings": [finding.to_json() for finding in self.findings]}


def make_finding(severity: Severity, code: FindingCode, **facts: object) -> Finding:
    values = {name: _to_text(value) for name, value in facts.items()}
    if "subject" in values:
        values["subject"] = _SUBJECTS.get(values["subject"], values["subject"])
    return Finding(
        code=code,
        severity=severity,
        subject=_fill(code.subject, values),
        text=_fill(code.text, values),
        fix=_fill(code.fix, values),
        facts=values,
    )


def _to_text(fact: object) -> str:
    if isinstance(fact, PalaverError):
        return fact.text
    return fact if isinstance(fact, str) else str(fact)


def _fill(template: str, facts: Mapping[str, str]) -> str:
    if isinstance(template, Text):
        return say(template.code, template, **facts)
    return join_texts("", [facts[part] if number % 2 else part for number, part in enumerate(_GAP.split(template))])


make_ok = partial(make_finding, Severity.OK)
make_warning = partial(make_finding, Severity.WARNING)
make_problem = partial(make_finding, Severity.PROBLEM)


@dataclass(frozen=True, slots=True)
class FixCommands:
    """Formats commands so that they work where the reader types them, also if the home folder is not the default."""

    home: Path | None  # None: the default one

    def format(self, arguments: str) -> str:
        option = "" if self.home is None else f"--home {shlex.quote(str(self.home))} "
        return format_command(option + arguments)
