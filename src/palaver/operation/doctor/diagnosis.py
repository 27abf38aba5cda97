"""Runs all checks, one after the other. A check that fails itself becomes a finding, and the rest go on."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.engines.schema_state import get_sqlite_path
from palaver.core.errors import ConfigError, PalaverError
from palaver.operation.doctor import folders, machine
from palaver.operation.doctor.finding import (
    Diagnosis,
    Finding,
    FindingCode,
    FixCommands,
    make_ok,
    make_problem,
    make_warning,
)
from palaver.operation.doctor.machine import check_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from palaver.config import Settings
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.sessions.store import SessionStore
    from palaver.settings.reader import LoadedSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    is_full: bool = False  # read the whole database
    is_online: bool = False  # sign in with the accounts that no server runs
    is_offline: bool = False  # ask no model


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorEnvironment:
    """The installation that is checked; `palaver.app` builds it."""

    home: Path
    environ: Mapping[str, str]
    commands: FixCommands
    load_settings: Callable[[], Settings]  # raises ConfigError
    open_store: Callable[[Settings], SessionStore]
    load_stored_settings: Callable[[SessionStore, Settings], LoadedSettings]
    list_accounts: Callable[[LoadedSettings], Sequence[ConfiguredAccount]]
    find_server_url: Callable[[], str | None]  # of a server that runs on this home folder
    find_port_user: Callable[[int], str | None]


def run_doctor(environment: DoctorEnvironment, options: DoctorOptions) -> Diagnosis:
    return _Doctor(environment, options).run()


@dataclass(slots=True)
class _Doctor:
    _environment: DoctorEnvironment
    _options: DoctorOptions
    _findings: list[Finding] = field(default_factory=list)

    def run(self) -> Diagnosis:
        environment = self._environment
        self._add("Versions", machine.check_versions)
        settings = self._load_settings()
        self._add("Home folder", lambda: folders.check_home(environment.home))
        path = None if settings is None else get_sqlite_path(settings.database_url)
        self._add("Disk", lambda: folders.check_disk(environment.home, path))
        with ExitStack() as stack:
            store = None if settings is None else self._open_store(settings, stack)
            self._add("Clock", lambda: machine.check_clock(store, settings))
            if settings is not None:
                self._check_with_settings(settings, store, path)
        self._add("Sandbox", machine.check_sandbox)
        self._add("Documents", machine.check_document_reader)
        return Diagnosis(tuple(self._findings))

    def _load_settings(self) -> Settings | None:
        config_file = self._environment.home / "config.yaml"
        try:
            settings = self._environment.load_settings()
        except ConfigError as error:
            problems = error.facts.get("problems")
            lines = list(problems) if isinstance(problems, tuple) else [error.text]
            self._findings += [
                make_problem(FindingCode.CONFIGURATION_PROBLEM, problem=line, file=config_file) for line in lines
            ]
            return None
        code = FindingCode.CONFIGURATION_VALID if config_file.exists() else FindingCode.CONFIGURATION_MISSING
        self._findings.append(make_ok(code, file=config_file))
        return settings

    def _open_store(self, settings: Settings, stack: ExitStack) -> SessionStore | None:
        can_open, findings = folders.check_database(settings.database_url, self._environment.commands)
        self._findings += findings
        if not can_open:
            return None
        try:
            return stack.enter_context(self._environment.open_store(settings))
        except PalaverError as error:
            self._findings.append(make_problem(FindingCode.CHECK_FAILED, subject="Database", problem=error))
            return None

    def _check_with_settings(self, settings: Settings, store: SessionStore | None, path: Path | None) -> None:
        environment, options = self._environment, self._options
        if store is not None:
            loaded = environment.load_stored_settings(store, settings)
            settings = loaded.settings
            for problem in loaded.problems:
                command = environment.commands.format("config")
                self._findings.append(make_warning(FindingCode.SETTING_PROBLEM, problem=problem, command=command))
            attachments = environment.home / "attachments"
            if options.is_full:
                self._add("Database", lambda: folders.check_everything(store, attachments, environment.commands))
            else:
                self._add("Attached files", lambda: folders.check_attachments(store, attachments, environment.commands))
            self._add("Messages", lambda: machine.check_waiting_turns(store, environment.commands))
            self._add(
                "Platforms",
                lambda: folders.check_accounts(
                    store, environment.list_accounts(loaded), environment.commands, probes=options.is_online
                ),
            )
        if path is not None:
            self._add("Backups", lambda: folders.check_backups(path, datetime.now(UTC), environment.commands))
        self._add(
            "Server",
            lambda: machine.check_server(settings, environment.find_server_url(), environment.find_port_user),
        )
        if not options.is_offline:
            is_new = path is not None and not path.exists()  # nothing was used yet, so there is nothing to count
            self._add("Model", lambda: [check_model(store, settings, environment.environ, can_skip_budgets=is_new)])

    def _add(self, subject: str, check: Callable[[], Iterable[Finding]]) -> None:
        try:
            self._findings += check()
        except PalaverError as error:
            self._findings.append(make_problem(FindingCode.CHECK_FAILED, subject=subject, problem=error))
        except Exception as error:  # a broken installation must not stop the diagnosis
            log.debug("doctor_check_failed", exc_info=True, extra={"subject": subject})
            text = f"{type(error).__name__}: {error}"[:300]
            self._findings.append(make_warning(FindingCode.CHECK_BROKEN, subject=subject, error=text))
