"""Backups: complete, checked, readable by their owner only, and limited in number; restoring them."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import apsw
import pytest

from conftest import create_sqlite_database
from palaver import SessionSource, SessionStore
from palaver.config.agent_rules import BackupRules
from palaver.core.engines import sqlite_backup
from palaver.core.engines.base import Read
from palaver.core.errors import BackupDamaged, BackupError, BackupStopped, StoreBusy, StoreDamaged, StoreFull
from palaver.operation import backups as backups_module
from palaver.operation.backups import (
    BackupRequest,
    BackupScheduler,
    delete_old_backups,
    list_backups,
    load_backup,
    verify_backup,
)
from palaver.operation.restores import lock_database, restore_backup
from support.store_content import dump_tables, export_all, fill_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SOURCE = SessionSource("telegram", "ada", user_id="ada")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a filled store, an attachment and settings."""
    home = tmp_path / "home"
    home.mkdir()
    with SessionStore.open(create_sqlite_database(home)) as store:
        fill_store(store, home / "attachments", count=30)
    (home / "config.yaml").write_text("model: demo\n")
    (home / "settings.key").write_text("key")
    return home


def make_backup(home: Path, **options: object) -> backups_module.Backup:
    return BackupRequest(home / "palaver.db", home, **options).run()  # type: ignore[arg-type]


def test_a_backup_contains_the_store_and_its_files_and_no_secret(home: Path) -> None:
    backup = make_backup(home)
    files = sorted(str(path.relative_to(backup.path)) for path in backup.path.rglob("*") if path.is_file())
    [attachment] = [path for path in (home / "attachments").rglob("*") if path.is_file()]
    assert files == [str(attachment.relative_to(home)), "backup.json", "palaver.db"]
    assert (backup.path / attachment.relative_to(home)).samefile(attachment), "linked: it takes no space"
    assert {oct(path.stat().st_mode & 0o777) for path in backup.path.rglob("*") if path.name != attachment.name} == {
        "0o700", "0o600",
    }  # fmt: skip
    verify_backup(backup)
    with SessionStore.open(home / "palaver.db") as store:
        assert backup.manifest.row_counts["session"] == len(export_all(store))
    assert list_backups(home / "palaver.db") == [backup]


def test_settings_and_keys_are_copied_only_on_request(home: Path) -> None:
    backup = make_backup(home, with_secrets=True)
    assert backup.manifest.secret_files == ["config.yaml", "settings.key"]
    assert (backup.path / "settings.key").read_text() == "key"
    assert oct((backup.path / "config.yaml").stat().st_mode & 0o777) == "0o600"


def test_a_backup_is_one_state_while_messages_are_stored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_backup, "PAGES_PER_STEP", 8)
    written: list[int] = []
    with SessionStore.open(home / "palaver.db") as store:
        session_id = store.record_user_message(SOURCE, "0").session_id

        def write(_copied: int, _total: int) -> None:
            seq = store.append_to_transcript(session_id, f"during the backup {len(written)}")
            written.append(seq)

        backup = make_backup(home, on_progress=write)
        assert len(written) > 10
        assert len(written) < 1000, "no write made it start again"
        verify_backup(backup)
        counts = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT COUNT(*) FROM event")))
    assert backup.manifest.row_counts["event"] == counts[0][0] - len(written), "the state at its beginning"


def test_a_backup_that_is_stopped_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_backup, "PAGES_PER_STEP", 8)
    with pytest.raises(BackupStopped):
        make_backup(home, should_stop=lambda: True)
    assert list((home / "backups").iterdir()) == []


def test_a_check_can_be_stopped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_backup, "CHECK_STEPS", 100)
    backup = make_backup(home)
    with pytest.raises(BackupStopped):
        sqlite_backup.check_copy(backup.database, is_complete=True, should_stop=lambda: True)
    with pytest.raises(BackupStopped):
        sqlite_backup.compute_sha256(backup.database, lambda: True)


def test_a_damaged_database_is_not_backed_up(home: Path) -> None:
    database = home / "palaver.db"
    data = database.read_bytes()
    database.write_bytes(data[:8192] + b"\xa5" * 4096 * 20 + data[8192 + 4096 * 20 :])
    with pytest.raises(StoreDamaged, match="No backup was made"):
        make_backup(home)
    assert list((home / "backups").iterdir()) == []


