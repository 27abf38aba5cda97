"""Schema changes: each whole or not at all, once, and the same on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import psycopg
import pytest

from palaver.domain.errors import SchemaTooNew, StoreError
from palaver.storage.engines import migrate
from palaver.storage.engines.base import Dialect, Read, Write
from palaver.storage.engines.open import open_engine
from palaver.storage.engines.postgres import DIALECT as POSTGRES
from palaver.storage.engines.sqlite import DIALECT as SQLITE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.storage.engines.base import Engine, Transaction

TABLES = {
    *("audience", "audience_member", "delivery", "event", "identity", "migration", "person", "project"),
    *("route", "route_change", "search", "session", "turn", "usage"),
    *("dead_target", "draft", "inbound", "memory"),
    *("account", "api_token", "attempt", "passkey", "passkey_challenge", "sign_in", "sign_in_link"),
    *("attachment", "attachment_use", "departed", "read_mark", "share"),
}
REFUSED = (apsw.Error, psycopg.Error, StoreError)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/new.db"


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """A database that nobody has opened yet."""
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


def look(url: str, sqlite: str, postgres: str = "") -> list[tuple[Any, ...]]:
    """What a database says, past the library."""
    engine = open_engine(url)
    try:
        return engine.run(Read(lambda tx: tx.all(sqlite if engine.name == "sqlite" or not postgres else postgres)))
    finally:
        engine.close()


def columns(url: str) -> dict[str, list[str]]:
    """Table → its columns, in order."""
    found: dict[str, list[str]] = {}
    for table, column in look(
        url,
        "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema = 'main'"
        " AND t.name NOT LIKE 'sqlite_%' AND t.type <> 'shadow' ORDER BY t.name, c.cid",
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'"
        " ORDER BY table_name, ordinal_position",
    ):
        found.setdefault(table, []).append(column)
    return found


def indexes(url: str) -> set[str]:
    """The indexes that a migration has named."""
    rows = look(
        url,
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace ="
        " 'public'::regnamespace AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)",
    )
    return {name for (name,) in rows}


def test_both_engines_have_the_same_tables_columns_and_indexes(sqlite_url: str, postgres_url: str) -> None:
    one, other = columns(sqlite_url), columns(postgres_url)
    assert set(one) == set(other) == TABLES
    for table in TABLES - {"search"}:  # each engine indexes words in its own way
        assert one[table] == other[table], table
    assert indexes(sqlite_url) == indexes(postgres_url) - {"search_words"}


def test_every_migration_is_recorded_once_in_order(new_url: str) -> None:
    names = [name for (name,) in look(new_url, "SELECT name FROM migration ORDER BY applied_at, name")]
    known = list(migrate.known(SQLITE if new_url.startswith("sqlite") else POSTGRES))
    assert names == known == sorted(known)


def test_opening_again_applies_nothing(new_url: str) -> None:
    first = look(new_url, "SELECT name, applied_at FROM migration ORDER BY name")
    assert look(new_url, "SELECT name, applied_at FROM migration ORDER BY name") == first


def with_another(monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """As if there were one migration more."""
    known = migrate.known

    def more(dialect: Dialect) -> dict[str, str]:
        return {**known(dialect), name: script}

    monkeypatch.setattr(migrate, "known", more)


def add_audience(tx: Transaction) -> int:
    return tx.run("INSERT INTO audience (created_at) VALUES (7)")


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE half (x BIGINT); INSERT INTO half VALUES (1); CREATE TABLE half (x BIGINT)",
        "DELETE FROM audience; ALTER TABLE audience ADD COLUMN more BIGINT; SELECT nonsense",
    ],
)
def test_a_migration_that_fails_leaves_nothing_behind(
    new_url: str, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    before = columns(new_url)
    engine = open_engine(new_url)
    engine.run(Write(add_audience))
    engine.close()
    with monkeypatch.context() as patched:
        with_another(patched, "9998_broken", script)
        with pytest.raises(REFUSED):
            open_engine(new_url)
        with pytest.raises(REFUSED):  # nor is it taken for done
            open_engine(new_url)
    assert columns(new_url) == before
    assert look(new_url, "SELECT created_at FROM audience") == [(7,)]
    assert look(new_url, "SELECT name FROM migration WHERE name = '9998_broken'") == []


def test_a_new_database_whose_last_migration_fails_is_finished_later(
    new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        with_another(patched, "9998_broken", "SELECT nonsense")
        with pytest.raises(REFUSED):
            open_engine(new_url)
    assert set(columns(new_url)) == TABLES


def test_a_new_migration_is_applied_to_what_is_there_already(new_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(new_url)
    engine.run(Write(add_audience))
    engine.close()
    with_another(
        monkeypatch, "9998_more", "ALTER TABLE audience ADD COLUMN more BIGINT; UPDATE audience SET more = created_at"
    )
    assert look(new_url, "SELECT created_at, more FROM audience") == [(7, 7)]
    assert look(new_url, "SELECT COUNT(*) FROM migration WHERE name = '9998_more'") == [(1,)]


def test_a_database_of_which_only_the_register_was_made_is_finished(new_url: str) -> None:
    """A process may die right after its first step."""
    if new_url.startswith("sqlite:"):
        db = apsw.Connection(new_url.removeprefix("sqlite:///"))
        db.execute(migrate.REGISTER)
        db.close()
    else:
        with psycopg.connect(new_url, autocommit=True) as connection:
            connection.execute(migrate.REGISTER.encode())
    assert set(columns(new_url)) == TABLES


def test_a_database_from_a_newer_palaver_is_refused_by_name(new_url: str) -> None:
    engine: Engine = open_engine(new_url)
    engine.run(Write(lambda tx: tx.run("INSERT INTO migration (name, applied_at) VALUES ('9999_later', 1)")))
    engine.close()
    with pytest.raises(SchemaTooNew, match="9999_later") as caught:
        open_engine(new_url)
    assert caught.value.facts["unknown"] == ["9999_later"]


def test_what_is_missing_keeps_its_order() -> None:
    names = list(migrate.known(SQLITE))
    assert [name for name, _ in migrate.missing(SQLITE, [])] == names == sorted(names)
    assert [name for name, _ in migrate.missing(SQLITE, names[:1])] == names[1:]
    assert migrate.missing(SQLITE, names) == []


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def test_no_word_of_another_engine_is_left_in_a_migration(dialect: Dialect) -> None:
    for script in migrate.known(dialect).values():
        statements = "\n".join(line.partition("--")[0] for line in script.splitlines())
        assert "@" not in statements
