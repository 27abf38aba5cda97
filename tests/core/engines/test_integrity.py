"""A damaged SQLite file: what Palaver says about it, and that it does not change a byte of it."""

from __future__ import annotations

import shutil
from contextlib import closing
from shlex import quote
from typing import TYPE_CHECKING

import apsw
import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import integrity, migrate
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.engines.sqlite_file import FolderLock, connect, create_file
from palaver.core.errors import StoreDamaged
from palaver.operation.backups import BackupRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = SessionSource("telegram", "ada", user_id="ada")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with a conversation and a backup, closed."""
    path = tmp_path / "palaver.db"
    with SessionStore.open(path) as store:
        for number in range(30):
            store.record_user_message(SOURCE, f"word{number} " + "and more " * 40)
        store.search("word1")
    BackupRequest(path, tmp_path).run()
    return path


@pytest.fixture(autouse=True)
def check_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the check before use look at every page of these small files, however busy the machine is."""
    monkeypatch.setattr(integrity, "QUICK_CHECK_SECONDS", 60.0)


def flip_header(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"\xff" * 16 + data[16:])


def flip_page_size(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:16] + b"\x00\x07" + data[18:])


def overwrite_schema(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xa5" * 3996 + data[4096:])


def overwrite_second_page(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * 4096 + data[8192:])


def truncate_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def truncate_to_nothing(path: Path) -> None:
    """Leave an empty file beside a log that holds messages: SQLite alone would delete the log."""
    leave_log(path)
    path.write_bytes(b"")


def drop_table(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DROP TABLE read_mark")


def drop_index(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DROP INDEX one_running_turn")


def leave_log(path: Path) -> None:
    """Commit something into the log without writing it back, as a process that was killed would."""
    with closing(apsw.Connection(str(path))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.execute("INSERT INTO named_lease VALUES ('x', 'h/1/2/w', 1)")


def damage_with_log(path: Path) -> None:
    leave_log(path)
    flip_header(path)


DAMAGES = (
    *(flip_header, flip_page_size, overwrite_schema, overwrite_second_page, truncate_half, truncate_to_nothing),
    *(drop_table, drop_index, damage_with_log),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_not_changed(database: Path, damage: Callable[[Path], None]) -> None:
    damage(database)
    files = {path.name: path.read_bytes() for path in database.parent.glob("palaver.db*") if path.suffix != ".db-shm"}
    with pytest.raises(StoreDamaged) as refused:
        SessionStore.open(database)
    kept = {name: (database.parent / name).read_bytes() for name in files}
    assert kept == files
    text = str(refused.value)
    [backup] = (database.parent / "backups").iterdir()
    assert str(database) in text
    assert f"Newest backup: {backup}." in text
    assert f"restore {quote(str(backup))}" in text
    assert refused.value.facts["newest_backup"] == str(backup)


def test_without_a_backup_the_error_says_where_one_would_be(database: Path) -> None:
    shutil.rmtree(database.parent / "backups")
    flip_header(database)
    with pytest.raises(StoreDamaged, match="There is no backup in") as refused:
        SessionStore.open(database)
    assert refused.value.facts["newest_backup"] is None


def test_the_log_of_a_killed_process_is_no_damage(database: Path) -> None:
    leave_log(database)
    with SessionStore.open(database) as store:
        rows = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT name FROM named_lease")))
    assert rows == [("x",)]


def test_after_damage_was_met_nothing_is_written_any_more(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(integrity, "_check_pages", lambda *_: None)  # in a large file, it does not reach this page
    with closing(apsw.Connection(str(database))) as db:
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'search_data'").get
    data = database.read_bytes()
    database.write_bytes(data[: (page - 1) * 4096] + bytes(4096) + data[page * 4096 :])
    store = SessionStore.open(database)
    store.record_user_message(SOURCE, "before it was noticed")
    before = database.read_bytes()
    with pytest.raises(StoreDamaged, match="Newest backup"):
        store.search("word1")
    with pytest.raises(StoreDamaged, match="Newest backup"):
        store.record_user_message(SOURCE, "after it was noticed")
    with pytest.raises(StoreDamaged):
        store.engine.run(Write(lambda tx: tx.execute("DELETE FROM named_lease")))
    assert len(store.load_transcript(store.list_sessions()[0].id)) == 31, "what can be read is still read"
    store.close()
    assert database.read_bytes() == before, "not even the log is written back"
    assert [record.message for record in caplog.records].count("store_damaged") == 1


def test_the_names_that_migrations_leave_behind_are_known() -> None:
    scripts = [
        "CREATE TABLE a (x);\nCREATE UNIQUE INDEX b ON a (x);\nCREATE VIRTUAL TABLE c USING fts5 (x);",
        "DROP INDEX b;\nCREATE INDEX b ON a (x);\nALTER TABLE a RENAME TO d;\nDROP TABLE c;",
    ]
    assert integrity.list_expected_names(scripts) == {"b", "d"}


def test_every_expected_name_exists_in_a_new_database(database: Path) -> None:
    from palaver.core.engines.migrate import load_migrations
    from palaver.core.engines.sqlite import DIALECT

    with closing(apsw.Connection(str(database))) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")}
    expected = integrity.list_expected_names(load_migrations(DIALECT).values())
    assert expected - names == set()
    assert {name for name in names - expected if not name.startswith(("search_", "sqlite_"))} == {"migration"}


def test_a_link_to_a_database_in_use_opens_and_locks_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "palaver.db"
    link.symlink_to(tmp_path / "disk" / "palaver.db")
    with SessionStore.open(tmp_path / "disk" / "palaver.db") as store:
        session_id = store.record_user_message(SOURCE, "hello").session_id
        with SessionStore.open(link) as second:
            assert len(second.load_transcript(session_id)) == 1
    with SessionStore.open(link):
        assert FolderLock.take(tmp_path / "disk") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "palaver.db"]


def test_the_expected_names_follow_the_statements_in_their_order() -> None:
    first = "CREATE TABLE a (x TEXT);\nCREATE INDEX a_x ON a (x);"
    second = "ALTER TABLE a RENAME TO old;\nCREATE TABLE a (x TEXT, y TEXT);\nDROP INDEX a_x;\nDROP TABLE old;"
    assert integrity.list_expected_names([first, second]) == {"a"}


@pytest.mark.parametrize("is_in_use", [True, False], ids=["in use", "closed again"])
def test_a_file_that_another_process_migrates_meanwhile_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_use: bool
) -> None:
    """Two processes start on a new or an older database: one is looking at its tables while the other creates them."""
    path = create_file(tmp_path / "palaver.db")
    first = connect(path)
    first.execute(migrate.CREATE_MIGRATION_TABLE)  # a migration's first step
    if not is_in_use:
        first.close()

    def migrate_during_check(db: apsw.Connection) -> None:
        def trace(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
            if statement == "SELECT name FROM migration":
                monkeypatch.setattr(apsw, "connection_hooks", [])
                SessionStore.open(path).close()
            return True

        db.exec_trace = trace

    monkeypatch.setattr(apsw, "connection_hooks", [migrate_during_check])
    SessionStore.open(path).close()
    assert apsw.connection_hooks == [], "the other process came in between"
    first.close()


def test_whether_a_server_is_ready_is_answered_with_the_damage(database: Path) -> None:
    with closing(SqliteEngine.open(database)) as engine:
        with database.open("r+b") as file:
            file.write(b"no database any more")
        for _ in range(2):
            with pytest.raises(StoreDamaged):
                engine.find_problems()
