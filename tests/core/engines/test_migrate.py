"""Migrations: each is applied completely or not at all, once, in order, and with the same result on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import psycopg
import pytest

from palaver.core.engines import migrate
from palaver.core.engines.base import Dialect, Read, Write
from palaver.core.engines.open import open_engine
from palaver.core.engines.postgres_migration import DIALECT as POSTGRES
from palaver.core.engines.sqlite import DIALECT as SQLITE
from palaver.core.errors import SchemaTooNew, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.core.engines.base import Engine, Transaction

pytestmark = pytest.mark.both_engines


TABLES = {
    *("account", "api_token", "passkey", "passkey_challenge", "sign_in", "sign_in_attempt", "sign_in_link"),
    "known_device",
    *("attachment", "attachment_use", "audience", "audience_member", "dead_target", "deleted_session", "delivery"),
    *("chat_access", "delivery_part", "group_message", "home_channel", "link_code", "message_rate", "pairing_request"),
    *("platform_account", "platform_cursor", "preview", "sender_id"),
    *("draft", "event", "identity", "inbound_message", "lane", "lane_move", "memory", "migration", "person", "project"),
    *("read_mark", "search", "session", "share", "turn", "usage"),
    *("budget_limit", "budget_window", "job", "job_run", "memory_block", "memory_turn", "model_call", "named_lease"),
    *("erasure", "imported_item", "linked_row", "setting", "setting_change", "setting_change_item", "setting_state"),
    *("push_message", "push_subscription", "saved_prompt", "search_rebuild"),
}
SQLITE_TABLES = {"access_change"}  # PostgreSQL sends notifications instead
DATABASE_ERRORS = (apsw.Error, psycopg.Error, StoreError)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new.db"


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """A database that was never opened."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE unopened")
        try:
            yield postgres.replace("/postgres?", "/unopened?")
        finally:
            connection.execute("DROP DATABASE unopened WITH (FORCE)")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def new_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


def fetch_all(url: str, sqlite: str, postgres: str = "") -> list[tuple[Any, ...]]:
    """Open the database and run a query, which may differ between the engines."""
    engine = open_engine(url)
    try:
        sql = sqlite if engine.name == "sqlite" or not postgres else postgres
        return engine.run(Read(lambda tx: tx.fetch_all(sql)))
    finally:
        engine.close()


def load_columns(url: str) -> dict[str, list[str]]:
    """Return table → its columns, in order."""
    columns: dict[str, list[str]] = {}
    for table, column in fetch_all(
        url,
        "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema = 'main'"
        " AND t.name NOT LIKE 'sqlite_%' AND t.type <> 'shadow' ORDER BY t.name, c.cid",
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'"
        " ORDER BY table_name, ordinal_position",
    ):
        columns.setdefault(table, []).append(column)
    return columns


def load_index_names(url: str) -> set[str]:
    """Return the names of the indexes that migrations create explicitly."""
    rows = fetch_all(
        url,
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace ="
        " 'public'::regnamespace AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)",
    )
    return {name for (name,) in rows}


def insert_audience(tx: Transaction) -> int:
    return tx.execute("INSERT INTO audience (created_at) VALUES (7)")


# -- the schema ---------------------------------------------------------------------------------------------


def test_both_engines_have_the_same_tables_columns_and_indexes(sqlite_url: str, postgres_url: str) -> None:
    sqlite_columns, postgres_columns = load_columns(sqlite_url), load_columns(postgres_url)
    assert set(sqlite_columns) - SQLITE_TABLES == set(postgres_columns) == TABLES
    for table in TABLES - {"search"}:  # each engine indexes words in its own way
        assert sqlite_columns[table] == postgres_columns[table], table
    assert load_index_names(sqlite_url) == load_index_names(postgres_url) - {"search_words"}


def test_every_migration_is_recorded_once_in_order(new_url: str) -> None:
    names = [name for (name,) in fetch_all(new_url, "SELECT name FROM migration ORDER BY applied_at, name")]
    expected = list(migrate.load_migrations(SQLITE if new_url.startswith("sqlite") else POSTGRES))
    assert names == expected == sorted(expected)


def test_opening_again_applies_nothing(new_url: str) -> None:
    first = fetch_all(new_url, "SELECT name, applied_at FROM migration ORDER BY name")
    assert fetch_all(new_url, "SELECT name, applied_at FROM migration ORDER BY name") == first


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def test_every_word_between_at_signs_is_substituted(dialect: Dialect) -> None:
    for script in migrate.load_migrations(dialect).values():
        statements = "\n".join(line.partition("--")[0] for line in script.splitlines())
        assert "@" not in statements


# -- applying several files ---------------------------------------------------------------------------------


