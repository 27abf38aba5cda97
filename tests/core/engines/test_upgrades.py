"""Upgrades: a program that does not know a migration stops using the store, or there is no upgrade while it runs."""

from __future__ import annotations

import hashlib
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import psycopg
import pytest

from palaver.core.engines import migrate, postgres_migration, sqlite
from palaver.core.engines.base import Dialect, Read, Upgrade, Write
from palaver.core.engines.migrate import migrate_file
from palaver.core.engines.open import open_engine
from palaver.core.engines.schema_state import load_schema_state
from palaver.core.engines.sqlite_file import FolderLock
from palaver.core.errors import SchemaTooNew, SchemaTooOld, StoreBusy, StoreDamaged, UpgradeRequired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.core.engines.base import Engine, Transaction

CHECKSUMS = Path(__file__).with_name("released_migrations.sha256")
NEWER = "9998_newer"
NEW_TABLE = "CREATE TABLE newer (no BIGINT);"
COMPATIBLE = f"{migrate.OLDER_MAY_WRITE}\n{NEW_TABLE}"

pytestmark = [pytest.mark.both_engines, pytest.mark.usefixtures("new_connections")]


@pytest.fixture
def url(store_url: str) -> Iterator[str]:
    """A store of this version, from which the newer migration is removed again."""
    open_engine(store_url).close()
    yield store_url
    if not store_url.startswith("sqlite:"):
        with psycopg.connect(store_url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS newer")
            connection.execute("DELETE FROM migration WHERE name = '9998_newer'")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "OLDER_SERVER_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(postgres_migration, "OLDER_SERVER_WAIT_SECONDS", 0.5)


def open_newer(url: str, script: str = NEW_TABLE, upgrade: Upgrade = Upgrade.ALONE) -> Engine:
    """Open the store as a version does that has one more migration."""
    load = migrate.load_migrations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "load_migrations", lambda dialect: {**load(dialect), NEWER: script})
        patch.setattr(migrate, "get_newest_number", lambda: 9998)
        return open_engine(url, upgrade=upgrade)


def write(engine: Engine) -> int:
    return engine.run(Write(lambda tx: tx.execute("INSERT INTO audience (created_at) VALUES (7)")))


def count_rows(tx: Transaction) -> int:
    row = tx.fetch_one("SELECT COUNT(*) FROM audience")
    assert row is not None
    return int(row[0])


def is_upgraded(url: str) -> bool:
    with closing(open_engine(url, upgrade=Upgrade.REFUSE)) as engine:
        return NEWER in {name for (name,) in engine.run(Read(lambda tx: tx.fetch_all("SELECT name FROM migration")))}


# -- who upgrades -------------------------------------------------------------------------------------------


def test_a_store_of_an_older_version_is_upgraded_only_if_the_caller_may(url: str) -> None:
    with pytest.raises(UpgradeRequired, match="upgrade --yes") as caught:
        open_newer(url, upgrade=Upgrade.REFUSE)
    assert caught.value.facts["pending"] == [NEWER]
    assert not is_upgraded(url)
    open_newer(url).close()
    with pytest.raises(SchemaTooNew, match=NEWER):
        open_engine(url)


def test_a_new_store_needs_no_permission(tmp_path: Path) -> None:
    open_engine(f"sqlite:///{tmp_path}/new.db", upgrade=Upgrade.REFUSE).close()


def test_there_is_no_upgrade_while_an_older_program_runs_that_would_be_surprised(url: str) -> None:
    with closing(open_engine(url)) as older:
        write(older)
        with pytest.raises(StoreBusy, match="Stop that first"):
            open_newer(url)
        assert write(older) == 1
        assert older.run(Read(count_rows)) == 2
    open_newer(url).close()


def test_a_compatible_upgrade_goes_on_beside_an_older_program(url: str) -> None:
    with closing(open_engine(url)) as older:
        write(older)
        with closing(open_newer(url, COMPATIBLE)) as newer:
            write(newer)
            write(older)
            assert older.run(Read(count_rows)) == newer.run(Read(count_rows)) == 3
    assert is_upgraded(url)  # the older version also opens it again
    assert load_schema_state(url).pending == ()


