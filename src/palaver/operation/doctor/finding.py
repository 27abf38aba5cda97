"""Everything that a check can find: a code for programs, and its texts with the names of their facts in braces.

The page has the texts in other languages, by code; a test compares both.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class FindingCode(StrEnum):
    CHECK_FAILED = "check_failed"
    CHECK_BROKEN = "check_broken"
    CHECKS_NOT_STARTED = "checks_not_started"
    CHECKS_TOO_SLOW = "checks_too_slow"
    CHECKS_WITHOUT_RESULT = "checks_without_result"

    VERSIONS = "versions"
    CLOCK_WRONG = "clock_wrong"
    CLOCK_DIFFERS = "clock_differs"
    CLOCK_AGREES = "clock_agrees"
    CLOCK = "clock"
    TIME_ZONE = "time_zone"
    SERVER_RUNS = "server_runs"
    SERVER_PROBLEM = "server_problem"
    SERVER_SILENT = "server_silent"
    SERVER_STOPPED = "server_stopped"
    TURNS_WAITING = "turns_waiting"
    PORT_FREE = "port_free"
    PORT_TAKEN = "port_taken"
    SANDBOX = "sandbox"
    SANDBOX_MISSING = "sandbox_missing"
    DOCUMENTS_CONTAINED = "documents_contained"
    DOCUMENTS_NOT_CONTAINED = "documents_not_contained"

    CONFIGURATION_VALID = "configuration_valid"
    CONFIGURATION_MISSING = "configuration_missing"
    CONFIGURATION_PROBLEM = "configuration_problem"
    SETTING_PROBLEM = "setting_problem"

    HOME_MISSING = "home_missing"
    HOME_NOT_FOLDER = "home_not_folder"
    HOME_OF_OTHER_USER = "home_of_other_user"
    HOME_NOT_WRITABLE = "home_not_writable"
    HOME_PRIVATE = "home_private"
    HOME_READABLE = "home_readable"
    DISK_FULL = "disk_full"
    DISK_SMALL = "disk_small"
    DISK = "disk"
    BACKUP_MISSING = "backup_missing"
    BACKUP_OLD = "backup_old"
    BACKUP = "backup"
    FILES_MISSING = "files_missing"
    FILES = "files"

    DATABASE_MISSING = "database_missing"
    DATABASE_DRIVER_MISSING = "database_driver_missing"
    DATABASE_OLD = "database_old"
    DATABASE = "database"
    DATABASE_TOO_NEW = "database_too_new"
    DATABASE_DAMAGED = "database_damaged"
    DATABASE_ERROR = "database_error"
    INTEGRITY_OK = "integrity_ok"
    INTEGRITY_PROBLEM = "integrity_problem"
    INTEGRITY_REPAIRABLE = "integrity_repairable"

    PLATFORMS_NONE = "platforms_none"
    ACCOUNT_PROBLEM = "account_problem"
    ACCOUNT_IDLE = "account_idle"
    ACCOUNT_FAILED = "account_failed"
    ACCOUNT_RUNS = "account_runs"
    ACCOUNT_WARNING = "account_warning"
    DELIVERIES_FAILED = "deliveries_failed"
    SIGN_IN_FAILED = "sign_in_failed"
    SIGN_IN_TOO_SLOW = "sign_in_too_slow"
    SIGN_IN_ERROR = "sign_in_error"
    SIGN_IN_WARNING = "sign_in_warning"
    SIGN_IN = "sign_in"

    MODEL_UNUSABLE = "model_unusable"
    MODEL_DEMO = "model_demo"
    MODEL_NOT_TRIED = "model_not_tried"
    MODEL_TOO_SLOW = "model_too_slow"
    MODEL_OVER_BUDGET = "model_over_budget"
    MODEL_FAILED = "model_failed"
    MODEL_EMPTY = "model_empty"
    MODEL_ANSWERS = "model_answers"


@dataclass(frozen=True, slots=True)
class FindingText:
    """The English texts of a finding; `{name}` stands for a fact."""

    subject: str  # what was checked, in a word or two
    text: str
    fix: str = ""  # a command, or what to change and how


_NTP: Final = "Set the clock by NTP: sudo timedatectl set-ntp true"
_FREE_SPACE: Final = "Free some space on the disk of {folder}."
_BACK_TO_BACKUP: Final = "Go back to a backup: {command}"

_CHECKS: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.CHECK_FAILED: FindingText("{subject}", "{problem}", "Fix what the message names, and run this again."),
    FindingCode.CHECK_BROKEN: FindingText("{subject}", "This could not be checked ({error}).", "Report this as a bug."),
    FindingCode.CHECKS_NOT_STARTED: FindingText("Checks", "The checks could not be started: {error}.", "{command}"),
    FindingCode.CHECKS_TOO_SLOW: FindingText("Checks", "The checks did not end within {seconds} seconds.", "{command}"),
    FindingCode.CHECKS_WITHOUT_RESULT: FindingText("Checks", "The checks ended without a result.", "{command}"),
}

_MACHINE: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.VERSIONS: FindingText("Versions", "Palaver {palaver}, Python {python}, {sqlite}. Extras: {extras}."),
    FindingCode.CLOCK_WRONG: FindingText("Clock", "This machine's clock says {date}.", _NTP),
    FindingCode.CLOCK_DIFFERS: FindingText(
        "Clock",
        "This machine and the PostgreSQL server differ by {seconds} s. Palaver uses the server's.",
        _NTP,
    ),
    FindingCode.CLOCK_AGREES: FindingText("Clock", "This machine and the PostgreSQL server differ by {seconds} s."),
    FindingCode.CLOCK: FindingText("Clock", "{time} UTC."),
    FindingCode.TIME_ZONE: FindingText("Time zone", "{timezone} (the setting `timezone`)."),
    FindingCode.SERVER_RUNS: FindingText("Server", "It runs at {url}."),
    FindingCode.SERVER_PROBLEM: FindingText(
        "Server", "It runs at {url}, with a problem: {problem}", "Fix what the message names, and run this again."
    ),
    FindingCode.SERVER_SILENT: FindingText(
        "Server", "It runs at {url}, but does not answer ({error}).", "Look at its log, and start it again."
    ),
    FindingCode.TURNS_WAITING: FindingText(
        "Messages",
        "A message has been waiting for the agent for {minutes} minutes: no server takes it, or all are busy.",
        "Start a server ({command}), or raise `turns.max_running` in the server settings.",
    ),
    FindingCode.SERVER_STOPPED: FindingText("Server", "It isn't running."),
    FindingCode.PORT_FREE: FindingText("Server", "It isn't running; port {port} is free."),
    FindingCode.PORT_TAKEN: FindingText(
        "Server",
        "It isn't running, and another program{user} uses port {port}.",
        "Stop that program, or set `web.port` to another port than {port}.",
    ),
    FindingCode.SANDBOX: FindingText("Sandbox", "Available: {programs}."),
    FindingCode.SANDBOX_MISSING: FindingText(
        "Sandbox",
        "Neither bubblewrap nor Landlock works here, so commands of the agent could not be contained.",
        "Install bubblewrap (sudo apt install bubblewrap), or use Linux 5.13 or newer.",
    ),
    FindingCode.DOCUMENTS_CONTAINED: FindingText(
        "Documents", "The process that reads a document can open no files, use no network and start no programs."
    ),
    FindingCode.DOCUMENTS_NOT_CONTAINED: FindingText(
        "Documents",
        "The process that reads a document has limits of time and memory, but nothing here keeps it from: {calls}.",
        "Run Palaver on Linux 5.13 or newer (x86_64 or aarch64), where seccomp and Landlock are allowed.",
    ),
}

_FOLDERS: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.CONFIGURATION_VALID: FindingText("Configuration", "{file} is valid."),
    FindingCode.CONFIGURATION_MISSING: FindingText(
        "Configuration", "{file} is valid. It doesn't exist, so the defaults apply."
    ),
    FindingCode.CONFIGURATION_PROBLEM: FindingText("Configuration", "{problem}", "Edit {file}."),
    FindingCode.SETTING_PROBLEM: FindingText("Configuration", "{problem}", "{command}"),
    FindingCode.HOME_MISSING: FindingText("Home folder", "{folder} doesn't exist yet. It is made at the first start."),
    FindingCode.HOME_NOT_FOLDER: FindingText("Home folder", "{folder} is not a folder.", "Move it away: {command}"),
    FindingCode.HOME_OF_OTHER_USER: FindingText("Home folder", "{folder} belongs to another user.", "{command}"),
    FindingCode.HOME_NOT_WRITABLE: FindingText(
        "Home folder", "{folder} can't be read and written by this user.", "{command}"
    ),
    FindingCode.HOME_PRIVATE: FindingText("Home folder", "{folder} belongs to you, and others can't read it."),
    FindingCode.HOME_READABLE: FindingText("Home folder", "Other users of this machine can read {files}.", "{command}"),
    FindingCode.DISK_FULL: FindingText("Disk", "{free} free; the database has {size}.", _FREE_SPACE),
    FindingCode.DISK_SMALL: FindingText(
        "Disk", "{free} free; the database has {size}. A backup may not fit.", _FREE_SPACE
    ),
    FindingCode.DISK: FindingText("Disk", "{free} free; the database has {size}."),
    FindingCode.BACKUP_MISSING: FindingText("Backups", "There is no backup.", "{command}"),
    FindingCode.BACKUP_OLD: FindingText("Backups", "The newest backup is from {date} ({name}).", "{command}"),
    FindingCode.BACKUP: FindingText("Backups", "The newest backup is from {date} ({name})."),
    FindingCode.FILES_MISSING: FindingText(
        "Attached files",
        "{count} of {checked} attached files are missing in {folder}, such as {example}.",
        "Bring the folder back from a backup: {command}",
    ),
    FindingCode.FILES: FindingText("Attached files", "{checked} checked, all in place."),
}

_DATABASE: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.DATABASE_MISSING: FindingText("Database", "{path} doesn't exist yet. It is made at the first start."),
    FindingCode.DATABASE_DRIVER_MISSING: FindingText(
        "Database", "The driver for PostgreSQL is missing.", "pip install 'palaver[postgres]'"
    ),
    FindingCode.DATABASE_OLD: FindingText(
        "Database",
        "{name} has an older schema; the next start of the server upgrades it ({migrations}).",
        "{backup}, and then {serve}",
    ),
    FindingCode.DATABASE: FindingText("Database", "{name}{server} opens, and its schema is up to date."),
    FindingCode.DATABASE_TOO_NEW: FindingText("Database", "{problem}", "pip install --upgrade palaver"),
    FindingCode.DATABASE_DAMAGED: FindingText("Database", "{problem}", "{command}"),
    FindingCode.DATABASE_ERROR: FindingText("Database", "{problem}", "{advice}"),
    FindingCode.INTEGRITY_OK: FindingText("{subject}", "No errors."),
    FindingCode.INTEGRITY_PROBLEM: FindingText("{subject}", "Errors ({count}): {problems}.", _BACK_TO_BACKUP),
    FindingCode.INTEGRITY_REPAIRABLE: FindingText("{subject}", "Errors ({count}): {problems}.", "Repair it: {command}"),
}

_ACCOUNTS: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.PLATFORMS_NONE: FindingText("Platforms", "No chat platform is set up."),
    FindingCode.ACCOUNT_PROBLEM: FindingText("{subject}", "{problem}", "Change its settings: {command}"),
    FindingCode.ACCOUNT_IDLE: FindingText(
        "{subject}", "Set up. No server runs it at the moment; --online tests the connection."
    ),
    FindingCode.ACCOUNT_FAILED: FindingText("{subject}", "{state}: {problem}", "{command}"),
    FindingCode.ACCOUNT_RUNS: FindingText("{subject}", "{state}{details}"),
    FindingCode.ACCOUNT_WARNING: FindingText("{subject}", "{problem}", "{command}"),
    FindingCode.DELIVERIES_FAILED: FindingText(
        "{subject}",
        "Messages since yesterday: {failed} failed, {uncertain} with an unknown status.",
        "{command}",
    ),
    FindingCode.SIGN_IN_FAILED: FindingText("{subject}", "{problem}", "Change its settings, and try again."),
    FindingCode.SIGN_IN_TOO_SLOW: FindingText(
        "{subject}", "No answer within {seconds} s.", "Check the network of this machine."
    ),
    FindingCode.SIGN_IN_ERROR: FindingText(
        "{subject}", "{problem}", "Check its settings and the network of this machine."
    ),
    FindingCode.SIGN_IN_WARNING: FindingText("{subject}", "Signed in as {name}.", "{problem}"),
    FindingCode.SIGN_IN: FindingText("{subject}", "Signed in as {name}{details}"),
}

_MODEL: Final[Mapping[FindingCode, FindingText]] = {
    FindingCode.MODEL_UNUSABLE: FindingText(
        "Model", "{problem}", "Set `model` in the server settings, or the environment variable PALAVER_MODEL."
    ),
    FindingCode.MODEL_DEMO: FindingText(
        "Model",
        "No model is connected: a demo answers.",
        "Set `model` in the server settings to a real one, and the API key of its provider.",
    ),
    FindingCode.MODEL_NOT_TRIED: FindingText(
        "Model",
        "{model} was not tried, because the database can't be used.",
        "Fix the database first, then try again.",
    ),
    FindingCode.MODEL_TOO_SLOW: FindingText(
        "Model",
        "{model} did not answer within {seconds} s.",
        "Check the network, or choose another `model` in the server settings.",
    ),
    FindingCode.MODEL_OVER_BUDGET: FindingText(
        "Model",
        "{model} was not tried: {problem}",
        "Raise the limit in `budgets` in the server settings, or wait until it starts again.",
    ),
    FindingCode.MODEL_FAILED: FindingText(
        "Model",
        "{problem}{detail}",
        "Check `model` and `providers` in the server settings, or the environment variable with the API key.",
    ),
    FindingCode.MODEL_EMPTY: FindingText(
        "Model", "{model} gave an empty answer.", "Choose another `model` in the server settings."
    ),
    FindingCode.MODEL_ANSWERS: FindingText("Model", "{model} answered in {seconds} s."),
}

FINDING_TEXTS: Final[Mapping[FindingCode, FindingText]] = {
    **_CHECKS,
    **_MACHINE,
    **_FOLDERS,
    **_DATABASE,
    **_ACCOUNTS,
    **_MODEL,
}


# --------------------------------------------------------------------------------------------------
# What a check has found.


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


# --------------------------------------------------------------------------------------------------
# The commands in fixes: they work where the reader types them, also if their home folder is not the default one.


@dataclass(frozen=True, slots=True)
class FixCommands:
    """Formats commands for one home folder."""

    home: Path | None  # None: the default one

    def format(self, arguments: str) -> str:
        option = "" if self.home is None else f"--home {shlex.quote(str(self.home))} "
        return format_command(option + arguments)
