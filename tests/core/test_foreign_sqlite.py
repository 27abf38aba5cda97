"""Databases of other programs: read without a trace, also while the other program writes."""

from __future__ import annotations

import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from palaver.core.foreign_sqlite import InvalidForeignDatabase, open_foreign_database

if TYPE_CHECKING:
    from pathlib import Path


def create(path: Path, mode: str) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", mode)
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
    db.execute("INSERT INTO item (name) VALUES ('one'), ('two')")
    return db


def read_names(path: Path) -> list[str]:
    with closing(open_foreign_database(path)) as database:
        return [row["name"] for row in database.select("item", ("id", "name"), "ORDER BY id")]


def list_files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_closed_database_is_read_and_nothing_appears_beside_it(tmp_path: Path, mode: str) -> None:
    create(tmp_path / "a.db", mode).close()
    before = list_files(tmp_path)
    assert read_names(tmp_path / "a.db") == ["one", "two"]
    assert list_files(tmp_path) == before == {"a.db": before["a.db"]}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_a_running_program_has_committed_is_read_as_of_one_moment(tmp_path: Path, mode: str) -> None:
    with closing(create(tmp_path / "a.db", mode)) as db:
        before = set(list_files(tmp_path))
        with closing(open_foreign_database(tmp_path / "a.db")) as database:
            if mode == "wal":
                db.execute("INSERT INTO item (name) VALUES ('three')")
            assert [row["name"] for row in database.select("item", ("name",))] == ["one", "two"]
        assert set(list_files(tmp_path)) == before
        assert read_names(tmp_path / "a.db")[:2] == ["one", "two"]


def test_the_wal_of_a_program_that_was_killed_is_read_from_a_copy(tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(create(tmp_path / "a.db", "wal")):
        for name in ("a.db", "a.db-wal"):
            shutil.copyfile(tmp_path / name, crashed / name)
    before = {path.name: path.read_bytes() for path in crashed.iterdir()}
    assert read_names(crashed / "a.db") == ["one", "two"]
    assert {path.name: path.read_bytes() for path in crashed.iterdir()} == before


def test_a_transaction_that_was_not_finished_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(create(tmp_path / "a.db", "delete")) as db:
        db.pragma("cache_size", 1)
        db.pragma("cache_spill", 1)
        db.execute("BEGIN")
        for _ in range(200):
            db.execute("INSERT INTO item (name) VALUES (hex(randomblob(2000)))")
        for name in ("a.db", "a.db-journal"):
            shutil.copyfile(tmp_path / name, crashed / name)
    assert read_names(crashed / "a.db") == ["one", "two"]
    assert {path.name for path in crashed.iterdir()} == {"a.db", "a.db-journal"}


def test_columns_and_tables_that_do_not_exist_are_none_and_empty(tmp_path: Path) -> None:
    create(tmp_path / "a.db", "delete").close()
    with closing(open_foreign_database(tmp_path / "a.db")) as database:
        assert list(database.select("item", ("name", "color"), "WHERE id = ?", (1,))) == [
            {"name": "one", "color": None}
        ]
        assert list(database.select("missing", ("id",))) == []
        assert (database.list_tables(), database.has_table("item"), database.has_table("missing")) == (
            ["item"],
            True,
            False,
        )
        assert database.list_columns("item") == {"id", "name"}


def test_nothing_can_be_written(tmp_path: Path) -> None:
    create(tmp_path / "a.db", "delete").close()
    with closing(open_foreign_database(tmp_path / "a.db")) as database, pytest.raises(InvalidForeignDatabase):
        list(database.query("DELETE FROM item"))
    assert read_names(tmp_path / "a.db") == ["one", "two"]


def test_a_view_is_never_read(tmp_path: Path) -> None:
    """It may have the name of a table, and compute rows without end."""
    db = create(tmp_path / "a.db", "delete")
    db.execute("ALTER TABLE item RENAME TO kept")
    db.execute(
        "CREATE VIEW item AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS name FROM n"
    )
    db.close()
    with (
        closing(open_foreign_database(tmp_path / "a.db")) as database,
        pytest.raises(InvalidForeignDatabase, match="a view where a table is expected"),
    ):
        list(database.select("item", ["name"]))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"not a database" * 100])
def test_a_file_that_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    with pytest.raises(InvalidForeignDatabase, match="is not a SQLite database") as caught:
        open_foreign_database(path)
    assert caught.value.facts == {"path": str(path)}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidForeignDatabase, match="cannot be read"):
        open_foreign_database(tmp_path / "missing.db")


def test_damage_is_a_named_error_with_advice(tmp_path: Path) -> None:
    with closing(create(tmp_path / "a.db", "delete")) as db:
        for _ in range(200):
            db.execute("INSERT INTO item (name) VALUES (hex(randomblob(500)))")
    data = bytearray((tmp_path / "a.db").read_bytes())
    data[8192:40960] = b"\xff" * (40960 - 8192)
    (tmp_path / "a.db").write_bytes(data)
    with pytest.raises(InvalidForeignDatabase, match=r"\.recover"):
        read_names(tmp_path / "a.db")


def test_a_database_that_changes_while_it_is_read_as_immutable_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    create(path, "wal").close()
    with closing(open_foreign_database(path)) as database:
        path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192)
        with pytest.raises(InvalidForeignDatabase, match="has changed this database while it was read"):
            list(database.query("SELECT * FROM item, item AS other ORDER BY other.name"))


def test_text_that_is_not_utf8_is_a_named_error(tmp_path: Path) -> None:
    with closing(create(tmp_path / "a.db", "delete")) as db:
        db.execute("INSERT INTO item (name) VALUES (CAST(x'ff61' AS TEXT))")
    with pytest.raises(InvalidForeignDatabase, match="not UTF-8"):
        read_names(tmp_path / "a.db")