def test_a_backup_needs_space_and_a_new_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "taken").mkdir()
    with pytest.raises(BackupError, match="already exists"):
        make_backup(home, target=home / "taken")
    monkeypatch.setattr(backups_module, "get_room", lambda _folder: 0)
    with pytest.raises(StoreFull, match="MB are free"):
        make_backup(home)
    with pytest.raises(BackupError, match="no database"):
        BackupRequest(home / "none.db", home).run()


def test_an_attachment_that_is_missing_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups_module, "UPLOAD_WAIT_SECONDS", 0.0)
    [attachment] = [path for path in (home / "attachments").rglob("*") if path.is_file()]
    attachment.unlink()
    assert make_backup(home).manifest.missing_attachments == [attachment.name]


def test_only_the_newest_backups_are_kept(home: Path) -> None:
    made = [make_backup(home) for _ in range(4)]
    other = make_backup(home, target=home / "backups" / "mine")
    (home / "backups" / "palaver-20200101-000000").mkdir()  # not a backup: it has no manifest
    deleted = delete_old_backups(home / "palaver.db", 2)
    assert len(deleted) == 2
    assert list_backups(home / "palaver.db") == sorted(made, key=lambda backup: backup.path.name)[:1:-1]
    assert other.path.exists()
    assert (home / "backups" / "palaver-20200101-000000").exists()


def damage_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def test_a_backup_that_has_changed_is_refused_and_the_store_stays(home: Path) -> None:
    backup = make_backup(home)
    damage_bytes(backup.database)
    before = (home / "palaver.db").read_bytes()
    with pytest.raises(BackupDamaged, match="has changed"):
        restore_backup(backup, home / "palaver.db", home)
    assert (home / "palaver.db").read_bytes() == before


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "palaver.backup/2"}', '{"format": "palaver.backup/1"}'])
def test_a_manifest_that_cannot_be_read_is_refused(home: Path, text: str) -> None:
    backup = make_backup(home)
    (backup.path / "backup.json").write_text(text)
    with pytest.raises(BackupDamaged):
        load_backup(backup.path)
    assert list_backups(home / "palaver.db") == []


def test_a_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupDamaged, match="is not a backup"):
        load_backup(tmp_path)


def rewrite_manifest(backup: backups_module.Backup, **changes: object) -> backups_module.Backup:
    """Let a manifest say that the backup is as it is now, as an attacker would who has changed it."""
    document = json.loads((backup.path / "backup.json").read_text())
    document |= {
        "database_bytes": backup.database.stat().st_size,
        "database_sha256": sqlite_backup.compute_sha256(backup.database),
    }
    (backup.path / "backup.json").write_text(json.dumps(document | changes))
    return load_backup(backup.path)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE TRIGGER spy AFTER INSERT ON event BEGIN DELETE FROM person; END", "trigger spy"),
        ("CREATE VIEW spy AS SELECT 1", "view spy"),
        ("CREATE TABLE spy (text TEXT)", "table spy"),
        ("ALTER TABLE person ADD COLUMN spy TEXT", "table person"),
    ],
)
def test_a_backup_with_definitions_of_its_own_is_refused(home: Path, statement: str, name: str) -> None:
    backup = make_backup(home)
    with closing(apsw.Connection(str(backup.database))) as db:
        db.execute(statement)
    backup = rewrite_manifest(
        backup, row_counts=sqlite_backup.check_copy(backup.database, is_complete=False).row_counts
    )
    before = (home / "palaver.db").read_bytes()
    with pytest.raises(BackupDamaged, match=f"not made this, or not in this form: {name}"):
        restore_backup(backup, home / "palaver.db", home)
    assert (home / "palaver.db").read_bytes() == before


def test_a_backup_with_an_index_of_its_own_is_restored(home: Path) -> None:
    with closing(apsw.Connection(str(home / "palaver.db"))) as db:
        db.execute("CREATE INDEX my_index ON person (name)")
    assert restore_backup(make_backup(home), home / "palaver.db", home).kept is not None


