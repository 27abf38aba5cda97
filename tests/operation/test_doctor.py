"""The checks of `palaver doctor` that need more than a home folder: both engines, platforms, clocks."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.engines.base import Write
from palaver.core.engines.schema_state import load_schema_state
from palaver.core.errors import AccountRefused, ConnectionLost, StoreUnavailable
from palaver.delivery.adapter import AccountInfo
from palaver.gateway.account_link import ConfiguredAccount
from palaver.operation.doctor import folders, machine
from palaver.operation.doctor.finding import FixCommands, Severity
from palaver.operation.doctor.folders import check_database, check_everything
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.delivery.adapter import Adapter

COMMANDS = FixCommands(None)
SECRET = "12345:very-secret"


class ProbedAdapter(LoopbackAdapter):
    """An adapter whose sign-in has a known result."""

    def __init__(self, result: AccountInfo | Exception) -> None:
        super().__init__()
        self._result = result
        self.is_closed = False

    async def probe(self) -> AccountInfo:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    async def close(self) -> None:
        self.is_closed = True


def configure(result: AccountInfo | Exception, **fields: Any) -> tuple[ConfiguredAccount, ProbedAdapter]:
    adapter = ProbedAdapter(result)

    async def create() -> Adapter:
        return adapter

    return ConfiguredAccount(platform=LOOPBACK, account="", create=create, secrets=(SECRET,), **fields), adapter


def test_a_database_is_checked_without_changing_it(store: SessionStore, store_url: str) -> None:
    can_open, findings = check_database(store_url, COMMANDS)
    assert can_open
    assert [finding.severity for finding in findings] == [Severity.OK]
    assert load_schema_state(store_url).pending == ()
    if store_url.startswith("postgresql"):
        assert "PostgreSQL 1" in findings[0].text
    assert not any(char in findings[0].text for char in "@")  # neither user nor password


def test_a_lost_database_is_a_problem_and_not_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "palaver.db"
    for leftover in ("palaver.db-wal", "palaver-rescued-20261118-070000-00ff.db"):
        (tmp_path / leftover).touch()
        can_open, [finding] = check_database(f"sqlite:///{path}", COMMANDS)
        assert not can_open
        assert finding.severity is Severity.PROBLEM
        assert leftover in f"{finding.text} {finding.fix}"
    assert not path.exists()


@pytest.mark.both_engines
def test_an_older_schema_is_a_warning_and_is_not_upgraded(store: SessionStore, store_url: str) -> None:
    last = max(store.engine.run(Write(lambda tx: tx.fetch_all("SELECT name FROM migration"))))[0]
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM migration WHERE name = $1", last)))
    try:
        can_open, findings = check_database(store_url, COMMANDS)
        assert not can_open
        assert findings[0].severity is Severity.WARNING
        assert last in findings[0].text
        assert load_schema_state(store_url).pending == (last,)
    finally:
        store.engine.run(Write(lambda tx: tx.execute("INSERT INTO migration (name, applied_at) VALUES ($1, 1)", last)))


def test_a_server_that_cannot_be_reached_is_named_without_its_password() -> None:
    url = "postgresql://ada:s3cret@127.0.0.1:1/talk?connect_timeout=2"
    with pytest.raises(StoreUnavailable) as error:
        load_schema_state(url)
    assert "s3cret" not in str(error.value)
    can_open, findings = check_database(url, COMMANDS)
    assert not can_open
    assert "database_url" in findings[0].fix


@pytest.mark.both_engines
def test_the_full_check_of_a_healthy_store_finds_nothing(store: SessionStore, tmp_path: Path) -> None:
    findings = list(check_everything(store, tmp_path / "attachments", COMMANDS))
    assert {finding.severity for finding in findings} == {Severity.OK}


def test_clocks_are_compared_with_the_database_server(store: SessionStore) -> None:
    finding = next(iter(machine.check_clock(store, None)))
    if store.engine.name == "postgres":  # the store's clock is a fake one here, years away or not
        assert "PostgreSQL server differ by" in finding.text
    else:
        assert finding.severity is Severity.OK


def test_an_account_signs_in_only_when_asked_to(sqlite_store: SessionStore) -> None:
    account, adapter = configure(AccountInfo(name="@bot", details=("version 1",)))
    (finding,) = folders.check_accounts(sqlite_store, [account], COMMANDS, probes=False)
    assert not adapter.is_closed
    assert "--online" in finding.text
    (finding,) = folders.check_accounts(sqlite_store, [account], COMMANDS, probes=True)
    assert finding.text == "Signed in as @bot. version 1"
    assert adapter.is_closed


@pytest.mark.parametrize(
    "error",
    [AccountRefused(f"The token {SECRET} is wrong."), ConnectionLost("No network."), RuntimeError(f"bug: {SECRET}")],
)
def test_an_account_that_cannot_sign_in_is_a_problem_without_its_secret(
    sqlite_store: SessionStore, error: Exception
) -> None:
    account, _ = configure(error)
    (finding,) = folders.check_accounts(sqlite_store, [account], COMMANDS, probes=True)
    assert finding.severity is Severity.PROBLEM
    assert SECRET not in finding.text
    assert finding.fix


def test_warnings_of_a_platform_are_passed_on(sqlite_store: SessionStore) -> None:
    account, _ = configure(AccountInfo(name="@bot", warnings=("Privacy mode is on.",)))
    (finding,) = folders.check_accounts(sqlite_store, [account], COMMANDS, probes=True)
    assert (finding.severity, finding.fix) == (Severity.WARNING, "Privacy mode is on.")


def test_settings_that_do_not_work_are_a_problem(sqlite_store: SessionStore) -> None:
    account, _ = configure(AccountInfo(), problem="platforms.loopback.settings.token is required.")
    (finding,) = folders.check_accounts(sqlite_store, [account], COMMANDS, probes=False)
    assert finding.severity is Severity.PROBLEM
    assert "token is required" in finding.text


@pytest.mark.parametrize(("days", "severity"), [(1, Severity.OK), (30, Severity.WARNING)])
def test_old_backups_are_a_warning(tmp_path: Path, days: int, severity: Severity) -> None:
    database = tmp_path / "palaver.db"
    now = datetime.now(UTC)
    assert list(folders.check_backups(database, now, COMMANDS)) == []
    database.touch()
    assert next(folders.check_backups(database, now, COMMANDS)).severity is Severity.WARNING
    backup = tmp_path / "backups" / "palaver-20261115-081200"
    backup.mkdir(parents=True)
    (backup / "backup.json").touch()
    os.utime(backup, (now.timestamp(), now.timestamp()))
    finding = next(folders.check_backups(database, now + timedelta(days=days), COMMANDS))
    assert finding.severity is severity


def test_little_space_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "palaver.db"
    database.write_bytes(b"x" * 1000)
    for free, severity in ((10, Severity.PROBLEM), (300_000_000, Severity.OK)):
        monkeypatch.setattr("shutil.disk_usage", lambda _path, free=free: type("Usage", (), {"free": free}))
        assert next(folders.check_disk(tmp_path / "missing" / "home", database)).severity is severity


def test_a_home_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "home"
    path.touch()
    (finding,) = folders.check_home(path)
    assert finding.severity is Severity.PROBLEM