# SQLite files without this table are refused as another program's.
OUR_TABLE = "CREATE TABLE lane_move (no BIGINT);"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the real migrations."""
    made = tmp_path / "migrations"
    made.mkdir()
    monkeypatch.setattr(migrate, "FOLDER", made)
    return made


def test_files_are_applied_in_the_order_of_their_numbers(new_url: str, folder: Path) -> None:
    """Each of these fails unless the one before it has run."""
    (folder / "0010_third.sql").write_text("INSERT INTO step (name) SELECT 'third' FROM step WHERE name = 'second'")
    (folder / "0002_second.sql").write_text("INSERT INTO step (name) VALUES ('second')")
    (folder / "0001_first.sql").write_text(f"{OUR_TABLE} CREATE TABLE step (no @SERIAL_KEY@, name TEXT)")
    (folder / "notes.txt").write_text("this is not a migration")
    assert fetch_all(new_url, "SELECT name FROM step ORDER BY no") == [("second",), ("third",)]
    names = fetch_all(new_url, "SELECT name FROM migration ORDER BY applied_at, name")
    assert names == [("0001_first",), ("0002_second",), ("0010_third",)]


def test_a_file_for_one_engine_is_applied_on_that_engine_only(new_url: str, folder: Path) -> None:
    (folder / "0001_first.sql").write_text(f"{OUR_TABLE} CREATE TABLE step (name TEXT)")
    for engine in ("sqlite", "postgres"):
        (folder / f"0002_second.{engine}.sql").write_text(f"INSERT INTO step VALUES ('{engine}')")
    engine = "sqlite" if new_url.startswith("sqlite:") else "postgres"
    assert fetch_all(new_url, "SELECT name FROM step") == [(engine,)]
    assert fetch_all(new_url, "SELECT name FROM migration ORDER BY name") == [("0001_first",), ("0002_second",)]


def test_pending_migrations_are_those_that_were_not_applied_in_order(folder: Path) -> None:
    for name in ("0003_c", "0001_a", "0002_b"):
        (folder / f"{name}.sql").write_text("SELECT 1")
    for applied, pending in {"": "abc", "a": "bc", "ac": "b", "cab": ""}.items():
        names = dict(zip("abc", ("0001_a", "0002_b", "0003_c"), strict=True))
        found = migrate.list_pending(SQLITE, dict.fromkeys([names[letter] for letter in applied], False))
        assert [name for name, _ in found] == [names[letter] for letter in pending]


def test_a_database_from_a_newer_version_is_refused(new_url: str) -> None:
    engine: Engine = open_engine(new_url)
    engine.run(Write(lambda tx: tx.execute("INSERT INTO migration (name, applied_at) VALUES ('9999_later', 1)")))
    engine.close()
    with pytest.raises(SchemaTooNew, match="9999_later") as caught:
        open_engine(new_url)
    assert caught.value.facts["unknown"] == ["9999_later"]


# -- one migration more than the real ones ------------------------------------------------------------------


def add_migration(monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    load_real_migrations = migrate.load_migrations

    def load_migrations(dialect: Dialect) -> dict[str, str]:
        return {**load_real_migrations(dialect), name: script}

    monkeypatch.setattr(migrate, "load_migrations", load_migrations)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE half (x BIGINT); INSERT INTO half VALUES (1); CREATE TABLE half (x BIGINT)",
        "DELETE FROM audience; ALTER TABLE audience ADD COLUMN more BIGINT; SELECT nonsense",
    ],
)
def test_a_migration_that_fails_is_rolled_back(new_url: str, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    columns = load_columns(new_url)
    engine = open_engine(new_url)
    engine.run(Write(insert_audience))
    engine.close()
    with monkeypatch.context() as patched:
        add_migration(patched, "9998_broken", script)
        with pytest.raises(DATABASE_ERRORS):
            open_engine(new_url)
        with pytest.raises(DATABASE_ERRORS):  # it was not recorded as applied
            open_engine(new_url)
    assert load_columns(new_url) == columns
    assert fetch_all(new_url, "SELECT created_at FROM audience") == [(7,)]
    assert fetch_all(new_url, "SELECT name FROM migration WHERE name = '9998_broken'") == []


def test_the_migrations_before_a_failed_one_stay_applied(new_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        add_migration(patched, "9998_broken", "SELECT nonsense")
        with pytest.raises(DATABASE_ERRORS):
            open_engine(new_url)
    assert set(load_columns(new_url)) - SQLITE_TABLES == TABLES


def test_a_new_migration_is_applied_to_a_database_with_data(new_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(new_url)
    engine.run(Write(insert_audience))
    engine.close()
    add_migration(
        monkeypatch, "9998_more", "ALTER TABLE audience ADD COLUMN more BIGINT; UPDATE audience SET more = created_at"
    )
    assert fetch_all(new_url, "SELECT created_at, more FROM audience") == [(7, 7)]
    assert fetch_all(new_url, "SELECT COUNT(*) FROM migration WHERE name = '9998_more'") == [(1,)]


def test_a_database_with_only_the_migration_table_is_completed(new_url: str) -> None:
    """A process may die right after its first step."""
    if new_url.startswith("sqlite:"):
        db = apsw.Connection(new_url.removeprefix("sqlite:///"))
        db.execute(migrate.CREATE_MIGRATION_TABLE)
        db.close()
    else:
        with psycopg.connect(new_url, autocommit=True) as connection:
            connection.execute(migrate.CREATE_MIGRATION_TABLE.encode())
    assert set(load_columns(new_url)) - SQLITE_TABLES == TABLES