def test_programs_that_upgrade_at_once_all_succeed(url: str) -> None:
    load = migrate.load_migrations
    errors: list[BaseException] = []

    def upgrade() -> None:
        try:
            open_engine(url).close()
        except BaseException as error:  # noqa: BLE001  (the test looks at it)
            errors.append(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "OLDER_SERVER_WAIT_SECONDS", 30.0)
        patch.setattr(migrate, "load_migrations", lambda dialect: {**load(dialect), NEWER: NEW_TABLE})
        patch.setattr(migrate, "get_newest_number", lambda: 9998)
        threads = [threading.Thread(target=upgrade) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert is_upgraded(url)


# -- older programs that are running ------------------------------------------------------------------------


def upgrade_without_locks(url: str, script: str = NEW_TABLE) -> None:
    """Upgrade a file as if its folder could not be locked."""
    db = apsw.Connection(url.removeprefix("sqlite:///"))
    load = migrate.load_migrations(sqlite.DIALECT)
    pending = [(NEWER, script)]
    assert NEWER not in load
    with closing(db):
        migrate_file(
            db,
            sqlite.SqliteTransaction(db),
            lambda applied: [each for each in pending if each[0] not in applied],
            Upgrade.ALONE,
            is_alone=True,
        )


def upgrade_below(url: str, script: str = NEW_TABLE) -> None:
    if url.startswith("sqlite:"):
        upgrade_without_locks(url, script)
    else:
        open_newer(url, script, Upgrade.TAKE_OVER).close()


def test_an_older_program_stops_writing_and_reading_and_says_why(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_engine(url)) as older:
        write(older)
        upgrade_below(url)
        for _ in range(2):
            with pytest.raises(SchemaTooNew, match="has upgraded this database"):
                write(older)
        with pytest.raises(SchemaTooNew, match="has upgraded this database"):
            older.run(Read(count_rows))
    assert [record.message for record in caplog.records if record.message == "store_upgraded"] == ["store_upgraded"]
    load = migrate.load_migrations
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "load_migrations", lambda dialect: {**load(dialect), NEWER: NEW_TABLE})
        with closing(open_engine(url)) as newer:
            assert newer.run(Read(count_rows)) == 1


def test_an_older_program_goes_on_after_a_compatible_upgrade_that_it_has_not_seen(url: str) -> None:
    with closing(open_engine(url)) as older:
        upgrade_below(url, COMPATIBLE)
        write(older)
        write(older)
        assert older.run(Read(count_rows)) == 2


def test_work_that_older_programs_share_in_one_transaction_is_refused_for_all(url: str) -> None:
    with closing(open_engine(url)) as older:
        upgrade_below(url)
        errors: list[type[BaseException]] = []

        def try_to_write() -> None:
            try:
                write(older)
            except SchemaTooNew as error:
                errors.append(type(error))

        threads = [threading.Thread(target=try_to_write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == [SchemaTooNew] * 8


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_an_older_program_that_starts_during_the_upgrade_waits_and_then_refuses(url: str) -> None:
    errors: list[BaseException | None] = []

    def start_older() -> None:
        try:
            open_engine(url).close()
        except SchemaTooNew as error:
            errors.append(error)
        else:
            errors.append(None)

    older = threading.Thread(target=start_older)
    with psycopg.connect(url, application_name="palaver schema:9998") as newer:
        newer.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_migration.MIGRATION_LOCK_KEY,))
        newer.execute("INSERT INTO migration (name, applied_at) VALUES (%s, 7)", (NEWER,))
        older.start()
        older.join(0.5)  # it would be ready by now if it had not waited
    older.join()
    assert [type(error) for error in errors] == [SchemaTooNew]


# -- the first versions, which look at nothing --------------------------------------------------------------