def test_only_attachments_whose_bytes_match_their_name_are_restored(home: Path, tmp_path: Path) -> None:
    backup = make_backup(home)
    [sound] = [path for path in (backup.path / "attachments").rglob("*") if path.is_file()]
    secret = tmp_path / "secret"
    secret.write_text("of the machine")
    folder = backup.path / "attachments" / "aa"
    folder.mkdir()
    link, changed = folder / ("aa" + 62 * "0"), folder / ("aa" + 62 * "1")
    link.symlink_to(secret)
    changed.write_text("not what its name says")
    linked_folder = backup.path / "attachments" / "bb"
    linked_folder.symlink_to(sound.parent)
    new_home = tmp_path / "new"
    with lock_database(new_home / "palaver.db"):
        result = restore_backup(backup, new_home / "palaver.db", new_home)
    assert result.attachment_count == 1
    assert result.left_out_attachments == (link, changed, linked_folder / sound.name)
    files = [path for path in (new_home / "attachments").rglob("*") if not path.is_dir()]
    assert [path.name for path in files] == [sound.name]


def test_a_manifest_cannot_name_other_files(home: Path, tmp_path: Path) -> None:
    backup = make_backup(home)
    (tmp_path / "outside").write_text("x")
    with pytest.raises(BackupDamaged, match="names files"):
        rewrite_manifest(backup, secret_files=["../../../outside"])


def test_a_linked_secret_is_not_restored(home: Path, tmp_path: Path) -> None:
    backup = make_backup(home, with_secrets=True)
    (backup.path / "config.yaml").unlink()
    (backup.path / "config.yaml").symlink_to(home / "settings.key")
    new_home = tmp_path / "new"
    with lock_database(new_home / "palaver.db"):
        assert restore_backup(backup, new_home / "palaver.db", new_home).added_secret_files == ("settings.key",)
    assert not (new_home / "config.yaml").exists()


def test_a_restored_store_has_everything_and_repeats_nothing(home: Path) -> None:
    with SessionStore.open(home / "palaver.db") as store:
        before, exports = dump_tables(store), export_all(store)
    backup = make_backup(home, with_secrets=True)
    with SessionStore.open(home / "palaver.db") as store:
        store.record_user_message(SOURCE, "after the backup")
        later = dump_tables(store)
    for path in (home / "attachments").rglob("*"):
        if path.is_file():
            path.unlink()
    (home / "settings.key").unlink()
    (home / "config.yaml").write_text("model: auto\n")
    result = restore_backup(load_backup(backup.database), home / "palaver.db", home)
    assert result.added_secret_files == ("settings.key",)
    assert (home / "config.yaml").read_text() == "model: auto\n", "a file that exists stays"
    assert [path for path in (home / "attachments").rglob("*") if path.is_file()]
    with SessionStore.open(home / "palaver.db") as store:
        tables = dump_tables(store)
        changed = {"turn", "delivery", "delivery_part"}
        assert {name for name in tables if tables[name] != before[name]} == changed
        assert export_all(store) == exports
        rows = store.engine.run(
            Read(lambda tx: tx.fetch_all("SELECT id, state, has_side_effects FROM turn WHERE id LIKE '%1' ORDER BY id"))
        )
        assert rows == [("done1", "done", 0), ("queued1", "interrupted", 0), ("running1", "running", 1)]
        assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT state FROM delivery"))) == [("uncertain",)]
    assert result.kept is not None
    with SessionStore.open(result.kept) as kept:
        assert dump_tables(kept) == later


def test_a_backup_is_restored_where_there_is_no_database(home: Path, tmp_path: Path) -> None:
    backup = make_backup(home)
    new_home = tmp_path / "new"
    with lock_database(new_home / "palaver.db"):
        assert restore_backup(backup, new_home / "palaver.db", new_home).kept is None
    with SessionStore.open(new_home / "palaver.db") as store, SessionStore.open(home / "palaver.db") as old:
        assert export_all(store) == export_all(old)


def test_nothing_is_restored_while_the_database_is_in_use(home: Path) -> None:
    with (
        SessionStore.open(home / "palaver.db"),
        pytest.raises(StoreBusy, match="Another process"),
        lock_database(home / "palaver.db"),
    ):
        pytest.fail("the lock was given")


