"""Moving a store from SQLite to PostgreSQL and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from conftest import create_sqlite_database, empty_database
from palaver import SessionSource, SessionStore
from palaver.core.engines import table_copy
from palaver.core.engines.base import Write
from palaver.core.errors import InvalidInput, MigrationFailed, StoreBusy, StoreUnavailable
from palaver.operation import store_migration
from palaver.operation.store_migration import StoreMigration
from support.store_content import dump_tables, export_all, fill_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def server_url(postgres_database: str) -> str:
    """The URL of an empty PostgreSQL database."""
    return empty_database(postgres_database)


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The URL of a SQLite store with content."""
    url = create_sqlite_database(tmp_path)
    with SessionStore.open(url) as store:
        fill_store(store)
    return url


def test_a_store_is_the_same_after_moving_to_postgresql_and_back(
    file_url: str, server_url: str, tmp_path: Path
) -> None:
    StoreMigration(file_url, server_url).run()
    with SessionStore.open(file_url) as before, SessionStore.open(server_url) as moved:
        tables = dump_tables(before)
        assert dump_tables(moved) == tables
        assert sum(bool(rows) for rows in tables.values()) > 20, "rows of every kind are copied"
        exports = export_all(before)
        assert export_all(moved) == exports
        assert moved.search("quokka") == before.search("quokka") != []
    back_url = f"sqlite:///{tmp_path}/back/palaver.db"
    StoreMigration(server_url, back_url).run()
    with SessionStore.open(back_url) as back:
        assert dump_tables(back) == tables
        assert export_all(back) == exports
        assert back.search("quokka") != []


@settings(max_examples=settings().max_examples // 6)
@given(seed=st.integers(0, 2**32))
def test_any_store_survives_the_round_trip(
    seed: int, postgres_database: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("round-trip")
    file_url, server_url = create_sqlite_database(folder), empty_database(postgres_database)
    with SessionStore.open(file_url) as store:
        fill_store(store, seed=seed, count=25)
        tables, exports = dump_tables(store), export_all(store)
    StoreMigration(file_url, server_url).run()
    StoreMigration(server_url, f"sqlite:///{folder}/back.db").run()
    with SessionStore.open(f"sqlite:///{folder}/back.db") as back:
        assert dump_tables(back) == tables
        assert export_all(back) == exports


def test_the_moved_store_goes_on_numbering_where_the_old_one_was(
    file_url: str, server_url: str, tmp_path: Path
) -> None:
    def add(store: SessionStore) -> int:
        insert = (
            "INSERT INTO group_message (platform, account, chat_id, thread_id, author, content, sent_at)"
            " VALUES ('discord', '', 'club', '', 'Ada', 'x', 3) RETURNING no"
        )
        return store.engine.run(Write(lambda tx: int(tx.fetch_all(insert)[0][0])))

    StoreMigration(file_url, server_url).run()
    with SessionStore.open(server_url) as store:
        assert add(store) == 2, "the only number in use was given to a message that is deleted"
        store.record_user_message(SessionSource("telegram", "new", user_id="new"), "hello")
    back_url = f"sqlite:///{tmp_path}/back.db"
    StoreMigration(server_url, back_url).run()
    with SessionStore.open(back_url) as store:
        assert add(store) == 3
        store.record_user_message(SessionSource("telegram", "newer", user_id="newer"), "hello")


def test_a_target_with_content_is_refused_and_not_changed(file_url: str, server_url: str) -> None:
    with SessionStore.open(server_url) as store:
        store.record_user_message(SessionSource.local_cli(), "mine")
        before = dump_tables(store)
        with pytest.raises(InvalidInput, match="not empty"):
            StoreMigration(file_url, server_url).run()
        assert dump_tables(store) == before


def test_two_databases_of_one_kind_are_refused(file_url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="palaver backup"):
        StoreMigration(file_url, f"sqlite:///{tmp_path}/other.db")


def test_a_source_that_is_in_use_is_refused(file_url: str, server_url: str) -> None:
    with SessionStore.open(file_url), pytest.raises(StoreBusy, match="Another process"):
        StoreMigration(file_url, server_url).run()


def test_a_plan_changes_nothing(file_url: str, server_url: str, tmp_path: Path) -> None:
    reports = {report.name: report.row_count for report in StoreMigration(file_url, server_url).plan()}
    with SessionStore.open(file_url) as store:
        assert reports == {name: len(rows) for name, rows in dump_tables(store).items()}
    with SessionStore.open(server_url) as store:
        assert not any(dump_tables(store).values())
    way_back = StoreMigration(server_url, f"sqlite:///{tmp_path}/back.db").plan()
    assert {report.name: report.row_count for report in way_back} == dict.fromkeys(reports, 0)


class Interrupted(Exception):
    pass


def interrupt_after(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a migration fail after some batches."""
    left = iter(range(batches))

    def pass_point(name: str) -> None:
        if name == "migrate.batch_copied" and next(left, None) is None:
            raise Interrupted

    monkeypatch.setattr(store_migration, "crash_point", pass_point)


def test_an_unfinished_target_is_not_opened_and_can_be_finished(
    file_url: str, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(9, patched)
        with pytest.raises(Interrupted):
            StoreMigration(file_url, server_url).run()
    with pytest.raises(StoreUnavailable, match="same command again"):
        SessionStore.open(server_url)
    StoreMigration(file_url, server_url).run()
    with SessionStore.open(file_url) as before, SessionStore.open(server_url) as moved:
        assert dump_tables(moved) == dump_tables(before)


def test_a_source_that_has_changed_meanwhile_is_noticed(
    file_url: str, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(30, patched)
        with pytest.raises(Interrupted):
            StoreMigration(file_url, server_url).run()
    with SessionStore.open(file_url) as store:  # a person goes on with the old store
        store.rename_session(store.list_sessions()[0].id, "changed meanwhile")
        store.get_or_create_session(SessionSource("signal", "zoe", user_id="zoe"))
    with pytest.raises(MigrationFailed, match="start-over"):
        StoreMigration(file_url, server_url).run()
    with pytest.raises(StoreUnavailable):
        SessionStore.open(server_url)
    StoreMigration(file_url, server_url, start_over=True).run()
    with SessionStore.open(file_url) as before, SessionStore.open(server_url) as moved:
        assert dump_tables(moved) == dump_tables(before)


def test_a_batch_stays_small_when_rows_are_large() -> None:
    rows = [("x" * 1_000_000, 1)] * 4
    assert table_copy.choose_batch_size(4, rows) == 1
    assert table_copy.choose_batch_size(1, rows[:1]) == 1
    assert table_copy.choose_batch_size(200, [("x", 1)] * 200) == 400