def test_a_program_that_locks_no_folder_prevents_the_upgrade_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "palaver.db"
    url = f"sqlite:///{path}"
    open_engine(url).close()
    with closing(apsw.Connection(str(path))) as db:
        db.execute("SELECT COUNT(*) FROM migration").fetchall()
        with pytest.raises(StoreBusy, match="Stop that first"):
            open_newer(url, upgrade=Upgrade.TAKE_OVER)
    open_newer(url, upgrade=Upgrade.TAKE_OVER).close()


def test_a_program_that_locks_the_folder_prevents_the_upgrade_of_its_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/palaver.db"
    open_engine(url).close()
    with FolderLock.share(tmp_path), pytest.raises(StoreBusy, match="Stop that first"):
        open_newer(url, upgrade=Upgrade.TAKE_OVER)
    open_newer(url, upgrade=Upgrade.TAKE_OVER).close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("name", ["", "chosen by the operator"])
def test_a_server_of_the_first_versions_prevents_the_upgrade_of_its_database(store_url: str, name: str) -> None:
    open_engine(store_url).close()
    with psycopg.connect(store_url, autocommit=True, application_name=name) as listener:
        listener.execute("LISTEN palaver")
        with pytest.raises(StoreBusy, match=str(listener.info.backend_pid)):
            open_newer(store_url, upgrade=Upgrade.TAKE_OVER)
        assert listener.execute("SELECT 1").fetchone() == (1,)
    assert not is_upgraded(store_url)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_other_programs_on_the_database_are_left_alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True, application_name="psql") as other:
        other.execute("SELECT 1")
        open_newer(url, upgrade=Upgrade.TAKE_OVER).close()
        assert other.execute("SELECT 1").fetchone() == (1,)


# -- databases of previews ----------------------------------------------------------------------------------

PREVIEWS = {
    "with other names": (["0001_sessions", "0002_search"], ["session", "event", "lane_move"]),
    "without a table": (["0001_initial", "0002_search_and_triggers"], ["session", "event", "lane_move"]),
}


def make_preview(url: str, form: str) -> None:
    names, tables = PREVIEWS[form]
    statements = [
        migrate.CREATE_MIGRATION_TABLE,
        *(f"INSERT INTO migration (name, applied_at) VALUES ('{name}', 1)" for name in names),
        *(f"CREATE TABLE {table} (no BIGINT)" for table in tables),
    ]
    if url.startswith("sqlite:"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as db:
            for statement in statements:
                db.execute(statement)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture(params=["sqlite", "postgres"])
def unopened_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/preview.db"
        return
    server: str = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE preview")
        try:
            yield server.replace("/postgres?", "/preview?")
        finally:
            connection.execute("DROP DATABASE preview WITH (FORCE)")


@pytest.mark.parametrize("form", PREVIEWS)
def test_a_database_of_a_preview_is_refused_with_the_truth(unopened_url: str, form: str) -> None:
    make_preview(unopened_url, form)
    for look in (open_engine, load_schema_state):
        with pytest.raises(SchemaTooOld, match="early preview"):
            look(unopened_url)


def test_a_file_of_another_program_is_still_another_programs(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "other.db"))) as db:
        db.execute("CREATE TABLE session (no BIGINT)")
    with pytest.raises(StoreDamaged, match="another program's"):
        open_engine(f"sqlite:///{tmp_path}/other.db")


# -- released files -----------------------------------------------------------------------------------------


def test_a_released_migration_never_changes() -> None:
    """To add one, append its line: `sha256sum NNNN_name.sql`. A line that is there never changes."""
    lines = CHECKSUMS.read_text(encoding="utf-8").splitlines()
    released = {name: digest for digest, name in (line.split() for line in lines)}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in migrate.FOLDER.glob("*.sql")}
    assert found == released


@pytest.mark.parametrize("dialect", [sqlite.DIALECT, postgres_migration.DIALECT], ids=["sqlite", "postgres"])
def test_only_migrations_after_the_column_say_that_older_versions_may_write(dialect: Dialect) -> None:
    names = [name for name, script in migrate.load_migrations(dialect).items() if migrate.lets_older_write(script)]
    assert names[0] == "0020_older_versions"
