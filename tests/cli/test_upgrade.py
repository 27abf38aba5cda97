"""`palaver upgrade`, and what other commands do with the database of an older version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from palaver.cli import options
from palaver.cli.program import program
from palaver.core.engines import migrate

if TYPE_CHECKING:
    from cli.conftest import Home

NEW_TABLE = "CREATE TABLE newer (no BIGINT);"


@pytest.fixture
def old_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home folder with a database of the version before this one."""
    home.add_conversation("hello", "hi")
    load = migrate.load_migrations
    monkeypatch.setattr(migrate, "load_migrations", lambda dialect: {**load(dialect), "9998_newer": NEW_TABLE})
    return home


def test_a_command_without_a_terminal_names_what_upgrades_the_database(old_home: Home) -> None:
    for arguments in (["sessions", "list"], ["status"], ["-m", "hello"], ["people", "list"], ["doctor", "--repair"]):
        error = old_home.get_error(*arguments, code=5)
        assert "upgrade --yes" in error
        assert "backup" in error
    assert old_home.get_json_error("sessions", "list", "--json", code=5)["code"] == "upgrade_required"


def test_the_upgrade_is_confirmed_and_made_once(old_home: Home) -> None:
    assert "--yes" in old_home.get_error("upgrade", code=2)
    assert old_home.get_text("upgrade", "--yes") == "The database was upgraded.\n"
    assert old_home.get_text("upgrade", "--yes") == "The database is up to date.\n"
    assert "hello" in old_home.get_text("sessions", "list")


def test_a_backup_is_possible_before_the_upgrade(old_home: Home) -> None:
    old_home("backup")
    assert "upgrade --yes" in old_home.get_error("sessions", "list", code=5)


def test_the_doctor_says_that_the_server_upgrades_the_database(old_home: Home) -> None:
    assert "the next start of the server upgrades it" in old_home.get_text("doctor", "--offline")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_at_a_terminal_a_command_asks_and_then_goes_on(
    old_home: Home, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(options, "is_interactive", lambda: True)
    result = CliRunner().invoke(program, ["--home", str(old_home.path), "sessions", "list"], input=answer)
    assert result.exit_code == code
    assert "Upgrade the database now?" in result.stderr
    assert ("hello" in result.stdout) is (code == 0)
    assert ("Nothing was changed" in result.stderr) is (code == 1)
