"""`palaver backup`, `backups` and `restore`."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


@pytest.fixture
def filled_home(home: Home) -> Home:
    home.add_conversation("Hello", "Hi", title="Lisbon")
    (home.path / "config.yaml").write_text("model: demo\n")
    return home


def find_backups(home: Home) -> list[Path]:
    return sorted((home.path / "backups").iterdir())


def test_a_backup_is_made_listed_and_restored(filled_home: Home) -> None:
    result = filled_home("backup")
    [path] = find_backups(filled_home)
    assert result.stdout.startswith(f"Backup made: {path} (1 conversation, 0 attached files, ")
    assert "Settings and keys are not in it." in result.stderr
    assert f"restore {quote(str(path))}" in result.stderr
    assert str(path) in filled_home.get_text("backups")
    filled_home.add_conversation("Later", "Yes", title="Later")
    restored = filled_home.get_text("restore", path, "--yes")
    assert restored.startswith(f"Restored {filled_home.path / 'palaver.db'} from {path} (1 conversation")
    assert "The database as it was before: " in restored
    assert "Lisbon" in filled_home.get_text("sessions", "list")
    assert "Later" not in filled_home.get_text("sessions", "list")


def test_json_says_the_same(filled_home: Home) -> None:
    made = filled_home.get_json("backup", "--with-secrets")
    assert made["secret_files"] == ["config.yaml"]
    assert made["row_counts"]["session"] == 1
    assert [each["path"] for each in filled_home.get_json("backups")] == [made["path"]]
    plan = filled_home.get_json("restore", made["path"], "--dry-run")
    assert plan == {
        "backup": filled_home.get_json("backups")[0],
        "database": str(filled_home.path / "palaver.db"),
        "dry_run": True,
        "left_out_attachments": [],
    }
    done = filled_home.get_json("restore", made["path"], "--yes")
    assert done["unchanged_files"] == ["config.yaml"]
    assert done["kept"].startswith(str(filled_home.path / "palaver.db.before-restore-"))


def test_a_dry_run_changes_nothing(filled_home: Home) -> None:
    filled_home("backup")
    before = sorted((path, path.stat().st_mtime_ns) for path in filled_home.path.rglob("*") if path.is_file())
    text = filled_home.get_text("restore", *find_backups(filled_home), "--dry-run")
    assert text.endswith("Nothing was changed.\n")
    after = sorted((path, path.stat().st_mtime_ns) for path in filled_home.path.rglob("*") if path.is_file())
    assert after == before


def test_keep_deletes_the_oldest(filled_home: Home) -> None:
    for _ in range(3):
        filled_home("backup")
    first, *others = find_backups(filled_home)
    assert "Deleted 2 old backups." in filled_home("backup", "--keep", "2").stderr
    assert len(find_backups(filled_home)) == 2
    assert first not in find_backups(filled_home)
    assert others


def test_a_restore_needs_a_confirmation(filled_home: Home) -> None:
    filled_home("backup")
    assert "--yes" in filled_home("restore", *find_backups(filled_home), code=2).stderr


def test_a_restore_is_refused_while_a_chat_or_server_runs(filled_home: Home) -> None:
    filled_home("backup")
    [path] = find_backups(filled_home)
    with SessionStore.open(filled_home.path / "palaver.db"):
        assert "Another process uses the database" in filled_home.get_error("restore", path, "--yes", code=5)


def test_a_damaged_database_says_how_to_restore_it(filled_home: Home) -> None:
    filled_home("backup")
    [backup] = find_backups(filled_home)
    database = filled_home.path / "palaver.db"
    database.write_bytes(b"\xff" * 100 + database.read_bytes()[100:])
    error = filled_home.get_error("sessions", "list", code=5)
    assert f"--home {quote(str(filled_home.path))} restore {quote(str(backup))}" in error
    assert filled_home.get_json_error("projects", "list", code=5)["facts"]["newest_backup"] == str(backup)
    filled_home("restore", backup, "--yes")
    assert "Lisbon" in filled_home.get_text("sessions", "list")


def test_a_folder_that_is_no_backup_is_refused(filled_home: Home, tmp_path: Path) -> None:
    assert "is not a backup" in filled_home.get_error("restore", tmp_path, "--yes", code=1)


def test_without_backups_the_list_says_how_to_make_one(filled_home: Home) -> None:
    assert "No backups of" in filled_home("backups").stderr


def test_for_postgresql_the_commands_are_shown_without_the_password(filled_home: Home) -> None:
    (filled_home.path / "config.yaml").write_text("database_url: postgresql://ada:hunter2@db.example.org/talk\n")
    error = filled_home.get_error("backup", code=1)
    assert "pg_dump --format=custom --file=palaver.dump postgresql://ada@db.example.org/talk" in error
    assert "hunter2" not in error
    assert "hunter2" not in filled_home.get_error("backups", code=1)