def test_nothing_is_restored_while_another_program_uses_the_file(home: Path) -> None:
    other = apsw.Connection(str(home / "palaver.db"))
    other.execute("BEGIN")
    other.execute("SELECT COUNT(*) FROM person").fetchall()
    with pytest.raises(StoreBusy), lock_database(home / "palaver.db"):
        pytest.fail("the lock was given")
    other.close()
    with lock_database(home / "palaver.db"):
        pass


def test_a_store_waits_for_a_restore_that_is_ending(home: Path) -> None:
    opened: list[int] = []

    def open_store() -> None:
        with SessionStore.open(home / "palaver.db") as store:
            opened.append(len(store.list_sessions()))

    with lock_database(home / "palaver.db"):
        thread = threading.Thread(target=open_store)
        thread.start()
        thread.join(0.2)
        assert opened == []
    thread.join(60)
    assert len(opened) == 1


def test_another_programs_database_is_not_replaced(home: Path, tmp_path: Path) -> None:
    backup = make_backup(home)
    other = tmp_path / "other" / "places.db"
    other.parent.mkdir()
    db = apsw.Connection(str(other))
    db.execute("CREATE TABLE places (x)")
    db.close()
    before = other.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        restore_backup(backup, other, home)
    assert other.read_bytes() == before


# -- automatic backups ----------------------------------------------------------------------------------------


async def test_a_server_makes_a_backup_when_one_is_due_and_deletes_old_ones(home: Path) -> None:
    database = home / "palaver.db"
    with SessionStore.open(database) as store:
        scheduler = BackupScheduler(store, database, home, BackupRules(every_hours=24, keep=2))
        await scheduler.run_once()
        assert len(list_backups(database)) == 1
        assert await scheduler.run_once() > 0
        assert len(list_backups(database)) == 1, "the next one is due in a day"
        for _ in range(3):
            for backup in list_backups(database):
                make_older(backup.path)
            await scheduler.run_once()
        assert len(list_backups(database)) == 2
        leases = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM named_lease WHERE name = 'backup'")))
        assert leases == []


def make_older(path: Path) -> None:
    manifest = json.loads((path / "backup.json").read_text())
    manifest["created_at"] = (datetime.now(UTC) - timedelta(hours=25)).isoformat()
    (path / "backup.json").write_text(json.dumps(manifest))


async def test_of_two_servers_one_makes_the_backup(home: Path) -> None:
    database = home / "palaver.db"
    rules = BackupRules()
    with SessionStore.open(database) as one, SessionStore.open(database) as two:
        schedulers = [BackupScheduler(store, database, home, rules) for store in (one, two)]
        await asyncio.gather(*(scheduler.run_once() for scheduler in schedulers))
    assert len(list_backups(database)) == 1


async def test_a_backup_that_fails_is_logged_and_tried_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = home / "palaver.db"
    (home / "backups").write_text("a file in place of the folder")
    with SessionStore.open(database) as store:
        scheduler = BackupScheduler(store, database, home, BackupRules())
        await scheduler.run_once()
        assert [record.message for record in caplog.records] == ["backup_failed"]
        (home / "backups").unlink()
        await scheduler.run_once()
    assert len(list_backups(database)) == 1


async def test_automatic_backups_can_be_turned_off(home: Path) -> None:
    with SessionStore.open(home / "palaver.db") as store:
        await BackupScheduler(store, home / "palaver.db", home, BackupRules(every_hours=0)).run(first_wait=0)
    assert list_backups(home / "palaver.db") == []


def test_a_restore_of_a_linked_database_keeps_the_link(home: Path) -> None:
    backup = make_backup(home)
    disk = home.parent / "disk"
    disk.mkdir()
    (home / "palaver.db").rename(disk / "palaver.db")
    (home / "palaver.db").symlink_to(disk / "palaver.db")
    with lock_database(home / "palaver.db"):
        result = restore_backup(backup, home / "palaver.db", home)
    assert (home / "palaver.db").is_symlink()
    assert result.kept is not None
    assert result.kept.parent == disk
    with SessionStore.open(home / "palaver.db") as store:
        assert backup.manifest.row_counts["session"] == len(export_all(store))
