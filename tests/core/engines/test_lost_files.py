"""A database file that is removed, renamed or replaced while in use: nothing is acknowledged that would be lost."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from palaver import SessionStore
from palaver.core.engines import sqlite_watch as file_events
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.engines.sqlite_file import connect
from palaver.core.errors import StoreDamaged, StoreError, StoreFileLost, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource

    Source = Callable[..., SessionSource]


def remove(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace_by_copy(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    copy.replace(path)


def rename_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def remove_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def remove_index(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


def remove_everything(path: Path) -> None:
    for each in list(path.parent.iterdir()):
        each.unlink()


ALL_LOSSES = [remove, rename, replace_by_copy, rename_folder, remove_log, remove_index, remove_everything]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "palaver.db"


def list_texts(path: Path) -> list[str]:
    """Read the messages of a database file, as a later start would."""
    with SessionStore.open(path) as store:
        return sorted(
            text
            for (text,) in store.engine.run(
                Read(lambda tx: tx.fetch_all("SELECT content FROM event WHERE role = 'user'"))
            )
        )


@pytest.mark.parametrize("has_events", [True, False], ids=["file events", "no file events"])
@pytest.mark.parametrize("lose", ALL_LOSSES)
def test_nothing_is_stored_once_the_file_is_lost(
    path: Path, dm: Source, lose: Callable[[Path], None], has_events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_events:
        monkeypatch.setattr(file_events, "_open_inotify", lambda _folders, _mask: None)
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        lose(path)
        for text in ("after", "again"):
            with pytest.raises(StoreFileLost):
                store.record_user_message(dm(), text)
        with pytest.raises(StoreFileLost):  # what is read now would not be what is read after a restart
            store.list_sessions()
        assert not path.exists() or lose in (replace_by_copy, remove_log, remove_index)


@pytest.mark.parametrize("lose", [remove, rename, replace_by_copy, remove_everything])
def test_what_was_stored_before_the_loss_is_saved_in_a_file_of_its_own(
    path: Path, dm: Source, lose: Callable[[Path], None]
) -> None:
    with SessionStore.open(path) as store:
        for number in range(20):
            store.record_user_message(dm(), f"before {number}")
        lose(path)
        with suppress(StoreFileLost):
            store.record_user_message(dm(), "after")
    [rescued] = path.parent.glob("palaver-rescued-*.db")
    assert rescued.stat().st_mode & 0o777 == 0o600
    stored = {f"before {number}" for number in range(20)}
    assert stored <= set(list_texts(rescued))
    rescued.replace(path)  # what the message says; the log of the lost file may still be there
    assert stored <= set(list_texts(path))


@pytest.mark.parametrize("is_noticed", [True, False])
@pytest.mark.parametrize("lose", [remove_log, remove_index])
def test_without_its_log_or_index_a_database_is_complete_after_a_restart(
    path: Path, dm: Source, lose: Callable[[Path], None], is_noticed: bool
) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        lose(path)
        if is_noticed:
            with pytest.raises(StoreFileLost):
                store.record_user_message(dm(), "after")
    assert "before" in list_texts(path)
    assert list(path.parent.glob("palaver-rescued-*")) == []


def test_a_log_that_another_process_has_made_anew_is_left_alone(path: Path, dm: Source) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        remove_log(path)
        path.with_name(f"{path.name}-wal").touch()
        with pytest.raises(StoreFileLost):
            store.record_user_message(dm(), "after")
    [rescued] = path.parent.glob("palaver-rescued-*.db")
    with pytest.raises(StoreUnavailable, match="keep the present database"):
        SessionStore.open(path)
    rescued.replace(path)
    assert "before" in list_texts(path)


@pytest.mark.parametrize("lose", [remove, rename, remove_everything])
def test_a_loss_that_was_not_noticed_before_the_end_is_noticed_then(
    path: Path, dm: Source, lose: Callable[[Path], None]
) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        lose(path)
    [rescued] = path.parent.glob("palaver-rescued-*.db")
    assert list_texts(rescued) == ["before"]


def test_a_start_does_not_begin_with_an_empty_database_beside_a_saved_one(path: Path, dm: Source) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        remove_everything(path)
    with pytest.raises(StoreUnavailable, match="palaver-rescued-"):
        SessionStore.open(path)
    assert not path.exists()
    [rescued] = path.parent.glob("palaver-rescued-*.db")
    rescued.rename(path)
    assert list_texts(path) == ["before"]


def test_a_start_does_not_begin_with_an_empty_database_beside_the_log_of_another(path: Path, dm: Source) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        copy = path.with_name("copy")
        copy.mkdir()
        shutil.copyfile(f"{path}-wal", copy / "palaver.db-wal")
    with pytest.raises(StoreDamaged, match=r"palaver\.db-wal"):
        SessionStore.open(copy / "palaver.db")
    assert not (copy / "palaver.db").exists()


@pytest.mark.parametrize("name", ["elsewhere.db", "../elsewhere"])
def test_the_store_goes_on_when_the_file_is_back(path: Path, dm: Source, name: str) -> None:
    place = path if name.endswith(".db") else path.parent
    elsewhere = place.with_name(Path(name).name)
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        place.rename(elsewhere)
        with pytest.raises(StoreFileLost):
            store.record_user_message(dm(), "meanwhile")
        elsewhere.rename(place)
        store.record_user_message(dm(), "after")
    assert {"before", "after"} <= set(list_texts(path))
    assert list(path.parent.glob("palaver-rescued-*")) == []


def test_a_second_process_on_the_file_refuses_too_and_the_loss_does_not_empty_either(path: Path, dm: Source) -> None:
    with SessionStore.open(path) as first, SessionStore.open(path) as second:
        first.record_user_message(dm(), "of the first")
        second.record_user_message(dm(), "of the second")
        remove(path)
        for store in (first, second):
            with pytest.raises(StoreFileLost):
                store.record_user_message(dm(), "after")
    for rescued in path.parent.glob("palaver-rescued-*.db"):
        assert {"of the first", "of the second"} <= set(list_texts(rescued))


def test_a_loss_is_noticed_without_a_write(path: Path, dm: Source) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
        watch = store.engine.watch(lambda _changed: None)
        remove(path)

        def is_refused() -> bool:
            try:
                store.list_sessions()
            except StoreFileLost:
                return True
            return False

        deadline = time.monotonic() + 60
        while not is_refused() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert is_refused()
        watch.close()


def test_no_connection_creates_a_file(path: Path, dm: Source) -> None:
    engine = SqliteEngine.open(path)
    try:
        remove_everything(path)
        for _ in range(3):
            with pytest.raises(StoreError):
                engine.run(Write(lambda tx: tx.execute("DELETE FROM session")))
            with pytest.raises(StoreError):
                engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM session")))
        assert [each.name for each in path.parent.iterdir() if "rescued" not in each.name] == []
    finally:
        engine.close()


def test_a_file_is_created_for_its_owner_only(path: Path) -> None:
    with SessionStore.open(path):
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert modes == {"palaver.db": 0o600, "palaver.db-wal": 0o600, "palaver.db-shm": 0o600}


def test_a_replaced_link_is_a_lost_file(path: Path, tmp_path: Path, dm: Source) -> None:
    with SessionStore.open(path) as store:
        store.record_user_message(dm(), "before")
    other = tmp_path / "other.db"
    shutil.copyfile(path, other)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with SessionStore.open(link) as store:
        store.record_user_message(dm(), "through the link")
        link.unlink()
        link.symlink_to(other)
        with pytest.raises(StoreFileLost):
            store.record_user_message(dm(), "after")


def test_connecting_does_not_create_a_file(path: Path) -> None:
    with pytest.raises(apsw.CantOpenError):
        connect(path)
    assert not path.exists()
